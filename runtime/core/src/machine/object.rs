//! One call for one object: from its events to the time of the next call.
//!
//! A call begins with [`ObjectInput::Batch`]: events of a watch, an item of a list, a requeue, or
//! nothing if the planned time has come. It ends with [`ObjectEffect::Rest`]. Between them the
//! machine chooses the newest state, handles it turn by turn, and writes after each turn: the API
//! server's answer is the state of the next turn.

mod called;
mod intake;
mod reconcile_turn;
mod turns;
mod writing;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    background::desired::ObjectLife,
    cause::Reason,
    children::reasons::ReconcileReasons,
    handler::{HandlerId, HandlerSpec, finalizer_need::FinalizerNeed, registry::Registry},
    lifecycle::Lifecycle,
    machine::{
        answer::Answer,
        effect::{RequestEffect, RequestMachine as _, RequestPause, RequestReport},
        memory::{BatchSummary, ObjectMemory},
        now::Now,
        object::{
            intake::{AfterState, ParsePurpose, ReadPurpose},
            reconcile_turn::ReconcileTurn,
            turns::{HandlerCalls, Reconciling},
            writing::{TurnEnd, TurnWriting},
        },
        read::ObjectRead,
        reconcile::ReconcileRules,
        release::{ObjectRelease, ReleaseResult},
        request::ObjectRequest,
        write::{self, Contention, ObjectWrite},
    },
    object::{ObjectView, finalizer, patch::ObjectPatch},
    outcome::{Consequence, Outcome},
    persistence::Persistence,
    progress::record::Record,
    reverts::StateDigest,
    turn::{LeaveReason, Turn, TurnInput, TurnOutcome, sub::SubTurn, tracker::HandlerAttempt},
};

/// The pause after a failure if the settings have no delays.
const UNTHROTTLED_PAUSE: Duration = Duration::from_millis(100);

/// The rules for the objects of one kind.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRules<'o> {
    /// The uid of the object.
    pub uid: &'o str,
    /// The handlers of the kind.
    pub registry: &'o Arc<Registry>,
    /// The storages on the object.
    pub persistence: &'o Arc<Persistence>,
    /// Whether the status has an endpoint of its own.
    pub status_endpoint: bool,
    /// Whether an object can leave the list without being deleted.
    pub selective: bool,
    /// Whether event handlers are declared, which need each event.
    pub needs_each_event: bool,
    /// Whether daemons, timers or children are declared.
    pub has_background: bool,
    /// `reconcile`, if it is declared.
    pub reconcile: Option<&'o ReconcileRules>,
    /// The order of handlers.
    pub lifecycle: &'o Lifecycle,
    /// The pause after an arbitrary error of a handler.
    pub default_backoff: Duration,
    /// The pauses after one, two, three… failures of the runtime itself.
    pub error_delays: &'o [Duration],
}

/// An input of the machine: the beginning of a call, or the result of the former effect.
#[derive(Debug)]
pub enum ObjectInput {
    /// A call begins with these events.
    Batch(BatchSummary),
    /// A state was parsed; none if it is not at hand, an error if it cannot be read.
    Parsed(Result<Option<Arc<Value>>, String>),
    /// The answer to a request, or the end of the lease during a pause.
    Answer(Answer),
    /// Event handlers were called, with their patches as one; the error says that a state cannot be
    /// read.
    EventHandlersCalled(Result<Option<EventPatch>, String>),
    /// Daemons and timers were started and stopped, and the children of an object that is being
    /// deleted; whether one of them holds the object.
    Reconciled {
        /// Whether one of them holds the object.
        holds: bool,
    },
    /// A handler was called.
    Called(HandlerCall),
    /// `reconcile` was called.
    ReconcileCalled(ReconcileResult),
    /// The children that a complete call did not apply are deleted; the error says why one is not.
    Pruned(Result<(), String>),
    /// The handler has no function.
    NoFunction,
    /// The lease ended before the handler did: the attempt leaves no record.
    LeaseEnded,
    /// An effect without a result was performed.
    Continue,
    /// A step or an effect panicked.
    Panicked(String),
}

