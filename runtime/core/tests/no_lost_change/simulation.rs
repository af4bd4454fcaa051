//! The model: one simulated object on an API server, and an operator that performs the effects of
//! the machine that the runtime runs.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use kopf_core::{
    cause::{
        Reason, Subject,
        detect::{EventKind, ObjectHistory},
    },
    handler::{HandlerId, HandlerSpec, Trigger, registry::Registry},
    lifecycle::Lifecycle,
    machine::{
        answer::{Answer, RequestFailure},
        memory::{BatchSummary, NewestEvent, ObjectMemory},
        now::Now,
        object::{
            HandlerCall, KeptState, NextCall, ObjectEffect, ObjectInput, ObjectMachine,
            ObjectRules, Rest,
        },
        request::{ObjectRequest, PatchContent},
    },
    object::{
        ANNOTATIONS_LIMIT, ObjectView,
        diff::Baseline,
        essence::Essence,
        patch::{ObjectPatch, apply_merge},
        path::FieldPath,
        resource_version::ResourceVersion,
    },
    outcome::{HandlerFailure, Outcome},
    persistence::Persistence,
    progress::record::Record,
    time,
    turn::{Decision, Turn, TurnInput, decide, sub::SubTurn},
};
use serde_json::{Value, json};

/// An edit of the object by a user.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Set(&'static str, u8),
    Unset(&'static str),
    Label(bool),
}

/// The end of a call of a handler in the model.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Succeed,
    RetryNow,
    RetryLater,
    Fail,
}

/// A fault during a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    CrashBeforeWrite,
    CrashAfterWrite,
    /// The first request of the turn never arrives.
    RequestLost,
    /// The first request of the turn is executed, and its answer is lost.
    AnswerLost,
    /// The API server forbids the first request of the turn.
    Forbidden,
}

/// One call of a handler.
#[derive(Clone, Debug)]
pub(crate) struct ModelCall {
    pub(crate) id: HandlerId,
    pub(crate) state: Value,
    pub(crate) reason: Reason,
    pub(crate) initial: bool,
    pub(crate) finished: bool,
    pub(crate) persisted: bool,
    /// Whether the process crashed before its end was written.
    lost: bool,
    pub(crate) by_kopf: bool,
    /// The number of cycles that had ended before.
    pub(crate) cycle: usize,
}

/// A line of the history in the message of a failed test.
enum HistoryLine {
    Stored(Value),
    Called(HandlerId, Reason, bool),
    Crashed,
}

pub(crate) struct Simulation {
    pub(crate) body: Value,
    pub(crate) now: Timestamp,
    begun: Timestamp,
    rules: ObjectRules<'static>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) persistence: Arc<Persistence>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) plan: VecDeque<Act>,
    pub(crate) calls: Vec<ModelCall>,
    pub(crate) writes: usize,
    /// The first state that was stored as handled.
    pub(crate) created: Option<Value>,
    history: Vec<HistoryLine>,
    cycle: usize,
    version: u64,
    seed: u64,
    events: VecDeque<(EventKind, Value)>,
    process: Process,
}

/// The operator's process: it loses everything here when it crashes.
#[derive(Default)]
struct Process {
    memory: ObjectMemory<Arc<Value>>,
    /// The call that is under way.
    machine: Option<ObjectMachine<'static, Arc<Value>>>,
    /// The event that the call began with.
    event: Option<Arc<Value>>,
    wake_at: Option<Timestamp>,
    /// Whether events wait until then.
    held: bool,
}

const SUBS: [&str; 2] = ["s1", "s2"];
const PARENT: &str = "parent";
const BACKOFF: Duration = Duration::from_secs(60);
const BEGUN: &str = "2020-01-01T00:00:00Z";
const ERROR_DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// One turn: what is still to happen in it.
struct ModelTurn {
    edits: Vec<Edit>,
    fault: Fault,
    /// Whether its write was answered.
    written: bool,
}

fn status(code: u16) -> RequestFailure {
    RequestFailure::Status {
        code,
        message: "the model says so".to_owned(),
        retry_after: None,
    }
}

impl fmt::Display for HistoryLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored(body) => write!(f, "  {body}"),
            Self::Called(id, reason, true) => write!(f, "{reason}: {id} finished"),
            Self::Called(id, reason, false) => write!(f, "{reason}: {id} not finished"),
            Self::Crashed => f.write_str("crash"),
        }
    }
}

