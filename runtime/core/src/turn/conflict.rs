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
    /// What a part of the write needs besides when it is written on top of the newer state: notes
    /// that can be read with the newer last handled state, and with them those of handlers that
    /// another operator has called meanwhile. Without them, handlers would count as called for the
    /// present state, or be called again.
    ///
    /// A write that ends the cycle has handled the state that it stores, and has no notes. It keeps
    /// those of records that it does not know, and leaves: the next turn finds that they were
    /// written with another last handled state, and calls their handlers again.
    #[must_use]
    pub fn notes_to_keep(&self, part: &Value) -> Option<ObjectPatch> {
        let progress = &self.persistence.progress;
        let view = ObjectView::new(self.newer);
        let theirs = progress.fetch_handled_states(view);
        let before = progress.fetch_handled_states(ObjectView::new(self.known));
        let news = theirs.as_ref().filter(|_| theirs != before);
        let written = merged(self.newer, [Some(part)]);
        let written = ObjectView::new(&written);
        let Some(ours) = progress.fetch_handled_states(written) else {
            return self.notes_of_left_records(news?, written);
        };
        // The part has no notes of its own.
        if theirs.as_ref() == Some(&ours) {
            return None;
        }
        let salt = view.uid().unwrap_or_default();
        let (former, base) = (self.base_after(self.noted), self.base_after(self.newer));
        let mut notes = HandledStates::decode(&ours, &former, salt)?;
        let has_adopted = news
            .and_then(|it| HandledStates::decode(it, &self.persistence.baseline(view), salt))
            .is_some_and(|theirs| notes.adopt(&theirs, |id| progress.fetch(id, written)));
        if !has_adopted && former == base {
            return None;
        }
        let mut kept = ObjectPatch::new();
        let budget = progress.handled_states_budget(written, &kept);
        let text = notes.encode(&base, salt, budget);
        progress.store_handled_states(Some(&text), view, &mut kept);
        Some(kept)
    }

    /// The notes of another operator, if a write without notes leaves a record that they are about.
    fn notes_of_left_records(&self, notes: &str, written: ObjectView<'_>) -> Option<ObjectPatch> {
        let progress = &self.persistence.progress;
        let is_left = |(id, stamp): (HandlerId, RecordStamp)| {
            let record = progress.fetch(&id, written);
            record.as_ref().and_then(RecordStamp::of) == Some(stamp)
        };
        let mut stamps = HandledStates::stamps(notes).into_iter();
        stamps.any(is_left).then(|| {
            let mut kept = ObjectPatch::new();
            let view = ObjectView::new(self.newer);
            progress.store_handled_states(Some(notes), view, &mut kept);
            kept
        })
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