/// The patches of event handlers.
#[derive(Debug)]
pub struct EventPatch {
    /// The newest state that they were called for.
    pub known: Arc<Value>,
    /// Their patches as one.
    pub patch: ObjectPatch,
}

/// The call of a handler, as far as it decides about the next steps.
#[derive(Debug)]
pub struct HandlerCall {
    /// How it ended.
    pub outcome: Outcome,
    /// Its patch.
    pub writes: ObjectPatch,
    /// Its sub-handlers.
    pub subs: Vec<SubTurn>,
}

/// The call of `reconcile`, as far as it decides about the next steps.
#[derive(Debug)]
pub struct ReconcileResult {
    /// How it ended.
    pub outcome: Outcome,
    /// Its patch.
    pub writes: ObjectPatch,
    /// The time after which it asked to be called again.
    pub again: Option<Duration>,
    /// Whether it applied a child that Kubernetes does not delete together with its owner.
    pub out_of_reach: bool,
    /// Whether it could not apply such a child, as the object lacks our finalizer.
    pub needs_finalizer: bool,
    /// The kinds of the children that it applied.
    pub applied: Vec<HandlerId>,
}

/// A call of `reconcile` that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct ReconcileAttempt<'a> {
    /// The object with its change.
    pub input: &'a TurnInput,
    /// The handler.
    pub spec: &'a Arc<HandlerSpec>,
    /// The attempt.
    pub attempt: HandlerAttempt,
    /// What happened since the last call.
    pub reasons: &'a ReconcileReasons,
    /// The kinds whose children have our labels, since a complete call.
    pub covered: &'a [HandlerId],
}

