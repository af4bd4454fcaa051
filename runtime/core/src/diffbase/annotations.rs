//! The last handled state in an annotation: Kopf's where it fits, one of our own where not.

use serde_json::Value;

use crate::{
    diffbase::{DiffBaseStorage, packed},
    json,
    object::{
        ANNOTATIONS_LIMIT, ObjectView,
        diff::Baseline,
        essence::{Essence, KOPF_PREFIX},
        patch::{Patch, annotation},
    },
    progress::key::KeyForm,
};

/// The last handled state in annotations under one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationsDiffBase {
    /// How keys are made.
    pub form: KeyForm,
    /// The name of Kopf's annotation.
    pub key: String,
    /// The name of the annotation for states that Kopf's cannot hold.
    pub packed_key: String,
}

/// What others may add to the annotations of an object before ours do not fit any more.
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

    fn budget(&self, view: ObjectView<'_>, patch: &Patch) -> usize {
        let mut own = self.form.keys(&self.key, view);
        own.extend(self.form.keys(&self.packed_key, view));
        ANNOTATIONS_LIMIT.saturating_sub(patch.annotations_size(view, &own) + RESERVE)
    }

    fn put(&self, name: &str, text: Option<&str>, view: ObjectView<'_>, patch: &mut Patch) {
        for key in self.form.keys(name, view) {
            match text {
                Some(text) => patch.set_annotation(&key, text),
                None => patch.purge(&annotation(&key), view),
            }
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
        let read = |name: &str| {
            let keys = self.form.keys(name, view);
            keys.iter().find_map(|key| view.annotation(key))
        };
        if let Some(text) = read(&self.key) {
            return match serde_json::from_str::<Value>(text) {
                Ok(Value::Null) => Baseline::Absent,
                Ok(essence) => Baseline::Known(Essence::from_value(essence)),
                Err(_) => packed::unreadable(),
            };
        }
        match read(&self.packed_key) {
            Some(text) => packed::unpack(text, view.uid().unwrap_or_default())
                .unwrap_or_else(packed::unreadable),
            None => Baseline::Absent,
        }
    }

    fn store(&self, state: &Baseline, view: ObjectView<'_>, patch: &mut Patch) {
        let plain = match state {
            Baseline::Known(essence) => Some(json::to_ascii(essence.as_value()) + "\n"),
            Baseline::Absent | Baseline::Hashed(_) => None,
        };
        let budget = self.budget(view, patch);
        let copies = self.form.keys(&self.key, view).len();
        let plain = plain.filter(|text| text.len() * copies <= budget);
        let packed = match (&plain, state) {
            (Some(_), _) | (None, Baseline::Absent) => None,
            (None, _) => {
                let copies = self.form.keys(&self.packed_key, view).len();
                let salt = view.uid().unwrap_or_default();
                Some(packed::pack(state, salt, budget / copies))
            }
        };
        self.put(&self.key, plain.as_deref(), view, patch);
        self.put(&self.packed_key, packed.as_deref(), view, patch);
        if plain.is_some() || packed.is_some() {
            self.form.mark(view, patch);
        }
    }

    fn clear(&self, essence: &mut Essence, view: ObjectView<'_>) {
        let mut own = self.form.keys(&self.key, view);
        own.extend(self.form.keys(&self.packed_key, view));
        essence.retain_annotations(|key| !own.iter().any(|own| own == key));
    }
}

#[cfg(test)]
mod tests;
