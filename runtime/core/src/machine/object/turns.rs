//! The turns of a call: which handlers are due, and how their calls end.

use std::{sync::Arc, time::Duration, vec};

use jiff::Timestamp;

use super::{
    AfterReport, CallReport, Error, HandlerCall, NextCall, ObjectEffect, ObjectInput,
    ObjectMachine, ObjectReport, Phase,
    called::CalledHandler,
    writing::{CycleEnd, TurnEnd, TurnResult, WritePurpose},
};
use crate::{
    cause::{Reason, detect::EventKind},
    handler::{HandlerSpec, finalizer_need::FinalizerNeed},
    machine::{
        memory::{ObjectMemory, TurnStart, TurnWrite, UnwrittenTurn},
        now::Now,
        write::{OnConflict, ReadBack},
    },
    object::{ObjectView, patch::ObjectPatch},
    outcome::{Consequence, HandlerFailure, Outcome},
    time::ClockReading,
    turn::{
        Decision, RemainingWork, Turn, TurnInput, TurnOutcome, decide, sub::SubTurn,
        tracker::HandlerAttempt,
    },
};

/// A turn that waits for its daemons and timers to be started and stopped.
#[derive(Debug)]
pub(super) enum Reconciling {
    /// To decide about its handlers.
    Decide(TurnInput),
    /// To write what the API server rejected before.
    Unwritten(TurnInput, UnwrittenTurn),
}

/// The calls of a turn.
#[derive(Debug)]
pub(super) struct HandlerCalls {
    turn: Box<Turn>,
    due: vec::IntoIter<Arc<HandlerSpec>>,
    /// Calls that were made already, and whose patches the API server rejected.
    refused: vec::IntoIter<CalledHandler>,
    called: Vec<CalledHandler>,
    /// Whether a daemon or timer holds the object.
    holds: bool,
    /// The epoch of the state: after a pause, another operator may have handled it.
    epoch: u64,
    /// The clocks by which the waits of the handlers were recorded so far.
    clocks: ClockReading,
    step: CallStep,
}

/// The effect under way.
#[derive(Debug)]
pub(super) enum CallStep {
    ReportTurn,
    Call(Arc<HandlerSpec>, HandlerAttempt),
    /// The last call of those that were made.
    Report {
        consequence: Consequence,
        at: Timestamp,
        exhausted: bool,
    },
}

// === impl ObjectMachine ===

impl<'o, K> ObjectMachine<'o, K> {
    /// Handles the current state, if there is one and the operator may act.
    ///
    /// A state that was read or written before a pause is not handled after it: another operator
    /// may have handled the object meanwhile, and the list after the pause brings it again.
    pub(super) fn next_turn(&mut self, memory: &mut ObjectMemory<K>, now: &Now) {
        let is_of_epoch = now.epoch == self.epoch || planted!(StateOutlastsPause);
        match self.turn_input(memory, now) {
            Some(input) if now.running && is_of_epoch => self.start_turn(memory, input, now),
            _ => {
                self.current = None;
                self.rest(memory, NextCall::AwaitChange);
            }
        }
    }

    fn turn_input(&self, memory: &ObjectMemory<K>, now: &Now) -> Option<TurnInput> {
        let current = self.current.as_ref()?;
        let change = self.rules.persistence.observe_change(
            ObjectView::new(current),
            EventKind::Changed,
            memory.history.unwrap_or_default(),
            self.rules.registry,
        );
        let input = TurnInput::new(
            Arc::clone(current),
            Arc::new(change),
            Arc::clone(self.rules.registry),
            Arc::clone(self.rules.persistence),
        );
        Some(input.with_clock_ahead(memory.clock_set_back(now)))
    }

