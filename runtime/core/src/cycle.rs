//! One turn of handling one object: open the records, run what is due, write what came of it.
//!
//! [`decide`] tells what an event demands. If it demands handlers, the returned [`Cycle`] is
//! asked for the handlers that are due, told how their calls ended, and finally concluded
//! into a patch. All facts between turns are on the object.

mod close;
pub mod sub;
pub mod tracker;

use std::{any::Any, fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    cause::{Cause, Reason, Subject, detect::ObservedChange},
    cycle::{
        sub::SubCycle,
        tracker::{HandlerAttempt, Tracker},
    },
    handled_states::HandledStates,
    handler::{
        HandlerId, HandlerSpec, Trigger, finalizer_need::FinalizerNeed, registry::Registry,
        retry::RetryLimit,
    },
    lifecycle::Lifecycle,
    object::{
        ObjectView,
        diff::{Baseline, Diff},
        patch::ObjectPatch,
        path::FieldPath,
    },
    outcome::{Consequence, Outcome},
    persistence::Persistence,
    progress::record::Record,
};

/// Everything that is known when an event is handled; cheap to clone.
#[derive(Clone)]
pub struct CycleInput {
    /// The object as the event brought it.
    pub body: Arc<Value>,
    /// What the event means.
    pub change: Arc<ObservedChange>,
    /// The handlers of the kind.
    pub registry: Arc<Registry>,
    /// Where facts are kept.
    pub persistence: Arc<Persistence>,
    /// Whatever the runtime wants predicates to have.
    pub context: Arc<dyn Any + Send + Sync>,
}

/// What an event demands of the change handlers' side.
#[derive(Debug)]
pub enum Decision {
    /// Nothing; not a byte is to be written.
    Leave,
    /// The finalizer first; its event brings the rest.
    Finalizer(FinalizerNeed),
    /// Records of a cycle whose change was taken back are to be settled; the event of that
    /// write brings the rest.
    CloseReverted(ObjectPatch),
    /// Handlers, or at least the closing write of a cycle without any.
    Handle(Box<Cycle>),
}

/// An open turn.
#[derive(Debug)]
pub struct Cycle {
    input: CycleInput,
    selected: Vec<Arc<HandlerSpec>>,
    tracker: Tracker,
    handled: Arc<HandledStates>,
    superseded: Vec<Reason>,
    dropped: Vec<HandlerId>,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleOutcome {
    /// What is left to be done about the object.
    pub remaining: RemainingWork,
    /// How many handlers succeeded so far.
    pub succeeded: usize,
    /// How many handlers failed for good so far.
    pub failed: usize,
}

/// What is left to be done when a turn is over and everything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemainingWork {
    /// Handlers, after this time, zero for at once; none if the object waits for something else.
    Handlers(Option<Duration>),
    /// An update, for handlers that have not seen the newest state.
    FollowUp,
    /// The cycle is over; another look tells whether it has left anything to do.
    Recheck,
    /// The cycle is over, and has left nothing to do unless somebody else changed the object.
    Nothing,
}

// === impl CycleInput ===

impl CycleInput {
    /// A input without a context for predicates.
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
        }
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

    /// Asks something about the object and its change.
    pub fn ask<T>(&self, question: impl FnOnce(&Subject<'_>) -> T) -> T {
        let cause = self.cause();
        question(&Subject::change(&cause).with_context(&*self.context))
    }

    /// The handlers that an update from another state to the present one would call.
    fn selected_since(&self, old: &Baseline) -> Vec<Arc<HandlerSpec>> {
        let diff = old.diff(&self.change.new);
        self.selected_for_update(old, &diff)
    }

    fn selected_for_update(&self, old: &Baseline, diff: &Diff) -> Vec<Arc<HandlerSpec>> {
        if diff.is_empty() {
            return Vec::new();
        }
        let cause = Cause {
            reason: Reason::Update,
            initial: false,
            body: self.view(),
            old,
            new: &self.change.new,
            diff,
        };
        self.registry
            .selected(&Subject::change(&cause).with_context(&*self.context))
    }

    /// The part of the state that a handler is about.
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

impl fmt::Debug for CycleInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Situation")
            .field("change", &self.change)
            .finish_non_exhaustive()
    }
}

