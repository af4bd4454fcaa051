//! The end of a cycle, at which no change may be lost.
//!
//! The plain end stores the present state as the last handled one and removes the records.
//! That is right only if every finished handler has seen the present state. Otherwise the
//! oldest state from which some handler still has to be led to the present one is stored
//! instead, so that an update from it follows; handlers that need not run in that update
//! keep a finished record.

use jiff::Timestamp;

use crate::{
    cause::Reason,
    cycle::{Cycle, equal_at},
    handled_states::{HandledStanding, HandledStates, RecordStamp},
    handler::{HandlerId, Trigger},
    object::{diff::Baseline, patch::Patch, path::FieldPath},
    progress::record::Record,
};

/// An update that has to follow.
struct FollowUp {
    from: Baseline,
    called: Vec<HandlerId>,
    excused: Vec<HandlerId>,
    postponed: Vec<HandlerId>,
}

/// A record that outlives the cycle, with what its handler saw if there is no note of it.
struct KeptRecord {
    id: HandlerId,
    record: Record,
    state: Remembered,
}

enum Remembered {
    Seen(Baseline),
    Owed(Baseline),
}

// === impl KeptRecord ===

impl KeptRecord {
    fn new(id: &HandlerId, record: Record, state: &Baseline) -> Self {
        Self {
            id: id.clone(),
            record,
            state: Remembered::Seen(state.clone()),
        }
    }
}

// === impl Cycle ===

impl Cycle {
    /// Ends the cycle; tells whether an update follows.
    pub(super) fn close(&self, now: Timestamp, patch: &mut Patch) -> bool {
        let seen = self.seen_now();
        match self.follow_up(&seen) {
            Some(follow_up) => {
                self.close_for(&follow_up, &seen, now, patch);
                true
            }
            None => {
                self.close_plainly(patch);
                false
            }
        }
    }

    /// Settles the records of a change that was taken back before all handlers were done.
    pub(super) fn tidy(&self, now: Timestamp) -> Patch {
        let mut patch = Patch::new();
        self.close(now, &mut patch);
        patch
    }

    fn close_plainly(&self, patch: &mut Patch) {
        self.purge_all(patch, &[]);
        let situation = &self.situation;
        self.store_seen(&HandledStates::default(), &situation.sight.old, patch);
        if situation.sight.old.is_absent() || !situation.sight.diff.is_empty() {
            let storage = &situation.persistence.diffbase;
            storage.store(&self.present(), situation.view(), patch);
        }
    }

    fn close_for(
        &self,
        follow_up: &FollowUp,
        seen: &HandledStates,
        now: Timestamp,
        patch: &mut Patch,
    ) {
        let situation = &self.situation;
        let present = self.present();
        let mut kept: Vec<KeptRecord> = Vec::new();
        for id in &follow_up.excused {
            kept.push(KeptRecord::new(id, self.finished_record(id, now), &present));
            kept.extend(self.finished_subs(id));
        }
        for id in &follow_up.postponed {
            let record = self.tracker.record(id);
            let noted = record.filter(|record| RecordStamp::of(record).is_some());
            let record = noted.map_or_else(|| self.finished_record(id, now), due);
            kept.push(KeptRecord::new(id, record, &situation.sight.old));
            kept.extend(self.finished_subs(id));
        }
        for id in &follow_up.called {
            kept.extend(self.recalled(id, seen, now));
        }
        let ids: Vec<HandlerId> = kept.iter().map(|kept| kept.id.clone()).collect();
        self.purge_all(patch, &ids);
        let mut notes = seen.filtered(|id, _| ids.contains(id));
        for KeptRecord { id, record, state } in &kept {
            let progress = &situation.persistence.progress;
            if progress.fetch(id, situation.view()).as_ref() != Some(record) {
                progress.store(id, record, situation.view(), patch);
            }
            if let Some(stamp) = RecordStamp::of(record) {
                if !notes.restamp(id, stamp) {
                    match state {
                        Remembered::Seen(state) => notes.note(id.clone(), stamp, state),
                        Remembered::Owed(state) => notes.note_owed(id.clone(), stamp, state),
                    }
                }
                self.keep_owed(id, stamp, &mut notes, &follow_up.from);
            }
        }
        self.store_seen(&notes, &follow_up.from, patch);
        let storage = &situation.persistence.diffbase;
        storage.store(&follow_up.from, situation.view(), patch);
    }

    /// A handler that is owed a call must find a difference whatever comes: if its state is to
    /// become the last handled one, it remembers the present one of these instead.
    fn keep_owed(
        &self,
        id: &HandlerId,
        stamp: RecordStamp,
        notes: &mut HandledStates,
        from: &Baseline,
    ) {
        let old = &self.situation.sight.old;
        let scope = self.situation.scope(id);
        let same = |state: &Baseline| equal_at(state, from, &scope);
        if notes.standing(id, stamp) == Some(HandledStanding::Owed)
            && notes.state(id, stamp).is_some_and(same)
            && !old.is_absent()
            && !same(old)
        {
            notes.note_owed(id.clone(), stamp, old);
        }
    }

