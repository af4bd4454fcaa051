//! Schemas of definitions: structure, defaults, lists and maps, and the extensions of Kubernetes.

use std::path::{Path, PathBuf};

use kopf_tests::{Sandbox, TestFailure, TestResult, workspace};
use serde_json::{Value, json};

use crate::judges::{difference, is_unreadable, of_generator, of_server};

/// The files of a folder of the corpus.
fn files(folder: &str) -> Result<Vec<PathBuf>, TestFailure> {
    let folder = workspace::root().join("tests/corpus").join(folder);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    Ok(files)
}

fn name(file: &Path) -> String {
    file.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[tokio::test]
async fn reasons_against_schemas_that_are_not_structural_are_those_of_the_api_server() -> TestResult
{
    let sandbox = Sandbox::open("not-structural").await?;
    let files = files("not-structural")?;
    assert_eq!(files.len(), 9);
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let reasons = of_generator(&text).reasons;
        let answer = of_server(&sandbox.client(), &text).await?;
        let answer =
            answer.ok_or_else(|| TestFailure::new(format!("{} is accepted", name(&file))))?;
        let given = |reason: &&String| answer.contains(*reason);
        assert!(
            reasons.iter().any(|it| given(&it)),
            "{}: {reasons:?}: {answer}",
            name(&file)
        );
        let is_complete = reasons.iter().all(|it| given(&it));
        assert!(
            is_complete || is_unreadable(&answer),
            "{}: {reasons:?}: {answer}",
            name(&file)
        );
    }
    Ok(())
}

#[tokio::test]
async fn definitions_of_the_corpus_are_accepted_by_both() -> TestResult {
    let sandbox = Sandbox::open("structural").await?;
    for file in files("definitions")? {
        // The API server accepts it, but there is nothing to make types for.
        if name(&file) == "no-served-version.yaml" {
            continue;
        }
        let text = std::fs::read_to_string(&file)?;
        assert_eq!(
            of_server(&sandbox.client(), &text).await?,
            None,
            "{}",
            name(&file)
        );
        let judgement = of_generator(&text);
        assert!(
            !judgement.rejects,
            "{}: {:?}",
            name(&file),
            judgement.reported
        );
    }
    Ok(())
}

/// A definition with this root of its schema.
pub(crate) fn with_root(root: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": root},
            }],
        },
    })
}

/// A definition with this schema of a field.
fn with_field(field: &Value) -> Value {
    with_root(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {"f": field},
    }}}))
}

/// Schemas of a field, of which some are valid.
fn fields() -> Vec<Value> {
    let mut list = vec![
        json!({"type": "array"}),
        json!({"type": "array", "items": {}}),
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": false}),
        json!({"type": "null"}),
        json!({"type": ""}),
        json!({}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"x-kubernetes-preserve-unknown-fields": false}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
        json!({"x-kubernetes-int-or-string": true}),
        json!({"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true}),
        json!({"x-kubernetes-int-or-string": true, "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "a"}]}),
        json!({"x-kubernetes-int-or-string": true, "allOf": [{"pattern": "a"}, {"anyOf": [{"type": "integer"}, {"type": "string"}]}]}),
        json!({"type": "string", "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        json!({"type": "object", "x-kubernetes-embedded-resource": true}),
        json!({"x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "string", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "additionalProperties": {"type": "string"}, "x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"kind": {"type": "integer"}, "metadata": {"type": "string"}}}),
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}}}}}),
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"metadata": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}),
        json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {}}),
        json!({"type": "object", "additionalProperties": {}}),
        json!({"type": "object", "additionalProperties": {"description": "no type"}}),
        json!({"type": "object", "additionalProperties": true}),
        json!({"type": "object", "x-kubernetes-map-type": "atomic"}),
        json!({"type": "object", "x-kubernetes-map-type": "granular"}),
        json!({"type": "object", "x-kubernetes-map-type": "molecular"}),
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-map-type": "atomic"}),
        json!({"type": "object", "id": "x"}),
        json!({"type": "object", "$ref": "#/x"}),
        json!({"type": "object", "dependencies": {"a": ["b"]}}),
        json!({"type": "object", "dependencies": {"a": [1]}}),
        json!({"type": "object", "dependencies": {"a": {"type": "object"}}}),
        json!({"type": "object", "dependencies": {"a": {"minLength": "1"}}}),
        json!({"type": "object", "definitions": {"a": {"type": "string"}}}),
        json!({"type": "object", "definitions": {"a": {"type": "text"}}}),
        json!({"type": "object", "definitions": {"a": {"type": "string", "minLength": "1"}}}),
        json!({"type": "object", "definitions": {"a": {"properties": {"b": {"nullable": 1}}}}}),
        json!({"type": "object", "definitions": {"a": "string"}}),
        json!({"type": "object", "patternProperties": {"^a": {"type": "string"}}}),
        json!({"type": "object", "patternProperties": {"^a": {"required": "b"}}}),
        json!({"type": "array", "items": {"type": "string"}, "additionalItems": {"type": "string"}}),
        json!({"type": "array", "items": {"type": "string"}, "additionalItems": {"maximum": "1"}}),
        json!({"type": "array", "items": {"type": "string"}, "additionalItems": true}),
        json!({"type": "object", "x-unknown": true, "example": {"a": 1}, "externalDocs": {"url": "x"}, "title": "t"}),
        json!({"type": "string", "x-kubernetes-validations": [{"rule": ""}]}),
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "true", "message": " "}]}),
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "true", "message": "a\nb"}]}),
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "true\n"}]}),
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "true &&\n true"}]}),
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "true &&\n true", "message": "m"}]}),
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "true", "reason": "FieldValueInvalid"}]}),
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "true", "reason": "Because"}]}),
    ];
    list.extend(branches());
    list.extend(lists());
    list.extend(defaults());
    list
}

