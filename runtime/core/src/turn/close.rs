//! The end of a cycle: it must not lose a change that came while handlers ran.
//!
//! If every handler finished on the present state, the cycle stores that state as the last
//! handled one and removes the records. Otherwise it stores the oldest state that a handler
//! finished on and that differs from the present one, so that an update from it follows.
//! Handlers that need not run in that update keep a finished record.

use jiff::Timestamp;

use crate::{
    cause::Reason,
    handled_states::{HandledStates, NoteKind, RecordStamp},
    handler::{HandlerId, Trigger},
    object::{diff::Baseline, patch::ObjectPatch, path::FieldPath},
    progress::record::Record,
    turn::{Turn, equal_at},
};

/// An update that has to follow.
struct FollowUp {
    /// The state to be stored as the last handled one.
    from: Baseline,
    /// The handlers that it calls.
    to_call: Vec<HandlerId>,
    /// Handlers that match, but have handled the present state.
    up_to_date: Vec<HandlerId>,
    /// Handlers that do not match, and have handled another state than `from`.
    later: Vec<HandlerId>,
}

/// A record that outlives the cycle, and the state for its note if it has none.
struct KeptRecord {
    id: HandlerId,
    record: Record,
    state: NotedState,
}

enum NotedState {
    Finished(Baseline),
    CallRequired(Baseline),
}

// === impl KeptRecord ===

impl KeptRecord {
    fn new(id: &HandlerId, record: Record, state: &Baseline) -> Self {
        Self {
            id: id.clone(),
            record,
            state: NotedState::Finished(state.clone()),
        }
    }
}

// === impl Turn ===

impl Turn {
    /// Ends the cycle; returns whether an update follows.
    pub(super) fn close(&self, now: Timestamp, patch: &mut ObjectPatch) -> bool {
        self.close_except(&[], now, patch)
    }

    /// Whether an update follows when the cycle ends now.
    pub(super) fn requires_follow_up(&self) -> bool {
        self.follow_up(&self.current_handled_states()).is_some()
    }

    /// Ends a cycle whose change was reverted before all handlers were done.
    pub(super) fn close_reverted(&self, now: Timestamp) -> ObjectPatch {
        let mut patch = ObjectPatch::new();
        self.close_except(&self.resumed(), now, &mut patch);
        patch
    }

    /// Ends the cycle, but for the finished handlers in `kept`; returns whether an update follows.
    fn close_except(&self, kept: &[HandlerId], now: Timestamp, patch: &mut ObjectPatch) -> bool {
        let handled = self.current_handled_states();
        match self.follow_up(&handled) {
            Some(follow_up) if !planted!(NewestStateIsBase) => {
                self.close_with_follow_up(&follow_up, &handled, now, patch);
                true
            }
            Some(_) | None => {
                let is_noted = |id: &HandlerId| kept.contains(id) && self.handles_updates(id);
                let handled = handled.filtered(|id, _| is_noted(id));
                self.close_without_follow_up(kept, &handled, patch);
                false
            }
        }
    }

    /// The resume handlers that are done, and stay so when a change was reverted: they are called
    /// once for each start. One that handles updates, too, must have seen the present state.
    fn resumed(&self) -> Vec<HandlerId> {
        if self.reason() != Reason::Resume {
            return Vec::new();
        }
        let input = &self.input;
        let is_settled = |id: &HandlerId| {
            let (scope, present) = (input.scope(id), &input.change.new);
            let seen = self
                .tracker
                .has_finished_on(id, &self.handled, &scope, present);
            seen == Some(true) || !self.handles_updates(id)
        };
        let selected = self.level.selected.iter().map(|handler| &handler.id);
        selected
            .filter(|id| self.tracker.is_finished(id) && is_settled(id))
            .cloned()
            .collect()
    }

    fn handles_updates(&self, id: &HandlerId) -> bool {
        let handlers = self.input.registry.change_handlers();
        handlers
            .filter(|handler| handler.id == *id)
            .any(|handler| matches!(handler.trigger, Trigger::Update | Trigger::Field))
    }

    fn close_without_follow_up(
        &self,
        kept: &[HandlerId],
        handled: &HandledStates,
        patch: &mut ObjectPatch,
    ) {
        self.purge_all(patch, kept);
        let input = &self.input;
        for id in kept {
            if let Some(record) = self.tracker.record(id) {
                let progress = &input.persistence.progress;
                progress.store(id, record, input.view(), patch);
            }
        }
        self.store_handled_states(handled, &input.change.old, patch);
        // No change follows a deletion, and an object without space for the state must be released.
        let may_change = self.reason() != Reason::Delete;
        if may_change && (input.change.old.is_absent() || !input.change.diff.is_empty()) {
            let storage = &input.persistence.diffbase;
            storage.store(&self.present(), input.view(), patch);
        }
    }