    fn start_turn(&mut self, memory: &mut ObjectMemory<K>, input: TurnInput, now: &Now) {
        let deleting = input.view().is_being_deleted();
        self.digest = None;
        if let Some(unwritten) = memory.take_unwritten(now.epoch, deleting) {
            // Daemons and timers follow the object though its progress is not written.
            return self.reconcile(memory, Reconciling::Unwritten(input, unwritten), now);
        }
        let reconcile = self.rules.reconcile;
        match memory.turn_start(&input, reconcile, now, |reverts| self.error_delay(reverts)) {
            TurnStart::Unrestricted => {}
            // The write that corrects the times of records leads to a state with the same digest.
            TurnStart::Tracked(_) if !input.clock_ahead.is_zero() => {}
            TurnStart::Tracked(digest) => self.digest = Some(digest),
            TurnStart::Reverted(delay) => {
                let error = Error::Reverted;
                let report = ObjectReport::Trouble { error, delay };
                let end = TurnEnd::of(TurnResult::Hold(delay));
                self.phase = Phase::Report(report, AfterReport::TurnEnded(end));
                return;
            }
        }
        self.reconcile(memory, Reconciling::Decide(input), now);
    }

    fn reconcile(&mut self, memory: &mut ObjectMemory<K>, reconciling: Reconciling, now: &Now) {
        if self.rules.has_background {
            self.phase = Phase::Reconcile(reconciling);
        } else {
            self.reconciled(memory, reconciling, false, now);
        }
    }

    pub(super) fn reconciled(
        &mut self,
        memory: &mut ObjectMemory<K>,
        reconciling: Reconciling,
        holds: bool,
        now: &Now,
    ) {
        let deleting = reconciling.input().view().is_being_deleted();
        let holds = holds || (!deleting && memory.wants_finalizer());
        match reconciling {
            Reconciling::Decide(input) => self.decide(memory, &input, holds, now),
            Reconciling::Unwritten(input, unwritten)
                if unwritten.is_of_decision() && !planted!(FinalizerDecisionKept) =>
            {
                match unwritten.renewed(decide(&input, holds, now.wall), &input) {
                    Some(unwritten) => self.write_when_due(memory, unwritten, now),
                    None => self.decide(memory, &input, holds, now),
                }
            }
            Reconciling::Unwritten(_, unwritten) => self.write_when_due(memory, unwritten, now),
        }
    }

    fn write_when_due(
        &mut self,
        memory: &mut ObjectMemory<K>,
        unwritten: UnwrittenTurn,
        now: &Now,
    ) {
        if unwritten.next <= now.steady {
            return self.write_record(memory, unwritten, None, now);
        }
        let wait = unwritten.next.saturating_sub(now.steady);
        memory.keep_unwritten(unwritten);
        self.end_turn(memory, TurnEnd::of(TurnResult::Sleep(wait)), now);
    }

    fn decide(&mut self, memory: &mut ObjectMemory<K>, input: &TurnInput, holds: bool, now: &Now) {
        match decide(input, holds, now.wall) {
            Decision::Leave(reason) => {
                self.left = Some(reason);
                self.reconcile_turn(memory, input, now);
            }
            Decision::Finalizer(need) => {
                let write = TurnWrite {
                    on_conflict: OnConflict::Report,
                    finalizer: need,
                    ..TurnWrite::from(self.finalizer_patch(need))
                };
                self.write_new_record(memory, write, None, now);
            }
            Decision::CloseReverted(patch) => {
                // No handler was called, so nothing is lost: in a newer state, another operator
                // may have begun the cycle whose records this patch would remove.
                let write = TurnWrite {
                    on_conflict: OnConflict::Report,
                    ..TurnWrite::from(patch)
                };
                self.write_new_record(memory, write, None, now);
            }
            Decision::Handle(turn) => {
                let due = turn.due(self.rules.lifecycle, now.seed, now.wall);
                self.phase = Phase::Calls(HandlerCalls {
                    turn,
                    due: due.into_iter(),
                    refused: Vec::new().into_iter(),
                    called: Vec::new(),
                    holds,
                    epoch: now.epoch,
                    clocks: now.clocks(),
                    step: CallStep::ReportTurn,
                });
            }
        }
    }

    fn finalizer_patch(&self, need: FinalizerNeed) -> ObjectPatch {
        let mut patch = ObjectPatch::new();
        need.request(&self.rules.persistence.finalizer, &mut patch);
        patch
    }