/// An effect of the machine, to be performed before the next step.
#[derive(Debug)]
pub enum ObjectEffect<'a, K> {
    /// Parse the object of the newest event.
    ParseEvent,
    /// Parse the state that was kept for this call.
    ParseKept(&'a K),
    /// Parse the state that daemons and timers see.
    ParseLatest,
    /// Send a request.
    Send(ObjectRequest<'a>),
    /// Wait before the next request.
    Wait(&'a RequestPause),
    /// Report a fact about a request.
    ReportRequest(&'a RequestReport),
    /// Call the event handlers for all events of the batch, and again for those whose repetition is
    /// due, until the operator pauses.
    CallEventHandlers,
    /// Start and stop daemons and timers. If the object is being deleted, delete its children that
    /// Kubernetes does not delete together with it.
    Reconcile(BackgroundView<'a>),
    /// Call `reconcile`.
    CallReconcile(ReconcileAttempt<'a>),
    /// Delete the children that the call of `reconcile` did not apply.
    PruneChildren,
    /// Report why handlers are called, and the records of another reason that are continued.
    ReportTurn(&'a Turn),
    /// Call a change handler.
    Call {
        /// The turn.
        turn: &'a Turn,
        /// The handler.
        spec: &'a Arc<HandlerSpec>,
        /// The attempt.
        attempt: HandlerAttempt,
    },
    /// Report how a call ended.
    ReportCall(CallReport<'a>),
    /// Report that all handlers are done for now.
    ReportCycleEnd {
        /// The reason of the cycle.
        reason: Reason,
        /// Its end.
        outcome: TurnOutcome,
    },
    /// Show the newest state to daemons and timers.
    ShowLatest {
        /// The state.
        object: &'a Arc<Value>,
        /// Whether it replaces a newer one: the API server was restored from a backup.
        replaces_newer: bool,
    },
    /// Stop daemons and timers: the object is gone.
    StopBackground,
    /// Report a problem.
    Report(&'a ObjectReport),
    /// The call is over.
    Rest(&'a Rest),
}

/// The newest state of an object for its daemons and timers.
#[derive(Clone, Copy, Debug)]
pub struct BackgroundView<'a> {
    /// The object.
    pub object: &'a Value,
    /// Its essence, whose changes count.
    pub essence: &'a Value,
    /// Whether it is being deleted.
    pub life: ObjectLife,
    /// Whether it comes from a list, maybe together with many others.
    pub listed: bool,
}

/// The end of a call of a handler.
#[derive(Clone, Copy, Debug)]
pub struct CallReport<'a> {
    /// The handler.
    pub spec: &'a Arc<HandlerSpec>,
    /// How the call ended.
    pub outcome: &'a Outcome,
    /// The consequence.
    pub consequence: &'a Consequence,
    /// The record after the call.
    pub record: Option<&'a Record>,
    /// The time of the end.
    pub at: Timestamp,
    /// Whether a limit forbade the call.
    pub exhausted: bool,
}

/// The end of a call for an object.
#[derive(Clone, Debug)]
pub struct Rest {
    /// The time of the next call.
    pub next: NextCall,
    /// The state that the next call needs.
    pub keep: KeptState,
}

/// The end of a call after which nothing is planned.
static NOTHING_PLANNED: Rest = Rest {
    next: NextCall::AwaitChange,
    keep: KeptState::Nothing,
};

/// The next call for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextCall {
    /// When an item arrives.
    AwaitChange,
    /// After this time, or sooner if an item arrives.
    After(Duration),
    /// After this time, and not before, even if items arrive.
    NotBefore(Duration),
    /// Never: the object is gone, and its memory is dropped.
    Forget,
}

/// The state that a planned call needs.
#[derive(Clone, Debug, PartialEq)]
pub enum KeptState {
    /// None: no call is planned.
    Nothing,
    /// The newest one; the call reads it.
    Unread,
    /// This one, unless an event brings a newer one.
    State(Arc<Value>),
}

/// A problem with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectReport {
    /// The object cannot be handled for now.
    Trouble {
        /// The problem.
        error: Error,
        /// The time until it is tried again.
        delay: Duration,
    },
    /// The deletion is not handled, and no event of the object follows.
    DeletionNotHandled(Error),
    /// The object cannot be read; this became of its finalizer.
    Unreadable {
        /// The reason.
        reason: String,
        /// What became of its finalizer.
        release: ReleaseResult,
    },
    /// The API server rejects the patch of an event handler.
    EventPatchRejected(write::Error),
    /// A write that was rejected before is written now.
    ProgressWritten,
}

/// A failure of the runtime itself to handle an object; errors of handlers are outcomes instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The API server rejects a record.
    #[error("the API server rejects the progress of the handlers: {0}")]
    WriteRejected(write::Error),
    /// The object cannot be parsed.
    #[error("the object cannot be read: {0}")]
    Unreadable(String),
    /// A write left no trace.
    #[error(
        "the API server accepted a write, and the object has not changed: does something revert it?"
    )]
    NotKept,
    /// Annotations or the finalizer were removed at once.
    #[error(
        "the API server accepts {0}, and does not keep it: does an admission webhook remove it?"
    )]
    Stripped(String),
    /// The finalizer was restored at once.
    #[error("{0} is there again as soon as it is removed: does an admission webhook add it?")]
    Restored(String),
    /// Another client restores a former state.
    #[error("the former state is back after every write: does another controller restore it?")]
    Reverted,
    /// A predicate is not a function of the state.
    #[error("the same state demands something else than a moment ago")]
    Undecided,
    /// A step or an effect panicked.
    #[error("the handling panicked: {0}")]
    Panicked(String),
}

/// The handling of one object during one call.
#[derive(Debug)]
pub struct ObjectMachine<'o, K> {
    rules: ObjectRules<'o>,
    batch: BatchSummary,
    /// The epoch in which the call began.
    epoch: u64,
    /// The state that is being handled; none if nothing is left to do.
    current: Option<Arc<Value>>,
    /// Whether this call was planned.
    planned: bool,
    /// Whether the last event came from a list.
    listed: bool,
    has_begun_turns: bool,
    /// The reason for which the last state was left as it is.
    left: Option<LeaveReason>,
    /// The digest of the state, if we write to the object very often.
    digest: Option<StateDigest>,
    /// The conflicts of the last writes, none of which was made.
    contention: Contention,
    phase: Phase<'o, K>,
}

