//! One turn of an object: what its state demands, done and written.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::background::desired::ObjectLife;
use kopf_core::cause::Reason;
use kopf_core::cause::detect::EventKind;
use kopf_core::cycle::sub::SubCycle;
use kopf_core::cycle::tracker::Attempt;
use kopf_core::cycle::{Cycle, CycleInput, CycleOutcome, Decision, RemainingWork, decide};
use kopf_core::handler::HandlerSpec;
use kopf_core::handler::registry::FinalizerNeed;
use kopf_core::object::patch::Patch;
use kopf_core::object::{ObjectView, finalizer};
use kopf_core::outcome::{HandlerFailure, Outcome};
use serde_json::Value;
use tracing::{Instrument as _, debug, info, warn};

use super::kind::ChangeCallee;
use super::reverts::TurnAdmission;
use super::{Case, Error, Turn};
use crate::background::Scene;
use crate::context::change::{ChangeFacts, Effects};
use crate::coordination::pause::LeaseEnded;
use crate::events::log_layer::LogPosting;
use crate::events::span;
use crate::process::execute::report;
use crate::process::memory::Memory;
use crate::process::persist::apply::{OnConflict, Tell, WriteResult, apply};

/// A lifecycle of the user's own may pick nothing; it is asked again after this time.
const PAUSE_WITHOUT_CHOICE: Duration = Duration::from_secs(1);

/// A handler that was called in this turn.
struct Called {
    spec: Arc<HandlerSpec>,
    outcome: Outcome,
    writes: Patch,
    subs: Vec<SubCycle>,
}

/// What a turn has to write.
#[derive(Clone)]
struct Write {
    patch: Patch,
    on_conflict: OnConflict,
    tell: Tell,
    /// What the patch does to the finalizer.
    finalizer: FinalizerNeed,
}