/// Each keyword in a branch.
fn branches() -> Vec<Value> {
    let keywords = [
        ("type", json!("string")),
        ("default", json!(false)),
        ("default", Value::Null),
        ("title", json!("t")),
        ("title", json!("")),
        ("description", json!("d")),
        ("nullable", json!(true)),
        ("nullable", json!(false)),
        ("x-kubernetes-preserve-unknown-fields", json!(true)),
        ("x-kubernetes-embedded-resource", json!(true)),
        ("x-kubernetes-embedded-resource", json!(false)),
        ("x-kubernetes-int-or-string", json!(true)),
        ("additionalProperties", json!({"minLength": 1})),
        ("additionalProperties", json!(true)),
        ("additionalProperties", json!(false)),
        ("x-kubernetes-validations", json!([{"rule": "true"}])),
        ("minLength", json!(1)),
        ("pattern", json!("a")),
        ("enum", json!(["a"])),
        ("format", json!("date")),
        ("required", json!(["a"])),
        ("properties", json!({"a": {"minLength": 1}})),
        ("properties", json!({"a": {"type": "string"}})),
        ("properties", json!({"undeclared": {"minLength": 1}})),
        ("properties", json!({"metadata": {"minLength": 1}})),
        ("items", json!({"minLength": 1})),
        ("not", json!({"type": "string"})),
        ("not", json!({"minLength": 1})),
        ("anyOf", json!([{"type": "integer"}, {"type": "string"}])),
    ];
    let mut list = Vec::new();
    for (keyword, value) in keywords {
        let branch = json!({keyword: value});
        let field = |key: &str, value: Value| json!({"type": "object", "properties": {"a": {"type": "string"}}, key: value});
        list.push(field("not", branch.clone()));
        for key in ["allOf", "anyOf", "oneOf"] {
            list.push(field(key, json!([{}, branch])));
        }
    }
    list
}

