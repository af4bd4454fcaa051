//! The write of a turn: what its result means for the object, and for the next turn.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    AfterReport, Error, NOTHING_PLANNED, NextCall, ObjectEffect, ObjectMachine, ObjectReport,
    Phase, Requests,
    called::{CalledHandler, ReconcileWrite},
    intake::AfterState,
    version_of,
};
use crate::{
    cause::Reason,
    handler::finalizer_need::FinalizerNeed,
    machine::{
        memory::{NewestSource, ObjectMemory, TurnWrite, UnwrittenTurn},
        now::Now,
        request::OnForbidden,
        write::{self, ObjectWrite, ReadBack, WriteResult, WriteRules},
    },
    object::{ObjectView, finalizer, resource_version::ResourceVersion},
    turn::{RemainingWork, TurnOutcome},
};

/// The time until a custom lifecycle that has picked no handler is asked again.
const PAUSE_WITHOUT_CHOICE: Duration = Duration::from_secs(1);

/// The write of a turn that is under way.
#[derive(Debug)]
pub(super) struct TurnWriting {
    /// The change of the finalizer that is in the patch.
    pub(super) finalizer: FinalizerNeed,
    has_facts: bool,
    purpose: WritePurpose,
    cycle: Option<CycleEnd>,
}

/// The purpose of the write of a turn.
#[derive(Debug)]
pub(super) enum WritePurpose {
    /// The patches of handlers with their records: if they are rejected, the calls have failed.
    Effects {
        called: Vec<CalledHandler>,
        holds: bool,
    },
    /// The patch of `reconcile` with its record: if it is rejected, the call has failed.
    Reconcile(Box<ReconcileWrite>),
    /// A record, which no handler can repair. If the API server rejects it, it is kept, and the
    /// next turn of the object writes it. Handlers are not called again for it: they are done, and
    /// only their progress is missing.
    Record(UnwrittenTurn),
}

/// The end of the handlers of a turn.
#[derive(Debug)]
pub(super) struct CycleEnd {
    pub(super) reason: Reason,
    pub(super) outcome: TurnOutcome,
    /// Whether no handler was called.
    pub(super) called_none: bool,
}

/// The end of a turn.
#[derive(Debug)]
pub(super) struct TurnEnd {
    result: TurnResult,
    cycle: Option<CycleEnd>,
}

/// The end of a turn, as far as it decides about the next one.
#[derive(Debug)]
pub(super) enum TurnResult {
    /// The next turn handles the state that was written.
    Written(Arc<Value>),
    /// The next turn handles this state: the former one was outdated, and nothing was written.
    Outdated(Arc<Value>),
    /// The next turn comes after this time, or with the next item.
    Sleep(Duration),
    /// The next turn comes after this time, and not before.
    Hold(Duration),
    /// Nothing is left to do.
    Done,
    /// Nothing is left to do: our last write left the object at this version.
    Settled(ResourceVersion),
    /// The write released the object: this is its last state, and its deletion event follows.
    Released(Arc<Value>),
    /// The object does not exist any more; its deletion event follows. This was its last version,
    /// as far as it is known.
    Gone(Option<ResourceVersion>),
    /// The lease has ended; the list after the pause brings the object again.
    LeaseEnded,
}

// === impl ObjectMachine ===

