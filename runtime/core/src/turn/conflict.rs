//! Progress of another operator that has written between the state of a turn and its write.

use serde_json::Value;

use crate::{
    handled_states::{HandledStates, RecordStamp},
    handler::HandlerId,
    object::{ObjectView, diff::Baseline, patch::ObjectPatch, patch::apply_merge},
    persistence::Persistence,
};

/// A write of progress that was overtaken by another one.
#[derive(Clone, Copy)]
pub struct OvertakenWrite<'a> {
    /// The storages of the progress.
    pub persistence: &'a Persistence,
    /// The state that the write was made for.
    pub known: &'a Value,
    /// The state with whose last handled state the notes in the write are encoded: `known`, or
    /// the newer one after an earlier conflict.
    pub noted: &'a Value,
    /// The state that the other write has left.
    pub newer: &'a Value,
    /// The merge patch for the status, if that has an endpoint of its own.
    pub status: Option<&'a Value>,
    /// The merge patch for the rest.
    pub body: Option<&'a Value>,
}

// === impl OvertakenWrite ===

impl OvertakenWrite<'_> {
    /// What a part of the write needs besides when it is written on top of the newer state: the
    /// notes of handlers that another operator has called meanwhile. Without them, these handlers
    /// would count as called for the present state.
    ///
    /// A write that ends the cycle has handled the state that it stores, and has no notes. It keeps
    /// those of records that it does not know, and leaves: the next turn finds that they were
    /// written with another last handled state, and calls their handlers again.
    #[must_use]
    pub fn notes_to_keep(&self, part: &Value) -> Option<ObjectPatch> {
        let progress = &self.persistence.progress;
        let view = ObjectView::new(self.newer);
        let theirs = progress.fetch_handled_states(view)?;
        let before = progress.fetch_handled_states(ObjectView::new(self.known));
        if before.as_ref() == Some(&theirs) {
            return None;
        }
        let written = merged(self.newer, [Some(part)]);
        let written = ObjectView::new(&written);
        let Some(ours) = progress.fetch_handled_states(written) else {
            let is_left = |(id, stamp): (HandlerId, RecordStamp)| {
                let record = progress.fetch(&id, written);
                record.as_ref().and_then(RecordStamp::of) == Some(stamp)
            };
            let mut stamps = HandledStates::stamps(&theirs).into_iter();
            return stamps.any(is_left).then(|| {
                let mut kept = ObjectPatch::new();
                progress.store_handled_states(Some(&theirs), view, &mut kept);
                kept
            });
        };
        let salt = view.uid().unwrap_or_default();
        let base = self.base_after(self.newer);
        let mut notes = HandledStates::decode(&ours, &self.base_after(self.noted), salt)?;
        let theirs = HandledStates::decode(&theirs, &self.persistence.baseline(view), salt)?;
        if !notes.adopt(&theirs, |id| progress.fetch(id, written)) {
            return None;
        }
        let mut kept = ObjectPatch::new();
        let budget = progress.handled_states_budget(written, &kept);
        let text = notes.encode(&base, salt, budget);
        progress.store_handled_states(Some(&text), view, &mut kept);
        Some(kept)
    }

    /// Whether another operator has replaced the notes that the status had, before the rest was
    /// written: with the last handled state that is in the rest, a handler that the notes name
    /// would count as called for it.
    #[must_use]
    pub fn has_lost_notes(&self) -> bool {
        let notes = |state: &Value| {
            let view = ObjectView::new(state);
            self.persistence.progress.fetch_handled_states(view)
        };
        let ours = notes(&merged(self.known, [self.status]));
        ours.is_some() && ours != notes(self.known) && ours != notes(self.newer)
    }

    /// The last handled state after the write, on top of this state.
    fn base_after(&self, state: &Value) -> Baseline {
        let written = merged(state, [self.status, self.body]);
        self.persistence.baseline(ObjectView::new(&written))
    }
}

fn merged<'a>(state: &Value, parts: impl IntoIterator<Item = Option<&'a Value>>) -> Value {
    let mut merged = state.clone();
    for part in parts.into_iter().flatten() {
        apply_merge(&mut merged, part);
    }
    merged
}
