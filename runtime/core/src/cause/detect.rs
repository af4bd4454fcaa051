//! Detects the cause of an event, by Kopf's rules in their order.

use crate::{
    cause::{Cause, Reason},
    object::{
        ObjectView,
        diff::{Baseline, Diff},
        essence::Essence,
        finalizer,
    },
};

/// The kind of an event, as far as causes need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An item of the initial list.
    Listed,
    /// Added or modified while watching.
    Changed,
    /// Deleted while watching, or missing from a later list.
    Deleted,
}

/// The memory of a process about an object between events, as far as causes need it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectHistory {
    /// Whether the first event of the object was an item of a list.
    pub noticed_by_listing: bool,
    /// Whether a cycle has ended since.
    pub handled_once: bool,
}

/// The change that an event shows; causes borrow from it.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedChange {
    /// The reason.
    pub reason: Reason,
    /// Whether resume handlers are still due.
    pub initial: bool,
    /// The last handled state.
    pub old: Baseline,
    /// The present state.
    pub new: Essence,
    /// From old to new.
    pub diff: Diff,
}

// === impl ObjectHistory ===

impl ObjectHistory {
    /// The memory after the first event of an object.
    #[must_use]
    pub fn begin(event: EventKind) -> Self {
        Self {
            noticed_by_listing: event == EventKind::Listed,
            handled_once: false,
        }
    }

    /// Whether resume handlers are still due.
    #[must_use]
    pub fn is_initial(self) -> bool {
        self.noticed_by_listing && !self.handled_once
    }
}

// === impl ObservedChange ===

impl ObservedChange {
    /// Detects the cause of an event.
    #[must_use]
    pub fn detect(
        view: ObjectView<'_>,
        event: EventKind,
        history: ObjectHistory,
        finalizer: &str,
        old: Baseline,
        new: Essence,
    ) -> Self {
        let diff = old.diff(&new);
        let initial = history.is_initial();
        let reason = if event == EventKind::Deleted {
            Reason::Gone
        } else if view.is_being_deleted() && !finalizer::is_present(view, finalizer) {
            Reason::Free
        } else if view.is_being_deleted() {
            Reason::Delete
        } else if old.is_absent() {
            Reason::Create
        } else if diff.is_empty() && initial {
            Reason::Resume
        } else if diff.is_empty() {
            Reason::Noop
        } else {
            Reason::Update
        };
        Self {
            reason,
            initial: initial && reason != Reason::Create,
            old,
            new,
            diff,
        }
    }

    /// The cause for handlers and filters.
    #[must_use]
    pub fn cause<'a>(&'a self, body: ObjectView<'a>) -> Cause<'a> {
        Cause {
            reason: self.reason,
            initial: self.initial,
            body,
            old: &self.old,
            new: &self.new,
            diff: &self.diff,
        }
    }
}

#[cfg(test)]
mod tests;