impl<K> ObjectMachine<'_, K> {
    pub(super) fn write_new_record(
        &mut self,
        memory: &mut ObjectMemory<K>,
        write: TurnWrite,
        cycle: Option<CycleEnd>,
        now: &Now,
    ) {
        let Some(current) = &self.current else {
            return self.rest(memory, NextCall::AwaitChange);
        };
        let unwritten = UnwrittenTurn::new(write, current, now);
        self.write_record(memory, unwritten, cycle, now);
    }

    pub(super) fn write_record(
        &mut self,
        memory: &mut ObjectMemory<K>,
        mut unwritten: UnwrittenTurn,
        cycle: Option<CycleEnd>,
        now: &Now,
    ) {
        let write = TurnWrite {
            patch: std::mem::take(&mut unwritten.write.patch),
            ..unwritten.write
        };
        self.send_write(memory, write, WritePurpose::Record(unwritten), cycle, now);
    }

    pub(super) fn send_write(
        &mut self,
        memory: &mut ObjectMemory<K>,
        mut write: TurnWrite,
        purpose: WritePurpose,
        cycle: Option<CycleEnd>,
        now: &Now,
    ) {
        let Some(current) = self.current.clone() else {
            return self.rest(memory, NextCall::AwaitChange);
        };
        let view = ObjectView::new(&current);
        self.rules.persistence.purge_touch(view, &mut write.patch);
        if write.patch.is_empty() {
            let result = TurnResult::Done;
            return self.accepted(memory, result, &purpose, cycle, now);
        }
        let rules = WriteRules {
            status_endpoint: self.rules.status_endpoint,
            on_conflict: write.on_conflict,
            on_forbidden: match purpose {
                WritePurpose::Effects { .. } | WritePurpose::Reconcile(_) => {
                    OnForbidden::RetryForMinute { ends_at_stop: true }
                }
                WritePurpose::Record(_) => OnForbidden::Reject,
            },
            read_back: write.read_back,
        };
        let writing = TurnWriting {
            finalizer: write.finalizer,
            has_facts: write.has_facts,
            purpose,
            cycle,
        };
        let write = ObjectWrite::new(self.rules.uid, &current, write.patch, rules, now)
            .with_progress(self.rules.persistence)
            .contending(std::mem::take(&mut self.contention));
        let write = match &writing.purpose {
            WritePurpose::Record(unwritten) => write.made_for(&unwritten.made_for),
            WritePurpose::Effects { .. } | WritePurpose::Reconcile(_) => write,
        };
        self.go_on_with(memory, Requests::TurnWrite(write, writing), None, now);
    }

    pub(super) fn turn_written(
        &mut self,
        memory: &mut ObjectMemory<K>,
        write: ObjectWrite<'_>,
        writing: TurnWriting,
        result: Result<WriteResult, write::Error>,
        now: &Now,
    ) {
        let TurnWriting {
            finalizer,
            has_facts,
            purpose,
            cycle,
        } = writing;
        let result = match result {
            Ok(WriteResult::Written(newer))
                if planted!(SkippedCheckUnfounded)
                    && cycle
                        .as_ref()
                        .is_some_and(|it| it.outcome.remaining == RemainingWork::Nothing) =>
            {
                let version = version_of(&newer).unwrap_or_default();
                Ok(WriteResult::AsExpected(ResourceVersion::new(version)))
            }
            result => result,
        };
        if let Ok(WriteResult::Outdated(_)) = &result {
            self.contention = write.contention().clone();
        }
        // The next turn finds the cycle that another operator has begun since.
        let cycle = cycle.filter(|_| !write.is_progress_dropped());
        match (result, purpose) {
            (Ok(result), purpose) => match self.meaning(result, finalizer, has_facts) {
                Ok(result) => self.accepted(memory, result, &purpose, cycle, now),
                Err(error) => self.fail(memory, error, now),
            },
            (Err(error), WritePurpose::Effects { called, holds }) => {
                self.record_as_failed(memory, called, &error.of_handler(), holds, now);
            }
            (Err(error), WritePurpose::Reconcile(write)) => {
                self.reconcile_rejected(memory, *write, error.of_handler(), now);
            }
            (Err(error), WritePurpose::Record(mut unwritten)) => {
                (unwritten.write.patch, unwritten.made_for) = write.into_patch();
                self.keep_record(memory, unwritten, error, cycle, now);
            }
        }
    }

    /// The meaning of a write that the API server accepted.
    fn meaning(
        &self,
        result: WriteResult,
        need: FinalizerNeed,
        has_facts: bool,
    ) -> Result<TurnResult, Error> {
        let persistence = self.rules.persistence;
        match result {
            WriteResult::AsExpected(version) => Ok(TurnResult::Settled(version)),
            WriteResult::Outdated(newer) => Ok(TurnResult::Outdated(newer)),
            WriteResult::Gone => Ok(TurnResult::Gone(None)),
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
                    return Ok(TurnResult::Released(newer));
                }
                let name = &persistence.finalizer;
                match (need, finalizer::is_present(view, name)) {
                    (FinalizerNeed::Add, false) => return Err(Error::Stripped(name.clone())),
                    (FinalizerNeed::Remove, true) => return Err(Error::Restored(name.clone())),
                    _ => {}
                }
                let before = self.current.as_deref().and_then(version_of);
                // What a handler writes may be undone: it has handled the state all the same.
                let must_change = has_facts || planted!(NoOpTakenForUndone);
                if view.resource_version() == before && must_change {
                    return Err(Error::NotKept);
                }
                Ok(TurnResult::Written(newer))
            }
        }
    }

    fn accepted(
        &mut self,
        memory: &mut ObjectMemory<K>,
        result: TurnResult,
        purpose: &WritePurpose,
        cycle: Option<CycleEnd>,
        now: &Now,
    ) {
        let is_written = !matches!(result, TurnResult::LeaseEnded | TurnResult::Gone(_));
        let was_kept = matches!(purpose, WritePurpose::Record(unwritten) if unwritten.failures > 0)
            && !planted!(StateBesideRecordLost);
        let result = match (result, &self.current) {
            // The record was there already, and this state is not handled yet.
            (TurnResult::Done, Some(current)) if was_kept => {
                TurnResult::Outdated(Arc::clone(current))
            }
            (result, _) => result,
        };
        // A cycle whose end is not written has not ended.
        let cycle = cycle.filter(|_| !matches!(result, TurnResult::LeaseEnded));
        let end = TurnEnd { result, cycle };
        match purpose {
            WritePurpose::Record(_) if was_kept && is_written => {
                let then = AfterReport::TurnEnded(end);
                self.phase = Phase::Report(ObjectReport::ProgressWritten, then);
            }
            WritePurpose::Effects { .. } | WritePurpose::Reconcile(_) | WritePurpose::Record(_) => {
                self.turn_ended(memory, end, now);
            }
        }
    }

    /// Keeps a record until the API server accepts it. The worker does not wait.
    fn keep_record(
        &mut self,
        memory: &mut ObjectMemory<K>,
        mut unwritten: UnwrittenTurn,
        error: write::Error,
        cycle: Option<CycleEnd>,
        now: &Now,
    ) {
        let delay = self.error_delay(unwritten.failures);
        let error = Error::WriteRejected(error);
        let reason = error.to_string();
        let is_new = unwritten.reason != reason;
        unwritten.reason = reason;
        unwritten.failures = unwritten.failures.saturating_add(1);
        unwritten.next = now.steady.saturating_add(delay);
        // The object may change until then, and the turn knows nothing of that change.
        unwritten.write.read_back = ReadBack::Always;
        memory.keep_unwritten(unwritten);
        let result = TurnResult::Sleep(delay);
        let end = TurnEnd { result, cycle };
        if is_new {
            let report = ObjectReport::Trouble { error, delay };
            self.phase = Phase::Report(report, AfterReport::TurnEnded(end));
        } else {
            self.turn_ended(memory, end, now);
        }
    }

    /// Reports the end of a cycle, then ends the turn.
    pub(super) fn turn_ended(&mut self, memory: &mut ObjectMemory<K>, end: TurnEnd, now: &Now) {
        let cycle = end.cycle.as_ref();
        if cycle.is_some_and(|cycle| cycle.outcome.has_ended()) {
            if let Some(history) = &mut memory.history {
                history.handled_once = true;
            }
            self.phase = Phase::CycleEnded(end);
        } else {
            self.end_turn(memory, end, now);
        }
    }

    pub(super) fn end_turn(&mut self, memory: &mut ObjectMemory<K>, end: TurnEnd, now: &Now) {
        let is_resumed = end.is_resumed();
        let result = end.into_result();
        if matches!(result, TurnResult::Written(_) | TurnResult::Settled(_)) {
            let digest = self.digest.take();
            memory.count_write(digest, now);
        }
        match result {
            TurnResult::Written(newer) | TurnResult::Outdated(newer)
                if !now.stopping || planted!(StopIgnored) =>
            {
                return self.wrote(memory, newer, AfterState::Turn, now);
            }
            // The resume handlers are done, or there are none: `reconcile` may be due.
            TurnResult::Done
                if is_resumed
                    && self.rules.reconcile.is_some()
                    && !now.stopping
                    && !planted!(NotReconciledAtStart) =>
            {
                return self.next_turn(memory, now);
            }
            TurnResult::Released(last) => return self.released(memory, last, now),
            TurnResult::Sleep(delay) => return self.rest(memory, NextCall::After(delay)),
            TurnResult::Hold(delay) => return self.rest(memory, NextCall::NotBefore(delay)),
            TurnResult::Settled(version) => memory.written = Some(version),
            TurnResult::Gone(_) if planted!(GoneObjectHandled) => {}
            TurnResult::Gone(last) => {
                memory.news = NewestSource::Gone;
                memory.written = last.or(memory.written.take());
            }
            // If the operator stops: the progress is on the object, and the next start goes on.
            TurnResult::Written(_)
            | TurnResult::Outdated(_)
            | TurnResult::Done
            | TurnResult::LeaseEnded => {}
        }
        self.current = None;
        self.rest(memory, NextCall::AwaitChange);
    }
}