    pub(super) fn go_on_with_calls(
        &mut self,
        memory: &mut ObjectMemory<K>,
        mut calls: HandlerCalls,
        input: ObjectInput,
        now: &Now,
    ) {
        match (&calls.step, input) {
            (CallStep::ReportTurn | CallStep::Report { .. }, ObjectInput::Continue)
            | (CallStep::Call(..), ObjectInput::NoFunction) => self.next_call(memory, calls, now),
            // A call that the end of the lease interrupts leaves no record: the next holder of the
            // lease makes that attempt again.
            (CallStep::Call(..), ObjectInput::LeaseEnded) => {
                self.end_turn(memory, TurnEnd::of(TurnResult::LeaseEnded), now);
            }
            (CallStep::Call(spec, _), ObjectInput::Called(call)) => {
                let spec = Arc::clone(spec);
                calls.made(spec, call, self.rules.default_backoff, now);
                self.phase = Phase::Calls(calls);
            }
            _ => self.phase = Phase::Calls(calls),
        }
    }

    /// Goes on with the next handler that is due, one after the other, until the operator pauses.
    fn next_call(&mut self, memory: &mut ObjectMemory<K>, mut calls: HandlerCalls, now: &Now) {
        let backoff = self.rules.default_backoff;
        if let Some(refused) = calls.refused.next() {
            calls.absorb(&refused.subs);
            calls.finish(refused, false, backoff, now.wall);
            self.phase = Phase::Calls(calls);
            return;
        }
        let may_begin = now.running && (now.epoch == calls.epoch || planted!(CallsOutlastPause));
        let due = calls.due.next().filter(|_| may_begin);
        let Some(spec) = due else {
            return self.conclude(memory, calls, now);
        };
        match calls.turn.begin(&spec.id, now.wall) {
            Ok(attempt) => calls.step = CallStep::Call(spec, attempt),
            Err(limit) => {
                let exhausted = CalledHandler {
                    spec,
                    outcome: Outcome::Error(HandlerFailure::Exhausted(limit)),
                    writes: ObjectPatch::new(),
                    subs: Vec::new(),
                    has_effects: false,
                };
                calls.finish(exhausted, true, backoff, now.wall);
            }
        }
        self.phase = Phase::Calls(calls);
    }

    /// Writes all effects of a turn as one patch.
    fn conclude(&mut self, memory: &mut ObjectMemory<K>, mut calls: HandlerCalls, now: &Now) {
        calls.correct_clock(now);
        let HandlerCalls {
            turn,
            mut called,
            holds,
            ..
        } = calls;
        let reason = turn.reason();
        let mut patch = ObjectPatch::new();
        for call in &mut called {
            patch.absorb(std::mem::take(&mut call.writes));
            if let Outcome::Success(result) = &call.outcome {
                patch.store_result(call.spec.id.as_str(), result);
            }
        }
        let deleting = reason == Reason::Delete;
        let mut facts = ObjectPatch::new();
        // A deletion is not concluded as long as a daemon or timer of the object runs.
        let outcome = if deleting && holds && !planted!(DeletionDoesNotWait) {
            turn.hold(now.wall, &mut facts)
        } else {
            turn.conclude(now.wall, &patch, &mut facts)
        };
        let waits = matches!(outcome.remaining, RemainingWork::Handlers(Some(_)));
        memory.set_waiting_since(waits.then(|| now.clocks()));
        let has_facts = !facts.is_empty();
        patch.absorb(facts);
        let mut write = TurnWrite {
            read_back: self.read_back_after(&outcome),
            has_facts,
            ..TurnWrite::from(patch)
        };
        if deleting && outcome.has_ended() {
            write.finalizer = FinalizerNeed::Remove;
            let removal = self.finalizer_patch(FinalizerNeed::Remove);
            write.patch.absorb(removal);
        }
        let cycle = CycleEnd {
            reason,
            outcome,
            called_none: called.is_empty(),
        };
        if called.iter().any(|call| call.has_effects) {
            let purpose = WritePurpose::Effects { called, holds };
            self.send_write(memory, write, purpose, Some(cycle), now);
        } else {
            self.write_new_record(memory, write, Some(cycle), now);
        }
    }

