//! The patch with which a handler changes its object.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kopf_core::object::patch::ObjectPatch as Writes;
use kopf_core::object::path::FieldPath;
use serde_json::{Value, json};

/// Changes of the handled object, which the runtime writes together with the handler's progress.
///
/// The runtime writes them even if the handler fails, panics or times out. A change of the spec, the
/// labels or annotations causes an update like any other change.
#[derive(Debug, Default)]
pub struct Patch {
    /// Behind a lock only so that the methods take a shared borrow of the context, as in
    /// `cx.patch().status(json!({"size": cx.new_value()}))`; it is never contended.
    writes: Mutex<Writes>,
}

impl Patch {
    /// Merges JSON into the object: maps merge, null removes, everything else replaces.
    pub fn merge(&self, patch: impl Into<Value>) -> &Self {
        let patch = patch.into();
        self.lock().merge(patch);
        self
    }

    /// Merges JSON into the status.
    pub fn status(&self, status: impl Into<Value>) -> &Self {
        self.merge(json!({ "status": status.into() }))
    }

    /// Sets a field by its path, e.g. `spec.size`; null removes it.
    pub fn set(&self, path: &str, value: impl Into<Value>) -> &Self {
        let value = value.into();
        self.lock().set(&field_path(path), value);
        self
    }

    /// Sets a label.
    pub fn label(&self, key: &str, value: &str) -> &Self {
        self.meta("labels", key, value.into())
    }

    /// Removes a label.
    pub fn unlabel(&self, key: &str) -> &Self {
        self.meta("labels", key, Value::Null)
    }

    /// Sets an annotation.
    pub fn annotate(&self, key: &str, value: &str) -> &Self {
        self.meta("annotations", key, value.into())
    }

    /// Removes an annotation.
    pub fn unannotate(&self, key: &str) -> &Self {
        self.meta("annotations", key, Value::Null)
    }

    /// Edits the newest state of the object, for what a merge patch cannot express, such as items
    /// of lists.
    ///
    /// After a conflict, the runtime repeats the edit on the newer state.
    pub fn edit(&self, edit: impl Fn(&mut Value) + Send + Sync + 'static) -> &Self {
        self.lock().edit(edit);
        self
    }

    /// Returns true if there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn meta(&self, stanza: &str, key: &str, value: Value) -> &Self {
        let path = FieldPath::new(["metadata", stanza, key]);
        self.lock().set(&path, value);
        self
    }

    pub(crate) fn into_writes(self) -> Writes {
        self.writes
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Writes> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A field path as in the manifest: `spec.size`.
pub(crate) fn field_path(path: &str) -> FieldPath {
    let lenient = || FieldPath::new(path.split('.').filter(|part| !part.is_empty()));
    FieldPath::parse(path).unwrap_or_else(lenient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_changes_become_one_merge_patch() {
        let patch = Patch::default();
        patch
            .status(json!({"phase": "Ready"}))
            .set("spec.size", "1Gi")
            .label("tier", "gold")
            .unlabel("old")
            .annotate("note", "a/b");
        assert_eq!(
            Value::Object(patch.into_writes().merge_patch().clone()),
            json!({
                "status": {"phase": "Ready"},
                "spec": {"size": "1Gi"},
                "metadata": {
                    "labels": {"tier": "gold", "old": null},
                    "annotations": {"note": "a/b"},
                },
            })
        );
    }
}
