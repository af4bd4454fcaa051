//! Random values that a JSON Schema allows: the structure comes from the schema, and meaningful
//! words come from a short list.

use proptest::prelude::*;
use proptest::string::string_regex;
use serde_json::{Map, Value, json};

/// Definitions that the manifests may name.
pub(crate) const FILES: [(&str, &str); 2] = [
    (
        "evc.yaml",
        include_str!("../../../tests/golden/everything/crds/ephemeralvolumeclaim.yaml"),
    ),
    (
        "exhibits.yaml",
        include_str!("../../../tests/golden/preset-full/crds/exhibits.yaml"),
    ),
];

/// Valid and invalid words for a key with a string; other texts are rare.
fn words(key: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match key {
        "crd" => (
            &["evc.yaml", "evc.yaml", "exhibits.yaml"],
            &["missing.yaml"],
        ),
        "builtin" => (
            &["v1/Pod", "batch/v1/Job", "v1/Node", "v1/Secret"],
            &["v1/Nothing", "pods"],
        ),
        "group" => (&["kopf.dev", "apps"], &["", "*"]),
        "category" | "short_name" => (&["all", "kex"], &[""]),
        "as" => (&["Toys", "Things"], &["toys"]),
        "kind" => (&["EphemeralVolumeClaim", "Exhibit"], &["Nothing"]),
        "version" => (&["v1"], &["v2"]),
        "field" => (
            &[
                "spec",
                "spec",
                "metadata.labels",
                "metadata.labels",
                "spec.size",
            ],
            &[
                "spec.ttlSeconds",
                "spec.mounts",
                "spec.class",
                "spec.extra.deep",
                "spec.field",
                "status.phase",
                "spec.parameters.key",
                "spec.nodeName",
                "..",
            ],
        ),
        "fn" | "timer" | "daemon" | "validate" | "mutate" | "state" | "startup" | "cleanup"
        | "login" | "probe" => (
            &[
                "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p",
                "type", "async", "match", "x9",
            ],
            &["Bad", "r#match", "self", "a-b", ""],
        ),
        "index" => (&["by_name", "by_node", "match"], &["By Name"]),
        "when" | "predicate" | "all" | "any" | "none" | "not" => {
            (&["is_due", "is_new", "is_other", "where"], &["Is due"])
        }
        "id" => (&["other", "Some.id", "a/b"], &["no id"]),
        "keys" => (&["String", "(String, u32)", "u64"], &["&str", "f64"]),
        "values" => (&["String", "Vec<u8>", "Option<String>", "f64"], &["oops<"]),
        "rename" => (&["Renamed", "Other"], &["renamed", "Not A Name"]),
        "replace" => (&["serde_json::Value"], &["&str", "oops<"]),
        "derive" | "derive_at" => (&["Debug", "Clone"], &["Vec<u8>", "a b"]),
        "memo" => (&["Notes", "Memory"], &["notes"]),
        "subresource" => (&["status", "*"], &["scale", "exec"]),
        "namespaces" => (&["default", "team-*"], &["a,!b"]),
        "labels" | "annotations" => (&["present", "absent", "gold", "ü\"\\"], &[""]),
        "value" | "old" | "new" => (&["present", "absent"], &["1Gi", "a\"b\\c"]),
        "name" | "lease" => (&["some-name", "a"], &["Bad Name"]),
        _ => (&["a", "some-text"], &[""]),
    }
}

