//! One turn of an object: calls the handlers that its state demands, and writes their effects.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::background::desired::ObjectLife;
use kopf_core::cause::Reason;
use kopf_core::cause::detect::EventKind;
use kopf_core::handler::HandlerSpec;
use kopf_core::handler::finalizer_need::FinalizerNeed;
use kopf_core::machine::request::OnForbidden;
use kopf_core::machine::write::{OnConflict, ReadBack, WriteResult, WriteRules};
use kopf_core::object::patch::ObjectPatch;
use kopf_core::object::{ObjectView, finalizer};
use kopf_core::outcome::{HandlerFailure, Outcome};
use kopf_core::turn::sub::SubTurn;
use kopf_core::turn::tracker::HandlerAttempt;
use kopf_core::turn::{Decision, RemainingWork, Turn, TurnInput, TurnOutcome, decide};
use serde_json::Value;
use tracing::{Instrument as _, debug, info, warn};

use super::kind::ChangeHandlerRef;
use super::reverts::TurnStart;
use super::turn_write::{TurnWrite, UnwrittenTurn};
use super::{Error, ObjectHandling, TurnResult};
use crate::background::ObservedObject;
use crate::context::change::{ChangeInputs, HandlerEffects};
use crate::coordination::pause::LeaseEnded;
use crate::events::log_layer::LogPoster;
use crate::events::span;
use crate::process::execute::report;
use crate::process::memory::Memory;

/// The time until a custom lifecycle that has picked no handler is asked again.
const PAUSE_WITHOUT_CHOICE: Duration = Duration::from_secs(1);

/// A handler that was called in this turn.
struct CalledHandler {
    spec: Arc<HandlerSpec>,
    outcome: Outcome,
    writes: ObjectPatch,
    subs: Vec<SubTurn>,
}

