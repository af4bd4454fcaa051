//! The call of `reconcile` within the turns of an object, after its change handlers.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    CallReport, ObjectEffect, ObjectInput, ObjectMachine, Phase,
    called::ReconcileWrite,
    writing::{TurnEnd, TurnResult, WritePurpose},
};
use crate::{
    children::reasons::ReconcileReasons,
    handler::HandlerId,
    machine::{
        memory::{ObjectMemory, TurnWrite},
        now::Now,
        object::{ReconcileAttempt, ReconcileResult},
        reconcile::{ReconcileDigest, ReconcileDue, ReconcileRules, RecordChange},
    },
    object::patch::ObjectPatch,
    outcome::{Consequence, HandlerFailure, Outcome},
    progress::record::Record,
    turn::{TurnInput, tracker::HandlerAttempt},
};

/// One call of `reconcile`, from its decision to the write of its effects.
#[derive(Debug)]
pub(super) struct ReconcileTurn<'o> {
    rules: &'o ReconcileRules,
    input: TurnInput,
    reasons: ReconcileReasons,
    digest: ReconcileDigest,
    /// The record on the object.
    stored: Option<Record>,
    /// The record that this call goes on with.
    before: Record,
    /// The kinds of the children that it applied.
    applied: Vec<HandlerId>,
    step: ReconcileStep,
}

/// The effect under way.
#[derive(Debug)]
enum ReconcileStep {
    Call(HandlerAttempt),
    /// The call succeeded: what it did not apply is deleted.
    Prune(ReconcileResult),
    Report(Box<ReportedReconcile>),
}

/// A call that has ended, with what is written of it.
#[derive(Debug)]
struct ReportedReconcile {
    outcome: Outcome,
    consequence: Consequence,
    after: Record,
    at: Timestamp,
    exhausted: bool,
    writes: ObjectPatch,
}

// === impl ObjectMachine ===

impl<'o, K> ObjectMachine<'o, K> {
    /// Calls `reconcile` if it is due; the change handlers have nothing to do.
    pub(super) fn reconcile_turn(
        &mut self,
        memory: &mut ObjectMemory<K>,
        input: &TurnInput,
        now: &Now,
    ) {
        let result = match self.rules.reconcile {
            Some(rules) if self.is_reconciled(rules, input) => {
                let view = input.view();
                let progress = &self.rules.persistence.progress;
                let stored = progress.fetch(&rules.spec.id, view);
                let digest = rules.digest(&input.change.new, &input.body);
                let known = memory.reconcile();
                match known.due(rules, digest, stored.as_ref(), now) {
                    ReconcileDue::Now(reasons) => {
                        let before = ReconcileRules::begin_record(stored.as_ref(), now.wall);
                        let turn = ReconcileTurn {
                            rules,
                            input: input.clone(),
                            reasons,
                            digest,
                            step: ReconcileStep::Call(attempt(&before, rules, now.wall)),
                            stored,
                            before,
                            applied: Vec::new(),
                        };
                        return self.begin_reconcile(memory, turn, now);
                    }
                    ReconcileDue::After(delay) => TurnResult::Sleep(delay),
                    ReconcileDue::Never => TurnResult::Done,
                }
            }
            _ => TurnResult::Done,
        };
        self.end_turn(memory, TurnEnd::of(result), now);
    }

    fn is_reconciled(&self, rules: &ReconcileRules, input: &TurnInput) -> bool {
        !input.view().is_being_deleted()
            && input.with_subject(|subject| rules.spec.prematches(subject))
    }

    /// Makes the call, unless a limit forbids it.
    fn begin_reconcile(
        &mut self,
        memory: &mut ObjectMemory<K>,
        mut turn: ReconcileTurn<'o>,
        now: &Now,
    ) {
        let runtime = turn.before.runtime(now.wall);
        let policy = &turn.rules.spec.policy;
        if let Err(limit) = policy.allow(turn.before.retries, runtime) {
            memory.reconcile().set_failed(false);
            let outcome = Outcome::Error(HandlerFailure::Exhausted(limit));
            let backoff = self.rules.default_backoff;
            turn.end(outcome, ObjectPatch::new(), true, backoff, now.wall);
        }
        self.phase = Phase::ReconcileTurn(Box::new(turn));
    }

