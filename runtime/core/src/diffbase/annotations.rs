//! The last handled state in an annotation: Kopf's if the state fits, else one of our own.

use serde_json::Value;

use crate::{
    diffbase::{DiffBaseStorage, packed},
    json,
    object::{
        ANNOTATIONS_LIMIT, ObjectView,
        diff::Baseline,
        essence::{Essence, KOPF_PREFIX},
        patch::ObjectPatch,
    },
    progress::key::KeyForm,
};

/// The last handled state in annotations under one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationsDiffBase {
    /// The form of the keys.
    pub form: KeyForm,
    /// The name of Kopf's annotation.
    pub key: String,
    /// The name of the annotation for packed states.
    pub packed_key: String,
}

/// The space that is left for annotations of other clients.
const RESERVE: usize = 24 * 1024;

// === impl AnnotationsDiffBase ===

impl AnnotationsDiffBase {
    /// States under a prefix, with Kopf's name.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self {
            form: KeyForm::new(prefix),
            key: "last-handled-configuration".to_owned(),
            packed_key: "last-handled-packed".to_owned(),
        }
    }

    /// States under a prefix, with a name of one's own.
    #[must_use]
    pub fn named(prefix: &str, key: &str) -> Self {
        Self {
            form: KeyForm::new(prefix),
            key: key.to_owned(),
            packed_key: format!("{key}-packed"),
        }
    }

    /// The keys of plain states, and those of packed ones.
    fn keys(&self, view: ObjectView<'_>) -> [Vec<String>; 2] {
        [&self.key, &self.packed_key].map(|name| self.form.keys(name, view))
    }
}

fn put(keys: &[String], text: Option<&str>, view: ObjectView<'_>, patch: &mut ObjectPatch) {
    for key in keys {
        match text {
            Some(text) => patch.set_annotation(key, text),
            None => patch.purge_annotation(key, view),
        }
    }
}

impl Default for AnnotationsDiffBase {
    fn default() -> Self {
        Self::new(KOPF_PREFIX)
    }
}

impl DiffBaseStorage for AnnotationsDiffBase {
    fn fetch(&self, view: ObjectView<'_>) -> Baseline {
        if let Some(text) = self.form.read(&self.key, view).next() {
            return match serde_json::from_str::<Value>(text) {
                Ok(Value::Null) => Baseline::Absent,
                Ok(essence) => Baseline::Known(Essence::from_value(essence)),
                Err(_) => packed::unreadable(),
            };
        }
        match self.form.read(&self.packed_key, view).next() {
            Some(text) => packed::unpack(text, view.uid().unwrap_or_default())
                .unwrap_or_else(packed::unreadable),
            None => Baseline::Absent,
        }
    }

    fn store(&self, state: &Baseline, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        let plain = match state {
            Baseline::Known(essence) => Some(json::to_ascii(essence.as_value()) + "\n"),
            Baseline::Absent | Baseline::Hashed(_) => None,
        };
        let [plain_keys, packed_keys] = self.keys(view);
        let taken = patch.annotations_size(view, |key| {
            plain_keys.contains(key) || packed_keys.contains(key)
        });
        let budget = ANNOTATIONS_LIMIT.saturating_sub(taken + RESERVE);
        let plain = plain.filter(|text| text.len() * plain_keys.len() <= budget);
        let packed = match (&plain, state) {
            (Some(_), _) | (None, Baseline::Absent) => None,
            (None, _) => {
                let salt = view.uid().unwrap_or_default();
                Some(packed::pack(state, salt, budget / packed_keys.len()))
            }
        };
        put(&plain_keys, plain.as_deref(), view, patch);
        put(&packed_keys, packed.as_deref(), view, patch);
        if plain.is_some() || packed.is_some() {
            self.form.add_marker(view, patch);
        }
    }

    fn clear(&self, essence: &mut Essence, view: ObjectView<'_>) {
        if !essence.has_annotations() {
            return;
        }
        let own = self.keys(view);
        essence.retain_annotations(|key| !own.iter().flatten().any(|own| own == key));
    }
}

#[cfg(test)]
mod tests;
