//! One turn of handling one object: open the records, call the due handlers, write the results.
//!
//! [`decide`] says what an event requires. If it requires handlers, it returns a [`Turn`]: call
//! the handlers that are due, report how each call ended, and conclude the cycle into a patch.
//! All state between turns is on the object.

mod close;
pub mod conflict;
pub mod run;
pub mod sub;
pub mod tracker;

use std::{any::Any, collections::BTreeMap, fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    cause::{Cause, Reason, Subject, detect::ObservedChange},
    handled_states::{HandledStates, RecordStamp},
    handler::{HandlerId, HandlerSpec, Trigger, finalizer_need::FinalizerNeed, registry::Registry},
    object::{
        ObjectView,
        diff::{Baseline, Diff},
        hashed::HashedState,
        patch::ObjectPatch,
        path::FieldPath,
    },
    persistence::Persistence,
    turn::{
        run::HandlerRun,
        sub::{SubLevel, SubTurn},
        tracker::Tracker,
    },
};

/// The input of a decision about one event; cheap to clone.
#[derive(Clone)]
pub struct TurnInput {
    /// The object as the event shows it.
    pub body: Arc<Value>,
    /// The change of the object, with its reason.
    pub change: Arc<ObservedChange>,
    /// The handlers of the kind.
    pub registry: Arc<Registry>,
    /// The storages on the object.
    pub persistence: Arc<Persistence>,
    /// The runtime's own data for predicates.
    pub context: Arc<dyn Any + Send + Sync>,
    /// How far the clock was ahead when the waits of the handlers were recorded.
    pub(crate) clock_ahead: Duration,
}

/// The decision about the change handlers of an object.
#[derive(Debug)]
pub enum Decision {
    /// Nothing; no write either.
    Leave(LeaveReason),
    /// Add or remove the finalizer; the turn for the written state goes on from there.
    Finalizer(FinalizerNeed),
    /// Write this patch: it ends a cycle whose change was reverted before all handlers were done.
    /// The turn for the written state goes on from there.
    CloseReverted(ObjectPatch),
    /// Call handlers, or make at least the closing write of a cycle without any.
    Handle(Box<Turn>),
}

/// The reason for which an object is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// It does not exist any more.
    Gone,
    /// It is being deleted, and does not have our finalizer.
    Released,
    /// No handler of the kind could be called for it.
    NoHandler,
    /// Nothing has changed that counts.
    Unchanged,
}

/// The declared change handlers of an object during one turn.
pub type Turn = HandlerRun<DeclaredLevel>;

/// The declared handlers of a cycle, and the records that it purges.
#[derive(Debug)]
pub struct DeclaredLevel {
    selected: Vec<Arc<HandlerSpec>>,
    superseded: Vec<Reason>,
}

/// The end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnOutcome {
    /// The work that is left.
    pub remaining: RemainingWork,
    /// The number of handlers that succeeded so far.
    pub succeeded: usize,
    /// The number of handlers that failed for good so far.
    pub failed: usize,
}

/// The work that is left after a turn and its writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemainingWork {
    /// Call handlers after this time, zero for at once; none if the object waits for an event.
    Handlers(Option<Duration>),
    /// An update follows, for handlers that have not handled the newest state.
    FollowUp,
    /// The cycle is over; decide once more, since its writes may concern handlers.
    Recheck,
    /// The cycle is over, and only a change by another client leaves anything to do.
    Nothing,
}

// === impl TurnInput ===

impl TurnInput {
    /// An input without data for predicates.
    #[must_use]
    pub fn new(
        body: Arc<Value>,
        change: Arc<ObservedChange>,
        registry: Arc<Registry>,
        persistence: Arc<Persistence>,
    ) -> Self {
        Self {
            body,
            change,
            registry,
            persistence,
            context: Arc::new(()),
            clock_ahead: Duration::ZERO,
        }
    }

    /// The clock was set back by this time since the waits of the handlers were recorded.
    #[must_use]
    pub(crate) fn with_clock_ahead(mut self, ahead: Duration) -> Self {
        self.clock_ahead = ahead;
        self
    }

