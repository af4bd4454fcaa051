//! The workers of an operator: what the runtime does in `process`.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::cause::Subject;
use kopf_core::handler::{HandlerId, HandlerSpec};
use kopf_core::machine::answer::Answer;
use kopf_core::machine::memory::ObjectMemory;
use kopf_core::machine::object::{
    BackgroundView, Error, EventPatch, HandlerCall, KeptState, ObjectEffect, ObjectInput,
    ObjectMachine, ObjectReport, ObjectRules, Rest,
};
use kopf_core::machine::request::ObjectRequest;
use kopf_core::object::ObjectView;
use kopf_core::object::patch::ObjectPatch;
use kopf_core::queue::{FinishedWork, StartedWork};
use kopf_core::turn::Turn;
use kopf_core::turn::sub::SubTurn;
use kopf_core::turn::tracker::HandlerAttempt;
use kopf_core::watch::WatchEventType;
use kopf_core::watch::batch::EventBatch;
use serde_json::{Value, json};

use super::coordination::uptime;
use super::key::SimulatedKey;
use super::label::LABEL;
use super::queueing::{KeptObject, SimulatedRules};
use super::reconciling::{SimulatedPrune, SimulatedReconcile, reconcile_rules};
use super::setup::{BACKOFF, CallEnding, CallPatch, ERROR_DELAYS, OperatorSetup};
use super::sub_handlers::{is_parent, registered_subs};
use super::{
    BegunCall, CallPurpose, OperatorFact, SimulatedOperator, TimerPurpose, WatchPurpose, requests,
};
use crate::server::{WatchOptions, version};
use crate::world::CallOutcome;

/// The steps of one call that end at once; more are a loop.
const MOST_STEPS: usize = 10_000;

/// A worker that handles one object.
pub(crate) struct Worker {
    begun: Duration,
    epoch: u64,
    memory: ObjectMemory<KeptObject>,
    machine: Box<ObjectMachine<'static, KeptObject>>,
    batch: Option<EventBatch<Arc<Value>>>,
    waits: WorkerWait,
}

/// What a worker waits for.
enum WorkerWait {
    Nothing,
    Answer,
    /// The next attempt of a request; a stop may cut the pause short.
    Pause {
        ends_at_stop: bool,
    },
    /// The end of a call of a handler.
    Call(Box<ObjectInput>),
    /// An answer about a child.
    Reconcile(Box<SimulatedReconcile>),
    /// The answer to the deletion of a child.
    Prune(Box<SimulatedPrune>),
}

// === impl Worker ===

impl Worker {
    /// The time at which it began, or began its last turn with handlers.
    pub(super) fn begun(&self) -> Duration {
        self.begun
    }
}