impl Simulation {
    pub(crate) fn new(kind: &str, specs: Vec<HandlerSpec>, lifecycle: Lifecycle) -> Self {
        let body = json!({
            "apiVersion": "v1", "kind": kind,
            "metadata": {"name": "o", "uid": "u", "resourceVersion": "1"},
            "spec": {"a": 0, "b": 0},
        });
        let registry = Arc::new(Registry::new(specs).expect("declarations are valid"));
        let persistence = Arc::new(Persistence::default());
        // A machine borrows the rules of its kind, which live as long as the operator.
        let rules = ObjectRules {
            uid: "u",
            registry: Box::leak(Box::new(Arc::clone(&registry))),
            persistence: Box::leak(Box::new(Arc::clone(&persistence))),
            status_endpoint: false,
            selective: false,
            needs_each_event: false,
            has_background: false,
            reconcile: None,
            lifecycle: Box::leak(Box::new(lifecycle.clone())),
            default_backoff: BACKOFF,
            error_delays: &ERROR_DELAYS,
        };
        Self {
            rules,
            events: VecDeque::from([(EventKind::Changed, body.clone())]),
            body,
            now: BEGUN.parse().expect("valid"),
            begun: BEGUN.parse().expect("valid"),
            registry,
            persistence,
            lifecycle,
            plan: VecDeque::new(),
            calls: Vec::new(),
            writes: 0,
            created: None,
            history: Vec::new(),
            cycle: 0,
            version: 1,
            seed: 0,
            process: Process::default(),
        }
    }

