//! Values that fit their schemas, and values that do not.

use serde_json::json;

use super::*;
use crate::diagnostic::{Diagnostics, Sources};
use crate::load::crd::{self, NameFix};

/// The reason why a field with this schema, given in YAML's flow style, cannot have the value.
fn verdict(schema: &str, value: &Json) -> String {
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{kind: Widget, plural: widgets}}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, properties: {{field: {schema}}}}}}}
"
    );
    let mut sources = Sources::new();
    let source = sources.add("crd.yaml", definition);
    let mut diagnostics = Diagnostics::new();
    let crds = crd::read(&sources, source, NameFix::Report, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{diagnostics:?}");
    let root = &crds[0].versions[0].schema;
    let schema = field(root, &["field".to_owned()]).expect("a field");
    violation(schema, value).map_or_else(
        || "fits".to_owned(),
        |violation| format!("{}{}", violation.at, violation.reason),
    )
}

#[test]
fn values_of_another_type_do_not_fit() {
    for (schema, value, expected) in [
        (
            "{type: integer}",
            json!("3"),
            "the field holds a whole number",
        ),
        ("{type: integer}", json!(3), "fits"),
        ("{type: string}", json!(3), "the field holds a string"),
        (
            "{type: boolean}",
            json!("true"),
            "the field holds a boolean",
        ),
        ("{type: number}", json!(3), "fits"),
        (
            "{type: array, items: {type: string}}",
            json!("a"),
            "the field holds a list",
        ),
        (
            "{type: array, items: {type: string}}",
            json!(["a", 1]),
            "[1]the field holds a string",
        ),
        ("{x-kubernetes-int-or-string: true}", json!("10%"), "fits"),
        ("{x-kubernetes-int-or-string: true}", json!(10), "fits"),
        (
            "{x-kubernetes-int-or-string: true}",
            json!(true),
            "the field holds a whole number or a string",
        ),
        (
            "{x-kubernetes-preserve-unknown-fields: true}",
            json!([1]),
            "fits",
        ),
    ] {
        assert_eq!(verdict(schema, &value), expected, "{schema} {value}");
    }
}

#[test]
fn values_outside_of_what_is_allowed_do_not_fit() {
    for (schema, value, expected) in [
        ("{type: string, enum: [A, B]}", json!("A"), "fits"),
        (
            "{type: string, enum: [A, B]}",
            json!("C"),
            "not one of the values that the schema allows",
        ),
        ("{type: integer, minimum: 1}", json!(1), "fits"),
        (
            "{type: integer, minimum: 1}",
            json!(0),
            "the schema says `minimum: 1`",
        ),
        (
            "{type: integer, minimum: 1, exclusiveMinimum: true}",
            json!(1),
            "the schema says `minimum: 1`",
        ),
        (
            "{type: number, maximum: 0.5}",
            json!(0.75),
            "the schema says `maximum: 0.5`",
        ),
        (
            "{type: integer, multipleOf: 5}",
            json!(12),
            "the schema says `multipleOf: 5`",
        ),
        (
            "{type: string, maxLength: 2}",
            json!("äöü"),
            "the schema says `maxLength: 2`",
        ),
        ("{type: string, maxLength: 3}", json!("äöü"), "fits"),
        (r"{type: string, pattern: '^\d+$'}", json!("12"), "fits"),
        (
            r"{type: string, pattern: '^\d+$'}",
            json!("a"),
            r#"the schema says `pattern: "^\\d+$"`"#,
        ),
        (r"{type: string, pattern: '^(?=x)'}", json!("a"), "fits"),
        (r"{type: string, pattern: '^.$'}", json!("ä"), "fits"),
        (
            "{type: array, maxItems: 1, items: {type: integer}}",
            json!([1, 2]),
            "the schema says `maxItems: 1`",
        ),
        (
            "{anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true, pattern: '^[0-9]+%$'}",
            json!(12),
            "fits",
        ),
        (
            "{type: string, anyOf: [{enum: [a]}, {pattern: '^b'}]}",
            json!("c"),
            "no alternative of the schema allows this",
        ),
    ] {
        assert_eq!(verdict(schema, &value), expected, "{schema} {value}");
    }
}

#[test]
fn mappings_have_the_properties_that_objects_keep() {
    let schema = "{type: object, required: [a], properties: {a: {type: integer, nullable: true}, b: {type: string}}}";
    for (value, expected) in [
        (json!({"a": 1}), "fits"),
        (json!({"a": null}), "fits"),
        (json!({"b": "x"}), "the schema requires `a`"),
        (json!({"a": 1, "c": 2}), "the schema has no `c`"),
        (json!({"a": 1, "b": 2}), ".bthe field holds a string"),
    ] {
        assert_eq!(verdict(schema, &value), expected, "{value}");
    }
    let open = "{type: object, x-kubernetes-preserve-unknown-fields: true}";
    assert_eq!(verdict(open, &json!({"c": 2})), "fits");
    let map = "{type: object, additionalProperties: {type: integer}}";
    assert_eq!(verdict(map, &json!({"c": 2})), "fits");
    assert_eq!(
        verdict(map, &json!({"c": "2"})),
        ".cthe field holds a whole number"
    );
    let embedded =
        "{type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}";
    assert_eq!(verdict(embedded, &json!({"kind": "Pod"})), "fits");
}