    fn close_with_follow_up(
        &self,
        follow_up: &FollowUp,
        handled: &HandledStates,
        now: Timestamp,
        patch: &mut ObjectPatch,
    ) {
        let input = &self.input;
        let present = self.present();
        let mut kept: Vec<KeptRecord> = Vec::new();
        for id in &follow_up.up_to_date {
            kept.push(KeptRecord::new(id, self.finished_record(id, now), &present));
            kept.extend(self.finished_subs(id));
        }
        for id in &follow_up.later {
            let record = self.tracker.record(id);
            let noted = record.filter(|record| RecordStamp::of(record).is_some());
            let record = noted.map_or_else(|| self.finished_record(id, now), for_update);
            kept.push(KeptRecord::new(id, record, &input.change.old));
            kept.extend(self.finished_subs(id));
        }
        for id in &follow_up.to_call {
            kept.extend(self.records_to_call_again(id, handled, now));
        }
        let ids: Vec<HandlerId> = kept.iter().map(|kept| kept.id.clone()).collect();
        self.purge_all(patch, &ids);
        let mut notes = handled.filtered(|id, _| ids.contains(id));
        for KeptRecord { id, record, state } in &kept {
            let progress = &input.persistence.progress;
            if progress.fetch(id, input.view()).as_ref() != Some(record) {
                progress.store(id, record, input.view(), patch);
            }
            if let Some(stamp) = RecordStamp::of(record) {
                if !notes.restamp(id, stamp) {
                    match state {
                        NotedState::Finished(state) => notes.note(id.clone(), stamp, state),
                        NotedState::CallRequired(state) => {
                            notes.note_call_required(id.clone(), stamp, state)
                        }
                    }
                }
                self.keep_call_required(id, stamp, &mut notes, &follow_up.from);
            }
        }
        self.store_handled_states(&notes, &follow_up.from, patch);
        let storage = &input.persistence.diffbase;
        storage.store(&follow_up.from, input.view(), patch);
    }

    /// A handler that must be called has to find a difference in any case: if the state in its
    /// note becomes the last handled one, the note gets the former last handled state instead.
    fn keep_call_required(
        &self,
        id: &HandlerId,
        stamp: RecordStamp,
        notes: &mut HandledStates,
        from: &Baseline,
    ) {
        let old = &self.input.change.old;
        let scope = self.input.scope(id);
        let same = |state: &Baseline| equal_at(state, from, &scope);
        if notes.kind(id, stamp) == Some(NoteKind::CallRequired)
            && notes.state(id, stamp).is_some_and(same)
            && !old.is_absent()
            && !same(old)
        {
            notes.note_call_required(id.clone(), stamp, old);
        }
    }

    /// The update from the oldest state on which a handler finished that must be called again.
    fn follow_up(&self, handled: &HandledStates) -> Option<FollowUp> {
        if self.reason() == Reason::Delete || !self.follow_ups_possible() {
            return None;
        }
        let input = &self.input;
        let outdated = self.outdated(handled);
        let states = handled.states().iter();
        states
            .filter(|from| outdated.contains(from))
            .find_map(|from| {
                let matching: Vec<HandlerId> = input
                    .selected_since(from)
                    .iter()
                    .map(|handler| handler.id.clone())
                    .collect();
                let (up_to_date, to_call): (Vec<_>, Vec<_>) = matching
                    .into_iter()
                    .partition(|id| self.is_up_to_date(id, handled));
                if to_call.is_empty() {
                    return None;
                }
                let later = input
                    .registry
                    .owned_ids()
                    .into_iter()
                    .filter(|id| !to_call.contains(id) && !up_to_date.contains(id))
                    .filter(|id| self.is_misrepresented_by(id, from, handled))
                    .collect();
                Some(FollowUp {
                    from: from.clone(),
                    to_call,
                    up_to_date,
                    later,
                })
            })
    }

