//! Tests of the comparison of definitions.

use super::*;
use crate::diagnostic::Sources;
use crate::load::yaml::{Dialect, parse};

const DEFINITION: &str = "
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: $SCHEMA}}
";

fn messages(old: &str, new: &str) -> Vec<String> {
    let (mut sources, mut diagnostics) = (Sources::new(), Diagnostics::new());
    let source = sources.add("new.yaml", new.to_owned());
    let old_source = sources.add("old.yaml", old.to_owned());
    let documents = parse(&sources, source, Dialect::Kubernetes, &mut diagnostics);
    let earlier = parse(&sources, old_source, Dialect::Kubernetes, &mut diagnostics);
    assert!(diagnostics.is_empty());
    let current = [CurrentDefinitions {
        source,
        documents: &documents,
    }];
    compare(&earlier, &current, &mut diagnostics);
    let prefix = "widgets.example.com: ";
    let messages = diagnostics.iter().map(|it| it.message.as_str());
    messages
        .map(|it| it.strip_prefix(prefix).unwrap_or(it).to_owned())
        .collect()
}

/// The changes between two schemas of a field, each as `{type: object, properties: {a: …}}`.
fn field(old: &str, new: &str) -> Vec<String> {
    let text = |schema: &str| {
        let schema = format!("{{type: object, properties: {{a: {schema}}}}}");
        DEFINITION.replace("$SCHEMA", &schema)
    };
    messages(&text(old), &text(new))
}

#[test]
fn a_schema_that_allows_less_breaks_stored_objects() {
    for (old, new, message) in [
        (
            "{type: string}",
            "{type: integer}",
            "the type of `v1.a` was `string` and is `integer`",
        ),
        (
            "{x-kubernetes-int-or-string: true}",
            "{type: string}",
            "the type of `v1.a` was not set and is `string`",
        ),
        (
            "{type: integer, format: int64}",
            "{type: integer, format: int32}",
            "the format of `v1.a` was `int64` and is `int32`",
        ),
        (
            "{type: string, enum: [a, b]}",
            "{type: string, enum: [a]}",
            "`v1.a` cannot be \"b\" any more",
        ),
        (
            "{type: string}",
            "{type: string, enum: [a]}",
            "`v1.a` could have any value",
        ),
        (
            "{type: string, nullable: true}",
            "{type: string}",
            "`v1.a` cannot be null any more",
        ),
        (
            "{type: string, maxLength: 5}",
            "{type: string, maxLength: 4}",
            "`maxLength` of `v1.a` allows less",
        ),
        (
            "{type: integer}",
            "{type: integer, minimum: 0}",
            "`minimum` of `v1.a` allows less",
        ),
        (
            "{type: string}",
            "{type: string, pattern: x}",
            "`pattern` of `v1.a` is another one",
        ),
        (
            "{type: object}",
            "{type: object, required: [b], properties: {b: {type: string}}}",
            "`v1.a.b` is required now",
        ),
        (
            "{type: object, properties: {b: {type: string}}}",
            "{type: object}",
            "`v1.a.b` is gone",
        ),
        (
            "{type: object, additionalProperties: {type: string}}",
            "{type: object}",
            "`v1.a` does not have any other fields now",
        ),
        (
            "{type: object, x-kubernetes-preserve-unknown-fields: true}",
            "{type: object}",
            "`v1.a` does not keep unknown fields any more",
        ),
        (
            "{type: array, items: {type: object, properties: {b: {type: string}}}}",
            "{type: array, items: {type: object, properties: {b: {type: boolean}}}}",
            "the type of `v1.a[].b` was `string` and is `boolean`",
        ),
        (
            "{type: array, items: {type: string}}",
            "{type: array, items: {type: string}, x-kubernetes-list-type: set}",
            "`v1.a` was a list of type `atomic` and is `set`",
        ),
        (
            "{type: array, items: {type: string}, x-kubernetes-list-type: set}",
            "{type: array, items: {type: string}}",
            "`v1.a` was a list of type `set` and is `atomic`",
        ),
        (
            "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [b]}",
            "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [c]}",
            "the items of `v1.a` have other keys",
        ),
        (
            "{type: object}",
            "{type: object, x-kubernetes-map-type: atomic}",
            "`v1.a` is an atomic map now",
        ),
        (
            "{type: string}",
            "{type: string, x-kubernetes-validations: [{rule: self != ''}]}",
            "a validation rule of `v1.a` is new",
        ),
    ] {
        let found = field(old, new);
        assert!(found.contains(&message.to_owned()), "{message}: {found:?}");
    }
}

