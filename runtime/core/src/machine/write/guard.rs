//! The metadata that the API server compares with an object before it merges a patch.

use serde_json::{Value, json};

use crate::object::patch::apply_merge;

/// Adds the metadata that the API server compares with the object before it merges a patch.
///
/// The endpoint of the status ignores the uid, but no two objects have the same version.
pub(super) fn guard(patch: &mut Value, uid: &str, version: Option<&str>) {
    remove_guard(patch);
    if planted!(NamesakeNotCompared) {
        return;
    }
    let metadata = match version {
        Some(version) => json!({"uid": uid, "resourceVersion": version}),
        None => json!({"uid": uid}),
    };
    apply_merge(patch, &json!({ "metadata": metadata }));
}

/// Removes the metadata that the API server compares.
pub(super) fn remove_guard(patch: &mut Value) {
    if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("uid");
        metadata.shift_remove("resourceVersion");
    }
}

/// Removes the precondition of a status that was sent.
pub(super) fn unguard(status: &mut Value) {
    if let Some(status) = status.as_object_mut() {
        status.shift_remove("metadata");
    }
}

/// Both parts of a patch whose status went to an endpoint of its own.
pub(super) fn joined(body: &Value, status: &Value) -> Value {
    let mut both = body.clone();
    if let (Some(both), Some(status)) = (both.as_object_mut(), status.get("status")) {
        both.insert("status".to_owned(), status.clone());
    }
    both
}
