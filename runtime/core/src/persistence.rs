//! The storages of an operator: the finalizer, progress, and last handled state of its objects.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    cause::detect::{EventKind, ObjectHistory, ObservedChange},
    diffbase::{
        DiffBaseStorage, annotations::AnnotationsDiffBase, is_sensitive, packed::FULL_DEPTH,
    },
    handler::registry::Registry,
    object::{
        ObjectView,
        diff::Baseline,
        essence::{Essence, EssenceRules},
        finalizer::KOPF_FINALIZER,
        hashed::HashedState,
        patch::ObjectPatch,
        path::FieldPath,
    },
    progress::{ProgressStorage, multi::MultiProgress},
};

/// The storages on an object; the default is Kopf's.
#[derive(Clone, Debug)]
pub struct Persistence {
    /// The name of the finalizer.
    pub finalizer: String,
    /// The storage of progress records.
    pub progress: Arc<dyn ProgressStorage>,
    /// The storage of the last handled state.
    pub diffbase: Arc<dyn DiffBaseStorage>,
    /// Fields that never count as changes.
    pub ignored: Vec<FieldPath>,
}

// === impl Persistence ===

impl Default for Persistence {
    fn default() -> Self {
        Self {
            finalizer: KOPF_FINALIZER.to_owned(),
            progress: Arc::new(MultiProgress::default()),
            diffbase: Arc::new(AnnotationsDiffBase::default()),
            ignored: Vec::new(),
        }
    }
}

impl Persistence {
    /// The change that an event shows: last handled state, present state, their diff, and reason.
    #[must_use]
    pub fn observe_change(
        &self,
        view: ObjectView<'_>,
        event: EventKind,
        history: ObjectHistory,
        registry: &Registry,
    ) -> ObservedChange {
        let rules = registry.essence_rules(&self.ignored);
        let new = self.essence(view, &rules);
        let old = self.baseline(view);
        ObservedChange::detect(view, event, history, &self.finalizer, old, new)
    }

    /// The present state, without what the storages keep on the object.
    #[must_use]
    pub fn essence(&self, view: ObjectView<'_>, rules: &EssenceRules) -> Essence {
        self.diffbase
            .build(self.without_storages(view, rules), view)
    }

    fn without_storages(&self, view: ObjectView<'_>, rules: &EssenceRules) -> Essence {
        let mut essence = Essence::of(view, rules);
        self.diffbase.clear(&mut essence, view);
        self.progress.clear(&mut essence);
        essence
    }

    /// Whether an annotation belongs to the storages.
    #[must_use]
    pub fn owns_annotation(&self, annotation: &str) -> bool {
        let body = json!({"metadata": {"annotations": {annotation: ""}}});
        let essence = self.without_storages(ObjectView::new(&body), &EssenceRules::default());
        let path = FieldPath::new(["metadata", "annotations", annotation]);
        path.resolve(essence.as_value()).is_none()
    }

    /// Removes what belongs to the storages from a merge patch of the object.
    pub fn remove_from_patch(&self, view: ObjectView<'_>, patch: &mut Value) {
        let mut rest = Essence::from_value(std::mem::take(patch));
        self.diffbase.clear(&mut rest, view);
        self.progress.clear(&mut rest);
        *patch = rest.into_value();
    }

    /// The last handled state.
    #[must_use]
    pub fn baseline(&self, view: ObjectView<'_>) -> Baseline {
        match self.diffbase.fetch(view) {
            Baseline::Known(mut essence) => {
                self.progress.clear(&mut essence);
                Baseline::Known(essence)
            }
            other => other,
        }
    }

    /// A state in the form in which it may be stored: only digests for sensitive objects.
    #[must_use]
    pub fn storable(&self, state: &Essence, view: ObjectView<'_>) -> Baseline {
        if is_sensitive(view) {
            let salt = view.uid().unwrap_or_default();
            Baseline::Hashed(HashedState::new(state.as_value(), salt, FULL_DEPTH))
        } else {
            Baseline::Known(state.clone())
        }
    }

    /// Removes the touch annotation along with the other writes of a patch: any write makes the
    /// API server send an event, so that the annotation is no longer needed.
    pub fn purge_touch(&self, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        if !patch.is_empty() {
            self.progress.touch(None, view, patch);
        }
    }
}

#[cfg(test)]
mod tests;