    /// The oldest state from which a handler still has to be led to the present one.
    fn follow_up(&self, seen: &HandledStates) -> Option<FollowUp> {
        if self.reason() == Reason::Delete || !self.follow_ups_possible() {
            return None;
        }
        let situation = &self.situation;
        let outdated = self.outdated(seen);
        let states = seen.states().iter();
        states
            .filter(|from| outdated.contains(from))
            .find_map(|from| {
                let matching: Vec<HandlerId> = situation
                    .selected_since(from)
                    .iter()
                    .map(|handler| handler.id.clone())
                    .collect();
                let (excused, called): (Vec<_>, Vec<_>) = matching
                    .into_iter()
                    .partition(|id| self.is_up_to_date(id, seen));
                if called.is_empty() {
                    return None;
                }
                let postponed = situation
                    .registry
                    .owned_ids()
                    .into_iter()
                    .filter(|id| !called.contains(id) && !excused.contains(id))
                    .filter(|id| self.is_elsewhere(id, from, seen))
                    .collect();
                Some(FollowUp {
                    from: from.clone(),
                    called,
                    excused,
                    postponed,
                })
            })
    }

    /// The states of handlers for which the present one differs from what they saw.
    fn outdated<'a>(&self, seen: &'a HandledStates) -> Vec<&'a Baseline> {
        let mut outdated = Vec::new();
        for id in self.situation.registry.owned_ids() {
            let scope = self.situation.scope(&id);
            let family = std::iter::once(&id).chain(self.tracker.subrefs(&id));
            outdated.extend(
                family
                    .filter_map(|id| self.tracker.state_seen(id, seen))
                    .filter(|state| !state.same_at(&scope, &self.situation.sight.new)),
            );
        }
        outdated
    }

    /// Whether a handler need not be called for the present state again.
    ///
    /// One that did not finish in this cycle has been led to the last handled state, from
    /// which the present one does not differ for it; in a creation there is no such state.
    fn is_up_to_date(&self, id: &HandlerId, seen: &HandledStates) -> bool {
        let Some(record) = self.tracker.record(id) else {
            return self.reason() != Reason::Create;
        };
        let scope = self.situation.scope(id);
        let settled = |id: &HandlerId| match self.tracker.record(id) {
            Some(record) if RecordStamp::of(record).is_some() => self.is_current(id, &scope, seen),
            Some(_) => self.reason() != Reason::Create,
            None => true,
        };
        settled(id) && record.subrefs.iter().all(settled)
    }

    /// Whether a handler saw what is there now when it finished.
    fn is_current(&self, id: &HandlerId, scope: &FieldPath, seen: &HandledStates) -> bool {
        self.tracker
            .sees(id, seen, scope, &self.situation.sight.new)
            .unwrap_or(true)
    }

    /// Whether the state from which an update follows would misrepresent what a handler saw
    /// that this update will not call.
    fn is_elsewhere(&self, id: &HandlerId, from: &Baseline, seen: &HandledStates) -> bool {
        let handlers = self.situation.registry.change_handlers();
        let reacts = handlers
            .filter(|handler| handler.id == *id)
            .any(|handler| matches!(handler.trigger, Trigger::Update | Trigger::Field));
        let state = match self.tracker.state_seen(id, seen) {
            None if self.reason() == Reason::Create => return false,
            None => &self.situation.sight.old,
            Some(state) => state,
        };
        reacts && !equal_at(state, from, &self.situation.scope(id))
    }

    /// A finished record for a handler that is not to be called, made up if it has none.
    fn finished_record(&self, id: &HandlerId, now: Timestamp) -> Record {
        match self.tracker.record(id) {
            Some(record) if record.is_finished() => due(record),
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

    /// The records of a handler that is to be called again, and of its sub-handlers: those
    /// that saw the present state stay finished, the others remember what they saw.
    fn recalled(&self, id: &HandlerId, seen: &HandledStates, now: Timestamp) -> Vec<KeptRecord> {
        let scope = self.situation.scope(id);
        let mut family: Vec<KeptRecord> = self.finished_subs(id).collect();
        for sub in &mut family {
            if !self.is_current(&sub.id, &scope, seen) {
                sub.record = again(&sub.record, now);
            }
        }
        let fresh = Record::begin(Reason::Update, now);
        let mut own = again(self.tracker.record(id).unwrap_or(&fresh), now);
        own.subrefs = family.iter().map(|sub| sub.id.clone()).collect();
        own.stopped.get_or_insert(own.started);
        let state = match self.reason() {
            Reason::Create => Remembered::Owed(self.present()),
            _ => Remembered::Seen(self.situation.sight.old.clone()),
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
                .map(|_| KeptRecord::new(sub, due(record), &self.situation.sight.old))
        })
    }

    fn purge_all(&self, patch: &mut Patch, except: &[HandlerId]) {
        let mut ids = self.situation.registry.owned_ids();
        ids.extend(self.tracker.ids().cloned());
        ids.sort();
        ids.dedup();
        for id in ids.iter().filter(|id| !except.contains(id)) {
            self.purge(id, patch);
        }
    }
}

/// The record under the purpose of the follow-up.
fn due(record: &Record) -> Record {
    Record {
        purpose: Some(Reason::Update),
        ..record.clone()
    }
}

/// A record that starts anew, but remembers when its handler finished last.
fn again(record: &Record, now: Timestamp) -> Record {
    Record {
        stopped: RecordStamp::of(record).map(|stamp| stamp.at),
        ..Record::begin(Reason::Update, now)
    }
}
