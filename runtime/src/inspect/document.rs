//! Inspected objects as JSON and YAML, for programs.

use kopf_core::inspection::InspectedHandler;
use kopf_core::object::diff::DiffOp;
use serde_json::{Value, json};

use super::InspectedObject;

/// All objects as one JSON document.
pub(super) fn json(found: &[InspectedObject]) -> String {
    let text = serde_json::to_string_pretty(&all(found)).unwrap_or_default();
    format!("{text}\n")
}

/// All objects as one YAML document.
pub(super) fn yaml(found: &[InspectedObject]) -> String {
    serde_saphyr::to_string(&all(found)).unwrap_or_default()
}

/// One object in one line.
pub(super) fn json_line(object: &InspectedObject) -> String {
    format!("{}\n", value(object))
}

/// An object that is gone, in one line.
pub(super) fn gone_line(object: &InspectedObject) -> String {
    let gone = json!({
        "apiVersion": object.api_version, "kind": object.kind, "namespace": object.namespace,
        "name": object.name, "uid": object.uid, "state": "gone",
    });
    format!("{}\n", without_nulls(gone))
}

/// One object as a YAML document of its own.
pub(super) fn yaml_document(object: &InspectedObject) -> String {
    let text = serde_saphyr::to_string(&value(object)).unwrap_or_default();
    format!("---\n{text}")
}

fn all(found: &[InspectedObject]) -> Value {
    json!({"objects": found.iter().map(value).collect::<Vec<_>>()})
}

fn value(object: &InspectedObject) -> Value {
    let inspection = &object.inspection;
    let time = |at: Option<jiff::Timestamp>| at.map(|at| at.to_string());
    let handler = |it: &InspectedHandler| {
        without_nulls(json!({
            "id": it.id.as_str(),
            "state": it.state.as_str(),
            "attempts": it.record.retries,
            "started": time(Some(it.record.started)),
            "stopped": time(it.record.stopped),
            "nextAttempt": time(it.record.delayed),
            "reason": it.record.purpose.map(kopf_core::cause::Reason::as_str),
            "message": it.record.message,
        }))
    };
    let changes = inspection.changes.iter().map(|item| {
        let (old, new) = inspection.shown_values(&item.old, item.new.as_ref());
        let op = match item.op {
            DiffOp::Add => "add",
            DiffOp::Change => "change",
            DiffOp::Remove => "remove",
        };
        without_nulls(json!({"op": op, "path": item.path.to_string(), "old": old, "new": new}))
    });
    let finalizers = inspection
        .finalizers
        .iter()
        .map(|it| json!({"name": it.name, "ours": it.is_ours}));
    without_nulls(json!({
        "apiVersion": object.api_version,
        "kind": object.kind,
        "namespace": object.namespace,
        "name": object.name,
        "uid": object.uid,
        "state": inspection.state.as_str(),
        "since": time(inspection.since),
        "nextAttempt": time(inspection.next_attempt()),
        "handlers": inspection.handlers.iter().map(handler).collect::<Vec<_>>(),
        "changes": changes.collect::<Vec<_>>(),
        "finalizers": finalizers.collect::<Vec<_>>(),
    }))
}

/// A value without its entries that are null.
fn without_nulls(mut value: Value) -> Value {
    if let Some(entries) = value.as_object_mut() {
        entries.retain(|_, entry| !entry.is_null());
    }
    value
}