/// The effect under way, with what its result decides.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one for each worker, moved within a step only"
)]
enum Phase<'o, K> {
    Idle,
    ParseEvent(ParsePurpose),
    ParseKept(K),
    ParseLatest,
    Requests(Requests<'o>, PendingRequest),
    EventHandlers,
    ShowLatest {
        replaces_newer: bool,
        then: AfterState,
    },
    StopBackground(AfterGone),
    Reconcile(Reconciling),
    Calls(HandlerCalls),
    ReconcileTurn(Box<ReconcileTurn<'o>>),
    CycleEnded(TurnEnd),
    Report(ObjectReport, AfterReport),
    Rest(Rest),
}

/// A machine that makes requests, with the purpose of its result.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one for each worker, moved within a step only"
)]
enum Requests<'o> {
    Read(ObjectRead<'o>, ReadPurpose),
    EventWrite(ObjectWrite<'o>),
    TurnWrite(ObjectWrite<'o>, TurnWriting),
    /// With the reason for which the object cannot be read.
    Release(ObjectRelease<'o>, String),
}

/// The effect that a machine that makes requests is waiting for.
#[derive(Debug)]
enum PendingRequest {
    Send,
    Wait(RequestPause),
    Report(RequestReport),
}

#[derive(Debug, Clone, Copy)]
enum AfterGone {
    CallEventHandlers,
    Forget,
}

#[derive(Debug)]
enum AfterReport {
    Rest(Rest),
    StopBackground,
    EventHandled,
    TurnEnded(TurnEnd),
}

// === impl ObjectMachine ===

impl<'o, K> ObjectMachine<'o, K> {
    /// A call for an object; it begins with [`ObjectInput::Batch`].
    #[must_use]
    pub fn new(rules: ObjectRules<'o>) -> Self {
        Self {
            rules,
            batch: BatchSummary::default(),
            epoch: 0,
            current: None,
            planned: false,
            listed: false,
            has_begun_turns: false,
            left: None,
            digest: None,
            contention: Contention::default(),
            phase: Phase::Idle,
        }
    }

    /// Goes on to the next [effect](Self::effect).
    pub fn step(&mut self, memory: &mut ObjectMemory<K>, input: ObjectInput, now: &Now) {
        match (std::mem::replace(&mut self.phase, Phase::Idle), input) {
            (_, ObjectInput::Panicked(message)) => {
                self.fail(memory, Error::Panicked(message), now);
            }
            (_, ObjectInput::Batch(batch)) => self.begin(memory, batch, now),
            (Phase::ParseEvent(purpose), ObjectInput::Parsed(parsed)) => {
                self.event_parsed(memory, purpose, parsed, now);
            }
            (Phase::ParseKept(_), ObjectInput::Parsed(parsed)) => {
                self.kept_parsed(memory, parsed.ok().flatten(), now);
            }
            (Phase::ParseLatest, ObjectInput::Parsed(parsed)) => {
                self.current = parsed.ok().flatten();
                self.begin_turns(memory, now);
            }
            (Phase::Requests(requests, _), ObjectInput::Answer(answer)) => {
                self.go_on_with(memory, requests, Some(answer), now);
            }
            (Phase::Requests(requests, _), ObjectInput::Continue) => {
                self.go_on_with(memory, requests, None, now);
            }
            (Phase::EventHandlers, ObjectInput::EventHandlersCalled(called)) => {
                self.event_handlers_called(memory, called, now);
            }
            (Phase::ShowLatest { then, .. }, ObjectInput::Continue) => {
                self.after_state(memory, then, now);
            }
            (Phase::StopBackground(AfterGone::CallEventHandlers), ObjectInput::Continue) => {
                self.call_event_handlers(memory, now);
            }
            (Phase::StopBackground(AfterGone::Forget), ObjectInput::Continue) => {
                self.forget(memory);
            }
            (Phase::Reconcile(reconciling), ObjectInput::Reconciled { holds }) => {
                self.reconciled(memory, reconciling, holds, now);
            }
            (Phase::Calls(calls), input) => self.go_on_with_calls(memory, calls, input, now),
            (Phase::ReconcileTurn(turn), input) => {
                self.go_on_with_reconcile(memory, turn, input, now);
            }
            (Phase::CycleEnded(end), ObjectInput::Continue) => self.end_turn(memory, end, now),
            (Phase::Report(_, then), ObjectInput::Continue) => match then {
                AfterReport::Rest(rest) => self.phase = Phase::Rest(rest),
                AfterReport::StopBackground => {
                    self.phase = Phase::StopBackground(AfterGone::Forget);
                }
                AfterReport::EventHandled => self.after_event_handlers(memory, now),
                AfterReport::TurnEnded(end) => self.turn_ended(memory, end, now),
            },
            // An input that does not belong to the effect: the effect is asked for again.
            (phase, _) => self.phase = phase,
        }
    }

    /// Whether the events of the batch are no longer needed.
    #[must_use]
    pub fn has_begun_turns(&self) -> bool {
        self.has_begun_turns
    }

    /// The reason for which the last state was left as it is, for the log.
    #[must_use]
    pub fn left(&self) -> Option<LeaveReason> {
        self.left
    }

    /// The change of the finalizer in the request that is to be sent, for the log.
    #[must_use]
    pub fn finalizer_change(&self) -> FinalizerNeed {
        match &self.phase {
            Phase::Requests(Requests::TurnWrite(_, writing), PendingRequest::Send) => {
                writing.finalizer
            }
            _ => FinalizerNeed::Settled,
        }
    }

    /// The effect to perform before the next step.
    #[must_use]
    pub fn effect(&self) -> ObjectEffect<'_, K> {
        match &self.phase {
            Phase::Idle => ObjectEffect::Rest(&NOTHING_PLANNED),
            Phase::ParseEvent(_) => ObjectEffect::ParseEvent,
            Phase::ParseKept(kept) => ObjectEffect::ParseKept(kept),
            Phase::ParseLatest => ObjectEffect::ParseLatest,
            Phase::Requests(requests, PendingRequest::Send) => {
                ObjectEffect::Send(requests.request())
            }
            Phase::Requests(_, PendingRequest::Wait(pause)) => ObjectEffect::Wait(pause),
            Phase::Requests(_, PendingRequest::Report(report)) => {
                ObjectEffect::ReportRequest(report)
            }
            Phase::EventHandlers => ObjectEffect::CallEventHandlers,
            Phase::ShowLatest { replaces_newer, .. } => match &self.current {
                Some(object) => ObjectEffect::ShowLatest {
                    object,
                    replaces_newer: *replaces_newer,
                },
                None => ObjectEffect::Rest(&NOTHING_PLANNED),
            },
            Phase::StopBackground(_) => ObjectEffect::StopBackground,
            Phase::Reconcile(reconciling) => {
                ObjectEffect::Reconcile(self.background_view(reconciling))
            }
            Phase::Calls(calls) => calls.effect(),
            Phase::ReconcileTurn(turn) => turn.effect(),
            Phase::CycleEnded(end) => end.report(),
            Phase::Report(report, _) => ObjectEffect::Report(report),
            Phase::Rest(rest) => ObjectEffect::Rest(rest),
        }
    }

    fn background_view<'a>(&'a self, reconciling: &'a Reconciling) -> BackgroundView<'a> {
        let input = reconciling.input();
        let view = input.view();
        let life = if view.is_being_deleted() {
            ObjectLife::Deleting
        } else {
            let held = finalizer::is_present(view, &self.rules.persistence.finalizer);
            ObjectLife::Alive { held }
        };
        BackgroundView {
            object: &input.body,
            essence: input.change.new.as_value(),
            life,
            listed: self.listed,
        }
    }

    /// Goes on with requests, up to their next effect.
    fn go_on_with(
        &mut self,
        memory: &mut ObjectMemory<K>,
        mut requests: Requests<'o>,
        answer: Option<Answer>,
        now: &Now,
    ) {
        let pending = match &mut requests {
            Requests::Read(read, purpose) => match pending(read.step(answer, now)) {
                Ok(result) => return self.read(memory, *purpose, result, now),
                Err(pending) => pending,
            },
            Requests::EventWrite(write) => match pending(write.step(answer, now)) {
                Ok(result) => return self.event_patch_written(memory, result, now),
                Err(pending) => pending,
            },
            Requests::Release(release, reason) => match pending(release.step(answer, now)) {
                Ok(release) => {
                    let reason = std::mem::take(reason);
                    let report = ObjectReport::Unreadable { reason, release };
                    let then = AfterReport::Rest(NOTHING_PLANNED.clone());
                    self.phase = Phase::Report(report, then);
                    return;
                }
                Err(pending) => pending,
            },
            Requests::TurnWrite(write, _) => match pending(write.step(answer, now)) {
                Ok(result) => {
                    if let Requests::TurnWrite(write, writing) = requests {
                        self.turn_written(memory, write, writing, result, now);
                    }
                    return;
                }
                Err(pending) => pending,
            },
        };
        self.phase = Phase::Requests(requests, pending);
    }

    /// Ends the call without a failure.
    fn rest(&mut self, memory: &mut ObjectMemory<K>, next: NextCall) {
        memory.failures = 0;
        self.phase = Phase::Rest(self.rest_for(next));
    }

    fn rest_for(&self, next: NextCall) -> Rest {
        let keep = match (next, &self.current) {
            (NextCall::After(_) | NextCall::NotBefore(_), Some(current)) => {
                KeptState::State(Arc::clone(current))
            }
            _ => KeptState::Nothing,
        };
        Rest { next, keep }
    }

    /// Ends the call, and forgets an object that is gone.
    fn forget(&mut self, memory: &mut ObjectMemory<K>) {
        *memory = ObjectMemory::default();
        self.current = None;
        self.rest(memory, NextCall::Forget);
    }

    /// Ends the call with a failure of the runtime itself.
    fn fail(&mut self, memory: &mut ObjectMemory<K>, error: Error, now: &Now) {
        if self.is_deleted() {
            // No event of the object follows: this one is not tried again.
            let report = ObjectReport::DeletionNotHandled(error);
            self.phase = Phase::Report(report, AfterReport::StopBackground);
            return;
        }
        match error {
            Error::Unreadable(reason) => self.leave_unread(memory, reason, now),
            error => {
                let delay = self.error_delay(memory.failures.into());
                memory.failures = memory.failures.saturating_add(1);
                let rest = self.rest_for(NextCall::NotBefore(delay));
                let report = ObjectReport::Trouble { error, delay };
                self.phase = Phase::Report(report, AfterReport::Rest(rest));
            }
        }
    }

    /// Waits for another state of an object that cannot be read; no handler can be called for it.
    /// If it is being deleted, our finalizer must not keep it for ever.
    fn leave_unread(&mut self, memory: &mut ObjectMemory<K>, reason: String, now: &Now) {
        memory.drop_plan();
        self.current = None;
        if !now.running {
            self.phase = Phase::Rest(NOTHING_PLANNED.clone());
            return;
        }
        let finalizer = &self.rules.persistence.finalizer;
        let release = ObjectRelease::new(self.rules.uid, finalizer, now);
        self.go_on_with(memory, Requests::Release(release, reason), None, now);
    }

    fn error_delay(&self, failures: u32) -> Duration {
        error_delay(self.rules.error_delays, failures)
    }
}

// === impl Requests ===

impl Requests<'_> {
    fn request(&self) -> ObjectRequest<'_> {
        match self {
            Self::Read(read, _) => read.request(),
            Self::EventWrite(write) | Self::TurnWrite(write, _) => write.request(),
            Self::Release(release, _) => release.request(),
        }
    }
}

/// The result of requests, or the effect that they wait for.
fn pending<R>(effect: RequestEffect<R>) -> Result<R, PendingRequest> {
    match effect {
        RequestEffect::Done(result) => Ok(result),
        RequestEffect::Send => Err(PendingRequest::Send),
        RequestEffect::Wait(pause) => Err(PendingRequest::Wait(pause)),
        RequestEffect::Report(report) => Err(PendingRequest::Report(report)),
    }
}

fn version_of(object: &Value) -> Option<&str> {
    ObjectView::new(object).resource_version()
}

/// The pause after a failure, by the number of failures before it; the last one repeats.
///
/// Without delays, Kopf does not throttle an object, and does not retry it before its next event.
/// This machine retries, so the shortest pause keeps it from a hot loop.
fn error_delay(delays: &[Duration], failures: u32) -> Duration {
    if planted!(FailuresNotDelayed) {
        return Duration::from_millis(1);
    }
    let step = usize::try_from(failures).unwrap_or(usize::MAX);
    let delay = delays.get(step).or(delays.last());
    delay.copied().unwrap_or(UNTHROTTLED_PAUSE)
}

#[cfg(test)]
mod reconcile_tests;
#[cfg(test)]
mod tests;