    /// The states on which handlers finished and that differ from the present one for them.
    fn outdated<'a>(&self, handled: &'a HandledStates) -> Vec<&'a Baseline> {
        let mut outdated = Vec::new();
        for id in self.input.registry.owned_ids() {
            let scope = self.input.scope(&id);
            let family = std::iter::once(&id).chain(self.tracker.subrefs(&id));
            outdated.extend(
                family
                    .filter_map(|id| self.tracker.finished_state(id, handled))
                    .filter(|state| !state.same_at(&scope, &self.input.change.new)),
            );
        }
        outdated
    }

    /// Whether a handler need not be called for the present state again.
    ///
    /// One that did not finish in this cycle has handled the last handled state, from which the
    /// present one does not differ for it; in a creation there is no such state.
    fn is_up_to_date(&self, id: &HandlerId, handled: &HandledStates) -> bool {
        let Some(record) = self.tracker.record(id) else {
            return self.reason() != Reason::Create;
        };
        let scope = self.input.scope(id);
        let settled = |id: &HandlerId| match self.tracker.record(id) {
            Some(record) if RecordStamp::of(record).is_some() => {
                self.is_current(id, &scope, handled)
            }
            Some(_) => self.reason() != Reason::Create,
            None => true,
        };
        settled(id) && record.subrefs.iter().all(settled)
    }

    /// Whether a handler finished on the present state; true if there is no note.
    fn is_current(&self, id: &HandlerId, scope: &FieldPath, handled: &HandledStates) -> bool {
        self.tracker
            .has_finished_on(id, handled, scope, &self.input.change.new)
            .unwrap_or(true)
    }

    /// Whether `from` as the last handled state would be wrong for a handler that the follow-up
    /// does not call, or for one of its sub-handlers.
    fn is_misrepresented_by(
        &self,
        id: &HandlerId,
        from: &Baseline,
        handled: &HandledStates,
    ) -> bool {
        let state = match self.tracker.finished_state(id, handled) {
            None if self.reason() == Reason::Create => return false,
            None => &self.input.change.old,
            Some(state) => state,
        };
        let mut subs = self.tracker.subrefs(id);
        let of_sub = |id: &HandlerId| self.tracker.finished_state(id, handled);
        let is_other = |state: &Baseline| !equal_at(state, from, &self.input.scope(id));
        self.handles_updates(id)
            && (is_other(state) || subs.any(|it| of_sub(it).is_some_and(is_other)))
    }

    /// A finished record for a handler that is not to be called, a new one if it has none.
    fn finished_record(&self, id: &HandlerId, now: Timestamp) -> Record {
        match self.tracker.record(id) {
            Some(record) if record.is_finished() => for_update(record),
            unfinished => {
                let begun = Record::begin(Reason::Update, now);
                Record {
                    stopped: Some(begun.started),
                    success: true,
                    subrefs: unfinished.map_or(Vec::new(), |record| record.subrefs.clone()),
                    ..begun
                }
            }
        }
    }

    /// The records of a handler that is to be called again, and of its sub-handlers: those that
    /// finished on the present state with all below them stay finished, the others keep a note of
    /// their state.
    fn records_to_call_again(
        &self,
        id: &HandlerId,
        handled: &HandledStates,
        now: Timestamp,
    ) -> Vec<KeptRecord> {
        let scope = self.input.scope(id);
        let mut family: Vec<KeptRecord> = self.finished_subs(id).collect();
        let kept: Vec<HandlerId> = family.iter().map(|sub| sub.id.clone()).collect();
        for sub in &mut family {
            sub.record.subrefs.retain(|id| kept.contains(id));
            let below = match planted!(NestedSubsForgotten) {
                true => &[][..],
                false => &sub.record.subrefs,
            };
            let mut own = std::iter::once(&sub.id).chain(below);
            if !own.all(|id| self.is_current(id, &scope, handled)) {
                let subrefs = std::mem::take(&mut sub.record.subrefs);
                sub.record = Record {
                    subrefs,
                    ..restarted(&sub.record, now)
                };
            }
        }
        let fresh = Record::begin(Reason::Update, now);
        let mut own = restarted(self.tracker.record(id).unwrap_or(&fresh), now);
        own.subrefs = kept;
        own.stopped.get_or_insert(own.started);
        let state = match self.reason() {
            Reason::Create => NotedState::CallRequired(self.present()),
            _ => NotedState::Finished(self.input.change.old.clone()),
        };
        family.push(KeptRecord {
            id: id.clone(),
            record: own,
            state,
        });
        family
    }

    fn finished_subs(&self, id: &HandlerId) -> impl Iterator<Item = KeptRecord> {
        self.tracker.subrefs(id).filter_map(|sub| {
            let record = self.tracker.record(sub)?;
            RecordStamp::of(record)
                .map(|_| KeptRecord::new(sub, for_update(record), &self.input.change.old))
        })
    }

    fn purge_all(&self, patch: &mut ObjectPatch, except: &[HandlerId]) {
        let mut ids = self.input.registry.owned_ids();
        ids.extend(self.tracker.ids().cloned());
        ids.sort();
        ids.dedup();
        for id in ids.iter().filter(|id| !except.contains(id)) {
            self.purge(id, patch);
        }
    }
}

/// The record with the purpose of the follow-up.
fn for_update(record: &Record) -> Record {
    Record {
        purpose: Some(Reason::Update),
        ..record.clone()
    }
}

/// A new record that keeps the time at which its handler finished last.
fn restarted(record: &Record, now: Timestamp) -> Record {
    Record {
        stopped: RecordStamp::of(record).map(|stamp| stamp.at),
        ..Record::begin(Reason::Update, now)
    }
}
