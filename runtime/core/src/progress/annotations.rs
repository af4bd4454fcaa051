//! Progress in annotations, one per handler: the default of Kopf and ours.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    handler::HandlerId,
    json,
    object::{
        ANNOTATIONS_LIMIT, ObjectView,
        essence::{Essence, KOPF_PREFIX, MARKER_NAME},
        patch::ObjectPatch,
    },
    progress::{ProgressStorage, key::KeyForm, record::Record},
};

/// Progress in annotations under one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationsProgress {
    /// The form of the keys.
    pub form: KeyForm,
    /// Whether empty entries of records are written as nulls.
    pub verbose: bool,
    /// The name of the touch annotation.
    pub touch_key: String,
    /// The name of the annotation with the states that handlers finished on.
    pub handled_states_key: String,
}

/// Longer notes are packed, to leave space for the last handled state.
const LONGEST_NOTES: usize = 64 * 1024;

/// The space that is left for annotations of other clients.
const RESERVE: usize = 16 * 1024;

// === impl AnnotationsProgress ===

impl AnnotationsProgress {
    /// Progress under a prefix, with Kopf's defaults.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self {
            form: KeyForm::new(prefix),
            verbose: false,
            touch_key: "touch-dummy".to_owned(),
            handled_states_key: "last-seen-states".to_owned(),
        }
    }

    fn put(&self, name: &str, value: Option<&str>, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        for key in self.form.keys(name, view) {
            match value {
                Some(value) => patch.set_annotation(&key, value),
                None => patch.purge_annotation(&key, view),
            }
        }
        if value.is_some() {
            self.form.add_marker(view, patch);
        }
    }
}

impl Default for AnnotationsProgress {
    fn default() -> Self {
        Self::new(KOPF_PREFIX)
    }
}

impl ProgressStorage for AnnotationsProgress {
    fn fetch(&self, id: &HandlerId, view: ObjectView<'_>) -> Option<Record> {
        self.form.read(id.as_str(), view).find_map(read_record)
    }

    fn records(&self, known: &[HandlerId], view: ObjectView<'_>) -> Vec<(HandlerId, Record)> {
        let keys = known.iter().flat_map(|id| {
            self.form
                .keys(id.as_str(), view)
                .into_iter()
                .map(move |key| (key, id))
        });
        let keys: BTreeMap<String, &HandlerId> = keys.collect();
        let others = [
            self.touch_key.as_str(),
            &self.handled_states_key,
            MARKER_NAME,
        ];
        let others: BTreeSet<String> = others
            .into_iter()
            .flat_map(|name| self.form.keys(name, view))
            .collect();
        let mut found: Vec<(HandlerId, Record)> = Vec::new();
        for (key, text) in view.annotations().into_iter().flatten() {
            if !self.form.owns(key) || others.contains(key) {
                continue;
            }
            let json = text
                .as_str()
                .and_then(|text| serde_json::from_str(text).ok());
            // The last handled state may be under the same prefix.
            let json = json.filter(Record::looks_like_one);
            let Some(record) = json.as_ref().and_then(Record::from_json) else {
                continue;
            };
            let id = match keys.get(key) {
                Some(id) => (*id).clone(),
                None => HandlerId::new(self.form.name_in(key, view)),
            };
            // Kopf writes the same record under two keys if the id is long.
            let is_copy = |(other, same): &(HandlerId, Record)| {
                *other == id
                    || (*same == record && self.form.may_be_same(other.as_str(), id.as_str()))
            };
            match found.iter_mut().find(|it| is_copy(it)) {
                Some((other, _)) if other.as_str().len() < id.as_str().len() => *other = id,
                Some(_) => {}
                None => found.push((id, record)),
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
        let json = if self.verbose {
            record.to_json_with_nulls()
        } else {
            record.to_json()
        };
        self.put(id.as_str(), Some(&json::to_ascii(&json)), view, patch);
    }

    fn purge(&self, id: &HandlerId, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        self.put(id.as_str(), None, view, patch);
    }

    fn touch(&self, value: Option<&str>, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        self.put(&self.touch_key, value, view, patch);
    }

    fn clear(&self, essence: &mut Essence) {
        essence.retain_annotations(|key| !self.form.owns(key));
    }

    fn fetch_handled_states(&self, view: ObjectView<'_>) -> Option<String> {
        self.form
            .read(&self.handled_states_key, view)
            .next()
            .map(str::to_owned)
    }

    fn store_handled_states(
        &self,
        notes: Option<&str>,
        view: ObjectView<'_>,
        patch: &mut ObjectPatch,
    ) {
        self.put(&self.handled_states_key, notes, view, patch);
    }

    fn handled_states_budget(&self, view: ObjectView<'_>, patch: &ObjectPatch) -> usize {
        let keys = self.form.keys(&self.handled_states_key, view);
        let taken = patch.annotations_size(view, |key| keys.contains(key)) + RESERVE;
        let budget = ANNOTATIONS_LIMIT.saturating_sub(taken) / keys.len();
        budget.min(LONGEST_NOTES)
    }
}

fn read_record(text: &str) -> Option<Record> {
    let json: Value = serde_json::from_str(text).ok()?;
    Record::from_json(&json)
}

#[cfg(test)]
mod tests;
