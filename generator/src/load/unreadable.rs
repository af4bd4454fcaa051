//! Definitions that the API server cannot even read, because a value is of the wrong type.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinitionSpec, CustomResourceDefinitionStatus, CustomResourceDefinitionVersion,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::yaml::{Node, Value};
use crate::diagnostic::Span;

/// A part of a definition that cannot be read, and the reason.
pub(super) struct UnreadablePart {
    pub(super) span: Span,
    pub(super) reason: String,
}

/// The part whose value is checked when it is read as a schema.
const SCHEMA: &str = "openAPIV3Schema";

const VERSIONS: &str = "versions";

/// The first part of a definition of `v1` that cannot be read; schemas are not looked at.
pub(super) fn find(document: &Node) -> Option<UnreadablePart> {
    let spec = document.get("spec");
    let versions = spec.and_then(|spec| spec.get(VERSIONS));
    let versions = versions.and_then(Node::as_seq).unwrap_or_default();
    let part = |key: &str, read: fn(&Node) -> Option<String>| {
        let entry = document.entry(key)?;
        let (span, reason) = (entry.key.span, read(&entry.value)?);
        Some(UnreadablePart { span, reason })
    };
    let version = |node: &Node| {
        let reason = problem::<CustomResourceDefinitionVersion>(node)?;
        let first = node.as_map().and_then(|entries| entries.first());
        let span = first.map_or(node.span, |entry| entry.key.span);
        Some(UnreadablePart { span, reason })
    };
    part("metadata", problem::<ObjectMeta>)
        .or_else(|| versions.iter().find_map(version))
        .or_else(|| part("spec", problem::<CustomResourceDefinitionSpec>))
        .or_else(|| part("status", problem::<CustomResourceDefinitionStatus>))
}

/// The reason for which a value cannot be read.
fn problem<T: DeserializeOwned>(node: &Node) -> Option<String> {
    let read: Result<Option<T>, _> = serde_json::from_value(without_schemas(node));
    read.err().map(|error| error.to_string())
}

fn without_schemas(node: &Node) -> Json {
    match &node.value {
        Value::Seq(items) => items.iter().map(without_schemas).collect(),
        Value::Map(entries) => entries
            .iter()
            .filter(|entry| entry.key.name != SCHEMA)
            .map(|entry| (entry.key.name.clone(), without_schemas(&entry.value)))
            .collect(),
        _ => node.to_json(),
    }
}