/// The probability of an optional key in a mapping of the sort `what`.
fn likelihood(key: &str, what: Option<&str>) -> f64 {
    f64::from(match (key, what) {
        ("interval", Some("timer")) => 95,
        ("idle" | "sharp" | "initial_delay", Some("timer")) => 20,
        (
            "initial_delay"
            | "cancellation_backoff"
            | "cancellation_timeout"
            | "cancellation_polling",
            Some("daemon"),
        ) => 20,
        ("resources" | "handlers", _) => 90,
        ("crd", _) => 80,
        ("builtin", _) => 20,
        ("select", _) => 4,
        ("indices" | "admission", _) => 30,
        ("mutate", _) => 35,
        ("validate", _) => 65,
        ("field", Some("on")) => 45,
        ("settings" | "peering" | "leader_election" | "namespaces" | "memo", _) => 12,
        ("retries" | "backoff" | "timeout" | "labels" | "annotations" | "when" | "param", _) => 12,
        ("errors" | "id" | "types", _) => 8,
        (
            "rename" | "replace" | "derive" | "derive_at" | "builtin_types" | "open_enums"
            | "builders",
            _,
        ) => 20,
        _ => 2,
    }) / 100.0
}

/// A value that `schema` allows, or nearly: the caller checks combinations of keywords.
pub(crate) fn values(root: &Value, schema: &Value, key: &str) -> BoxedStrategy<Value> {
    let Some(keywords) = schema.as_object() else {
        return anything();
    };
    if let Some(pointer) = keywords.get("$ref").and_then(Value::as_str) {
        let definition = root.pointer(pointer.trim_start_matches('#'));
        return values(root, definition.expect("a definition"), key);
    }
    if let Some(value) = keywords.get("const") {
        return Just(value.clone()).boxed();
    }
    if let Some(values) = keywords.get("enum").and_then(Value::as_array) {
        return prop::sample::select(values.clone()).boxed();
    }
    let is_object = keywords.contains_key("properties");
    let alternatives = keywords
        .get("anyOf")
        .or_else(|| keywords.get("oneOf").filter(|_| !is_object));
    if let Some(schemas) = alternatives.and_then(Value::as_array) {
        // Combinations contain combinations without end; these contain conditions only.
        let is_inside = COMBINING_KEYS.contains(&key);
        let schemas = schemas.iter().filter(|it| !(is_inside && combines(it)));
        return one_of(schemas.map(|schema| {
            let weight = if schema["type"] == "null" { 1 } else { 6 };
            (weight, values(root, schema, key))
        }));
    }
    match keywords.get("type") {
        Some(Value::Array(types)) => one_of(types.iter().map(|name| {
            let weight = if name == "null" { 1 } else { 6 };
            (weight, typed(root, keywords, name, key))
        })),
        Some(name) => typed(root, keywords, name, key),
        None => anything(),
    }
}

/// The keys of combined conditions.
const COMBINING_KEYS: [&str; 4] = ["all", "any", "none", "not"];

fn combines(schema: &Value) -> bool {
    let mut keys = COMBINING_KEYS.iter();
    keys.any(|key| schema["properties"].get(key).is_some())
}

fn one_of(choices: impl Iterator<Item = (u32, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    prop::strategy::Union::new_weighted(choices.collect()).boxed()
}

fn anything() -> BoxedStrategy<Value> {
    let samples = [
        json!(true),
        json!(7),
        json!("text \"with\" \\ and ü"),
        json!([1, null, {"a": "b"}]),
        json!({"a": {"b": [1.5]}}),
    ];
    prop::sample::select(samples.to_vec()).boxed()
}

fn typed(
    root: &Value,
    schema: &Map<String, Value>,
    name: &Value,
    key: &str,
) -> BoxedStrategy<Value> {
    match name.as_str().expect("the name of a type") {
        "null" => Just(Value::Null).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "integer" | "number" => number(schema),
        "string" => text(schema, key),
        "array" => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            let least = usize::try_from(least).expect("a small number");
            let item = values(root, schema.get("items").unwrap_or(&Value::Bool(true)), key);
            prop::collection::vec(item, least..least + 4)
                .prop_map(Value::from)
                .boxed()
        }
        "object" => object(root, schema, key),
        other => panic!("the test does not know the type `{other}`"),
    }
}

fn number(schema: &Map<String, Value>) -> BoxedStrategy<Value> {
    let limit = |keyword: &str| schema.get(keyword).cloned();
    let limits: Vec<Value> = [limit("minimum"), limit("maximum")]
        .into_iter()
        .flatten()
        .chain([json!(1)])
        .collect();
    prop_oneof![
        6 => (0i64..100).prop_map(Value::from),
        1 => prop::sample::select(limits),
    ]
    .boxed()
}