impl Case<'_> {
    /// Does what the state demands, up to the next write.
    pub(super) async fn turn(
        &self,
        memory: &mut Memory,
        current: &Arc<Value>,
    ) -> Result<Turn, Error> {
        let situation = self.situation(memory, current);
        let mark = match self.rivals.meet(self, memory, &situation) {
            TurnAdmission::Unsuspicious => None,
            TurnAdmission::Marked(mark) => Some(mark),
            TurnAdmission::Undone(pause) => {
                self.complain(&Error::Contested, pause);
                return Ok(Turn::Hold(pause));
            }
        };
        let turn = self.act(memory, current, &situation).await?;
        if matches!(turn, Turn::Again(_) | Turn::Settled(_)) {
            self.rivals.wrote(&self.key.uid, &mut memory.pace, mark);
        }
        Ok(turn)
    }

    async fn act(
        &self,
        memory: &mut Memory,
        current: &Arc<Value>,
        situation: &CycleInput,
    ) -> Result<Turn, Error> {
        let attended = self.attend(memory, situation);
        match decide(situation, attended, Timestamp::now()) {
            Decision::Leave => Ok(Turn::Done),
            Decision::Finalizer(need) => {
                let patch = self.finalizer_patch(need);
                let write = Write {
                    on_conflict: OnConflict::Report,
                    finalizer: need,
                    ..Write::from(patch)
                };
                self.write_record(current, write).await
            }
            Decision::Tidy(patch) => self.write_record(current, patch.into()).await,
            Decision::Handle(cycle) => self.cycle(memory, current, *cycle, attended).await,
        }
    }

    async fn cycle(
        &self,
        memory: &mut Memory,
        current: &Arc<Value>,
        mut cycle: Cycle,
        attended: bool,
    ) -> Result<Turn, Error> {
        for overtaken in cycle.superseded() {
            info!(
                "the handling of {overtaken} goes on as that of {}",
                cycle.reason()
            );
        }
        let Ok(called) = self.call_due(&mut cycle).await else {
            return Ok(Turn::LeaseEnded);
        };
        let nothing_called = called.is_empty();
        let reason = cycle.reason();
        let (write, conclusion) = self.conclude(cycle, &called, attended);
        let (turn, conclusion) = if called.iter().any(Called::has_effects) {
            match self.write(current, write).await {
                Err(Error::WriteRejected(rejected)) => {
                    let reason =
                        format!("the server does not accept what it wants written: {rejected}");
                    self.write_as_failed(memory, current, called, &reason, attended)
                        .await?
                }
                written => (written?, conclusion),
            }
        } else {
            (self.write_record(current, write).await?, conclusion)
        };
        if conclusion.has_ended() {
            report::tell_end(reason, &conclusion, &self.surroundings(None));
            if let Some(history) = &mut memory.history {
                history.handled_once = true;
            }
        }
        Ok(match (turn, conclusion.ahead) {
            (Turn::Done, RemainingWork::Handlers(Some(delay)))
                if nothing_called && delay.is_zero() =>
            {
                Turn::Sleep(PAUSE_WITHOUT_CHOICE)
            }
            (Turn::Done, RemainingWork::Handlers(Some(delay))) => Turn::Sleep(delay),
            (turn, RemainingWork::FollowUp) => {
                debug!("changed while it was handled: an update follows");
                turn
            }
            (turn, RemainingWork::Handlers(_) | RemainingWork::Look | RemainingWork::Nothing) => {
                turn
            }
        })
    }

    /// Calls the handlers whose turn it is, one after the other, as long as that is allowed.
    ///
    /// A call that is cut off by the end of the lease leaves no record: whoever has the lease next
    /// makes that attempt again.
    async fn call_due(&self, cycle: &mut Cycle) -> Result<Vec<Called>, LeaseEnded> {
        let mut called = Vec::new();
        let execution = &self.settings.execution;
        let due = cycle.due(&execution.lifecycle, fastrand::u64(..), Timestamp::now());
        for spec in due {
            let Some(callee) = self.kind.change_function(&spec) else {
                warn!("Handler '{}' has no function", spec.id);
                continue;
            };
            if !self.pause_gate.is_running() {
                break;
            }
            let (effects, outcome) = match cycle.begin(&spec.id, Timestamp::now()) {
                Ok(allowance) => {
                    let facts = self.facts(cycle, &spec, &callee, allowance);
                    let span = span::handler(spec.id.as_str(), allowance.retry);
                    let log_posting = facts.scope.log_posting();
                    let call = callee.function.call(facts, allowance.time_left);
                    let call = LogPosting::lend(log_posting, call).instrument(span);
                    let measured = callee.metrics.begin(allowance.retry);
                    let mut attempt = self.pause_gate.while_leading(call).await?;
                    measured.end(attempt.verdict.counted());
                    let result = attempt.effects.result.take();
                    let verdict = attempt.verdict;
                    let outcome = verdict.into_outcome(result, cycle.reason(), &spec.policy);
                    (attempt.effects, outcome)
                }
                Err(limit) => {
                    callee.metrics.exhausted();
                    let exhausted = HandlerFailure::Exhausted(limit);
                    (Effects::default(), Outcome::Error(exhausted))
                }
            };
            let call = Called {
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
        cycle: &Cycle,
        spec: &HandlerSpec,
        callee: &ChangeCallee<'_>,
        allowance: Attempt,
    ) -> ChangeFacts {
        let situation = cycle.situation().clone();
        let mut facts = ChangeFacts {
            scope: self.surroundings(callee.memos),
            execution: self.settings.execution.clone(),
            diff: Arc::new(situation.sight.diff.clone()),
            situation,
            subs: Arc::new(cycle.sub(&spec.id, [], Timestamp::now())),
            handler: spec.id.clone(),
            changing: spec.trigger.needs_change(),
            param: callee.param.clone(),
            retry: allowance.retry,
            started: allowance.started,
            runtime: allowance.runtime,
        };
        facts.diff = facts.diff_for(spec);
        facts
    }

    /// Enters an outcome into the records and tells people.
    fn finish(&self, cycle: &mut Cycle, call: &Called) {
        for sub in &call.subs {
            cycle.absorb(sub.clone());
        }
        let id = &call.spec.id;
        let default_backoff = self.settings.execution.default_backoff;
        let now = Timestamp::now();
        let consequence = cycle.finish(id, call.outcome.clone(), default_backoff, now);
        let finished = report::Finished {
            spec: &call.spec,
            outcome: &call.outcome,
            consequence: &consequence,
            record: cycle.record(id),
            default_backoff,
            now,
        };
        report::tell(&finished, &self.surroundings(None));
    }

    /// Everything that a turn has to write, as one patch.
    ///
    /// A deletion is not concluded as long as a daemon or timer is beside the object.
    fn conclude(&self, cycle: Cycle, called: &[Called], attended: bool) -> (Write, CycleOutcome) {
        let mut patch = Patch::new();
        for call in called {
            patch.absorb(call.writes.clone());
            if let Outcome::Success(result) = &call.outcome {
                patch.deliver(call.spec.id.as_str(), result);
            }
        }
        let deleting = cycle.reason() == Reason::Delete;
        let conclusion = if deleting && attended {
            cycle.hold(Timestamp::now(), &mut patch)
        } else {
            cycle.conclude(Timestamp::now(), &mut patch)
        };
        let mut write = Write {
            tell: self.tell_after(&conclusion),
            ..Write::from(patch)
        };
        if deleting && conclusion.has_ended() {
            write.finalizer = FinalizerNeed::Remove;
            write
                .patch
                .absorb(self.finalizer_patch(FinalizerNeed::Remove));
        }
        (write, conclusion)
    }

    /// Records calls as failed because what they wanted written cannot be.
    async fn write_as_failed(
        &self,
        memory: &Memory,
        current: &Arc<Value>,
        called: Vec<Called>,
        reason: &str,
        attended: bool,
    ) -> Result<(Turn, CycleOutcome), Error> {
        let situation = self.situation(memory, current);
        let Decision::Handle(mut cycle) = decide(&situation, attended, Timestamp::now()) else {
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
            let call = Called {
                outcome,
                writes: Patch::new(),
                subs: Vec::new(),
                ..call
            };
            self.finish(&mut cycle, &call);
            failed.push(call);
        }
        let (write, conclusion) = self.conclude(*cycle, &failed, attended);
        Ok((self.write_record(current, write).await?, conclusion))
    }

    /// What has to be known about the object after the write that ends a turn.
    ///
    /// Daemons and timers always get to see the newest state.
    fn tell_after(&self, conclusion: &CycleOutcome) -> Tell {
        if conclusion.ahead == RemainingWork::Nothing && self.kind.duties().is_empty() {
            Tell::Surprises
        } else {
            Tell::All
        }
    }

    /// Writes what no handler can repair, again and again, until the server accepts it.
    ///
    /// Handlers are not called again for it: what they did is done, only the record is missing.
    async fn write_record(&self, current: &Arc<Value>, write: Write) -> Result<Turn, Error> {
        let mut failures = 0;
        loop {
            let error = match self.write(current, write.clone()).await {
                Err(Error::WriteRejected(rejected)) => Error::WriteRejected(rejected),
                written => return written,
            };
            let delay = self.settings.queueing.error_delay(failures);
            failures += 1;
            self.complain(&error, delay);
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.stop.cancelled() => return Err(error),
                () = self.pause_gate.lease_ended() => return Ok(Turn::LeaseEnded),
            }
        }
    }

    async fn write(&self, current: &Arc<Value>, mut write: Write) -> Result<Turn, Error> {
        let persistence = self.kind.persistence();
        persistence.seal(ObjectView::new(current), &mut write.patch);
        if write.patch.is_empty() {
            return Ok(Turn::Done);
        }
        match apply(
            &self.place(),
            current,
            write.patch,
            write.on_conflict,
            write.tell,
        )
        .await?
        {
            WriteResult::Foreseen(version) => Ok(Turn::Settled(version)),
            WriteResult::Outdated(newer) => Ok(Turn::Instead(newer)),
            WriteResult::Gone => Ok(Turn::Gone),
            WriteResult::LeaseEnded => Ok(Turn::LeaseEnded),
            WriteResult::Unchanged => Ok(Turn::Done),
            WriteResult::Stripped(_, lost) if lost.iter().any(|name| persistence.is_own(name)) => {
                Err(Error::Stripped(lost.join(", ")))
            }
            WriteResult::Written(newer) | WriteResult::Stripped(newer, _) => {
                let view = ObjectView::new(&newer);
                if view.is_being_deleted() && view.finalizers().next().is_none() {
                    return Ok(Turn::Gone);
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
                Ok(Turn::Again(newer))
            }
        }
    }

    /// Starts and stops daemons and timers; tells whether the object must wait for any of them.
    fn attend(&self, memory: &Memory, situation: &CycleInput) -> bool {
        let duties = self.kind.duties();
        if duties.is_empty() {
            return false;
        }
        for memos in self.kind.memos() {
            memos.recall(&self.key.uid);
        }
        let view = situation.view();
        let life = if view.is_being_deleted() {
            ObjectLife::Deleting
        } else {
            let held = finalizer::is_present(view, &self.kind.persistence().finalizer);
            ObjectLife::Alive { held }
        };
        self.background.tend(&Scene {
            key: self.key,
            duties,
            object: &situation.body,
            essence: situation.sight.new.as_value(),
            life,
            listed: memory.listed,
        })
    }

    fn situation(&self, memory: &Memory, current: &Arc<Value>) -> CycleInput {
        let sight = self.kind.persistence().sight(
            ObjectView::new(current),
            EventKind::Changed,
            memory.history.unwrap_or_default(),
            self.kind.registry(),
        );
        CycleInput::new(
            Arc::clone(current),
            Arc::new(sight),
            Arc::clone(self.kind.registry()),
            Arc::clone(self.kind.persistence()),
        )
    }

    fn finalizer_patch(&self, need: FinalizerNeed) -> Patch {
        let mut patch = Patch::new();
        need.request(&self.kind.persistence().finalizer, &mut patch);
        patch
    }
}

impl From<Patch> for Write {
    fn from(patch: Patch) -> Self {
        Self {
            patch,
            on_conflict: OnConflict::Repeat,
            tell: Tell::All,
            finalizer: FinalizerNeed::Settled,
        }
    }
}

impl Called {
    fn has_effects(&self) -> bool {
        let delivers = matches!(&self.outcome, Outcome::Success(result) if !result.is_null());
        delivers || !self.writes.is_empty()
    }
}