    /// The need to know the object after the write that ends a turn: daemons and timers always
    /// get the newest state.
    fn read_back_after(&self, outcome: &TurnOutcome) -> ReadBack {
        if outcome.remaining == RemainingWork::Nothing && !self.rules.has_background {
            ReadBack::IfUnexpected
        } else {
            ReadBack::Always
        }
    }

    /// Records calls as failed because their patches cannot be written.
    pub(super) fn record_as_failed(
        &mut self,
        memory: &mut ObjectMemory<K>,
        called: Vec<CalledHandler>,
        reason: &str,
        holds: bool,
        now: &Now,
    ) {
        let input = self.turn_input(memory, now);
        let decision = input.map(|input| decide(&input, holds, now.wall));
        let Some(Decision::Handle(turn)) = decision else {
            return self.fail(memory, Error::Undecided, now);
        };
        let refused: Vec<CalledHandler> = called
            .into_iter()
            .map(|call| call.refused(reason))
            .collect();
        let calls = HandlerCalls {
            turn,
            due: Vec::new().into_iter(),
            refused: refused.into_iter(),
            called: Vec::new(),
            holds,
            epoch: now.epoch,
            clocks: now.clocks(),
            step: CallStep::ReportTurn,
        };
        self.next_call(memory, calls, now);
    }
}

// === impl Reconciling ===

impl Reconciling {
    pub(super) fn input(&self) -> &TurnInput {
        match self {
            Self::Decide(input) | Self::Unwritten(input, _) => input,
        }
    }
}

// === impl HandlerCalls ===

impl HandlerCalls {
    pub(super) fn effect<K>(&self) -> ObjectEffect<'_, K> {
        match (&self.step, self.called.last()) {
            (CallStep::Call(spec, attempt), _) => ObjectEffect::Call {
                turn: &self.turn,
                spec,
                attempt: *attempt,
            },
            (
                CallStep::Report {
                    consequence,
                    at,
                    exhausted,
                },
                Some(call),
            ) => ObjectEffect::ReportCall(CallReport {
                spec: &call.spec,
                outcome: &call.outcome,
                consequence,
                record: self.turn.record(&call.spec.id),
                at: *at,
                exhausted: *exhausted,
            }),
            (CallStep::ReportTurn | CallStep::Report { .. }, _) => {
                ObjectEffect::ReportTurn(&self.turn)
            }
        }
    }

    /// Enters a call that was made into the records.
    fn made(
        &mut self,
        spec: Arc<HandlerSpec>,
        call: HandlerCall,
        default_backoff: Duration,
        now: &Now,
    ) {
        self.absorb(&call.subs);
        self.correct_clock(now);
        let delivers = matches!(&call.outcome, Outcome::Success(result) if !result.is_null());
        let called = CalledHandler {
            spec,
            has_effects: delivers || !call.writes.is_empty(),
            outcome: call.outcome,
            writes: call.writes,
            subs: call.subs,
        };
        self.finish(called, false, default_backoff, now.wall);
    }

    /// Keeps the waits of the handlers if the clock was set back since they were recorded.
    fn correct_clock(&mut self, now: &Now) {
        let ahead = self.clocks.set_back(&now.clocks());
        if !ahead.is_zero() {
            self.turn.correct_clock(ahead, now.wall);
        }
        self.clocks = now.clocks();
    }

    /// Enters the sub-handlers of a call into the records.
    fn absorb(&mut self, subs: &[SubTurn]) {
        for sub in subs {
            self.turn.absorb(sub.clone());
        }
    }

    /// Enters an outcome into the records, to be reported next.
    fn finish(
        &mut self,
        call: CalledHandler,
        exhausted: bool,
        default_backoff: Duration,
        at: Timestamp,
    ) {
        let outcome = call.outcome.clone();
        let consequence = self
            .turn
            .finish(&call.spec.id, outcome, default_backoff, at);
        self.called.push(call);
        self.step = CallStep::Report {
            consequence,
            at,
            exhausted,
        };
    }
}