// === impl TurnEnd ===

impl TurnEnd {
    /// The end of a turn without handlers.
    pub(super) fn of(result: TurnResult) -> Self {
        Self {
            result,
            cycle: None,
        }
    }

    pub(super) fn report<K>(&self) -> ObjectEffect<'_, K> {
        match &self.cycle {
            Some(cycle) => ObjectEffect::ReportCycleEnd {
                reason: cycle.reason,
                outcome: cycle.outcome,
            },
            None => ObjectEffect::Rest(&NOTHING_PLANNED),
        }
    }

    /// Whether it has ended the cycle of the resume handlers.
    fn is_resumed(&self) -> bool {
        let is_resumption = |it: &CycleEnd| it.reason == Reason::Resume && it.outcome.has_ended();
        self.cycle.as_ref().is_some_and(is_resumption)
    }

    /// The result, with the delay of handlers that are due later.
    fn into_result(self) -> TurnResult {
        match (self.result, self.cycle) {
            (TurnResult::Done, Some(cycle)) => match cycle.outcome.remaining {
                RemainingWork::Handlers(Some(delay)) if cycle.called_none && delay.is_zero() => {
                    TurnResult::Sleep(PAUSE_WITHOUT_CHOICE)
                }
                RemainingWork::Handlers(Some(delay)) => TurnResult::Sleep(delay),
                RemainingWork::Handlers(None)
                | RemainingWork::FollowUp
                | RemainingWork::Recheck
                | RemainingWork::Nothing => TurnResult::Done,
            },
            (result, _) => result,
        }
    }
}
