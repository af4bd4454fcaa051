//! Decides whether an object needs our finalizer, and whether to add or to remove it.

use crate::{
    cause::Subject,
    handler::registry::Registry,
    object::{finalizer, patch::ObjectPatch},
};

/// The change of the finalizer that comes before anything else in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalizerNeed {
    /// The finalizer is as it should be.
    Settled,
    /// Add it, and do nothing else in this turn.
    Add,
    /// Remove it, and do nothing else in this turn.
    Remove,
}

// === impl FinalizerNeed ===

impl FinalizerNeed {
    /// Decides for one object; `background` says whether a daemon or a timer needs the finalizer.
    ///
    /// A mandatory delete handler needs it as soon as its filters could match. The API server
    /// accepts no new finalizer on an object that is being deleted, so none is added then.
    #[must_use]
    pub fn decide(
        registry: &Registry,
        subject: &Subject<'_>,
        finalizer: &str,
        background: bool,
    ) -> Self {
        let needed = background
            || registry
                .change_handlers()
                .any(|handler| handler.trigger.needs_finalizer() && handler.prematches(subject));
        let present = finalizer::is_present(subject.body, finalizer);
        match (needed, present) {
            (true, false) if !subject.body.is_being_deleted() => Self::Add,
            (false, true) => Self::Remove,
            _ => Self::Settled,
        }
    }

    /// Adds the edit of `metadata.finalizers` to a patch; it applies to the newest body.
    pub fn request(self, finalizer: &str, patch: &mut ObjectPatch) {
        let finalizer = finalizer.to_owned();
        match self {
            Self::Settled => {}
            Self::Add => patch.edit(move |body| finalizer::insert(body, &finalizer)),
            Self::Remove => patch.edit(move |body| finalizer::remove(body, &finalizer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        handler::{HandlerSpec, Trigger, filter::TextTest},
        object::ObjectView,
    };

    fn registry(spec: HandlerSpec) -> Registry {
        Registry::new([spec]).expect("declarations are valid")
    }

    #[test]
    fn the_finalizer_is_added_and_removed_with_the_need_for_it() {
        let mut labelled = HandlerSpec::new("delete", Trigger::Delete { optional: false });
        labelled.filters.labels = vec![("on".to_owned(), TextTest::Present.into())];
        let mandatory = registry(labelled);
        let optional = registry(HandlerSpec::new(
            "delete",
            Trigger::Delete { optional: true },
        ));
        let need = |registry: &Registry, body, background| {
            let subject = Subject::object(ObjectView::new(body));
            FinalizerNeed::decide(registry, &subject, "f", background)
        };
        let plain = json!({"metadata": {}});
        let on = json!({"metadata": {"labels": {"on": "1"}}});
        let on_with = json!({"metadata": {"labels": {"on": "1"}, "finalizers": ["f"]}});
        let with = json!({"metadata": {"finalizers": ["f"]}});
        let deleted = json!({"metadata": {"labels": {"on": "1"}, "deletionTimestamp": "now"}});
        assert_eq!(need(&mandatory, &plain, false), FinalizerNeed::Settled);
        assert_eq!(need(&mandatory, &on, false), FinalizerNeed::Add);
        assert_eq!(need(&mandatory, &on_with, false), FinalizerNeed::Settled);
        assert_eq!(need(&mandatory, &with, false), FinalizerNeed::Remove);
        assert_eq!(need(&mandatory, &deleted, false), FinalizerNeed::Settled);
        assert_eq!(need(&optional, &plain, false), FinalizerNeed::Settled);
        assert_eq!(need(&optional, &plain, true), FinalizerNeed::Add);
        assert_eq!(need(&optional, &with, true), FinalizerNeed::Settled);
    }

    #[test]
    fn a_finalizer_is_removed_by_an_edit_of_the_newest_state() {
        let mut body = json!({"metadata": {"deletionTimestamp": "now", "finalizers": ["f"]}});
        let mut patch = ObjectPatch::new();
        FinalizerNeed::Remove.request("f", &mut patch);
        for edit in patch.into_requests(false).edits {
            edit(&mut body);
        }
        assert_eq!(body["metadata"].get("finalizers"), None);
    }
}