/// Tells what an event demands.
///
/// `background` says whether a daemon or a timer needs the finalizer. The decision is only
/// sound for an event that is not older than our own last write to the object.
#[must_use]
pub fn decide(input: &CycleInput, background: bool, now: Timestamp) -> Decision {
    let reason = input.change.reason;
    if reason == Reason::Gone {
        return Decision::Leave;
    }
    let finalizer = &input.persistence.finalizer;
    let need =
        input.ask(|subject| FinalizerNeed::decide(&input.registry, subject, finalizer, background));
    if need != FinalizerNeed::Settled {
        return Decision::Finalizer(need);
    }
    if input.ask(|subject| input.registry.ignores(subject)) {
        return Decision::Leave;
    }
    match reason {
        Reason::Gone | Reason::Free => Decision::Leave,
        Reason::Noop | Reason::Resume => {
            let cycle = Cycle::open(input.clone(), now);
            if cycle.has_stale_records() {
                Decision::CloseReverted(cycle.close_reverted(now))
            } else if reason == Reason::Resume {
                Decision::Handle(Box::new(cycle))
            } else {
                Decision::Leave
            }
        }
        Reason::Create | Reason::Update | Reason::Delete => {
            Decision::Handle(Box::new(Cycle::open(input.clone(), now)))
        }
    }
}

// === impl CycleOutcome ===

impl CycleOutcome {
    /// Whether all selected handlers are done, so that resume handlers are not due any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !matches!(self.remaining, RemainingWork::Handlers(_))
    }
}

// === impl Cycle ===

impl Cycle {
    fn open(input: CycleInput, now: Timestamp) -> Self {
        let reason = input.change.reason;
        let selected = if reason.is_handled() {
            input.ask(|subject| input.registry.selected(subject))
        } else {
            Vec::new()
        };
        let tracker = Tracker::open(
            reason,
            &input.registry.owned_ids(),
            &selected,
            &*input.persistence.progress,
            input.view(),
            now,
        );
        let notes = input
            .persistence
            .progress
            .fetch_handled_states(input.view());
        let handled = notes
            .and_then(|notes| HandledStates::decode(&notes, &input.change.old, input.salt()))
            .unwrap_or_default()
            .filtered(|id, stamp| tracker.stamp(id) == Some(stamp));
        let mut cycle = Self {
            superseded: tracker.foreign_purposes(),
            input,
            selected,
            tracker,
            handled: Arc::new(handled),
            dropped: Vec::new(),
        };
        cycle.supersede();
        if reason == Reason::Update {
            cycle.reset_outdated(now);
        }
        cycle.skip_up_to_date();
        cycle
    }

