//! Progress in the status of the object, as old versions of Kopf keep it.

use serde_json::Value;

use crate::{
    handler::HandlerId,
    object::{ObjectView, essence::Essence, member, patch::ObjectPatch, path::FieldPath},
    progress::{ProgressStorage, record::Record},
};

/// Progress in one field of the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusProgress {
    /// The map of records by handler id.
    pub field: FieldPath,
    /// The touch field.
    pub touch_field: FieldPath,
    /// The field with the states that handlers finished on.
    pub handled_states_field: FieldPath,
}

const HANDLED_STATES_BUDGET: usize = 512 * 1024;

// === impl StatusProgress ===

impl StatusProgress {
    /// Progress in `status.<name>.progress` and beside it.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            field: FieldPath::new(["status", name, "progress"]),
            touch_field: FieldPath::new(["status", name, "dummy"]),
            handled_states_field: FieldPath::new(["status", name, "seen"]),
        }
    }

    /// Progress in a field, and beside it.
    #[must_use]
    pub fn at(field: FieldPath) -> Self {
        Self {
            touch_field: field.sibling("dummy"),
            handled_states_field: field.sibling("seen"),
            field,
        }
    }

    fn put(path: &FieldPath, value: Option<&str>, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        match value {
            Some(value) => patch.set(path, value.into()),
            None => patch.purge(path, view),
        }
    }
}

impl Default for StatusProgress {
    fn default() -> Self {
        Self::new("kopf")
    }
}

impl ProgressStorage for StatusProgress {
    fn fetch(&self, id: &HandlerId, view: ObjectView<'_>) -> Option<Record> {
        let records = self.field.resolve(view.body())?.as_object()?;
        Record::from_json(member(records, id.as_str())?)
    }

    fn records(&self, _known: &[HandlerId], view: ObjectView<'_>) -> Vec<(HandlerId, Record)> {
        let records = self.field.resolve(view.body()).and_then(Value::as_object);
        let records = records.into_iter().flatten();
        let read = |(id, record): (&String, &Value)| {
            Some((HandlerId::new(id), Record::from_json(record)?))
        };
        records.filter_map(read).collect()
    }

    fn store(
        &self,
        id: &HandlerId,
        record: &Record,
        _view: ObjectView<'_>,
        patch: &mut ObjectPatch,
    ) {
        patch.set(&self.field.child(id.as_str()), record.to_json_with_nulls());
    }

    fn purge(&self, id: &HandlerId, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        patch.purge(&self.field.child(id.as_str()), view);
    }

    fn touch(&self, value: Option<&str>, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        Self::put(&self.touch_field, value, view, patch);
    }

    fn clear(&self, essence: &mut Essence) {
        for field in [&self.field, &self.touch_field, &self.handled_states_field] {
            essence.remove(field);
        }
    }

    fn fetch_handled_states(&self, view: ObjectView<'_>) -> Option<String> {
        self.handled_states_field
            .resolve(view.body())
            .and_then(Value::as_str)
            .map(str::to_owned)
    }

    fn store_handled_states(
        &self,
        notes: Option<&str>,
        view: ObjectView<'_>,
        patch: &mut ObjectPatch,
    ) {
        Self::put(&self.handled_states_field, notes, view, patch);
    }

    fn handled_states_budget(&self, _view: ObjectView<'_>, _patch: &ObjectPatch) -> usize {
        HANDLED_STATES_BUDGET
    }
}

#[cfg(test)]
mod tests;