    /// The object.
    #[must_use]
    pub fn view(&self) -> ObjectView<'_> {
        ObjectView::new(&self.body)
    }

    /// The cause.
    #[must_use]
    pub fn cause(&self) -> Cause<'_> {
        self.change.cause(self.view())
    }

    /// Calls a function with the object and its change.
    pub fn with_subject<T>(&self, function: impl FnOnce(&Subject<'_>) -> T) -> T {
        let cause = self.cause();
        function(&Subject::change(&cause).with_context(&*self.context))
    }

    /// The handlers that an update from `old` to the present state would call.
    fn selected_since(&self, old: &Baseline) -> Vec<Arc<HandlerSpec>> {
        let diff = old.diff(&self.change.new);
        self.selected_for_update(old, &diff)
    }

    fn selected_for_update(&self, old: &Baseline, diff: &Diff) -> Vec<Arc<HandlerSpec>> {
        if diff.is_empty() {
            return Vec::new();
        }
        self.with_update(old, diff, |subject| self.registry.selected(subject))
    }

    /// Whether an update from `old` to the present state would call a sub-handler.
    fn calls_sub_since(&self, old: &Baseline, spec: &HandlerSpec) -> bool {
        let diff = old.diff(&self.change.new);
        let spec = HandlerSpec {
            trigger: Trigger::Sub { changing: true },
            ..spec.clone()
        };
        !diff.is_empty() && self.with_update(old, &diff, |subject| spec.matches(subject))
    }

    fn with_update<T>(
        &self,
        old: &Baseline,
        diff: &Diff,
        function: impl FnOnce(&Subject<'_>) -> T,
    ) -> T {
        let cause = Cause {
            reason: Reason::Update,
            initial: false,
            body: self.view(),
            old,
            new: &self.change.new,
            diff,
        };
        function(&Subject::change(&cause).with_context(&*self.context))
    }

    /// The field that a handler is about; the whole object if it names none.
    fn scope(&self, id: &HandlerId) -> FieldPath {
        self.registry
            .change_handlers()
            .find(|handler| handler.id == *id)
            .and_then(|handler| handler.field().cloned())
            .unwrap_or_default()
    }

    fn salt(&self) -> &str {
        self.view().uid().unwrap_or_default()
    }
}

impl fmt::Debug for TurnInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnInput")
            .field("change", &self.change)
            .finish_non_exhaustive()
    }
}

/// Decides what an event requires.
///
/// `background` says whether a daemon or a timer needs the finalizer. The event must not be older
/// than our own last write to the object.
#[must_use]
pub fn decide(input: &TurnInput, background: bool, now: Timestamp) -> Decision {
    let reason = input.change.reason;
    if reason == Reason::Gone {
        return Decision::Leave(LeaveReason::Gone);
    }
    let finalizer = &input.persistence.finalizer;
    let need = input.with_subject(|subject| {
        FinalizerNeed::decide(&input.registry, subject, finalizer, background)
    });
    if need != FinalizerNeed::Settled {
        return Decision::Finalizer(need);
    }
    let is_ignored = input.with_subject(|subject| input.registry.ignores(subject));
    if is_ignored && (planted!(RemovedFieldIgnored) || !has_missed_change(input, now)) {
        return Decision::Leave(LeaveReason::NoHandler);
    }
    match reason {
        Reason::Gone => Decision::Leave(LeaveReason::Gone),
        Reason::Free => Decision::Leave(LeaveReason::Released),
        Reason::Noop | Reason::Resume => {
            let cycle = Turn::open(input.clone(), now);
            if cycle.has_stale_records() {
                Decision::CloseReverted(cycle.close_reverted(now))
            } else if reason == Reason::Resume {
                Decision::Handle(Box::new(cycle))
            } else {
                Decision::Leave(LeaveReason::Unchanged)
            }
        }
        Reason::Create | Reason::Update | Reason::Delete => {
            Decision::Handle(Box::new(Turn::open(input.clone(), now)))
        }
    }
}

