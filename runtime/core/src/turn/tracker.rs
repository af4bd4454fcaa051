//! The records of the handlers of one level during one turn.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;

use crate::{
    cause::Reason,
    handled_states::{HandledStates, NoteKind, RecordStamp},
    handler::{HandlerId, HandlerSpec, retry::RetryLimit},
    lifecycle::{DueHandler, Lifecycle},
    object::{diff::Baseline, essence::Essence, path::FieldPath},
    outcome::{Consequence, Outcome},
    progress::record::Record,
    turn::TurnInput,
};

/// The facts about a call that its handler may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerAttempt {
    /// Calls made before this one.
    pub retry: u32,
    /// The time at which the handler was first selected.
    pub started: Timestamp,
    /// Time since then.
    pub runtime: Duration,
    /// The time limit of the call.
    pub time_left: Option<Duration>,
}

/// The records of the handlers of one level, and of the sub-handlers that these name.
#[derive(Clone, Debug)]
pub(crate) struct Tracker {
    purpose: Reason,
    tracked: Vec<Tracked>,
    dropped: Vec<HandlerId>,
}

#[derive(Clone, Debug)]
struct Tracked {
    id: HandlerId,
    role: TrackedRole,
    record: Record,
    origin: Option<Record>,
}

#[derive(Clone, Debug)]
enum TrackedRole {
    /// Selected in this turn.
    Active(Arc<HandlerSpec>),
    /// Declared, but not selected in this turn.
    Passive,
    /// A sub-handler of any level that a record names.
    Sub,
    /// A sub-handler of any level that a call of this turn has registered.
    Registered,
    /// A sub-handler that a call of this turn has registered, but that does not match the present
    /// state, and no change since its end.
    Unmatched,
}

// === impl Tracker ===

impl Tracker {
    /// Loads the records of all owned handlers, but for those that are dropped; the selected ones
    /// are active.
    pub(crate) fn open(
        purpose: Reason,
        owned: &[HandlerId],
        selected: &[Arc<HandlerSpec>],
        dropped: &[HandlerId],
        input: &TurnInput,
        now: Timestamp,
    ) -> Self {
        let view = input.view();
        let fetch = |id: &HandlerId| match dropped.contains(id) {
            true => None,
            false => input.persistence.progress.fetch(id, view),
        };
        let mut tracker = Self {
            purpose,
            tracked: Vec::new(),
            dropped: Vec::new(),
        };
        for spec in selected {
            let origin = fetch(&spec.id);
            tracker.tracked.push(Tracked {
                id: spec.id.clone(),
                role: TrackedRole::Active(Arc::clone(spec)),
                record: origin
                    .clone()
                    .unwrap_or_else(|| Record::begin(purpose, now)),
                origin,
            });
        }
        for id in owned {
            tracker.load(id, &TrackedRole::Passive, fetch);
        }
        let subs: Vec<HandlerId> = tracker
            .tracked
            .iter()
            .flat_map(|tracked| tracked.record.subrefs.iter().cloned())
            .collect();
        for id in &subs {
            tracker.load(id, &TrackedRole::Sub, fetch);
        }
        tracker.correct_clock(input.clock_ahead, now);
        tracker
    }

    /// Keeps the waits of the handlers though the clock of their times was ahead.
    pub(crate) fn correct_clock(&mut self, ahead: Duration, now: Timestamp) {
        for tracked in &mut self.tracked {
            tracked.record.correct_clock(ahead, now);
        }
    }

    fn load(
        &mut self,
        id: &HandlerId,
        role: &TrackedRole,
        fetch: impl Fn(&HandlerId) -> Option<Record>,
    ) {
        if self.find(id).is_none()
            && let Some(record) = fetch(id)
        {
            self.tracked.push(Tracked {
                id: id.clone(),
                role: role.clone(),
                origin: Some(record.clone()),
                record,
            });
        }
    }

    /// Loads the records of sub-handlers that only notes name: a write that tested no version has
    /// replaced the record of the handler above, which named them.
    pub(crate) fn load_noted(&mut self, notes: &HandledStates, input: &TurnInput) {
        let progress = &input.persistence.progress;
        for id in notes.ids() {
            let is_caller = |it: &Tracked| id.is_sub_of(&it.id);
            if self.find(id).is_some() || !self.tracked.iter().any(is_caller) {
                continue;
            }
            self.load(id, &TrackedRole::Sub, |id| progress.fetch(id, input.view()));
            if self.find(id).is_some() {
                let callers = self.tracked.iter_mut().filter(|it| is_caller(it));
                for Tracked { record, .. } in callers {
                    record.subrefs.push(id.clone());
                    record.subrefs.sort();
                }
            }
        }
    }

    fn find(&self, id: &HandlerId) -> Option<&Tracked> {
        self.tracked.iter().find(|tracked| tracked.id == *id)
    }