/// Lists with their types and keys.
fn lists() -> Vec<Value> {
    let items = [
        json!({"type": "string"}),
        json!({"type": "string", "nullable": true}),
        json!({"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]}),
        json!({"type": "object", "properties": {"k": {"type": "string"}}}),
        json!({"type": "object", "properties": {"k": {"type": "string", "default": "d"}}}),
        json!({"type": "object", "properties": {"k": {"type": "string", "nullable": true}}, "required": ["k"]}),
        json!({"type": "object", "properties": {"k": {"type": "object"}}, "required": ["k"]}),
        json!({"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"], "nullable": true}),
        json!({"type": "object", "x-kubernetes-map-type": "atomic"}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"}),
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
    ];
    let mut list = vec![
        json!({"type": "string", "x-kubernetes-list-type": "set"}),
        json!({"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-list-type": "set"}),
    ];
    for items in items {
        for list_type in [None, Some("atomic"), Some("set"), Some("map"), Some("bag")] {
            for keys in [json!([]), json!(["k"]), json!(["k", "k"]), json!(["other"])] {
                let mut field = json!({"type": "array", "items": items});
                if let Some(list_type) = list_type {
                    field["x-kubernetes-list-type"] = json!(list_type);
                }
                if keys != json!([]) {
                    field["x-kubernetes-list-map-keys"] = keys;
                }
                list.push(field);
            }
        }
    }
    list
}

/// Defaults that the schema allows or not.
fn defaults() -> Vec<Value> {
    let with = |mut schema: Value, default: Value| {
        schema["default"] = default;
        schema
    };
    let object = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string", "default": "x"}},
        "required": ["a"],
    });
    let mut list = vec![
        with(object.clone(), json!({})),
        with(object.clone(), json!({"a": 1})),
        with(object.clone(), json!({"a": 1, "c": 2})),
        with(object.clone(), json!({"a": "1"})),
        with(object.clone(), json!({"a": 1, "b": null})),
        with(object, json!("text")),
        json!({"type": "object", "properties": {"a": {"type": "string", "default": "d"}}, "required": ["a"], "default": {}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": true, "default": {"z": 1}}),
        json!({"type": "object", "additionalProperties": {"type": "integer"}, "default": {"z": "1"}}),
        json!({"type": "object", "additionalProperties": {"type": "integer"}, "default": {"z": 1}}),
        json!({"type": "object", "additionalProperties": {"type": "integer", "default": "x"}}),
        json!({"type": "array", "items": {"type": "integer"}, "default": ["1"]}),
        json!({"type": "array", "items": {"type": "integer", "default": "1"}}),
        json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}, "default": [{"b": 1}]}),
        json!({"type": "string", "default": 1}),
        json!({"type": "string", "default": null}),
        json!({"type": "integer", "default": 1.0}),
        json!({"type": "integer", "default": 1.5}),
        json!({"type": "number", "default": 1}),
        json!({"type": "boolean", "default": "true"}),
        json!({"type": "string", "nullable": true, "default": "x"}),
        json!({"x-kubernetes-int-or-string": true, "default": "50%"}),
        json!({"x-kubernetes-int-or-string": true, "default": 5}),
        json!({"x-kubernetes-int-or-string": true, "default": true}),
        json!({"x-kubernetes-preserve-unknown-fields": true, "default": {"any": ["thing"]}}),
        json!({"type": "object", "default": {"a": 1}}),
        json!({"type": "object", "default": {}}),
    ];
    let limits = [
        ("string", "enum", json!(["a", "b"]), json!("c")),
        ("string", "minLength", json!(2), json!("c")),
        ("string", "maxLength", json!(2), json!("ccc")),
        ("string", "maxLength", json!(1), json!("ccc")),
        ("string", "pattern", json!("^a+$"), json!("b")),
        ("integer", "minimum", json!(2), json!(1)),
        ("integer", "maximum", json!(2), json!(3)),
        ("number", "minimum", json!(0.5), json!(0.25)),
        ("integer", "multipleOf", json!(5), json!(7)),
    ];
    for (kind, keyword, limit, default) in limits {
        list.push(json!({"type": kind, keyword: limit, "default": default}));
        list.push(json!({"type": "object", "properties": {"a": {"type": kind, keyword: limit}}, "default": {"a": default}}));
    }
    for (keyword, limit) in [("minItems", 2), ("maxItems", 0), ("maxItems", 1)] {
        list.push(
            json!({"type": "array", "items": {"type": "string"}, keyword: limit, "default": ["a"]}),
        );
    }
    for (keyword, limit) in [("minProperties", 2), ("maxProperties", 0)] {
        list.push(json!({"type": "object", "additionalProperties": {"type": "string"}, keyword: limit, "default": {"a": "b"}}));
    }
    for key in ["anyOf", "oneOf"] {
        list.push(
            json!({"type": "string", key: [{"enum": ["a"]}, {"enum": ["b"]}], "default": "c"}),
        );
    }
    list.push(json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true, "default": 1}));
    list.push(json!({"type": "integer", "maximum": 1, "exclusiveMaximum": true, "default": 1}));
    list
}