fn text(schema: &Map<String, Value>, key: &str) -> BoxedStrategy<Value> {
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        let inner = pattern.trim_start_matches('^').trim_end_matches('$');
        let texts = string_regex(inner).expect("a pattern");
        return prop_oneof![
            4 => prop::sample::select(vec!["5s", "1m30s", "1h"]).prop_map(str::to_owned),
            1 => texts,
        ]
        .prop_map(Value::from)
        .boxed();
    }
    let (good, bad) = words(key);
    prop_oneof![
        60 => prop::sample::select(good).prop_map(str::to_owned),
        2 => prop::sample::select(bad).prop_map(str::to_owned),
        1 => "\\PC{0,8}",
    ]
    .prop_map(Value::from)
    .boxed()
}

/// Keys of which one is allowed, which the schema does not express.
const EXCLUSIVE_KEYS: [(&str, &str); 2] = [("crd", "builtin"), ("validate", "mutate")];

/// The properties, with the constraints of one branch of `oneOf`.
fn object(root: &Value, schema: &Map<String, Value>, key: &str) -> BoxedStrategy<Value> {
    for (one, other) in EXCLUSIVE_KEYS {
        let is_free = |name: &str| {
            let property = schema.get("properties").and_then(|all| all.get(name));
            property.is_some() && !schema.contains_key("required")
        };
        if is_free(one) && is_free(other) {
            let with_only = |wanted: &str, unwanted: &str| {
                let mut schema = schema.clone();
                let properties = schema["properties"].as_object_mut().expect("properties");
                properties.remove(unwanted);
                schema.insert("required".to_owned(), json!([wanted]));
                object(root, &schema, key)
            };
            let mut any = schema.clone();
            any.insert("required".to_owned(), json!([]));
            let choices = [
                (10, with_only(one, other)),
                (6, with_only(other, one)),
                (1, object(root, &any, key)),
            ];
            return one_of(choices.into_iter());
        }
    }
    if let Some(branches) = schema.get("oneOf").and_then(Value::as_array) {
        let mut common = schema.clone();
        common.remove("oneOf");
        return one_of(branches.iter().map(|branch| {
            let mut schema = common.clone();
            let properties = schema["properties"].as_object_mut().expect("properties");
            for (name, wanted) in branch["properties"].as_object().into_iter().flatten() {
                if wanted["type"] == "null" {
                    properties.remove(name);
                }
            }
            schema.insert("required".to_owned(), branch["required"].clone());
            (1, object(root, &schema, key))
        }));
    }
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|it| it == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let first = schema.get("required").and_then(|names| names.get(0));
    let what = first.and_then(Value::as_str);
    let mut entries: Vec<BoxedStrategy<Option<(String, Value)>>> = Vec::new();
    for (name, schema) in properties.into_iter().flatten() {
        let name = name.clone();
        let value = values(root, schema, &name);
        let entry = if required(&name) {
            value.prop_map(Some).boxed()
        } else {
            prop::option::weighted(likelihood(&name, what), value).boxed()
        };
        entries.push(
            entry
                .prop_map(move |value| value.map(|value| (name.clone(), value)))
                .boxed(),
        );
    }
    let additional = schema.get("additionalProperties");
    if let Some(schema) = additional.filter(|schema| schema.is_object()) {
        let names = match key {
            "rename" | "replace" | "derive_at" => ["spec", "spec.size"],
            _ => ["tier", "example.com/x"],
        };
        for name in names {
            let value = prop::option::of(values(root, schema, key));
            entries.push(
                value
                    .prop_map(move |value| value.map(|value| (name.to_owned(), value)))
                    .boxed(),
            );
        }
    }
    entries
        .prop_map(|entries| Value::Object(entries.into_iter().flatten().collect()))
        .boxed()
}