impl SimulatedOperator {
    fn object_rules(&self, key: &SimulatedKey) -> ObjectRules<'static> {
        let setup: &'static OperatorSetup = self.options.setup;
        ObjectRules {
            uid: key.uid,
            registry: &setup.registry,
            persistence: &setup.persistence,
            status_endpoint: setup.status_endpoint,
            selective: !setup.selectors.is_empty(),
            needs_each_event: setup.needs_each_event,
            has_background: !setup.background.is_empty() || self.has_children(),
            reconcile: self.has_children().then(reconcile_rules),
            lifecycle: &setup.lifecycle,
            default_backoff: BACKOFF,
            error_delays: &ERROR_DELAYS,
        }
    }

    pub(super) fn begin_work(
        &mut self,
        key: Arc<SimulatedKey>,
        started: StartedWork<SimulatedRules>,
    ) {
        let input = ObjectInput::Batch(started.batch.summary());
        let worker = Box::new(Worker {
            begun: uptime(self.clock),
            epoch: started.epoch,
            memory: started.memory,
            machine: Box::new(ObjectMachine::new(self.object_rules(&key))),
            batch: Some(started.batch),
            waits: WorkerWait::Nothing,
        });
        self.drive(key, worker, input);
    }

    pub(super) fn worker_answered(&mut self, key: &Arc<SimulatedKey>, outcome: CallOutcome) {
        let Some(mut worker) = self.workers.remove(key) else {
            return;
        };
        let waits = std::mem::replace(&mut worker.waits, WorkerWait::Nothing);
        let waits = match waits {
            WorkerWait::Reconcile(_) | WorkerWait::Prune(_) if !self.may_write() => {
                worker.waits = waits;
                self.workers.insert(Arc::clone(key), worker);
                return self.cut_worker(key);
            }
            WorkerWait::Reconcile(mut call) => {
                match self.go_on_with_reconcile(key, &mut call, Some(outcome)) {
                    Some(input) => return self.drive(Arc::clone(key), worker, input),
                    None => WorkerWait::Reconcile(call),
                }
            }
            WorkerWait::Prune(mut call) => {
                match self.go_on_with_prune(key, &mut call, Some(outcome)) {
                    Some(input) => return self.drive(Arc::clone(key), worker, input),
                    None => WorkerWait::Prune(call),
                }
            }
            waits => return self.request_answered(key, worker, waits, outcome),
        };
        worker.waits = waits;
        self.workers.insert(Arc::clone(key), worker);
    }

    fn request_answered(
        &mut self,
        key: &Arc<SimulatedKey>,
        mut worker: Box<Worker>,
        waits: WorkerWait,
        outcome: CallOutcome,
    ) {
        worker.waits = waits;
        let answer = match worker.machine.effect() {
            _ if !self.may_write() => Answer::LeaseEnded,
            ObjectEffect::Send(request) => requests::answer(&request, outcome),
            _ => return,
        };
        self.drive(Arc::clone(key), worker, ObjectInput::Answer(answer));
    }

    pub(super) fn worker_timer(&mut self, key: &Arc<SimulatedKey>) {
        let Some(mut worker) = self.workers.remove(key) else {
            return;
        };
        let may_write = self.may_write();
        let input = match std::mem::replace(&mut worker.waits, WorkerWait::Nothing) {
            WorkerWait::Pause { .. } if may_write => ObjectInput::Continue,
            WorkerWait::Call(input) if may_write => *input,
            waits => {
                worker.waits = waits;
                self.workers.insert(Arc::clone(key), worker);
                if !may_write {
                    self.cut_worker(key);
                }
                return;
            }
        };
        self.drive(Arc::clone(key), worker, input);
    }

    /// The operator stops: a worker does not wait for a permission any longer.
    pub(super) fn stop_worker_pause(&mut self, key: &Arc<SimulatedKey>) {
        let waits = self.workers.get(key).map(|it| &it.waits);
        let ends = matches!(waits, Some(WorkerWait::Pause { ends_at_stop: true }));
        if ends {
            self.timers
                .retain(|_, it| !matches!(it, TimerPurpose::Worker(of) if of == key));
            self.worker_timer(key);
        }
    }

    /// The lease has ended: a worker that waits goes on without what it waits for.
    pub(super) fn cut_worker(&mut self, key: &Arc<SimulatedKey>) {
        let Some(worker) = self.workers.remove(key) else {
            return;
        };
        let input = match &worker.waits {
            WorkerWait::Reconcile(call) => {
                self.cut_reconcile(key, call);
                ObjectInput::LeaseEnded
            }
            WorkerWait::Prune(call) => {
                self.cut_prune(call);
                ObjectInput::LeaseEnded
            }
            WorkerWait::Answer | WorkerWait::Pause { .. } => {
                ObjectInput::Answer(Answer::LeaseEnded)
            }
            WorkerWait::Call(_) => {
                self.report(OperatorFact::CallCut { uid: key.uid });
                ObjectInput::LeaseEnded
            }
            WorkerWait::Nothing => ObjectInput::Continue,
        };
        self.calls
            .retain(|_, it| !matches!(it, CallPurpose::Worker(of) if of == key));
        self.timers
            .retain(|_, it| !matches!(it, TimerPurpose::Worker(of) if of == key));
        self.watches
            .retain(|_, it| !matches!(it, WatchPurpose::NextState(of) if of == key));
        self.drive(Arc::clone(key), worker, input);
    }

    /// Steps through a call up to its next wait, or to its end.
    fn drive(&mut self, key: Arc<SimulatedKey>, mut worker: Box<Worker>, input: ObjectInput) {
        let mut input = input;
        for _ in 0..MOST_STEPS {
            worker.waits = WorkerWait::Nothing;
            let now = self.now();
            worker.machine.step(&mut worker.memory, input, &now);
            if worker.machine.has_begun_turns() {
                worker.batch = None;
            }
            if matches!(worker.machine.effect(), ObjectEffect::ReportTurn(_)) {
                worker.begun = uptime(self.clock);
            }
            let performed = self.perform(&key, &worker);
            input = match performed {
                Performed::Input(input) => input,
                Performed::Waits(waits) => {
                    worker.waits = waits;
                    self.workers.insert(key, worker);
                    return;
                }
                Performed::Rests(rest) => return self.rest(key, *worker, rest),
            };
        }
        let problem = "the machine does not come to an end".to_owned();
        self.report(OperatorFact::Trouble {
            uid: key.uid,
            problem,
        });
    }

    fn rest(&mut self, key: Arc<SimulatedKey>, mut worker: Worker, rest: Rest) {
        let number = self.number();
        let over_budget = self.options.behaviour.is_slow((number, "sleeps"));
        match rest.keep {
            KeptState::Nothing => {}
            KeptState::State(state) if !over_budget => {
                worker.memory.plan(self.kept.keep(state));
                let kept = self.kept.count();
                self.report(OperatorFact::StateKept { uid: key.uid, kept });
            }
            KeptState::Unread | KeptState::State(_) => worker.memory.plan(KeptObject::Unread),
        }
        let finished = FinishedWork {
            epoch: worker.epoch,
            key,
            memory: worker.memory,
            next: rest.next,
        };
        let (rules, now) = (self.rules(), self.reading());
        self.queue
            .finished(&rules, &mut self.waiting, finished, now);
    }

    fn perform(&mut self, key: &Arc<SimulatedKey>, worker: &Worker) -> Performed {
        let now = uptime(self.clock);
        Performed::Input(match worker.machine.effect() {
            ObjectEffect::Rest(rest) => return Performed::Rests(rest.clone()),
            ObjectEffect::ParseEvent => {
                let newest = worker.batch.as_ref().and_then(EventBatch::newest);
                ObjectInput::Parsed(Ok(newest.and_then(|it| it.text.clone())))
            }
            ObjectEffect::ParseKept(KeptObject::State(state, _)) => {
                ObjectInput::Parsed(Ok(Some(Arc::clone(state))))
            }
            ObjectEffect::ParseKept(KeptObject::Unread) => ObjectInput::Parsed(Ok(None)),
            ObjectEffect::ParseLatest => {
                let latest = self.background.latest(key);
                ObjectInput::Parsed(Ok(latest.or(self.children.latest(key)).cloned()))
            }
            ObjectEffect::Send(_) if !self.may_write() => ObjectInput::Answer(Answer::LeaseEnded),
            ObjectEffect::Send(request) => {
                self.send_object_request(key, &request);
                return Performed::Waits(WorkerWait::Answer);
            }
            ObjectEffect::Wait(pause) => {
                self.set_timer(TimerPurpose::Worker(Arc::clone(key)), pause.pause);
                return Performed::Waits(WorkerWait::Pause {
                    ends_at_stop: pause.ends_at_stop,
                });
            }
            ObjectEffect::CallEventHandlers => {
                ObjectInput::EventHandlersCalled(Ok(self.call_event_handlers(key, worker)))
            }
            ObjectEffect::Reconcile(view) => ObjectInput::Reconciled {
                holds: self.reconcile_background(key, &view),
            },
            ObjectEffect::Call {
                turn,
                spec,
                attempt,
            } => return self.call(key, turn, spec, attempt),
            ObjectEffect::ReportCall(call) => {
                self.report(OperatorFact::CallEnded {
                    uid: key.uid,
                    handler: call.spec.id.clone(),
                    finished: call.consequence.is_final(),
                });
                ObjectInput::Continue
            }
            ObjectEffect::ShowLatest {
                object,
                replaces_newer,
            } => {
                self.show_latest(key, object, replaces_newer);
                ObjectInput::Continue
            }
            ObjectEffect::StopBackground => {
                self.background.object_gone(key, now);
                self.children.owner_gone(key);
                ObjectInput::Continue
            }
            ObjectEffect::Report(report) => {
                self.report_problem(key, report);
                ObjectInput::Continue
            }
            ObjectEffect::CallReconcile(attempt) => {
                return match self.begin_reconcile(key, &attempt) {
                    Ok(input) => Performed::Input(input),
                    Err(call) => Performed::Waits(WorkerWait::Reconcile(call)),
                };
            }
            ObjectEffect::PruneChildren => {
                return match self.begin_prune(key) {
                    Ok(input) => Performed::Input(input),
                    Err(call) => Performed::Waits(WorkerWait::Prune(call)),
                };
            }
            ObjectEffect::ReportRequest(_)
            | ObjectEffect::ReportTurn(_)
            | ObjectEffect::ReportCycleEnd { .. } => ObjectInput::Continue,
        })
    }

    /// Starts and stops daemons and timers; returns whether the object needs the finalizer.
    fn reconcile_background(&mut self, key: &Arc<SimulatedKey>, view: &BackgroundView<'_>) -> bool {
        if self.has_children() {
            let state = Arc::new(view.object.clone());
            self.children.show_owner(key, &state);
        }
        self.background.reconcile(key, view, uptime(self.clock))
    }

    /// Shows the newest state to daemons, timers and the children of an object.
    fn show_latest(&mut self, key: &Arc<SimulatedKey>, object: &Arc<Value>, replaces_newer: bool) {
        match replaces_newer {
            true => {
                self.background.replace_latest(key, object);
                self.children.replace_owner(key, object);
            }
            false => {
                self.background.update_latest(key, object);
                self.children.update_owner(key, object);
            }
        }
    }

    fn report_problem(&mut self, key: &SimulatedKey, report: &ObjectReport) {
        let problem = match report {
            ObjectReport::Trouble {
                error: Error::Reverted,
                ..
            } => return self.report(OperatorFact::ReturnFound { uid: key.uid }),
            ObjectReport::Trouble { error, .. } => error.to_string(),
            report => format!("{report:?}"),
        };
        self.report(OperatorFact::Trouble {
            uid: key.uid,
            problem,
        });
    }

    fn send_object_request(&mut self, key: &Arc<SimulatedKey>, request: &ObjectRequest<'_>) {
        let Some(verb) = requests::verb(request, &key.name) else {
            if let ObjectRequest::NextState { after } = request {
                let options = WatchOptions {
                    fields: Some(format!("metadata.name={}", key.name)),
                    resource_version: Some((*after).to_owned()),
                    ..WatchOptions::default()
                };
                let purpose = WatchPurpose::NextState(Arc::clone(key));
                self.watch(purpose, self.options.kind, options);
            }
            return;
        };
        let is_write = verb.is_write();
        let purpose = CallPurpose::Worker(Arc::clone(key));
        let call = self.send(purpose, self.options.kind, verb);
        if is_write {
            self.report_sent(key.uid, call, true);
        }
    }

    fn call_event_handlers(&mut self, key: &SimulatedKey, worker: &Worker) -> Option<EventPatch> {
        let mut patch = ObjectPatch::new();
        let mut known = None;
        for queued in worker.batch.iter().flat_map(EventBatch::all) {
            let Some(object) = &queued.text else {
                continue;
            };
            known = Some(object);
            let subject = Subject::object(ObjectView::new(object));
            if self
                .options
                .setup
                .registry
                .event_handlers(&subject)
                .is_empty()
            {
                continue;
            }
            if !self.coordination.pauses.is_running(uptime(self.clock)) {
                break;
            }
            self.report(OperatorFact::EventCalled {
                uid: key.uid,
                event_type: queued.event_type,
            });
            let patches = self.options.behaviour.patches > 1;
            if patches && queued.event_type != WatchEventType::Deleted {
                patch.merge(json!({"status": {"seen": object["spec"]["a"]}}));
            }
        }
        let known = Arc::clone(known?);
        Some(EventPatch { known, patch })
    }

    /// Calls a handler: the end of the call is decided now, and comes later.
    fn call(
        &mut self,
        key: &Arc<SimulatedKey>,
        turn: &Turn,
        spec: &Arc<HandlerSpec>,
        attempt: HandlerAttempt,
    ) -> Performed {
        let number = self.number();
        let change = &turn.input().change;
        let token = format!("{}-{}-{number}", self.options.process, self.options.run);
        let (behaviour, id) = (self.options.behaviour, spec.id.as_str());
        let words = (self.options.run << 32) + number;
        let ending = behaviour.ending(key.uid, id, words, attempt.retry);
        let registers = is_parent(id) && ending == CallEnding::Succeeds;
        let family = registers.then(|| Family::of(turn, spec, self.clock.wall));
        let registered = family.as_ref().map(|it| it.registered(&spec.id));
        let registered = registered.unwrap_or_default();
        self.report(OperatorFact::CallBegun(BegunCall {
            uid: key.uid,
            handler: spec.id.clone(),
            reason: turn.reason(),
            initial: change.initial,
            state: Arc::new(change.new.as_value().clone()),
            registered: registered.iter().map(|it| it.id.clone()).collect(),
            subs: selected(turn, &registered),
            version: version(&turn.input().body),
            token: token.clone(),
        }));
        let spec_state = &change.new.as_value()["spec"];
        let writes = writes(behaviour.patch(key.uid, id, words), spec_state, token);
        let mut outcome = ending.outcome(number);
        let mut subs = Vec::new();
        if let Some(family) = &family {
            let sub = self.call_subs(key, family, &spec.id, registered);
            outcome = sub.outcome(Value::Null, self.clock.wall);
            subs.push(sub);
        }
        let call = ObjectInput::Called(HandlerCall {
            outcome,
            writes,
            subs,
        });
        match behaviour.duration((words, id)) {
            Some(duration) => {
                self.set_timer(TimerPurpose::Worker(Arc::clone(key)), duration);
                Performed::Waits(WorkerWait::Call(Box::new(call)))
            }
            None => Performed::Input(call),
        }
    }

    /// Calls the sub-handlers that are due, and those below them.
    fn call_subs(
        &mut self,
        key: &SimulatedKey,
        family: &Family<'_>,
        parent: &HandlerId,
        registered: Vec<HandlerSpec>,
    ) -> SubTurn {
        let now = self.clock.wall;
        let mut subs = family.level.sub(parent, registered, now);
        let seed = self.number();
        for spec in subs.due(&self.options.setup.lifecycle, seed, now) {
            let Ok(attempt) = subs.begin(&spec.id, now) else {
                continue;
            };
            self.call_sub(key, family, &mut subs, &spec.id, attempt);
        }
        subs
    }

    fn call_sub(
        &mut self,
        key: &SimulatedKey,
        family: &Family<'_>,
        subs: &mut SubTurn,
        id: &HandlerId,
        attempt: HandlerAttempt,
    ) {
        let (turn, number) = (family.turn, self.number());
        let words = (self.options.run << 32) + number;
        let behaviour = self.options.behaviour;
        let ending = behaviour.ending(key.uid, id.as_str(), words, attempt.retry);
        let registered = match ending == CallEnding::Succeeds {
            true => family.registered(id),
            false => Vec::new(),
        };
        let change = &turn.input().change;
        self.report(OperatorFact::CallBegun(BegunCall {
            uid: key.uid,
            handler: id.clone(),
            reason: turn.reason(),
            initial: change.initial,
            state: Arc::new(change.new.as_value().clone()),
            registered: registered.iter().map(|it| it.id.clone()).collect(),
            subs: selected(turn, &registered),
            version: version(&turn.input().body),
            token: String::new(),
        }));
        let (now, mut outcome) = (self.clock.wall, ending.outcome(number));
        if !registered.is_empty() {
            let nested = self.call_subs(key, family, id, registered);
            outcome = nested.outcome(Value::Null, now);
            subs.absorb(nested);
        }
        let consequence = subs.finish(id, outcome, BACKOFF, now);
        self.report(OperatorFact::CallEnded {
            uid: key.uid,
            handler: id.clone(),
            finished: consequence.is_final(),
        });
    }
}