    /// All steps so far, for the message of a failed test.
    pub(crate) fn history(&self) -> String {
        let lines: Vec<String> = self.history.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    pub(crate) fn essence(&self) -> Essence {
        let rules = self.registry.essence_rules(&[]);
        self.persistence
            .essence(ObjectView::new(&self.body), &rules)
    }

    pub(crate) fn edit(&mut self, edit: &Edit) {
        let mut body = self.body.clone();
        match edit {
            Edit::Set(field, value) => body["spec"][*field] = json!(value),
            Edit::Unset(field) => {
                FieldPath::new(["spec", field]).remove(&mut body);
                if body.get("spec").is_none() {
                    body["spec"] = json!({});
                }
            }
            Edit::Label(true) => body["metadata"]["labels"] = json!({"on": "yes"}),
            Edit::Label(false) => {
                FieldPath::from("metadata.labels").remove(&mut body);
            }
        }
        self.store_body(body);
    }

    pub(crate) fn crash(&mut self) {
        self.history.push(HistoryLine::Crashed);
        for call in &mut self.calls {
            call.lost |= !call.persisted;
        }
        self.process = Process::default();
        self.events = VecDeque::from([(EventKind::Listed, self.body.clone())]);
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now = time::after(self.now, Duration::from_secs(seconds));
    }

    fn reading(&mut self) -> Now {
        self.seed += 1;
        Now {
            wall: self.now,
            steady: time::elapsed(self.begun, self.now),
            seed: self.seed,
            stopping: false,
            running: true,
            epoch: 0,
        }
    }

    /// Begins a call for the next event, or because its planned time has come.
    fn begin_call(&mut self) -> Option<ObjectInput> {
        let due = self.process.wake_at.is_some_and(|at| at <= self.now);
        let waits = self.process.held && !due;
        let mut batch = BatchSummary::default();
        self.process.event = None;
        if !waits && let Some((kind, body)) = self.events.pop_front() {
            let version = ObjectView::new(&body).resource_version();
            batch.first = Some(kind);
            batch.newest = Some(NewestEvent {
                kind,
                version: version.map(ResourceVersion::new),
                has_text: true,
            });
            self.process.event = Some(Arc::new(body));
            if self.process.memory.is_redundant(&batch, false) {
                return None;
            }
        } else if !due {
            return None;
        }
        self.process.wake_at = None;
        self.process.held = false;
        self.process.machine = Some(ObjectMachine::new(self.rules));
        Some(ObjectInput::Batch(batch))
    }

    /// Handles one state, up to the answer to its write; the API server stores `edits` before it.
    pub(crate) fn turn(&mut self, edits: &[Edit], fault: Fault) {
        self.now = time::after(self.now, Duration::from_millis(1));
        let mut input = None;
        if self.process.machine.is_none() {
            input = self.begin_call();
            if input.is_none() {
                return;
            }
        }
        let mut turn = ModelTurn {
            edits: edits.to_vec(),
            fault,
            written: false,
        };
        while let Some(mut machine) = self.process.machine.take() {
            if let Some(input) = input.take() {
                let now = self.reading();
                machine.step(&mut self.process.memory, input, &now);
            }
            let crashes = self.perform(&machine, &mut turn, &mut input);
            if crashes {
                self.crash();
                return;
            }
            match (&input, machine.effect()) {
                (None, ObjectEffect::Rest(rest)) => self.rest(rest),
                (None, _) => {
                    // The next turn is about to begin.
                    self.process.machine = Some(machine);
                    break;
                }
                (Some(_), _) => self.process.machine = Some(machine),
            }
        }
        self.end_turn(&turn);
    }

    fn end_turn(&mut self, turn: &ModelTurn) {
        for edit in &turn.edits {
            self.edit(edit);
        }
        if matches!(turn.fault, Fault::CrashBeforeWrite | Fault::CrashAfterWrite) {
            self.crash();
        }
    }

    fn rest(&mut self, rest: &Rest) {
        let (delay, held) = match rest.next {
            NextCall::AwaitChange | NextCall::Forget => (None, false),
            NextCall::After(delay) => (Some(delay), false),
            NextCall::NotBefore(delay) => (Some(delay), true),
        };
        self.process.wake_at = delay.map(|delay| time::after(self.now, delay));
        self.process.held = held;
        match &rest.keep {
            KeptState::Nothing => {}
            KeptState::Unread => self.process.memory.plan(Arc::new(self.body.clone())),
            KeptState::State(state) => self.process.memory.plan(Arc::clone(state)),
        }
    }

    /// Performs an effect; there is no input if the call rests, or if the next turn begins.
    /// Returns whether the process crashes.
    fn perform(
        &mut self,
        machine: &ObjectMachine<'static, Arc<Value>>,
        turn: &mut ModelTurn,
        input: &mut Option<ObjectInput>,
    ) -> bool {
        *input = Some(match machine.effect() {
            ObjectEffect::Rest(_) => {
                *input = None;
                return false;
            }
            ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(self.process.event.clone())),
            ObjectEffect::ParseKept(kept) => ObjectInput::Parsed(Ok(Some(Arc::clone(kept)))),
            ObjectEffect::Send(request @ ObjectRequest::Patch { .. }) => {
                if turn.written {
                    *input = None;
                    return false;
                }
                match self.patch(&request, turn) {
                    Some(answer) => ObjectInput::Answer(answer),
                    None => return true,
                }
            }
            ObjectEffect::Send(ObjectRequest::Read(_)) => {
                ObjectInput::Answer(Answer::Object(Arc::new(self.body.clone())))
            }
            ObjectEffect::Send(
                ObjectRequest::NextState { .. } | ObjectRequest::ReadMetadata(_),
            ) => ObjectInput::Answer(Answer::Failed(status(410))),
            ObjectEffect::Wait(pause) => {
                self.now = time::after(self.now, pause.pause);
                ObjectInput::Continue
            }
            ObjectEffect::Call {
                turn: cycle, spec, ..
            } => {
                if turn.written {
                    *input = None;
                    return false;
                }
                ObjectInput::Called(self.call(cycle, spec))
            }
            ObjectEffect::ReportCall(report) => {
                let finished = report.consequence.is_final();
                self.finish_call(&report.spec.id, finished);
                ObjectInput::Continue
            }
            ObjectEffect::ReportRequest(_)
            | ObjectEffect::ReportTurn(_)
            | ObjectEffect::ReportCycleEnd { .. }
            | ObjectEffect::Report(_) => ObjectInput::Continue,
            effect @ (ObjectEffect::ParseLatest
            | ObjectEffect::CallEventHandlers
            | ObjectEffect::Reconcile(_)
            | ObjectEffect::CallReconcile(_)
            | ObjectEffect::PruneChildren
            | ObjectEffect::ShowLatest { .. }
            | ObjectEffect::StopBackground) => panic!("no such handler: {effect:?}"),
        });
        false
    }

    /// Executes a patch after the edits of the turn; none if the process crashes.
    fn patch(&mut self, request: &ObjectRequest<'_>, turn: &mut ModelTurn) -> Option<Answer> {
        for edit in std::mem::take(&mut turn.edits) {
            self.edit(&edit);
        }
        let fault = std::mem::replace(&mut turn.fault, Fault::None);
        match fault {
            Fault::CrashBeforeWrite => return None,
            Fault::RequestLost => return Some(Answer::Failed(RequestFailure::TimedOut)),
            Fault::Forbidden => return Some(Answer::Failed(status(403))),
            Fault::None | Fault::CrashAfterWrite | Fault::AnswerLost => {}
        }
        let answer = match self.execute(request) {
            Ok(()) => {
                self.accepted();
                let text = self.body.to_string();
                Answer::read(request, &text)
            }
            Err(code) => Answer::Failed(status(code)),
        };
        if matches!(answer, Answer::AsExpected(_)) {
            self.assert_left_alone();
        }
        match fault {
            Fault::CrashAfterWrite => None,
            Fault::AnswerLost => Some(Answer::Failed(RequestFailure::TimedOut)),
            _ => {
                // A write that lost against an edit is made again in the same turn.
                turn.written = !matches!(answer, Answer::Failed(_));
                Some(answer)
            }
        }
    }