/// Whether a handler finished on a state that the object has left again.
///
/// An object that had a field only meanwhile matches no handler of the field: neither the present
/// state nor the last handled one has it.
fn has_missed_change(input: &TurnInput, now: Timestamp) -> bool {
    let progress = &input.persistence.progress;
    progress.fetch_handled_states(input.view()).is_some()
        && Turn::open(input.clone(), now).requires_follow_up()
}

// === impl TurnOutcome ===

impl TurnOutcome {
    /// Whether all selected handlers are done, so that resume handlers are no longer due.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !matches!(self.remaining, RemainingWork::Handlers(_))
    }
}

// === impl Turn ===

impl Turn {
    fn open(input: TurnInput, now: Timestamp) -> Self {
        let reason = input.change.reason;
        let selected = if reason.is_handled() {
            input.with_subject(|subject| input.registry.selected(subject))
        } else {
            Vec::new()
        };
        let notes = input
            .persistence
            .progress
            .fetch_handled_states(input.view());
        let known = notes
            .as_deref()
            .and_then(|notes| HandledStates::decode(notes, &input.change.old, input.salt()));
        let unreadable = notes
            .filter(|_| known.is_none())
            .map(|notes| HandledStates::unknown(&notes, input.salt()));
        let mut tracker = Tracker::open(
            reason,
            &input.registry.owned_ids(),
            &selected,
            &[],
            &input,
            now,
        );
        if let Some(notes) = unreadable.as_ref().or(known.as_ref()) {
            tracker.load_noted(notes, &input);
        }
        let unknown = tracker.unknown_ends(unreadable.as_ref());
        let mut handled = known
            .unwrap_or_default()
            .filtered(|id, stamp| tracker.stamp(id) == Some(stamp));
        // A cycle restarts these handlers if it concerns them. Otherwise, an update from an unknown
        // state follows, also for those that an update was to call which another operator has ended,
        // or which was written by half.
        let mut noted = Vec::new();
        if reason != Reason::Delete {
            let state = Baseline::Hashed(HashedState::unknown(input.salt()));
            let is_restarted = |id: &HandlerId| {
                matches!(reason, Reason::Create | Reason::Update)
                    && selected.iter().any(|handler| handler.id == *id)
            };
            for (id, stamp) in &unknown {
                if !is_restarted(id) {
                    handled.note(id.clone(), *stamp, &state);
                    noted.push(id.clone());
                }
            }
        }
        let level = DeclaredLevel {
            superseded: tracker.foreign_purposes(),
            selected,
        };
        let mut cycle = Self {
            input,
            handled: Arc::new(handled),
            tracker,
            level,
        };
        cycle.supersede(&noted);
        if matches!(reason, Reason::Create | Reason::Update) {
            cycle.reset_unknown(&unknown, now);
        }
        if reason == Reason::Update {
            cycle.reset_outdated(now);
        }
        cycle.skip_up_to_date();
        cycle
    }

