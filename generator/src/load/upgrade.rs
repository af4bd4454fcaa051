//! Rewrites old forms of a CustomResourceDefinition to `v1`, which the API server accepts today.

use super::yaml::{MapEntry, MapKey, Node, Value};
use crate::diagnostic::Span;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// Rewrites a definition in place, and returns whether it changed; a `v1` definition that prunes
/// unknown fields does not.
pub(super) fn to_v1(document: &mut Node, v1beta1: bool) -> bool {
    if v1beta1 {
        set(
            document,
            "apiVersion",
            Value::String("apiextensions.k8s.io/v1".to_owned()),
        );
    }
    let Some(spec) = child(document, "spec") else {
        return v1beta1;
    };
    // Before `v1`, the API server kept unknown fields unless this was false.
    let unpruned = spec
        .get("preserveUnknownFields")
        .and_then(Node::as_bool)
        .unwrap_or(v1beta1);
    if v1beta1 {
        upgrade_spec(spec);
    }
    if unpruned {
        take(spec, "preserveUnknownFields");
    }
    if unpruned && let Some(versions) = child(spec, "versions") {
        for version in items(versions) {
            if let Some(schema) = child(version, "schema").and_then(|s| child(s, "openAPIV3Schema"))
            {
                preserve_unknown_fields(schema);
            }
        }
    }
    v1beta1 || unpruned
}

fn upgrade_spec(spec: &mut Node) {
    let span = spec.span;
    let version = take(spec, "version");
    let validation = take(spec, "validation");
    let subresources = take(spec, "subresources");
    let columns = take(spec, "additionalPrinterColumns");
    if spec
        .get("scope")
        .and_then(Node::as_str)
        .is_none_or(str::is_empty)
    {
        set(spec, "scope", Value::String("Namespaced".to_owned()));
    }
    if child(spec, "versions").is_none()
        && let Some(name) = version
    {
        let first = map(
            name.span,
            [
                ("name", name),
                (
                    "served",
                    Node {
                        value: Value::Bool(true),
                        span,
                    },
                ),
                (
                    "storage",
                    Node {
                        value: Value::Bool(true),
                        span,
                    },
                ),
            ],
        );
        set(spec, "versions", Value::Seq(vec![first]));
    }
    upgrade_conversion(spec);
    let Some(versions) = child(spec, "versions") else {
        return;
    };
    for version in items(versions) {
        if child(version, "schema").is_none_or(|schema| schema.get("openAPIV3Schema").is_none()) {
            let schema = validation
                .as_ref()
                .and_then(|validation| validation.get("openAPIV3Schema"))
                .cloned()
                .unwrap_or_else(|| open_object_schema(span));
            set(
                version,
                "schema",
                map(span, [("openAPIV3Schema", schema)]).value,
            );
        }
        for (key, shared) in [
            ("subresources", &subresources),
            ("additionalPrinterColumns", &columns),
        ] {
            if child(version, key).is_none()
                && let Some(shared) = shared
            {
                set(version, key, shared.value.clone());
            }
        }
        for column in child(version, "additionalPrinterColumns")
            .map(items)
            .unwrap_or_default()
        {
            if let Some(path) = take(column, "JSONPath") {
                set(column, "jsonPath", path.value);
            }
        }
    }
}

fn upgrade_conversion(spec: &mut Node) {
    let Some(conversion) = child(spec, "conversion") else {
        return;
    };
    let client = take(conversion, "webhookClientConfig");
    let versions = take(conversion, "conversionReviewVersions");
    if let Some(client) = client {
        let span = client.span;
        let versions = versions.unwrap_or_else(|| Node {
            value: Value::Seq(vec![Node {
                value: Value::String("v1beta1".to_owned()),
                span,
            }]),
            span,
        });
        let webhook = map(
            span,
            [
                ("clientConfig", client),
                ("conversionReviewVersions", versions),
            ],
        );
        set(conversion, "webhook", webhook.value);
    }
}

/// The schema of an object with unknown fields only.
fn open_object_schema(span: Span) -> Node {
    map(
        span,
        [
            (
                "type",
                Node {
                    value: Value::String("object".to_owned()),
                    span,
                },
            ),
            (
                PRESERVE,
                Node {
                    value: Value::Bool(true),
                    span,
                },
            ),
        ],
    )
}

/// Marks every object of a schema, because in `v1` the mark does not apply below known properties.
fn preserve_unknown_fields(schema: &mut Node) {
    let closed = schema.get("additionalProperties").is_some();
    let object = schema.get("type").and_then(Node::as_str).map_or_else(
        || schema.get("properties").is_some(),
        |kind| kind == "object",
    );
    if object && !closed {
        set(schema, PRESERVE, Value::Bool(true));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = child(schema, key) {
            preserve_unknown_fields(inner);
        }
    }
    if let Some(Value::Map(properties)) = child(schema, "properties").map(|node| &mut node.value) {
        for property in properties {
            preserve_unknown_fields(&mut property.value);
        }
    }
}

fn child<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    match &mut node.value {
        Value::Map(entries) => entries
            .iter_mut()
            .find(|entry| entry.key.name == key)
            .map(|entry| &mut entry.value),
        _ => None,
    }
}

fn items(node: &mut Node) -> &mut [Node] {
    match &mut node.value {
        Value::Seq(items) => items,
        _ => &mut [],
    }
}

fn take(node: &mut Node, key: &str) -> Option<Node> {
    let Value::Map(entries) = &mut node.value else {
        return None;
    };
    let index = entries.iter().position(|entry| entry.key.name == key)?;
    Some(entries.remove(index).value)
}

fn set(node: &mut Node, key: &str, value: Value) {
    let span = node.span;
    if let Some(present) = child(node, key) {
        present.value = value;
    } else if let Value::Map(entries) = &mut node.value {
        entries.push(MapEntry {
            key: MapKey {
                name: key.to_owned(),
                span,
            },
            value: Node { value, span },
        });
    }
}

fn map<const N: usize>(span: Span, entries: [(&str, Node); N]) -> Node {
    let entries = entries
        .into_iter()
        .map(|(key, value)| MapEntry {
            key: MapKey {
                name: key.to_owned(),
                span,
            },
            value,
        })
        .collect();
    Node {
        value: Value::Map(entries),
        span,
    }
}