    fn find_mut(&mut self, id: &HandlerId) -> Option<&mut Tracked> {
        self.tracked.iter_mut().find(|tracked| tracked.id == *id)
    }

    fn active(&self) -> impl Iterator<Item = (&Tracked, &Arc<HandlerSpec>)> {
        self.tracked
            .iter()
            .filter_map(|tracked| match &tracked.role {
                TrackedRole::Active(spec) => Some((tracked, spec)),
                TrackedRole::Passive
                | TrackedRole::Sub
                | TrackedRole::Registered
                | TrackedRole::Unmatched => None,
            })
    }

    pub(crate) fn record(&self, id: &HandlerId) -> Option<&Record> {
        self.find(id).map(|tracked| &tracked.record)
    }

    /// Whether the object has a record of a handler.
    pub(crate) fn has_record(&self, id: &HandlerId) -> bool {
        self.find(id)
            .is_some_and(|tracked| tracked.origin.is_some())
    }

    /// Every known id: selected, owned with a record, and sub-handlers.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &HandlerId> {
        self.tracked
            .iter()
            .flat_map(|tracked| std::iter::once(&tracked.id).chain(&tracked.record.subrefs))
    }

    /// The sub-handlers of all levels that a handler is known to have.
    pub(crate) fn subrefs(&self, id: &HandlerId) -> impl Iterator<Item = &HandlerId> {
        self.record(id)
            .into_iter()
            .flat_map(|record| &record.subrefs)
    }

    pub(crate) fn is_finished(&self, id: &HandlerId) -> bool {
        self.record(id).is_some_and(Record::is_finished)
    }

    /// The stamp of a handler's record, if it has finished and not been called since.
    pub(crate) fn stamp(&self, id: &HandlerId) -> Option<RecordStamp> {
        self.record(id).and_then(RecordStamp::of)
    }

    /// The handlers that finished on a state which is not known, as their notes cannot be read.
    pub(crate) fn unknown_ends(
        &self,
        unreadable: Option<&HandledStates>,
    ) -> BTreeMap<HandlerId, RecordStamp> {
        let Some(notes) = unreadable else {
            return BTreeMap::new();
        };
        self.tracked
            .iter()
            .filter_map(|it| Some((&it.id, RecordStamp::of(&it.record)?)))
            .filter(|(id, stamp)| notes.state(id, *stamp).is_some())
            .map(|(id, stamp)| (id.clone(), stamp))
            .collect()
    }

    /// The state that a handler finished on, if it was not called since.
    pub(crate) fn finished_state<'a>(
        &self,
        id: &HandlerId,
        handled: &'a HandledStates,
    ) -> Option<&'a Baseline> {
        handled.state(id, self.stamp(id)?)
    }

    /// Whether a handler finished on the present value at a path; none if there is no note.
    pub(crate) fn has_finished_on(
        &self,
        id: &HandlerId,
        handled: &HandledStates,
        scope: &FieldPath,
        present: &Essence,
    ) -> Option<bool> {
        let stamp = self.stamp(id)?;
        let state = handled.state(id, stamp)?;
        let call_required = handled.kind(id, stamp) == Some(NoteKind::CallRequired);
        Some(!call_required && state.same_at(scope, present))
    }

    /// Whether a handler and all of its sub-handlers finished on the present value at a path.
    pub(crate) fn family_has_finished_on(
        &self,
        id: &HandlerId,
        handled: &HandledStates,
        scope: &FieldPath,
        present: &Essence,
    ) -> bool {
        let mut family = std::iter::once(id).chain(self.subrefs(id));
        family.all(|id| self.has_finished_on(id, handled, scope, present) == Some(true))
    }

    /// The sub-handlers of a handler for which something holds, and those between: a sub-handler is
    /// called by the one above it.
    pub(crate) fn subs_with_callers(
        &self,
        id: &HandlerId,
        holds: impl Fn(&HandlerId) -> bool,
    ) -> Vec<HandlerId> {
        let concerned: Vec<&HandlerId> = self.subrefs(id).filter(|it| holds(it)).collect();
        let is_above = |id: &HandlerId| concerned.iter().any(|it| it.is_sub_of(id));
        let subs = self.subrefs(id);
        subs.filter(|it| concerned.contains(it) || is_above(it))
            .cloned()
            .collect()
    }

    /// All finished handlers of all levels.
    pub(crate) fn finished(&self) -> impl Iterator<Item = (&HandlerId, RecordStamp)> {
        self.tracked
            .iter()
            .filter(|tracked| tracked.record.is_finished())
            .filter_map(|tracked| Some((&tracked.id, RecordStamp::of(&tracked.record)?)))
    }

    /// Finishes selected handlers without a call: they have handled the present state.
    pub(crate) fn finish_unchanged(&mut self, unchanged: &[HandlerId]) {
        for tracked in &mut self.tracked {
            if matches!(tracked.role, TrackedRole::Active(_))
                && !tracked.record.is_finished()
                && unchanged.contains(&tracked.id)
            {
                tracked.record.success = true;
                tracked.record.delayed = None;
            }
        }
    }

    /// Notes that no update is to call these sub-handlers, nor those below them.
    pub(crate) fn settle_unmatched(&mut self, unmatched: &[HandlerId]) {
        if planted!(UnmatchedSubsKept) {
            return;
        }
        let families = self.families(|tracked| unmatched.contains(&tracked.id));
        for tracked in &mut self.tracked {
            if families.contains(&tracked.id) {
                tracked.role = TrackedRole::Unmatched;
            }
        }
    }

    /// The records as they are on the object.
    pub(crate) fn stored(&self) -> impl Iterator<Item = &Record> {
        self.tracked
            .iter()
            .filter_map(|tracked| tracked.origin.as_ref())
    }

    /// The records that differ from those on the object, and the ones that name them. Another
    /// operator may end the cycle before the write: what is left then must be found by the ids of
    /// declared handlers.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&HandlerId, &Record)> {
        let differs = |tracked: &Tracked| tracked.origin.as_ref() != Some(&tracked.record);
        let names_changed = move |tracked: &Tracked| {
            let mut subs = tracked.record.subrefs.iter();
            subs.any(|id| {
                let mut known = self.tracked.iter();
                known.any(|sub| sub.id == *id && differs(sub))
            })
        };
        self.tracked
            .iter()
            .filter(move |tracked| differs(tracked) || names_changed(tracked))
            .map(|tracked| (&tracked.id, &tracked.record))
    }

    pub(crate) fn foreign_purposes(&self) -> Vec<Reason> {
        let mut purposes: Vec<Reason> = self
            .stored()
            .filter_map(|record| record.purpose)
            .filter(|purpose| *purpose != self.purpose)
            .collect();
        purposes.sort();
        purposes.dedup();
        purposes
    }

    /// Gives the selected records, those in `followed`, and their sub-handlers the present purpose,
    /// and drops the others of another purpose with their sub-handlers, except when resuming.
    pub(crate) fn supersede(&mut self, followed: &[&HandlerId]) {
        let purpose = self.purpose;
        let is_continued = |tracked: &&Tracked| {
            matches!(tracked.role, TrackedRole::Active(_)) || followed.contains(&&tracked.id)
        };
        let continued = self.families(is_continued);
        for tracked in &mut self.tracked {
            if continued.contains(&tracked.id) {
                tracked.record.purpose = Some(purpose);
            }
        }
        if !purpose.is_handled() || purpose == Reason::Resume {
            return;
        }
        let is_foreign = |tracked: &&Tracked| {
            let stored = tracked.record.purpose;
            stored.is_some_and(|stored| stored != purpose)
        };
        for id in self.families(is_foreign) {
            if !continued.contains(&id) {
                self.drop_record(id);
            }
        }
    }

    /// The ids of some handlers and of their sub-handlers.
    fn families(&self, filter: impl Fn(&&Tracked) -> bool) -> Vec<HandlerId> {
        let tracked = self.tracked.iter().filter(filter);
        let family = |it: &Tracked| {
            let subs = it.record.subrefs.clone();
            std::iter::once(it.id.clone()).chain(subs)
        };
        tracked.flat_map(family).collect()
    }

    /// Restarts a handler; its record still names its sub-handlers.
    pub(crate) fn reset(&mut self, id: &HandlerId, now: Timestamp) {
        let purpose = self.purpose;
        if let Some(tracked) = self.find_mut(id) {
            let subrefs = std::mem::take(&mut tracked.record.subrefs);
            tracked.record = Record {
                subrefs,
                ..Record::begin(purpose, now)
            };
        }
    }

    /// Forgets a record, which is to be removed from the object.
    pub(crate) fn drop_record(&mut self, id: HandlerId) {
        self.tracked.retain(|tracked| tracked.id != id);
        self.dropped.push(id);
    }

    /// The ids of the records to be removed from the object.
    pub(crate) fn dropped(&self) -> &[HandlerId] {
        &self.dropped
    }

    pub(crate) fn due(
        &self,
        lifecycle: &Lifecycle,
        seed: u64,
        now: Timestamp,
    ) -> Vec<Arc<HandlerSpec>> {
        let candidates: Vec<(&Tracked, &Arc<HandlerSpec>)> = self
            .active()
            .filter(|(tracked, _)| {
                !tracked.record.is_finished() && !tracked.record.is_sleeping(now)
            })
            .collect();
        let due: Vec<DueHandler> = candidates
            .iter()
            .map(|(tracked, _)| DueHandler {
                id: tracked.id.clone(),
                attempts: self.attempts(tracked),
            })
            .collect();
        lifecycle
            .pick(&due, seed)
            .iter()
            .filter_map(|id| candidates.iter().find(|(tracked, _)| tracked.id == *id))
            .map(|(_, spec)| Arc::clone(spec))
            .collect()
    }

    /// Calls of a handler and of its sub-handlers, so that a parent whose sub-handlers are
    /// retried at once does not keep its siblings from running.
    fn attempts(&self, tracked: &Tracked) -> u32 {
        tracked
            .record
            .subrefs
            .iter()
            .filter_map(|id| self.record(id))
            .map(|record| record.retries)
            .fold(tracked.record.retries, u32::saturating_add)
    }

    pub(crate) fn begin(
        &self,
        id: &HandlerId,
        now: Timestamp,
    ) -> Result<HandlerAttempt, RetryLimit> {
        let (record, policy) = match self.find(id) {
            Some(Tracked {
                role: TrackedRole::Active(spec),
                record,
                ..
            }) => (record.clone(), spec.policy),
            Some(tracked) => (tracked.record.clone(), Default::default()),
            None => (Record::begin(self.purpose, now), Default::default()),
        };
        let runtime = record.runtime(now);
        policy.allow(record.retries, runtime)?;
        Ok(HandlerAttempt {
            retry: record.retries,
            started: record.started,
            runtime,
            time_left: policy
                .timeout
                .map(|timeout| timeout.saturating_sub(runtime)),
        })
    }

    pub(crate) fn finish(
        &mut self,
        id: &HandlerId,
        outcome: Outcome,
        default_backoff: Duration,
        now: Timestamp,
    ) -> Consequence {
        let purpose = self.purpose;
        let Some(tracked) = self.find_mut(id) else {
            let record = Record::begin(purpose, now);
            return Consequence::of(outcome, &Default::default(), default_backoff, &record, now);
        };
        let policy = match &tracked.role {
            TrackedRole::Active(spec) => spec.policy,
            TrackedRole::Passive
            | TrackedRole::Sub
            | TrackedRole::Registered
            | TrackedRole::Unmatched => Default::default(),
        };
        let consequence = Consequence::of(outcome, &policy, default_backoff, &tracked.record, now);
        tracked.record = consequence.apply(&tracked.record, now);
        if consequence.is_final() {
            self.drop_former_subs(id);
        }
        consequence
    }

    /// Drops the sub-handlers that the last call of a handler did not register, that it left
    /// unfinished, or that do not match any more: nothing calls them, so that they would miss the
    /// present state for good, and their parent would be called again for them.
    fn drop_former_subs(&mut self, id: &HandlerId) {
        if planted!(FormerSubsKept) {
            return;
        }
        let Some(record) = self.find_mut(id).map(|it| &mut it.record) else {
            return;
        };
        let subs = std::mem::take(&mut record.subrefs);
        let is_settled = |sub: &HandlerId| {
            self.find(sub).is_some_and(|it| {
                matches!(it.role, TrackedRole::Registered) && it.record.is_finished()
            })
        };
        let (settled, former): (Vec<_>, Vec<_>) = subs.into_iter().partition(is_settled);
        for sub in former {
            self.drop_record(sub);
        }
        if let Some(tracked) = self.find_mut(id) {
            tracked.record.subrefs = settled;
        }
    }

    /// Takes over the records of sub-handlers under their parent.
    pub(crate) fn absorb(&mut self, parent: &HandlerId, sub: Self) {
        let mut known: Vec<HandlerId> = sub.ids().cloned().collect();
        for tracked in sub.tracked {
            self.tracked.retain(|present| present.id != tracked.id);
            let role = match tracked.role {
                TrackedRole::Unmatched => TrackedRole::Unmatched,
                _ => TrackedRole::Registered,
            };
            self.tracked.push(Tracked { role, ..tracked });
        }
        if let Some(tracked) = self.find_mut(parent) {
            known.append(&mut tracked.record.subrefs);
            known.sort();
            known.dedup();
            tracked.record.subrefs = known;
        }
    }

    /// Whether all active handlers are done; true for none.
    pub(crate) fn is_done(&self) -> bool {
        self.active()
            .all(|(tracked, _)| tracked.record.is_finished())
    }

    /// The numbers of active handlers that succeeded, and that failed.
    pub(crate) fn tally(&self) -> (usize, usize) {
        let succeeded = self.active().filter(|(it, _)| it.record.success).count();
        let failed = self.active().filter(|(it, _)| it.record.failure).count();
        (succeeded, failed)
    }

    /// The time until the next handler is due.
    pub(crate) fn delay(&self, now: Timestamp) -> Option<Duration> {
        self.active()
            .filter(|(tracked, _)| !tracked.record.is_finished())
            .map(|(tracked, _)| tracked.record.delay(now))
            .min()
    }
}
