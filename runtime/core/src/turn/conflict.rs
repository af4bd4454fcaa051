//! Progress of another operator that has written between the state of a turn and its write.

use serde_json::Value;

use crate::{
    handled_states::{HandledStates, RecordStamp},
    handler::HandlerId,
    object::{ObjectView, patch::ObjectPatch, patch::apply_merge},
    persistence::Persistence,
};

/// Whether another operator has ended a cycle between `known` and `newer`, so that the last handled
/// state is neither the known one nor that of the patch, whose parts these are.
///
/// The records and notes of the patch belong to the cycle that has ended. On top of the newer state
/// they would replace those of the next cycle, and a change that its handlers missed would be lost.
#[must_use]
pub fn is_cycle_ended<'a>(
    persistence: &Persistence,
    known: &Value,
    newer: &Value,
    parts: impl IntoIterator<Item = Option<&'a Value>>,
) -> bool {
    let ended = persistence.baseline(ObjectView::new(newer));
    if ended.is_absent() || ended == persistence.baseline(ObjectView::new(known)) {
        return false;
    }
    let mut written = known.clone();
    for part in parts.into_iter().flatten() {
        apply_merge(&mut written, part);
    }
    ended != persistence.baseline(ObjectView::new(&written))
}

/// What a merge patch needs besides when it is written on top of `newer` instead of `known`: the
/// notes of handlers that another operator has called meanwhile. Without them, these handlers
/// would count as called for the present state.
///
/// A patch that ends the cycle has handled the state that it stores, and has no notes. It keeps
/// those of records that it does not know, and leaves: the next turn finds that they were written
/// with another last handled state, and calls their handlers again.
#[must_use]
pub fn notes_to_keep(
    persistence: &Persistence,
    known: &Value,
    newer: &Value,
    patch: &Value,
) -> Option<ObjectPatch> {
    let progress = &persistence.progress;
    let view = ObjectView::new(newer);
    let theirs = progress.fetch_handled_states(view)?;
    let before = progress.fetch_handled_states(ObjectView::new(known));
    if before.as_ref() == Some(&theirs) {
        return None;
    }
    let mut written = newer.clone();
    apply_merge(&mut written, patch);
    let written = ObjectView::new(&written);
    let salt = view.uid().unwrap_or_default();
    let base = persistence.baseline(written);
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
    let mut notes = HandledStates::decode(&ours, &base, salt)?;
    let theirs = HandledStates::decode(&theirs, &persistence.baseline(view), salt)?;
    if !notes.adopt(&theirs, |id| progress.fetch(id, written)) {
        return None;
    }
    let mut kept = ObjectPatch::new();
    let budget = progress.handled_states_budget(written, &kept);
    let text = notes.encode(&base, salt, budget);
    progress.store_handled_states(Some(&text), view, &mut kept);
    Some(kept)
}