    /// The reason for which the handlers run.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.input.change.reason
    }

    /// The input that the cycle was opened with.
    #[must_use]
    pub fn input(&self) -> &TurnInput {
        &self.input
    }

    /// All handlers selected for this cause, in declared order.
    #[must_use]
    pub fn selected(&self) -> &[Arc<HandlerSpec>] {
        &self.level.selected
    }

    /// The reasons of earlier turns that this one replaces, for the log.
    #[must_use]
    pub fn superseded(&self) -> &[Reason] {
        &self.level.superseded
    }

    /// Keeps the waits of the handlers though the clock was set back by this time.
    pub(crate) fn correct_clock(&mut self, ahead: Duration, now: Timestamp) {
        self.tracker.correct_clock(ahead, now);
    }

    /// Opens the records of sub-handlers that a handler has registered.
    ///
    /// The ids in `specs` are full ones, made by [`HandlerId::sub`].
    #[must_use]
    pub fn sub(
        &self,
        parent: &HandlerId,
        specs: impl IntoIterator<Item = HandlerSpec>,
        now: Timestamp,
    ) -> SubTurn {
        let scope = self.input.scope(parent);
        let is_new = !self.tracker.has_record(parent);
        let level = SubLevel::new(parent.clone(), scope, self.tracker.dropped(), is_new);
        let handled = Arc::clone(&self.handled);
        SubTurn::open(self.input.clone(), handled, level, specs, now)
    }

    /// Adds the facts of the turn to a patch: progress, or the end of the cycle. `writes` is what its
    /// handlers write, which others may have to handle.
    pub fn conclude(
        self,
        now: Timestamp,
        writes: &ObjectPatch,
        patch: &mut ObjectPatch,
    ) -> TurnOutcome {
        for id in self.tracker.dropped() {
            self.purge(id, patch);
        }
        let (succeeded, failed) = self.tracker.tally();
        let remaining = if self.tracker.is_done() {
            let inert = match planted!(OwnChangeNotHandled) {
                true => self.is_inert(patch),
                false => self.is_inert(writes),
            };
            match self.close(now, patch) {
                true => RemainingWork::FollowUp,
                false if inert => RemainingWork::Nothing,
                false => RemainingWork::Recheck,
            }
        } else {
            self.store_progress(patch);
            RemainingWork::Handlers(self.tracker.delay(now))
        };
        TurnOutcome {
            remaining,
            succeeded,
            failed,
        }
    }

    /// Adds the progress of the turn to a patch, and keeps the cycle open even if all handlers are
    /// done: the object must not be released yet, and they must not run again when it is.
    pub fn hold(self, now: Timestamp, patch: &mut ObjectPatch) -> TurnOutcome {
        for id in self.tracker.dropped() {
            self.purge(id, patch);
        }
        self.store_progress(patch);
        let (succeeded, failed) = self.tracker.tally();
        let delay = if self.tracker.is_done() {
            None
        } else {
            self.tracker.delay(now)
        };
        TurnOutcome {
            remaining: RemainingWork::Handlers(delay),
            succeeded,
            failed,
        }
    }

    /// Whether no handler can react to what handlers write.
    fn is_inert(&self, writes: &ObjectPatch) -> bool {
        self.reason() != Reason::Delete
            && writes.is_confined_to("status")
            && !self.input.registry.reacts_to_own_writes()
    }

    fn store_progress(&self, patch: &mut ObjectPatch) {
        let view = self.input.view();
        let progress = &self.input.persistence.progress;
        for (id, record) in self.tracker.changed() {
            progress.store(id, record, view, patch);
        }
        self.store_handled_states(
            &self.current_handled_states(),
            &self.input.change.old,
            patch,
        );
    }

    /// Stores the states that handlers finished on, unless no handler could ever miss a change.
    fn store_handled_states(
        &self,
        handled: &HandledStates,
        base: &Baseline,
        patch: &mut ObjectPatch,
    ) {
        let view = self.input.view();
        let progress = &self.input.persistence.progress;
        let needed =
            !handled.is_empty() && self.reason() != Reason::Delete && self.follow_ups_possible();
        let notes = needed.then(|| {
            let budget = progress.handled_states_budget(view, patch);
            handled.encode(base, self.input.salt(), budget)
        });
        if progress.fetch_handled_states(view) != notes {
            progress.store_handled_states(notes.as_deref(), view, patch);
        }
    }

    fn follow_ups_possible(&self) -> bool {
        self.input
            .registry
            .change_handlers()
            .any(|handler| matches!(handler.trigger, Trigger::Update | Trigger::Field))
    }

    /// The states that all handlers finished on, those included that finished in this turn.
    ///
    /// A handler that finished without a note was called by Kopf, or by a version without notes:
    /// the present state counts as the one that it finished on.
    fn current_handled_states(&self) -> HandledStates {
        let mut handled = self.handled.advanced(|id| self.tracker.record(id));
        let present = self.present();
        for (id, stamp) in self.tracker.finished() {
            if handled.state(id, stamp).is_none() {
                handled.note(id.clone(), stamp, &present);
            }
        }
        handled
    }

    fn present(&self) -> Baseline {
        let input = &self.input;
        input.persistence.storable(&input.change.new, input.view())
    }

    /// Continues selected records for the new reason, and those in `noted`, whose handlers an update
    /// is to call; drops others of another reason.
    fn supersede(&mut self, noted: &[HandlerId]) {
        if self.level.superseded.is_empty() || !self.reason().is_handled() {
            return;
        }
        let owned = self.input.registry.owned_ids();
        let followed: Vec<&HandlerId> = owned.iter().filter(|id| noted.contains(id)).collect();
        self.tracker.supersede(&followed);
    }

    /// Restarts handlers that finished on a state which is not known: their records have these
    /// stamps. Another operator has ended the cycle or replaced their notes since, or only a part of
    /// a write was accepted.
    fn reset_unknown(&mut self, stamps: &BTreeMap<HandlerId, RecordStamp>, now: Timestamp) {
        let tracker = &self.tracker;
        let is_unknown = |id: &HandlerId| {
            let stamp = tracker.stamp(id).filter(|_| tracker.is_finished(id));
            stamp.is_some() && stamps.get(id) == stamp.as_ref()
        };
        let selected = self.level.selected.iter().map(|handler| &handler.id);
        let unknown: Vec<HandlerId> = selected.filter(|id| is_unknown(id)).cloned().collect();
        let of_handler = |id| tracker.subs_with_callers(id, is_unknown);
        let subs: Vec<HandlerId> = unknown.iter().flat_map(of_handler).collect();
        for id in &unknown {
            self.tracker.reset(id, now);
        }
        for id in subs {
            self.tracker.drop_record(id);
        }
    }

    /// Restarts handlers that finished on the last handled state itself, by resuming: they have
    /// not handled the change, and run in this cycle.
    fn reset_outdated(&mut self, now: Timestamp) {
        let change = &self.input.change;
        let concerned = self.input.selected_for_update(&change.old, &change.diff);
        for handler in concerned {
            let scope = handler.field().cloned().unwrap_or_default();
            let missed_change = |id: &HandlerId| {
                self.tracker
                    .finished_state(id, &self.handled)
                    .filter(|_| self.tracker.is_finished(id))
                    .is_some_and(|state| {
                        !state.same_at(&scope, &change.new) && equal_at(state, &change.old, &scope)
                    })
            };
            if !missed_change(&handler.id) {
                continue;
            }
            let subs = self.tracker.subs_with_callers(&handler.id, missed_change);
            self.tracker.reset(&handler.id, now);
            for id in subs {
                self.tracker.drop_record(id);
            }
        }
    }

    /// Finishes handlers that are to run once more without a call, if they and all of their
    /// sub-handlers finished on the present state.
    fn skip_up_to_date(&mut self) {
        let (input, handled) = (&self.input, &self.handled);
        let current: Vec<HandlerId> = self
            .level
            .selected
            .iter()
            .map(|handler| handler.id.clone())
            .filter(|id| {
                let (scope, present) = (input.scope(id), &input.change.new);
                self.tracker
                    .family_has_finished_on(id, handled, &scope, present)
            })
            .collect();
        self.tracker.finish_unchanged(&current);
    }

    /// Whether there are records of a change although there is no change.
    fn has_stale_records(&self) -> bool {
        let reason = self.reason();
        self.tracker
            .stored()
            .any(|record| reason == Reason::Noop || record.purpose != Some(Reason::Resume))
    }

    fn purge(&self, id: &HandlerId, patch: &mut ObjectPatch) {
        let input = &self.input;
        input.persistence.progress.purge(id, input.view(), patch);
    }
}

/// Whether two stored states certainly agree at a path.
fn equal_at(a: &Baseline, b: &Baseline, path: &FieldPath) -> bool {
    match (a, b) {
        (Baseline::Known(a), b) => b.same_at(path, a),
        (a, Baseline::Known(b)) => a.same_at(path, b),
        (Baseline::Hashed(a), Baseline::Hashed(b)) => a.at(path) == b.at(path),
        (Baseline::Absent, Baseline::Absent) => true,
        (Baseline::Absent, Baseline::Hashed(_)) | (Baseline::Hashed(_), Baseline::Absent) => false,
    }
}

#[cfg(test)]
mod tests;