    /// Executes a patch as the API server does; the error is a status.
    fn execute(&mut self, request: &ObjectRequest<'_>) -> Result<(), u16> {
        let ObjectRequest::Patch { content, .. } = request else {
            return Err(400);
        };
        let mut body = self.body.clone();
        match content {
            PatchContent::Merge(patch) => {
                if patch["metadata"]["uid"] != body["metadata"]["uid"] {
                    return Err(409);
                }
                let version = &patch["metadata"]["resourceVersion"];
                if !version.is_null() && *version != body["metadata"]["resourceVersion"] {
                    return Err(409);
                }
                apply_merge(&mut body, patch);
            }
            PatchContent::Json(patch) => {
                let patch: json_patch::Patch =
                    serde_json::from_value((*patch).clone()).map_err(|_| 400_u16)?;
                json_patch::patch(&mut body, &patch).map_err(|_| 422_u16)?;
            }
        }
        self.store_body(body);
        Ok(())
    }

    /// Notes that a write of the operator was executed.
    fn accepted(&mut self) {
        self.writes += 1;
        for call in &mut self.calls {
            call.persisted |= !call.lost;
        }
        self.note_base();
    }

    fn note_base(&mut self) {
        if let Baseline::Known(stored) = self.persistence.baseline(ObjectView::new(&self.body)) {
            self.created.get_or_insert(stored.into_value());
        }
        if !self.has_records_of_a_change() {
            self.cycle += 1;
        }
    }

    /// Whether a cycle is open. The end of a change that was reverted keeps the records of resume
    /// handlers that are done.
    fn has_records_of_a_change(&self) -> bool {
        let progress = &self.persistence.progress;
        let records = progress.records(&[], ObjectView::new(&self.body));
        let mut purposes = records.iter().map(|(_, record)| record.purpose);
        purposes.any(|purpose| purpose != Some(Reason::Resume))
    }

    /// Asserts that the next turn finds nothing to do, as the machine does not look again.
    fn assert_left_alone(&self) {
        let afterwards = ObjectHistory {
            noticed_by_listing: true,
            handled_once: true,
        };
        let change = self.persistence.observe_change(
            ObjectView::new(&self.body),
            EventKind::Changed,
            afterwards,
            &self.registry,
        );
        let input = TurnInput::new(
            Arc::new(self.body.clone()),
            Arc::new(change),
            Arc::clone(&self.registry),
            Arc::clone(&self.persistence),
        );
        let decision = decide(&input, false, self.now);
        assert!(matches!(decision, Decision::Leave(_)), "{decision:?}");
    }

    fn call(&mut self, turn: &Turn, spec: &HandlerSpec) -> HandlerCall {
        self.log(&spec.id, turn.input());
        let (outcome, subs) = match spec.id.as_str() {
            PARENT => self.call_parent(turn, &spec.id),
            _ => (self.act(), Vec::new()),
        };
        HandlerCall {
            outcome,
            writes: ObjectPatch::new(),
            subs,
        }
    }

    fn call_parent(&mut self, turn: &Turn, parent: &HandlerId) -> (Outcome, Vec<SubTurn>) {
        let specs =
            SUBS.map(|sub| HandlerSpec::new(parent.sub(sub), Trigger::Sub { changing: false }));
        let mut sub = turn.sub(parent, specs, self.now);
        for spec in sub.due(&self.lifecycle, self.seed, self.now) {
            let outcome = match sub.begin(&spec.id, self.now) {
                Err(limit) => Outcome::Error(HandlerFailure::Exhausted(limit)),
                Ok(_) => self.act(),
            };
            let consequence = sub.finish(&spec.id, outcome, BACKOFF, self.now);
            self.log(&spec.id, turn.input());
            self.finish_call(&spec.id, consequence.is_final());
        }
        let outcome = sub.outcome(Value::Null, self.now);
        (outcome, vec![sub])
    }

