//! Several diff-base storages as one, for migration from one to another.

use std::sync::Arc;

use crate::{
    diffbase::DiffBaseStorage,
    object::{ObjectView, diff::Baseline, essence::Essence, patch::ObjectPatch},
};

/// Writes to all storages; the first that holds a state is read.
#[derive(Clone, Debug)]
pub struct MultiDiffBase {
    storages: Vec<Arc<dyn DiffBaseStorage>>,
}

// === impl MultiDiffBase ===

impl MultiDiffBase {
    /// Storages in the order of reading.
    #[must_use]
    pub fn new(storages: Vec<Arc<dyn DiffBaseStorage>>) -> Self {
        Self { storages }
    }
}

impl DiffBaseStorage for MultiDiffBase {
    fn fetch(&self, view: ObjectView<'_>) -> Baseline {
        self.storages
            .iter()
            .map(|storage| storage.fetch(view))
            .find(|state| !state.is_absent())
            .unwrap_or(Baseline::Absent)
    }

    fn store(&self, state: &Baseline, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        for storage in &self.storages {
            storage.store(state, view, patch);
        }
    }

    fn clear(&self, essence: &mut Essence, view: ObjectView<'_>) {
        for storage in &self.storages {
            storage.clear(essence, view);
        }
    }

    fn build(&self, essence: Essence, view: ObjectView<'_>) -> Essence {
        let storages = self.storages.iter();
        storages.fold(essence, |essence, storage| storage.build(essence, view))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::diffbase::{annotations::AnnotationsDiffBase, status::StatusDiffBase};

    #[test]
    fn all_are_written_and_the_first_hit_is_read() {
        let storage = MultiDiffBase::new(vec![
            Arc::new(AnnotationsDiffBase::default()),
            Arc::new(StatusDiffBase::default()),
        ]);
        let state = Baseline::Known(Essence::from_value(json!({"spec": 1})));
        let body = json!({"status": {"kopf": {"last-handled-configuration": r#"{"spec":1}"#}}});
        assert_eq!(storage.fetch(ObjectView::new(&body)), state);
        assert_eq!(storage.fetch(ObjectView::new(&json!({}))), Baseline::Absent);
        let mut patch = ObjectPatch::new();
        storage.store(&state, ObjectView::new(&json!({})), &mut patch);
        let written: Vec<&String> = patch.merge_patch().keys().collect();
        assert_eq!(written, ["metadata", "status"]);
    }
}