impl ObjectHandling<'_> {
    /// Handles a state, up to the next write.
    pub(super) async fn turn(
        &self,
        memory: &mut Memory,
        current: &Arc<Value>,
    ) -> Result<TurnResult, Error> {
        let epoch = self.pause_gate.epoch();
        let deleting = ObjectView::new(current).is_being_deleted();
        let input = self.cycle_input(memory, current);
        if let Some(unwritten) = self.unwritten.take(&self.key.uid, epoch, deleting) {
            // Daemons and timers follow the object though its progress is not written.
            self.reconcile_background(memory, &input);
            let wait = unwritten.wait();
            if wait.is_zero() {
                return self.write_or_keep(current, unwritten).await;
            }
            self.unwritten.keep(&self.key.uid, unwritten);
            return Ok(TurnResult::Sleep(wait));
        }
        let digest = match self.reverts.check(self, memory, &input) {
            TurnStart::Unrestricted => None,
            TurnStart::Tracked(digest) => Some(digest),
            TurnStart::Reverted(pause) => {
                self.report_error(&Error::Reverted, pause);
                return Ok(TurnResult::Hold(pause));
            }
        };
        let turn = self.act(memory, current, &input).await?;
        if matches!(turn, TurnResult::Written(_) | TurnResult::Settled(_)) {
            self.reverts.wrote(&self.key.uid, &mut memory.pace, digest);
        }
        Ok(turn)
    }

    async fn act(
        &self,
        memory: &mut Memory,
        current: &Arc<Value>,
        input: &TurnInput,
    ) -> Result<TurnResult, Error> {
        let waits_for_background = self.reconcile_background(memory, input);
        match decide(input, waits_for_background, Timestamp::now()) {
            Decision::Leave => Ok(TurnResult::Done),
            Decision::Finalizer(need) => {
                let patch = self.finalizer_patch(need);
                let write = TurnWrite {
                    on_conflict: OnConflict::Report,
                    finalizer: need,
                    ..TurnWrite::from(patch)
                };
                self.write_record(current, write).await
            }
            Decision::CloseReverted(patch) => self.write_record(current, patch.into()).await,
            Decision::Handle(cycle) => {
                self.cycle(memory, current, *cycle, waits_for_background)
                    .await
            }
        }
    }

    async fn cycle(
        &self,
        memory: &mut Memory,
        current: &Arc<Value>,
        mut cycle: Turn,
        waits_for_background: bool,
    ) -> Result<TurnResult, Error> {
        for former in cycle.superseded() {
            info!(
                "the handling of {former} goes on as that of {}",
                cycle.reason()
            );
        }
        let Ok(called) = self.call_due(&mut cycle).await else {
            return Ok(TurnResult::LeaseEnded);
        };
        let nothing_called = called.is_empty();
        let reason = cycle.reason();
        let (write, conclusion) = self.conclude(cycle, &called, waits_for_background);
        let (turn, conclusion) = if called.iter().any(CalledHandler::has_effects) {
            match self.write_effects(current, write).await {
                Err(reason) => {
                    self.write_as_failed(memory, current, called, &reason, waits_for_background)
                        .await?
                }
                Ok(written) => (written?, conclusion),
            }
        } else {
            (self.write_record(current, write).await?, conclusion)
        };
        if conclusion.has_ended() {
            report::report_cycle_end(reason, &conclusion, &self.handler_scope(None));
            if let Some(history) = &mut memory.history {
                history.handled_once = true;
            }
        }
        Ok(match (turn, conclusion.remaining) {
            (TurnResult::Done, RemainingWork::Handlers(Some(delay)))
                if nothing_called && delay.is_zero() =>
            {
                TurnResult::Sleep(PAUSE_WITHOUT_CHOICE)
            }
            (TurnResult::Done, RemainingWork::Handlers(Some(delay))) => TurnResult::Sleep(delay),
            (turn, RemainingWork::FollowUp) => {
                debug!("changed while it was handled: an update follows");
                turn
            }
            (
                turn,
                RemainingWork::Handlers(_) | RemainingWork::Recheck | RemainingWork::Nothing,
            ) => turn,
        })
    }

    /// Calls the handlers that are due, one after the other, until the operator pauses.
    ///
    /// A call that the end of the lease interrupts leaves no record: the next holder of the lease
    /// makes that attempt again.
    async fn call_due(&self, cycle: &mut Turn) -> Result<Vec<CalledHandler>, LeaseEnded> {
        let mut called = Vec::new();
        let execution = &self.settings.execution;
        let due = cycle.due(&execution.lifecycle, fastrand::u64(..), Timestamp::now());
        for spec in due {
            let Some(handler) = self.kind.change_function(&spec) else {
                warn!("Handler '{}' has no function", spec.id);
                continue;
            };
            if !self.pause_gate.is_running() {
                break;
            }
            let (effects, outcome) = match cycle.begin(&spec.id, Timestamp::now()) {
                Ok(allowance) => {
                    let facts = self.facts(cycle, &spec, &handler, allowance);
                    let span = span::handler(spec.id.as_str(), allowance.retry);
                    let log_poster = facts.scope.log_poster();
                    let call = handler.function.call(facts, allowance.time_left);
                    let call = LogPoster::scope(log_poster, call).instrument(span);
                    let measured = handler.metrics.begin(allowance.retry);
                    let mut attempt = self.pause_gate.while_leading(call).await?;
                    measured.end(attempt.end.counted());
                    let result = attempt.effects.result.take();
                    let end = attempt.end;
                    let outcome = end.into_outcome(result, cycle.reason(), &spec.policy);
                    (attempt.effects, outcome)
                }
                Err(limit) => {
                    handler.metrics.exhausted();
                    let exhausted = HandlerFailure::Exhausted(limit);
                    (HandlerEffects::default(), Outcome::Error(exhausted))
                }
            };
            let call = CalledHandler {
                spec,
                outcome,
                writes: effects.patch.into_writes(),
                subs: effects.subs,
            };
            self.finish(cycle, &call);
            called.push(call);
        }
        Ok(called)
    }

    fn facts(
        &self,
        cycle: &Turn,
        spec: &HandlerSpec,
        handler: &ChangeHandlerRef<'_>,
        allowance: HandlerAttempt,
    ) -> ChangeInputs {
        let input = cycle.input().clone();
        let mut facts = ChangeInputs {
            scope: self.handler_scope(handler.memos),
            execution: self.settings.execution.clone(),
            diff: Arc::new(input.change.diff.clone()),
            situation: input,
            subs: Arc::new(cycle.sub(&spec.id, [], Timestamp::now())),
            handler: spec.id.clone(),
            changing: spec.trigger.needs_change(),
            param: handler.param.clone(),
            retry: allowance.retry,
            started: allowance.started,
            runtime: allowance.runtime,
        };
        facts.diff = facts.diff_for(spec);
        facts
    }

    /// Enters an outcome into the records and reports it.
    fn finish(&self, cycle: &mut Turn, call: &CalledHandler) {
        for sub in &call.subs {
            cycle.absorb(sub.clone());
        }
        let id = &call.spec.id;
        let default_backoff = self.settings.execution.default_backoff;
        let now = Timestamp::now();
        let consequence = cycle.finish(id, call.outcome.clone(), default_backoff, now);
        let finished = report::FinishedCall {
            spec: &call.spec,
            outcome: &call.outcome,
            consequence: &consequence,
            record: cycle.record(id),
            default_backoff,
            now,
        };
        report::report_call(&finished, &self.handler_scope(None));
    }

    /// All writes of a turn, as one patch.
    ///
    /// A deletion is not concluded as long as a daemon or timer of the object runs.
    fn conclude(
        &self,
        cycle: Turn,
        called: &[CalledHandler],
        waits_for_background: bool,
    ) -> (TurnWrite, TurnOutcome) {
        let mut patch = ObjectPatch::new();
        for call in called {
            patch.absorb(call.writes.clone());
            if let Outcome::Success(result) = &call.outcome {
                patch.store_result(call.spec.id.as_str(), result);
            }
        }
        let deleting = cycle.reason() == Reason::Delete;
        let conclusion = if deleting && waits_for_background {
            cycle.hold(Timestamp::now(), &mut patch)
        } else {
            cycle.conclude(Timestamp::now(), &mut patch)
        };
        let mut write = TurnWrite {
            read_back: self.read_back_after(&conclusion),
            ..TurnWrite::from(patch)
        };
        if deleting && conclusion.has_ended() {
            write.finalizer = FinalizerNeed::Remove;
            write
                .patch
                .absorb(self.finalizer_patch(FinalizerNeed::Remove));
        }
        (write, conclusion)
    }

    /// Writes the patches of handlers with their records; if the patches are to blame that this
    /// fails, returns how.
    async fn write_effects(
        &self,
        current: &Arc<Value>,
        write: TurnWrite,
    ) -> Result<Result<TurnResult, Error>, String> {
        let on_forbidden = OnForbidden::RetryForMinute { ends_at_stop: true };
        match self.write(current, write, on_forbidden).await {
            Err(Error::WriteRejected(error)) => Err(error.of_handler()),
            written => Ok(written),
        }
    }

    /// Records calls as failed because their patches cannot be written.
    async fn write_as_failed(
        &self,
        memory: &Memory,
        current: &Arc<Value>,
        called: Vec<CalledHandler>,
        reason: &str,
        waits_for_background: bool,
    ) -> Result<(TurnResult, TurnOutcome), Error> {
        let input = self.cycle_input(memory, current);
        let Decision::Handle(mut cycle) = decide(&input, waits_for_background, Timestamp::now())
        else {
            return Err(Error::Undecided);
        };
        let mut failed = Vec::new();
        for call in called {
            let outcome = if call.has_effects() {
                let message = reason.to_owned();
                Outcome::Error(HandlerFailure::Other { message })
            } else {
                call.outcome
            };
            let call = CalledHandler {
                outcome,
                writes: ObjectPatch::new(),
                subs: Vec::new(),
                ..call
            };
            self.finish(&mut cycle, &call);
            failed.push(call);
        }
        let (write, conclusion) = self.conclude(*cycle, &failed, waits_for_background);
        Ok((self.write_record(current, write).await?, conclusion))
    }

    /// The need to know the object after the write that ends a turn: daemons and timers always
    /// get the newest state.
    fn read_back_after(&self, conclusion: &TurnOutcome) -> ReadBack {
        if conclusion.remaining == RemainingWork::Nothing
            && self.kind.background_handlers().is_empty()
        {
            ReadBack::IfUnexpected
        } else {
            ReadBack::Always
        }
    }

    /// Writes a patch that no handler can repair.
    ///
    /// If the API server rejects it, it is kept, and the next turn of the object writes it.
    /// Handlers are not called again for it: they are done, and only their progress is missing.
    async fn write_record(
        &self,
        current: &Arc<Value>,
        write: TurnWrite,
    ) -> Result<TurnResult, Error> {
        let deleting = ObjectView::new(current).is_being_deleted();
        let unwritten = UnwrittenTurn::new(write, self.pause_gate.epoch(), deleting);
        self.write_or_keep(current, unwritten).await
    }

    /// Writes a turn, or keeps it until the API server accepts it. The worker does not wait.
    async fn write_or_keep(
        &self,
        current: &Arc<Value>,
        mut unwritten: UnwrittenTurn,
    ) -> Result<TurnResult, Error> {
        let write = unwritten.write.clone();
        let error = match self.write(current, write, OnForbidden::Reject).await {
            Err(error @ Error::WriteRejected(_)) => error,
            written => {
                if unwritten.failures > 0 && written.is_ok() {
                    info!("the progress of the handlers is written now");
                }
                return written;
            }
        };
        let delay = self.settings.queueing.error_delay(unwritten.failures);
        let reason = error.with_source();
        if unwritten.reason != reason {
            self.report_error(&error, delay);
            unwritten.reason = reason;
        }
        unwritten.rejected_for(delay);
        self.unwritten.keep(&self.key.uid, unwritten);
        Ok(TurnResult::Sleep(delay))
    }

    async fn write(
        &self,
        current: &Arc<Value>,
        mut write: TurnWrite,
        on_forbidden: OnForbidden,
    ) -> Result<TurnResult, Error> {
        let persistence = self.kind.persistence();
        persistence.purge_touch(ObjectView::new(current), &mut write.patch);
        if write.patch.is_empty() {
            return Ok(TurnResult::Done);
        }
        let rules = WriteRules {
            status_endpoint: self.has_status_endpoint(),
            on_conflict: write.on_conflict,
            on_forbidden,
            read_back: write.read_back,
        };
        match self.writer().write(current, write.patch, rules).await? {
            WriteResult::AsExpected(version) => Ok(TurnResult::Settled(version)),
            WriteResult::Outdated(newer) => Ok(TurnResult::Outdated(newer)),
            WriteResult::Gone => Ok(TurnResult::Gone),
            WriteResult::LeaseEnded => Ok(TurnResult::LeaseEnded),
            WriteResult::Unchanged => Ok(TurnResult::Done),
            WriteResult::Stripped(_, lost)
                if lost.iter().any(|name| persistence.owns_annotation(name)) =>
            {
                Err(Error::Stripped(lost.join(", ")))
            }
            WriteResult::Written(newer) | WriteResult::Stripped(newer, _) => {
                let view = ObjectView::new(&newer);
                if view.is_being_deleted() && view.finalizers().next().is_none() {
                    return Ok(TurnResult::Gone);
                }
                let name = &persistence.finalizer;
                match (write.finalizer, finalizer::is_present(view, name)) {
                    (FinalizerNeed::Add, false) => return Err(Error::Stripped(name.clone())),
                    (FinalizerNeed::Remove, true) => return Err(Error::Restored(name.clone())),
                    _ => {}
                }
                if view.resource_version() == ObjectView::new(current).resource_version() {
                    return Err(Error::NotKept);
                }
                Ok(TurnResult::Written(newer))
            }
        }
    }

    /// Starts and stops daemons and timers; returns whether the object must wait for any of them.
    fn reconcile_background(&self, memory: &Memory, input: &TurnInput) -> bool {
        let background_handlers = self.kind.background_handlers();
        if background_handlers.is_empty() {
            return false;
        }
        for memos in self.kind.memos() {
            memos.recall(&self.key.uid);
        }
        let view = input.view();
        let life = if view.is_being_deleted() {
            ObjectLife::Deleting
        } else {
            let held = finalizer::is_present(view, &self.kind.persistence().finalizer);
            ObjectLife::Alive { held }
        };
        self.background.reconcile(&ObservedObject {
            key: self.key,
            handlers: background_handlers,
            object: &input.body,
            essence: input.change.new.as_value(),
            life,
            listed: memory.listed,
        })
    }

    fn cycle_input(&self, memory: &Memory, current: &Arc<Value>) -> TurnInput {
        let sight = self.kind.persistence().observe_change(
            ObjectView::new(current),
            EventKind::Changed,
            memory.history.unwrap_or_default(),
            self.kind.registry(),
        );
        TurnInput::new(
            Arc::clone(current),
            Arc::new(sight),
            Arc::clone(self.kind.registry()),
            Arc::clone(self.kind.persistence()),
        )
    }

    fn finalizer_patch(&self, need: FinalizerNeed) -> ObjectPatch {
        let mut patch = ObjectPatch::new();
        need.request(&self.kind.persistence().finalizer, &mut patch);
        patch
    }
}

impl CalledHandler {
    fn has_effects(&self) -> bool {
        let delivers = matches!(&self.outcome, Outcome::Success(result) if !result.is_null());
        delivers || !self.writes.is_empty()
    }
}