#[test]
fn a_schema_that_allows_more_breaks_nothing() {
    for (old, new) in [
        ("{type: integer}", "{type: number}"),
        (
            "{type: integer, format: int32}",
            "{type: integer, format: int64}",
        ),
        ("{type: string, enum: [a]}", "{type: string, enum: [a, b]}"),
        ("{type: string, enum: [a]}", "{type: string}"),
        (
            "{type: string, maxLength: 4}",
            "{type: string, maxLength: 5}",
        ),
        ("{type: string}", "{type: string, minLength: 0}"),
        ("{type: string, pattern: x}", "{type: string}"),
        (
            "{type: object}",
            "{type: object, required: [b], properties: {b: {type: string, default: x}}}",
        ),
        (
            "{type: object, properties: {b: {type: string}}}",
            "{type: object, x-kubernetes-preserve-unknown-fields: true}",
        ),
        (
            "{type: object}",
            "{type: object, properties: {b: {type: string}}}",
        ),
        (
            "{type: object, x-kubernetes-map-type: atomic}",
            "{type: object, x-kubernetes-map-type: granular}",
        ),
        (
            "{type: string}",
            "{type: string, description: x, default: y}",
        ),
    ] {
        assert_eq!(field(old, new), Vec::<String>::new(), "{old} {new}");
    }
}

#[test]
fn versions_and_definitions_that_are_gone_break_clients() {
    let old = DEFINITION.replace("$SCHEMA", "{type: object}");
    let other = old.replace("widgets.example.com", "gadgets.example.com");
    assert_eq!(
        messages(&old, &other),
        ["widgets.example.com is gone: its objects are deleted with it"]
    );
    let next = old.replace("name: v1,", "name: v2,");
    assert_eq!(
        messages(&old, &next),
        ["version v1, in which objects are stored, is gone"]
    );
    let unserved = old.replace("served: true", "served: false");
    assert_eq!(
        messages(&old, &unserved),
        ["version v1 is not served any more"]
    );
    let cluster = old.replace("Namespaced", "Cluster");
    assert_eq!(
        messages(&old, &cluster),
        ["the scope was `Namespaced` and is `Cluster`"]
    );
}

#[test]
fn names_that_the_api_server_keeps_cannot_change() {
    let old = DEFINITION.replace("$SCHEMA", "{type: object}");
    let names = |names: &str| old.replace("versions:", &format!("names: {names}\n  versions:"));
    let before = names("{kind: Widget, plural: widgets, shortNames: [w]}");
    assert_eq!(
        messages(&before, &names("{kind: Gadget, plural: gadgets}")),
        [
            "the kind was `Widget` and is `Gadget`",
            "the plural name was `widgets` and is `gadgets`"
        ]
    );
    let other_short_names = names("{kind: Widget, plural: widgets, shortNames: [wi]}");
    assert_eq!(messages(&before, &other_short_names), [""; 0]);
}

#[test]
fn a_subresource_that_is_gone_breaks_clients() {
    let plain = DEFINITION.replace("$SCHEMA", "{type: object}");
    let with = plain.replace(
        "storage: true,",
        "storage: true, subresources: {status: {}},",
    );
    assert_eq!(
        messages(&with, &plain),
        ["version v1 has no subresource `status` any more"]
    );
    assert_eq!(messages(&plain, &with), [""; 0]);
    let columns = "storage: true, additionalPrinterColumns: [{name: Age, type: date}],";
    let printed = plain.replace("storage: true,", columns);
    assert_eq!(messages(&printed, &plain), [""; 0]);
}
