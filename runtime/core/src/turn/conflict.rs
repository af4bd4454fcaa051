//! Progress of another operator that has written between the state of a turn and its write.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    handled_states::{HandledStates, RecordStamp},
    handler::HandlerId,
    object::{ObjectView, diff::Baseline, patch::ObjectPatch, patch::apply_merge},
    persistence::Persistence,
    progress::record::Record,
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
        let base = self.base_after(self.newer);
        if let Some(mut notes) = self.notes_of_written_records(part, written) {
            if let Some(theirs) = theirs {
                let _ = notes.adopt(&self.notes_in_newer(&theirs), |id| {
                    progress.fetch(id, written)
                });
            }
            return Some(self.stored(&notes, &base, written));
        }
        let Some(ours) = progress.fetch_handled_states(written) else {
            return self.notes_of_left_records(news?, written);
        };
        // The part has no notes of its own.
        if theirs.as_ref() == Some(&ours) {
            let ends_cycle = base != self.persistence.baseline(view);
            return self.notes_of_left_records(news.filter(|_| ends_cycle)?, written);
        }
        let former = self.base_after(self.noted);
        let mut notes = HandledStates::decode(&ours, &former, self.salt())?;
        let has_adopted = news.is_some_and(|it| {
            notes.adopt(&self.notes_in_newer(it), |id| progress.fetch(id, written))
        });
        (has_adopted || former != base).then(|| self.stored(&notes, &base, written))
    }

    /// The notes of records in a part of the write that leaves the notes as they were, if those of
    /// the newer state do not have them: another operator has removed or replaced them since.
    fn notes_of_written_records(
        &self,
        part: &Value,
        written: ObjectView<'_>,
    ) -> Option<HandledStates> {
        let progress = &self.persistence.progress;
        let (known, newer) = (ObjectView::new(self.known), ObjectView::new(self.newer));
        let before = progress.fetch_handled_states(known)?;
        let wanted = merged(self.known, [Some(part)]);
        let wanted = progress.fetch_handled_states(ObjectView::new(&wanted));
        if wanted.as_ref() != Some(&before) {
            return None;
        }
        let readable = |notes: &str, state: ObjectView<'_>| {
            HandledStates::decode(notes, &self.persistence.baseline(state), self.salt())
        };
        let theirs = progress.fetch_handled_states(newer);
        let theirs = theirs
            .and_then(|it| readable(&it, newer))
            .unwrap_or_default();
        let notes = readable(&before, known)?.filtered(|id, stamp| {
            let record = progress.fetch(id, written);
            let is_written = record != progress.fetch(id, newer);
            let is_noted = theirs.state(id, stamp).is_some();
            is_written && !is_noted && record.as_ref().and_then(RecordStamp::of) == Some(stamp)
        });
        (!notes.is_empty()).then_some(notes)
    }

    /// These notes of the newer state.
    fn notes_in_newer(&self, notes: &str) -> HandledStates {
        let base = self.persistence.baseline(ObjectView::new(self.newer));
        HandledStates::decode(notes, &base, self.salt())
            .unwrap_or_else(|| HandledStates::unknown(notes, self.salt()))
    }

    /// Notes for a last handled state.
    fn stored(
        &self,
        notes: &HandledStates,
        base: &Baseline,
        written: ObjectView<'_>,
    ) -> ObjectPatch {
        let progress = &self.persistence.progress;
        let mut kept = ObjectPatch::new();
        let budget = progress.handled_states_budget(written, &kept);
        let text = notes.encode(base, self.salt(), budget);
        progress.store_handled_states(Some(&text), ObjectView::new(self.newer), &mut kept);
        kept
    }

    fn salt(&self) -> &str {
        ObjectView::new(self.newer).uid().unwrap_or_default()
    }

    /// The records of another operator that a part of the write must not replace or remove.
    ///
    /// A handler that has ended there since, and not here, has ended, if a note that can be read
    /// says on which state. And only the record of a handler names its sub-handlers: those which the
    /// other operator has called must be found.
    #[must_use]
    pub fn records_to_keep(&self, part: &Value) -> Option<ObjectPatch> {
        let progress = &self.persistence.progress;
        let (known, newer) = (ObjectView::new(self.known), ObjectView::new(self.newer));
        let mut records = progress.records(&self.named_in_newer(), newer);
        records.retain(|(id, theirs)| progress.fetch(id, known).as_ref() != Some(theirs));
        if records.is_empty() {
            return None;
        }
        let written = merged(self.newer, [Some(part)]);
        let written = ObjectView::new(&written);
        let (base, salt) = (self.persistence.baseline(newer), newer.uid());
        let notes = progress.fetch_handled_states(newer).filter(|notes| {
            HandledStates::decode(notes, &base, salt.unwrap_or_default()).is_some()
        });
        let stamps = notes.as_deref().map(HandledStates::stamps);
        let stamps = stamps.unwrap_or_default();
        let mut kept = ObjectPatch::new();
        for (id, theirs) in records {
            let stamp = RecordStamp::of(&theirs);
            let is_noted = stamp.is_some() && stamps.get(&id) == stamp.as_ref();
            // Our record takes the end that it was made for into account: it may restart the
            // handler for what that end has missed.
            let before = progress.fetch(&id, known);
            let is_new = before.as_ref().and_then(RecordStamp::of) != stamp;
            if let Some(record) = self.record_to_keep(&id, theirs, is_noted && is_new, written) {
                progress.store(&id, &record, newer, &mut kept);
            }
        }
        (!kept.is_empty()).then_some(kept)
    }

    /// The ids that the newer state spells out. Those of handlers of fields and of sub-handlers
    /// cannot be read from the names of annotations.
    fn named_in_newer(&self) -> Vec<HandlerId> {
        let (progress, newer) = (&self.persistence.progress, ObjectView::new(self.newer));
        let notes = progress.fetch_handled_states(newer);
        let stamps = notes.as_deref().map(HandledStates::stamps);
        let noted = stamps.into_iter().flat_map(BTreeMap::into_keys);
        let records = progress.records(&[], newer).into_iter();
        let subs: Vec<HandlerId> = records.flat_map(|(_, it)| it.subrefs).collect();
        if planted!(FieldIdsFromAnnotations) {
            return subs;
        }
        let callers: Vec<HandlerId> = subs.iter().flat_map(HandlerId::ancestors).collect();
        let mut named: Vec<HandlerId> = noted.chain(subs).chain(callers).collect();
        named.sort();
        named.dedup();
        named
    }

    fn record_to_keep(
        &self,
        id: &HandlerId,
        theirs: Record,
        ended: bool,
        written: ObjectView<'_>,
    ) -> Option<Record> {
        let progress = &self.persistence.progress;
        let ours = progress.fetch(id, written);
        let named = ours.as_ref().map_or(&[][..], |record| &record.subrefs);
        let is_lost = |sub: &&HandlerId| {
            sub.is_sub_of(id) && !named.contains(*sub) && progress.fetch(sub, written).is_some()
        };
        let lost: Vec<HandlerId> = theirs.subrefs.iter().filter(is_lost).cloned().collect();
        let Some(mut ours) = ours else {
            return (!lost.is_empty()).then_some(theirs);
        };
        let has_ended = ended && theirs.is_finished() && !ours.is_finished();
        if lost.is_empty() && !has_ended {
            return None;
        }
        ours.subrefs.extend(lost);
        ours.subrefs.sort();
        Some(match has_ended {
            true => Record {
                subrefs: ours.subrefs,
                ..theirs
            },
            false => ours,
        })
    }

    /// The notes of another operator, if a write without notes leaves a record that they are about.
    ///
    /// If all of these handlers have ended on the very state that the write stores, nothing is in
    /// doubt, and the notes can be read with that state.
    fn notes_of_left_records(&self, notes: &str, written: ObjectView<'_>) -> Option<ObjectPatch> {
        let progress = &self.persistence.progress;
        let is_left = |id: &HandlerId, stamp: RecordStamp| {
            let record = progress.fetch(id, written);
            record.as_ref().and_then(RecordStamp::of) == Some(stamp)
        };
        let mut stamps = HandledStates::stamps(notes);
        stamps.retain(|id, stamp| is_left(id, *stamp));
        if stamps.is_empty() {
            return None;
        }
        let view = ObjectView::new(self.newer);
        let base = self.base_after(self.newer);
        let readable = HandledStates::decode(notes, &self.persistence.baseline(view), self.salt())
            .map(|notes| notes.filtered(is_left))
            .filter(|notes| {
                let mut stamps = stamps.iter();
                stamps.all(|(id, stamp)| notes.state(id, *stamp) == Some(&base))
            });
        let mut kept = ObjectPatch::new();
        let budget = progress.handled_states_budget(written, &kept);
        let text = readable.map_or_else(
            || notes.to_owned(),
            |notes| notes.encode(&base, self.salt(), budget),
        );
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