/// The sub-handlers of one call of a declared handler.
struct Family<'a> {
    turn: &'a Turn,
    level: SubTurn,
    /// Whether those with a field are called only if it has changed.
    changing: bool,
}

// === impl Family ===

impl<'a> Family<'a> {
    fn of(turn: &'a Turn, declared: &HandlerSpec, now: Timestamp) -> Self {
        Self {
            turn,
            level: turn.sub(&declared.id, [], now),
            changing: declared.trigger.needs_change(),
        }
    }

    fn registered(&self, parent: &HandlerId) -> Vec<HandlerSpec> {
        let state = self.turn.input().change.new.as_value();
        registered_subs(parent, self.changing, state)
    }
}

/// The handlers that the change of a turn calls.
fn selected(turn: &Turn, specs: &[HandlerSpec]) -> Vec<HandlerId> {
    turn.input().with_subject(|subject| {
        let matching = specs.iter().filter(|it| it.matches(subject));
        matching.map(|it| it.id.clone()).collect()
    })
}

/// What a call writes: the same for the same state, so that operators come to rest.
fn writes(patch: CallPatch, spec: &Value, token: String) -> ObjectPatch {
    let mut writes = ObjectPatch::new();
    match patch {
        CallPatch::None => {}
        CallPatch::Status => writes.merge(json!({"status": {"handled": true}})),
        CallPatch::Entry => writes.edit(move |body| add_entry(body, &token)),
        CallPatch::Spec => writes.merge(json!({"spec": {"b": spec["a"]}})),
        CallPatch::Label => {
            let label = (spec["a"] != 0).then_some("yes");
            writes.merge(json!({"metadata": {"labels": {LABEL: label}}}));
        }
    }
    writes
}

/// The result of an effect.
enum Performed {
    Input(ObjectInput),
    Waits(WorkerWait),
    Rests(Rest),
}

/// An edit that must not be made twice.
fn add_entry(body: &mut Value, token: &str) {
    if body.get("status").is_none_or(|it| !it.is_object()) {
        body["status"] = json!({});
    }
    let log = &mut body["status"]["log"];
    match log.as_array_mut() {
        Some(entries) => entries.push(token.into()),
        None => *log = json!([token]),
    }
}