    /// Why the handlers run.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.input.change.reason
    }

    /// What is known.
    #[must_use]
    pub fn input(&self) -> &CycleInput {
        &self.input
    }

    /// All handlers selected for this cause, in declared order.
    #[must_use]
    pub fn selected(&self) -> &[Arc<HandlerSpec>] {
        &self.selected
    }

    /// The reasons of earlier turns that this one has overtaken, for the log.
    #[must_use]
    pub fn superseded(&self) -> &[Reason] {
        &self.superseded
    }

    /// The record of a handler.
    #[must_use]
    pub fn record(&self, id: &HandlerId) -> Option<&Record> {
        self.tracker.record(id)
    }

    /// The handlers to run in this turn, in this order.
    #[must_use]
    pub fn due(&self, lifecycle: &Lifecycle, seed: u64, now: Timestamp) -> Vec<Arc<HandlerSpec>> {
        self.tracker.due(lifecycle, seed, now)
    }

    /// What to tell a handler about the call that is about to be made.
    ///
    /// # Errors
    /// If a limit forbids the call; report that as [`crate::outcome::HandlerFailure::Exhausted`].
    pub fn begin(&self, id: &HandlerId, now: Timestamp) -> Result<HandlerAttempt, RetryLimit> {
        self.tracker.begin(id, now)
    }

    /// Takes in how a call ended, and tells what that means.
    pub fn finish(
        &mut self,
        id: &HandlerId,
        outcome: Outcome,
        default_backoff: Duration,
        now: Timestamp,
    ) -> Consequence {
        self.tracker.finish(id, outcome, default_backoff, now)
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
    ) -> SubCycle {
        SubCycle::open(
            self.input.clone(),
            Arc::clone(&self.handled),
            self.input.scope(parent),
            parent.clone(),
            specs,
            now,
        )
    }

    /// Takes over the records of sub-handlers; the parent remembers them until it is done.
    pub fn absorb(&mut self, sub: SubCycle) {
        let (parent, tracker) = sub.into_parts();
        self.tracker.absorb(&parent, tracker);
    }

    /// Writes what came of the turn.
    pub fn conclude(self, now: Timestamp, patch: &mut ObjectPatch) -> CycleOutcome {
        for id in &self.dropped {
            self.purge(id, patch);
        }
        let (succeeded, failed) = self.tracker.tally();
        let remaining = if self.tracker.is_done() {
            let inert = self.is_inert(patch);
            match self.close(now, patch) {
                true => RemainingWork::FollowUp,
                false if inert => RemainingWork::Nothing,
                false => RemainingWork::Recheck,
            }
        } else {
            self.store_progress(patch);
            RemainingWork::Handlers(self.tracker.delay(now))
        };
        CycleOutcome {
            remaining,
            succeeded,
            failed,
        }
    }

    /// Writes what came of the turn, but leaves the cycle open even if all handlers are done:
    /// the object is not to be let go yet, and they must not run again when it is.
    pub fn hold(self, now: Timestamp, patch: &mut ObjectPatch) -> CycleOutcome {
        for id in &self.dropped {
            self.purge(id, patch);
        }
        self.store_progress(patch);
        let (succeeded, failed) = self.tracker.tally();
        let delay = if self.tracker.is_done() {
            None
        } else {
            self.tracker.delay(now)
        };
        CycleOutcome {
            remaining: RemainingWork::Handlers(delay),
            succeeded,
            failed,
        }
    }

    /// Whether what handlers want written cannot matter to any handler.
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

    /// Notes what handlers saw, unless no handler could ever miss a change.
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

    /// What all finished handlers saw, those included that finished in this turn.
    ///
    /// A handler that finished without a note was run by Kopf, or by a version without notes:
    /// it is taken to have seen what is there now.
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

    /// Selected records go on for the new reason; others of another reason are over.
    fn supersede(&mut self) {
        if self.superseded.is_empty() || !self.reason().is_handled() {
            return;
        }
        let over = self.tracker.supersede();
        if self.reason() != Reason::Resume {
            self.dropped.extend(over);
        }
    }

    /// Handlers that finished on the last handled state itself, by resuming, have not seen
    /// the change at all: they run in this very cycle.
    fn reset_outdated(&mut self, now: Timestamp) {
        let change = &self.input.change;
        let concerned = self.input.selected_for_update(&change.old, &change.diff);
        for handler in concerned {
            let scope = handler.field().cloned().unwrap_or_default();
            let unaware = |id: &HandlerId| {
                self.tracker
                    .finished_state(id, &self.handled)
                    .filter(|_| self.tracker.is_finished(id))
                    .is_some_and(|state| {
                        !state.same_at(&scope, &change.new) && equal_at(state, &change.old, &scope)
                    })
            };
            if !unaware(&handler.id) {
                continue;
            }
            let subs: Vec<HandlerId> = self
                .tracker
                .subrefs(&handler.id)
                .filter(|id| unaware(id))
                .cloned()
                .collect();
            self.tracker.reset(&handler.id, now);
            for id in subs {
                self.tracker.forget(&id);
                self.dropped.push(id);
            }
        }
    }

    /// Spares handlers that are to run once more, if what is there now is what they saw, and
    /// what all their sub-handlers saw.
    fn skip_up_to_date(&mut self) {
        let (input, handled) = (&self.input, &self.handled);
        let current: Vec<HandlerId> = self
            .selected
            .iter()
            .map(|handler| handler.id.clone())
            .filter(|id| {
                let scope = input.scope(id);
                let mut family = std::iter::once(id).chain(self.tracker.subrefs(id));
                family.all(|id| {
                    let present = &input.change.new;
                    self.tracker.has_finished_on(id, handled, &scope, present) == Some(true)
                })
            })
            .collect();
        self.tracker.finish_unchanged(&current);
    }

    /// Whether there are records of a change although there is no change any more.
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

/// Whether two stored states surely agree at a path.
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