/// Roots of schemas, and other parts of a version.
fn definitions() -> Vec<Value> {
    let metadata =
        |schema: Value| with_root(&json!({"type": "object", "properties": {"metadata": schema}}));
    let mut list = vec![
        with_root(&json!({})),
        with_root(&json!({"type": "string"})),
        with_root(&json!({"type": "object", "nullable": true})),
        with_root(&json!({"type": "object", "additionalProperties": {"type": "string"}})),
        with_root(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        with_root(&json!({"x-kubernetes-preserve-unknown-fields": true})),
        with_root(&json!({"type": "object", "properties": {"kind": {"type": "integer"}}})),
        with_root(
            &json!({"type": "object", "properties": {"kind": {"type": "string", "default": "x"}}}),
        ),
        with_root(
            &json!({"type": "object", "properties": {"apiVersion": {"type": "string", "description": "d"}}}),
        ),
        with_root(&json!({"type": "object", "oneOf": [{"required": ["spec"]}]})),
        with_root(&json!({"type": "object", "oneOf": [{"properties": {"spec": {}}}]})),
        with_root(
            &json!({"type": "object", "properties": {"spec": {"type": "object"}}, "oneOf": [{"properties": {"spec": {"properties": {"x": {}}}}}]}),
        ),
        with_root(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": {"type": "string"}}}}, "allOf": [{"not": {"properties": {"spec": {"properties": {"x": {"minLength": 1}}}}}}]}),
        ),
        with_root(
            &json!({"type": "object", "properties": {"l": {"type": "object"}}, "anyOf": [{"properties": {"l": {"items": {"minLength": 1}}}}]}),
        ),
        metadata(json!({"type": "object"})),
        metadata(json!({"type": "object", "description": "d"})),
        metadata(json!({"type": "string"})),
        metadata(
            json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}),
        ),
        metadata(
            json!({"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}),
        ),
        metadata(json!({"type": "object", "properties": {"labels": {"type": "object"}}})),
        metadata(
            json!({"type": "object", "properties": {"name": {"type": "string", "default": "x"}}}),
        ),
        metadata(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        metadata(json!({"type": "object", "required": ["name"]})),
        metadata(json!({"type": "object", "default": {}})),
    ];
    let mut with_version = |key: &str, value: Value| {
        let mut definition = with_root(&json!({"type": "object"}));
        definition["spec"]["versions"][0][key] = value;
        list.push(definition);
    };
    with_version("deprecationWarning", json!("old"));
    with_version("subresources", json!({"scale": {}}));
    with_version(
        "subresources",
        json!({"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}),
    );
    with_version(
        "subresources",
        json!({"scale": {"specReplicasPath": "spec.n", "statusReplicasPath": ".spec.n"}}),
    );
    with_version(
        "subresources",
        json!({"scale": {"specReplicasPath": ".status.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".metadata.x"}}),
    );
    for column in [
        json!({"name": "n", "type": "string", "jsonPath": ".spec"}),
        json!({"name": "", "type": "string", "jsonPath": ".spec"}),
        json!({"name": "n", "type": "text", "jsonPath": ".spec"}),
        json!({"name": "n", "jsonPath": ".spec"}),
        json!({"name": "n", "type": "string", "jsonPath": "spec"}),
        json!({"name": "n", "type": "string"}),
        json!({"name": "n", "type": "date", "format": "date-time", "jsonPath": ".spec"}),
        json!({"name": "n", "type": "date", "format": "roman", "jsonPath": ".spec"}),
    ] {
        with_version("additionalPrinterColumns", json!([column]));
    }
    let warnings = [
        (true, "old"),
        (true, ""),
        (false, "old"),
        (true, "a\nb"),
        (true, "Ärger, e\u{301} und 中文"),
        (true, "a\u{a0}b"),
        (true, "a\u{200b}b"),
        (true, "a\u{202e}b"),
        (true, "a\u{2028}b"),
        (true, "a\u{e000}b"),
    ];
    for (deprecated, warning) in warnings {
        let mut definition = with_root(&json!({"type": "object"}));
        definition["spec"]["versions"][0]["deprecated"] = json!(deprecated);
        definition["spec"]["versions"][0]["deprecationWarning"] = json!(warning);
        list.push(definition);
    }
    list.extend(with_status());
    list.extend(with_conversion());
    list.extend(with_selectable_fields());
    list.extend(with_two_versions());
    for preserve in [json!(true), json!(false), Value::Null] {
        let mut definition = with_root(&json!({"type": "object"}));
        definition["spec"]["preserveUnknownFields"] = preserve;
        list.push(definition);
    }
    list
}

/// Keywords at the root beside a status subresource.
fn with_status() -> Vec<Value> {
    let keywords = [
        ("description", json!("d")),
        ("default", json!({})),
        ("nullable", json!(true)),
        ("enum", json!([{}])),
        ("minProperties", json!(1)),
        ("anyOf", json!([{"required": ["spec"]}])),
        ("not", json!({"required": ["spec"]})),
        ("required", json!(["spec"])),
        ("x-kubernetes-preserve-unknown-fields", json!(true)),
        ("x-kubernetes-embedded-resource", json!(true)),
        ("x-kubernetes-map-type", json!("atomic")),
        ("x-kubernetes-validations", json!([{"rule": "true"}])),
        ("example", json!({})),
    ];
    let definition = |(keyword, value): (&str, Value)| {
        let properties = json!({"spec": {"type": "object"}, "status": {"type": "object"}});
        let mut definition =
            with_root(&json!({"type": "object", "properties": properties, keyword: value}));
        definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
        definition
    };
    keywords.into_iter().map(definition).collect()
}

/// The root of a schema with fields of all types.
fn selectable_root() -> Value {
    let texts: serde_json::Map<String, Value> = (0..9)
        .map(|place| (format!("t{place}"), json!({"type": "string"})))
        .collect();
    json!({"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
        "top": {"type": "string"},
        "spec": {"type": "object", "properties": {
            "text": {"type": "string", "enum": ["a"]},
            "flag": {"type": "boolean"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "port": {"x-kubernetes-int-or-string": true},
            "list": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"type": "object", "additionalProperties": true},
            "'quoted.name'": {"type": "string"},
            ".": {"type": "string"},
            "texts": {"type": "object", "properties": texts},
        }},
    }})
}

fn with_selectable_fields() -> Vec<Value> {
    let fields = |paths: &[&str]| -> Value {
        let fields = paths.iter().map(|path| json!({"jsonPath": path}));
        fields.collect()
    };
    let texts: Vec<String> = (0..9)
        .map(|place| format!(".spec.texts.t{place}"))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut lists: Vec<Value> = [
        ".top",
        ".spec",
        ".spec.text",
        ".spec.flag",
        ".spec.count",
        ".spec.ratio",
        ".spec.port",
        ".spec.list",
        ".spec.list[0]",
        ".spec['text']",
        ".spec.map",
        ".spec.map.key",
        ".spec.any.key",
        ".spec.text.more",
        ".spec.missing",
        ".status.missing",
        ".metadata.name",
        ".metadata.labels",
        "spec.text",
        "$.spec.text",
        ".",
        "..",
        ".spec.",
        ".spec..",
        ".spec..text",
        ".spec.'quoted.name'",
        ".spec.'quoted",
        ".spec]text",
        "]",
        " .spec.text",
        ".spec.text ",
    ]
    .into_iter()
    .map(|path| fields(&[path]))
    .collect();
    lists.extend([
        json!([]),
        json!([{}]),
        json!([{"jsonPath": ""}]),
        fields(&[".spec.text", ".spec.flag"]),
        fields(&[".spec.text", ".spec.text"]),
        fields(&[".spec.map.a", ".spec.map.a"]),
        fields(&texts[..8]),
        fields(&texts),
    ]);
    let definition = |fields: Value| {
        let mut definition = with_root(&selectable_root());
        definition["spec"]["versions"][0]["selectableFields"] = fields;
        definition
    };
    lists.into_iter().map(definition).collect()
}

/// Definitions with two versions, whose parts are equal or not.
fn with_two_versions() -> Vec<Value> {
    let fields = |path: &str| json!([{"jsonPath": path}]);
    let mut list = Vec::new();
    for has_other_schema in [false, true] {
        for (first, second) in [
            (json!(null), json!(null)),
            (fields(".spec.text"), json!(null)),
            (fields(".spec.text"), fields(".spec.text")),
            (fields(".spec.text"), fields(".spec.flag")),
            (fields(".spec.text"), fields(".spec.missing")),
            (fields(".spec.missing"), fields(".spec.missing")),
        ] {
            let mut definition = with_root(&selectable_root());
            let versions = &mut definition["spec"]["versions"];
            let mut other = versions[0].clone();
            other["name"] = json!("v2");
            other["storage"] = json!(false);
            other["selectableFields"] = second;
            if has_other_schema {
                other["schema"]["openAPIV3Schema"]["description"] = json!("of another version");
            }
            versions[0]["selectableFields"] = first;
            *versions = json!([versions[0], other]);
            list.push(definition);
        }
    }
    for root in [
        json!({"type": "object", "oneOf": [{"properties": {"spec": {}}}]}),
        json!({"type": "object", "properties": {"spec": {}}}),
    ] {
        let mut definition = with_root(&root);
        let versions = &mut definition["spec"]["versions"];
        let mut other = versions[0].clone();
        other["name"] = json!("v2");
        other["storage"] = json!(false);
        *versions = json!([versions[0], other]);
        list.push(definition);
    }
    list
}

fn with_conversion() -> Vec<Value> {
    let service = json!({"service": {"name": "n", "namespace": "m"}});
    let client = |client: Value| json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}});
    let url = |url: &str| client(json!({"url": url}));
    let path =
        |path: &str| client(json!({"service": {"name": "n", "namespace": "m", "path": path}}));
    let port =
        |port: i64| client(json!({"service": {"name": "n", "namespace": "m", "port": port}}));
    let reviews = |versions: Value| json!({"strategy": "Webhook", "webhook": {"clientConfig": service, "conversionReviewVersions": versions}});
    let conversions = [
        url("https://example.com/path"),
        url("HTTPS://example.com:8443/a/b"),
        url("http://example.com"),
        url("example.com"),
        url("https://"),
        url("https:///path"),
        url("https://user@example.com"),
        url("https://user:secret@example.com/path"),
        url("https://example.com#part"),
        url("https://example.com?a=b"),
        url("https://example.com/a b"),
        url("https://exa mple.com/"),
        url("https://example.com/\u{1}"),
        url(""),
        path(""),
        path("/"),
        path("//"),
        path("/convert"),
        path("/convert/"),
        path("/a//b"),
        path("convert"),
        path("/Upper"),
        path("/a_b"),
        port(1),
        port(0),
        port(-1),
        port(65535),
        port(65536),
        reviews(json!(["v1", "v1"])),
        reviews(json!(["v1", "V1"])),
        reviews(json!(["v1", ""])),
        json!({"strategy": "None", "webhook": {}}),
        json!({"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
        json!({}),
        json!({"strategy": "None"}),
        json!({"strategy": "Magic"}),
        json!({"strategy": "Webhook"}),
        json!({"strategy": "None", "webhook": {"clientConfig": service, "conversionReviewVersions": ["v1"]}}),
        json!({"strategy": "Webhook", "webhook": {"clientConfig": service, "conversionReviewVersions": ["v1"]}}),
        json!({"strategy": "Webhook", "webhook": {"clientConfig": service, "conversionReviewVersions": []}}),
        json!({"strategy": "Webhook", "webhook": {"clientConfig": service, "conversionReviewVersions": ["v7"]}}),
        json!({"strategy": "Webhook", "webhook": {"clientConfig": {}, "conversionReviewVersions": ["v1"]}}),
        json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {}}, "conversionReviewVersions": ["v1"]}}),
        json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://example.com"}, "conversionReviewVersions": ["v1"]}}),
    ];
    let definition = |conversion: Value| {
        let mut definition = with_root(&json!({"type": "object"}));
        definition["spec"]["conversion"] = conversion;
        definition
    };
    conversions.into_iter().map(definition).collect()
}

#[tokio::test]
async fn schemas_are_judged_as_by_the_api_server() -> TestResult {
    let sandbox = Sandbox::open("schemas").await?;
    let mut found = Vec::new();
    for field in fields() {
        let what = field.to_string();
        found.extend(difference(&sandbox.client(), &what, &with_field(&field)).await?);
    }
    for definition in definitions() {
        let what = definition["spec"].to_string();
        found.extend(difference(&sandbox.client(), &what, &definition).await?);
    }
    assert!(found.is_empty(), "{}: {}", found.len(), found.join("\n"));
    Ok(())
}
