//! No input makes the generator panic, and its output is always valid Rust.

use kopf_gen::diagnostic::{Diagnostics, Sources, Style, human};
use kopf_gen::model::type_options::{Builtins, Options};
use kopf_gen::pipeline;
use kopf_gen::plan;
use kopf_gen::types::{self, TypesRequest};
use proptest::prelude::*;
use serde_json::{Value, json};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z][a-zA-Z0-9_-]{0,8}",
        "\\PC{0,6}",
        prop::sample::select(vec![
            "type",
            "self",
            "Self",
            "spec",
            "status",
            "metadata",
            "apiVersion",
            "kind",
            "extra",
            "String",
            "Option",
            "Vec",
            "value",
            "Widget",
            "WidgetSpec",
            "name",
            "namespace",
        ])
        .prop_map(str::to_owned),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-10i64..10).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        name().prop_map(Value::from),
        Just(json!({})),
        Just(json!([])),
        Just(json!({"a": [1, "x", null]})),
    ]
}

/// Any keyword with any value, mostly sensible ones.
fn schema() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        "object", "object", "object", "string", "integer", "number", "boolean", "array", "", "odd",
    ]);
    let leaf = (
        kind.clone(),
        prop::option::of(scalar()),
        prop::collection::vec(scalar(), 0..4),
        any::<[bool; 4]>(),
    )
        .prop_map(|(kind, default, values, flags)| {
            let mut schema = json!({"type": kind});
            if let Some(default) = default {
                schema["default"] = default;
            }
            if flags[0] && !values.is_empty() {
                schema["enum"] = json!(values);
            }
            if flags[1] {
                schema["nullable"] = json!(true);
            }
            if flags[2] {
                schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
            }
            if flags[3] {
                schema["x-kubernetes-int-or-string"] = json!(true);
            }
            schema
        });
    leaf.prop_recursive(4, 24, 4, move |inner| {
        (
            kind.clone(),
            prop::collection::btree_map(name(), inner.clone(), 0..4),
            prop::option::of(inner.clone()),
            prop::option::of(inner),
            prop::option::of(scalar()),
            any::<[bool; 5]>(),
            "\\PC{0,30}",
        )
            .prop_map(
                |(kind, properties, items, additional, default, flags, description)| {
                    let names: Vec<&String> = properties.keys().collect();
                    let mut schema =
                        json!({"type": kind, "properties": properties, "description": description});
                    if flags[0] {
                        schema["required"] = json!(names);
                    }
                    if flags[1] {
                        let each: Vec<Value> =
                            names.iter().map(|n| json!({"required": [n]})).collect();
                        schema["oneOf"] = json!(each);
                    }
                    if flags[2] {
                        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
                    }
                    if flags[3] {
                        schema["x-kubernetes-embedded-resource"] = json!(true);
                    }
                    if flags[4] {
                        schema["nullable"] = json!(true);
                    }
                    if let Some(items) = items {
                        schema["items"] = items;
                    }
                    if let Some(additional) = additional {
                        schema["additionalProperties"] = additional;
                    }
                    if let Some(default) = default {
                        schema["default"] = default;
                    }
                    schema
                },
            )
    })
}

fn definition(schemas: &[Value]) -> String {
    let versions: Vec<Value> = schemas
        .iter()
        .enumerate()
        .map(|(index, schema)| {
            let root = json!({"type": "object", "properties": {"spec": schema, "status": schema, "other": {"type": "object", "properties": {"inner": schema}}}});
            json!({"name": format!("v{index}"), "served": true, "storage": index == 0, "schema": {"openAPIV3Schema": root}})
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"kind": "Widget", "plural": "widgets"}, "versions": versions},
    })
    .to_string()
}

fn generate(text: &str, options: Options) -> Option<String> {
    let mut sources = Sources::new();
    let id = sources.add("a.yaml", text);
    let mut diagnostics = Diagnostics::new();
    let request = TypesRequest {
        options,
        ..TypesRequest::default()
    };
    let resources = types::resources(&sources, &[id], &request, &mut diagnostics);
    for diagnostic in &diagnostics {
        let _ = human(diagnostic, &sources, Style::Plain);
    }
    (!diagnostics.has_errors()).then(|| pipeline::text(plan::types_module(&resources, &sources)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_schema_becomes_rust(schemas in prop::collection::vec(schema(), 1..3), open in any::<bool>()) {
        for builtins in [Builtins::Exact, Builtins::Compatible, Builtins::None] {
            let options = Options { builtins, open_enums: open, builders: open, ..Options::default() };
            if let Some(text) = generate(&definition(&schemas), options) {
                prop_assert!(syn::parse_file(&text).is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn the_same_input_gives_the_same_bytes(schemas in prop::collection::vec(schema(), 1..3)) {
        let text = definition(&schemas);
        prop_assert_eq!(generate(&text, Options::default()), generate(&text, Options::default()));
    }

    #[test]
    fn damaged_definitions_cause_no_panic(schema in schema(), at in any::<prop::sample::Index>(), junk in "\\PC{0,5}") {
        let mut text = definition(&[schema]);
        let mut position = at.index(text.len());
        while !text.is_char_boundary(position) {
            position -= 1;
        }
        text.insert_str(position, &junk);
        let _ = generate(&text, Options::default());
        text.truncate(position);
        let _ = generate(&text, Options::default());
    }
}