    fn act(&mut self) -> Outcome {
        let temporary = |delay| {
            Outcome::Error(HandlerFailure::Temporary {
                message: "later".to_owned(),
                delay,
            })
        };
        match self.plan.pop_front().unwrap_or(Act::Succeed) {
            Act::Succeed => Outcome::Success(Value::Null),
            Act::RetryNow => temporary(None),
            Act::RetryLater => temporary(Some(Duration::from_secs(10))),
            Act::Fail => Outcome::Error(HandlerFailure::Permanent {
                message: "never".to_owned(),
            }),
        }
    }

    fn log(&mut self, id: &HandlerId, input: &TurnInput) {
        let reason = input.change.reason;
        self.calls.push(ModelCall {
            id: id.clone(),
            state: input.change.new.as_value().clone(),
            reason,
            initial: input.change.initial,
            finished: false,
            persisted: false,
            lost: false,
            by_kopf: false,
            cycle: self.cycle,
        });
    }

    /// Notes how the last call of a handler ended.
    fn finish_call(&mut self, id: &HandlerId, finished: bool) {
        let call = self.calls.iter_mut().rfind(|call| call.id == *id);
        let Some(call) = call else {
            return;
        };
        call.finished = finished;
        let line = HistoryLine::Called(id.clone(), call.reason, finished);
        self.history.push(line);
    }

    /// Handles one event as Python Kopf does: it stores the newest state at the end, and no notes.
    pub(crate) fn kopf_turn(&mut self) {
        self.crash();
        self.events.clear();
        let (body, now) = (self.body.clone(), self.now);
        let view = ObjectView::new(&body);
        let object_history = ObjectHistory {
            noticed_by_listing: true,
            handled_once: true,
        };
        let change = self.persistence.observe_change(
            view,
            EventKind::Changed,
            object_history,
            &self.registry,
        );
        let cause = change.cause(view);
        if change.reason.is_handled() {
            let selected = self.registry.selected(&Subject::change(&cause));
            let progress = &self.persistence.progress;
            let mut patch = ObjectPatch::new();
            let record = |id: &HandlerId| progress.fetch(id, view);
            let open: Vec<_> = selected
                .iter()
                .filter(|spec| record(&spec.id).is_none_or(|record| !record.is_finished()))
                .collect();
            if let Some(spec) = open.first() {
                let begun = record(&spec.id).unwrap_or(Record::begin(change.reason, now));
                let done = Record {
                    stopped: Some(time::to_micros(now)),
                    success: true,
                    retries: begun.retries + 1,
                    ..begun
                };
                progress.store(&spec.id, &done, view, &mut patch);
                self.calls.push(ModelCall {
                    id: spec.id.clone(),
                    state: change.new.as_value().clone(),
                    reason: change.reason,
                    initial: false,
                    finished: true,
                    persisted: true,
                    lost: false,
                    by_kopf: true,
                    cycle: self.cycle,
                });
            }
            if open.len() <= 1 {
                for id in self.registry.owned_ids() {
                    let subrefs = record(&id).map(|record| record.subrefs).unwrap_or_default();
                    for id in subrefs.iter().chain([&id]) {
                        progress.purge(id, view, &mut patch);
                    }
                }
                let newest = Baseline::Known(change.new.clone());
                self.persistence.diffbase.store(&newest, view, &mut patch);
            }
            self.persistence.purge_touch(view, &mut patch);
            let mut body = self.body.clone();
            apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
            self.store_body(body);
            self.writes += 1;
            self.note_base();
        }
        self.crash();
    }

    /// Handles events without edits, crashes and failures until none is left.
    pub(crate) fn settle(&mut self) {
        self.plan.clear();
        for _ in 0..300 {
            if self.process.machine.is_some() || (!self.process.held && !self.events.is_empty()) {
                self.turn(&[], Fault::None);
            } else if let Some(at) = self.process.wake_at {
                self.now = self.now.max(at);
                self.turn(&[], Fault::None);
            } else {
                return;
            }
        }
        panic!("the operator does not settle:\n{}", self.history());
    }

    /// Stores a body as the API server does: a write that changes nothing makes no event and no
    /// new resource version, and the size of annotations is limited.
    fn store_body(&mut self, mut body: Value) {
        if body == self.body {
            return;
        }
        let annotations = body["metadata"]["annotations"].as_object();
        let size: usize = annotations
            .into_iter()
            .flatten()
            .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
            .sum();
        assert!(
            size <= ANNOTATIONS_LIMIT,
            "the API server rejects {size} bytes of annotations"
        );
        self.version += 1;
        body["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.body = body;
        self.history.push(HistoryLine::Stored(self.body.clone()));
        self.events
            .push_back((EventKind::Changed, self.body.clone()));
    }
}