    pub(super) fn go_on_with_reconcile(
        &mut self,
        memory: &mut ObjectMemory<K>,
        mut turn: Box<ReconcileTurn<'o>>,
        input: ObjectInput,
        now: &Now,
    ) {
        let backoff = self.rules.default_backoff;
        let attempt = turn.attempt(now.wall);
        let step = std::mem::replace(&mut turn.step, ReconcileStep::Call(attempt));
        match (step, input) {
            (ReconcileStep::Call(_), ObjectInput::ReconcileCalled(result)) => {
                if result.needs_finalizer {
                    // The same call follows, with the finalizer.
                    memory.reconcile().set_wants_finalizer(true);
                    return self.next_turn(memory, now);
                }
                let prunes =
                    matches!(result.outcome, Outcome::Success(_)) || planted!(PruneAfterFailure);
                if prunes {
                    turn.step = ReconcileStep::Prune(result);
                } else {
                    turn.finished(memory, result, backoff, now);
                }
            }
            (ReconcileStep::Call(_), ObjectInput::NoFunction) => {
                return self.end_turn(memory, TurnEnd::of(TurnResult::Done), now);
            }
            (ReconcileStep::Call(_) | ReconcileStep::Prune(_), ObjectInput::LeaseEnded) => {
                return self.end_turn(memory, TurnEnd::of(TurnResult::LeaseEnded), now);
            }
            (ReconcileStep::Prune(mut result), ObjectInput::Pruned(pruned)) => {
                if let Err(message) = pruned {
                    result.outcome = Outcome::Error(HandlerFailure::Other { message });
                }
                turn.finished(memory, result, backoff, now);
            }
            (ReconcileStep::Report(reported), ObjectInput::Continue) => {
                return self.write_reconcile(memory, *turn, *reported, now);
            }
            (step, _) => turn.step = step,
        }
        self.phase = Phase::ReconcileTurn(turn);
    }

    /// Writes the patch of the handler together with its record.
    fn write_reconcile(
        &mut self,
        memory: &mut ObjectMemory<K>,
        turn: ReconcileTurn<'o>,
        reported: ReportedReconcile,
        now: &Now,
    ) {
        let ReconcileTurn {
            rules,
            input,
            digest,
            stored,
            before,
            applied,
            ..
        } = turn;
        let id = &rules.spec.id;
        let mut patch = reported.writes;
        if let Outcome::Success(result) = &reported.outcome {
            patch.store_result(id.as_str(), result);
        }
        let has_effects = !patch.is_empty();
        let progress = &self.rules.persistence.progress;
        let mut facts = ObjectPatch::new();
        let consequence = &reported.consequence;
        let after =
            rules.record_after(stored.as_ref(), &before, consequence, &applied, reported.at);
        match after {
            RecordChange::Keep => {}
            RecordChange::Store(record) => progress.store(id, &record, input.view(), &mut facts),
            RecordChange::Purge => progress.purge(id, input.view(), &mut facts),
        }
        let has_facts = !facts.is_empty();
        patch.absorb(facts);
        if patch.is_empty() {
            return self.reconcile_turn(memory, &input, now);
        }
        let write = TurnWrite {
            has_facts,
            ..TurnWrite::from(patch)
        };
        if has_effects {
            let writing = ReconcileWrite {
                stored,
                before,
                digest,
                input,
            };
            let purpose = WritePurpose::Reconcile(Box::new(writing));
            self.send_write(memory, write, purpose, None, now);
        } else {
            self.write_new_record(memory, write, None, now);
        }
    }

