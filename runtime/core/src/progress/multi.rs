//! Several progress storages as one, for migration from one to another.

use std::sync::Arc;

use crate::{
    handler::HandlerId,
    object::{ObjectView, essence::Essence, patch::ObjectPatch},
    progress::{
        ProgressStorage, annotations::AnnotationsProgress, record::Record, status::StatusProgress,
    },
};

/// Writes to some storages and reads all: the first record found counts.
#[derive(Clone, Debug)]
pub struct MultiProgress {
    written: Vec<Arc<dyn ProgressStorage>>,
    legacy: Vec<Arc<dyn ProgressStorage>>,
}

// === impl MultiProgress ===

impl MultiProgress {
    /// Storages that are all both read and written.
    #[must_use]
    pub fn new(storages: Vec<Arc<dyn ProgressStorage>>) -> Self {
        Self {
            written: storages,
            legacy: Vec::new(),
        }
    }

    /// Kopf's default: annotations, and records that old versions left in the status.
    #[must_use]
    pub fn smart(annotations: AnnotationsProgress, status: StatusProgress) -> Self {
        Self {
            written: vec![Arc::new(annotations)],
            legacy: vec![Arc::new(status)],
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<dyn ProgressStorage>> {
        self.written.iter().chain(&self.legacy)
    }
}

impl Default for MultiProgress {
    fn default() -> Self {
        Self::smart(AnnotationsProgress::default(), StatusProgress::default())
    }
}

impl ProgressStorage for MultiProgress {
    fn fetch(&self, id: &HandlerId, view: ObjectView<'_>) -> Option<Record> {
        self.all().find_map(|storage| storage.fetch(id, view))
    }

    fn records(&self, known: &[HandlerId], view: ObjectView<'_>) -> Vec<(HandlerId, Record)> {
        let mut found: Vec<(HandlerId, Record)> = Vec::new();
        for (id, record) in self.all().flat_map(|storage| storage.records(known, view)) {
            if !found.iter().any(|(other, _)| *other == id) {
                found.push((id, record));
            }
        }
        found
    }

    fn store(
        &self,
        id: &HandlerId,
        record: &Record,
        view: ObjectView<'_>,
        patch: &mut ObjectPatch,
    ) {
        for storage in &self.written {
            storage.store(id, record, view, patch);
        }
    }

    fn purge(&self, id: &HandlerId, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        for storage in self.all() {
            storage.purge(id, view, patch);
        }
    }

    fn touch(&self, value: Option<&str>, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        for storage in &self.written {
            storage.touch(value, view, patch);
        }
        for storage in &self.legacy {
            storage.touch(None, view, patch);
        }
    }

    fn clear(&self, essence: &mut Essence) {
        for storage in self.all() {
            storage.clear(essence);
        }
    }

    fn fetch_handled_states(&self, view: ObjectView<'_>) -> Option<String> {
        self.written
            .iter()
            .find_map(|storage| storage.fetch_handled_states(view))
    }

    fn store_handled_states(
        &self,
        notes: Option<&str>,
        view: ObjectView<'_>,
        patch: &mut ObjectPatch,
    ) {
        for storage in &self.written {
            storage.store_handled_states(notes, view, patch);
        }
    }

    fn handled_states_budget(&self, view: ObjectView<'_>, patch: &ObjectPatch) -> usize {
        self.written
            .iter()
            .map(|storage| storage.handled_states_budget(view, patch))
            .min()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