    /// The API server rejects what the handler wants to write: the call has failed.
    pub(super) fn reconcile_rejected(
        &mut self,
        memory: &mut ObjectMemory<K>,
        write: ReconcileWrite,
        message: String,
        now: &Now,
    ) {
        let Some(rules) = self.rules.reconcile else {
            return self.end_turn(memory, TurnEnd::of(TurnResult::Done), now);
        };
        let mut turn = ReconcileTurn {
            rules,
            input: write.input,
            reasons: ReconcileReasons::default(),
            digest: write.digest,
            step: ReconcileStep::Call(attempt(&write.before, rules, now.wall)),
            stored: write.stored,
            before: write.before,
            applied: Vec::new(),
        };
        let outcome = Outcome::Error(HandlerFailure::Other { message });
        let backoff = self.rules.default_backoff;
        turn.end(outcome, ObjectPatch::new(), false, backoff, now.wall);
        if let ReconcileStep::Report(reported) = &turn.step {
            let is_repeated = !reported.consequence.is_final();
            memory.reconcile().set_failed(is_repeated);
        }
        self.phase = Phase::ReconcileTurn(Box::new(turn));
    }
}

// === impl ReconcileTurn ===

impl ReconcileTurn<'_> {
    pub(super) fn effect<K>(&self) -> ObjectEffect<'_, K> {
        let spec = &self.rules.spec;
        match &self.step {
            ReconcileStep::Call(attempt) => ObjectEffect::CallReconcile(ReconcileAttempt {
                input: &self.input,
                spec,
                attempt: *attempt,
                reasons: &self.reasons,
                covered: self.covered(),
            }),
            ReconcileStep::Prune(_) => ObjectEffect::PruneChildren,
            ReconcileStep::Report(reported) => ObjectEffect::ReportCall(CallReport {
                spec,
                outcome: &reported.outcome,
                consequence: &reported.consequence,
                record: Some(&reported.after),
                at: reported.at,
                exhausted: reported.exhausted,
            }),
        }
    }

    /// The kinds that an earlier call has covered.
    fn covered(&self) -> &[HandlerId] {
        &self.before.subrefs
    }

    fn attempt(&self, now: Timestamp) -> HandlerAttempt {
        attempt(&self.before, self.rules, now)
    }

    /// Notes a call that was made, to be reported next.
    fn finished<K>(
        &mut self,
        memory: &mut ObjectMemory<K>,
        result: ReconcileResult,
        default_backoff: Duration,
        now: &Now,
    ) {
        let ReconcileResult {
            outcome,
            writes,
            again,
            out_of_reach,
            applied,
            ..
        } = result;
        self.applied = applied;
        self.end(outcome, writes, false, default_backoff, now.wall);
        if let ReconcileStep::Report(reported) = &self.step {
            let known = memory.reconcile();
            known.called(self.rules, self.digest, &reported.consequence, again, now);
            known.set_wants_finalizer(out_of_reach);
        }
    }

    fn end(
        &mut self,
        outcome: Outcome,
        writes: ObjectPatch,
        exhausted: bool,
        default_backoff: Duration,
        at: Timestamp,
    ) {
        let policy = &self.rules.spec.policy;
        let before = &self.before;
        let consequence = Consequence::of(outcome.clone(), policy, default_backoff, before, at);
        self.step = ReconcileStep::Report(Box::new(ReportedReconcile {
            after: consequence.apply(before, at),
            outcome,
            consequence,
            at,
            exhausted,
            writes,
        }));
    }
}

fn attempt(record: &Record, rules: &ReconcileRules, now: Timestamp) -> HandlerAttempt {
    let runtime = record.runtime(now);
    let timeout = rules.spec.policy.timeout;
    HandlerAttempt {
        retry: record.retries,
        started: record.started,
        runtime,
        time_left: timeout.map(|timeout| timeout.saturating_sub(runtime)),
    }
}
