//! A simulated operator process: it performs the effects of the machines of kopf-core.
//!
//! Every decision about objects, queue, freshness, daemons, timers, indices, pauses and elections
//! is that of kopf-core. What the runtime does in tasks is done here on one queue of events.

mod background;
mod coordination;
mod fact;
mod key;
mod queueing;
mod requests;
mod setup;
mod stream;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::cause::Subject;
use kopf_core::handler::Trigger;
use kopf_core::index::IndexTable;
use kopf_core::machine::effect::{RequestEffect, RequestMachine as _};
use kopf_core::machine::now::Now;
use kopf_core::machine::request::{ObjectRequest, OnForbidden};
use kopf_core::machine::write::{ObjectWrite, OnConflict, ReadBack, WriteResult, WriteRules};
use kopf_core::object::ObjectView;
use kopf_core::object::patch::ObjectPatch;
use kopf_core::queue::{ObjectQueue, PauseReading};
use kopf_core::watch::WatchEventType;
use kopf_core::watch::batch::{BatchMode, QueuedEvent};
use kopf_core::watch::known_objects::{KeyedEvent, Retention};
use serde_json::json;

use crate::server::{
    AnswerBody, ApiAnswer, ApiRequest, KindId, ListOptions, ServerEvent, ServerEventType, Verb,
    WatchOptions,
};
use crate::world::{Actor, ActorClock, ActorEffect, ActorInput, CallOutcome};

use background::{BackgroundCommand, InstanceRef, SimulatedBackground};
use coordination::{Coordination, CoordinationStep, uptime};
use queueing::{SimulatedRules, WaitingKeys};
use requests::retry_after;
use stream::{SimulatedStream, SimulatedStreamStep, SteadyHasher};
use worker::Worker;

pub(crate) use coordination::{CoordinationMode, NAME, peering_object, timings};
pub use fact::{BegunCall, OperatorFact};
pub(crate) use key::SimulatedKey;
pub(crate) use setup::{Behaviour, LABEL, OperatorSetup};

/// The namespace of all objects.
pub(crate) const NAMESPACE: &str = "default";

/// The user of all operators.
pub(crate) const OPERATOR: &str = "operator";

/// The page size of lists.
const PAGE: u32 = 2;

/// The time in which a slow queue receives an event.
const SLOW_SEND: Duration = Duration::from_millis(1_500);

type Effects = Vec<ActorEffect<OperatorFact>>;

/// What distinguishes one operator process from another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperatorOptions {
    pub(crate) setup: &'static OperatorSetup,
    pub(crate) behaviour: Behaviour,
    pub(crate) mode: CoordinationMode,
    pub(crate) kind: KindId,
    /// The kind of the Lease or of the peering object.
    pub(crate) coordination_kind: KindId,
    /// The namespace of the Lease or of the peering object.
    pub(crate) coordination_namespace: &'static str,
    pub(crate) process: usize,
    /// The number of the start of this process.
    pub(crate) run: u64,
}

/// An operator process.
pub struct SimulatedOperator {
    options: OperatorOptions,
    clock: ActorClock,
    coordination: Coordination,
    stream: SimulatedStream,
    queue: ObjectQueue<SimulatedRules, u64, SteadyHasher>,
    waiting: WaitingKeys,
    workers: BTreeMap<Arc<SimulatedKey>, Worker>,
    background: SimulatedBackground,
    index: IndexTable<&'static str, String, u64>,
    calls: BTreeMap<u64, CallPurpose>,
    watches: BTreeMap<u64, WatchPurpose>,
    timers: BTreeMap<u64, TimerPurpose>,
    numbers: u64,
    /// The last known answers to whether it runs, and since when.
    period: Option<PauseReading>,
    effects: Effects,
}

/// The purpose of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CallPurpose {
    List,
    Coordination,
    Worker(Arc<SimulatedKey>),
    Background(InstanceRef),
}

/// The purpose of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WatchPurpose {
    Stream,
    Coordination,
    /// The first state after a version.
    NextState(Arc<SimulatedKey>),
}

/// The purpose of a timer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TimerPurpose {
    Stream,
    Sent,
    Coordination,
    /// The time of a request of the coordination is over.
    CoordinationTimeout(u64),
    WatchCoordination,
    Worker(Arc<SimulatedKey>),
    Background(InstanceRef),
}

// === impl SimulatedOperator ===

impl SimulatedOperator {
    pub(crate) fn new(options: OperatorOptions) -> Self {
        let retention = match options.setup.needs_each_event {
            true => Retention::Body,
            false => Retention::Identity,
        };
        Self {
            clock: ActorClock::default(),
            coordination: Coordination::new(
                options.mode,
                options.coordination_namespace,
                options.process,
                options.run,
            ),
            stream: SimulatedStream::new(retention),
            queue: ObjectQueue::new(0),
            waiting: WaitingKeys::default(),
            workers: BTreeMap::new(),
            background: SimulatedBackground::new(options.setup, options.behaviour),
            index: IndexTable::default(),
            calls: BTreeMap::new(),
            watches: BTreeMap::new(),
            timers: BTreeMap::new(),
            numbers: 0,
            period: None,
            effects: Vec::new(),
            options,
        }
    }

    /// Whether attempts may begin.
    pub(crate) fn runs(&self) -> bool {
        self.period.is_some_and(|it| it.running)
    }

    /// The uids of which something is in memory, with the part that has it.
    pub(crate) fn remembered(&self) -> Vec<(&'static str, String)> {
        let queued = self
            .queue
            .keys()
            .map(|key| ("the queue", key.uid.to_owned()));
        let known = self.stream.uids().map(|uid| ("the stream", uid.to_owned()));
        let background = self.background.keys();
        let background = background.map(|key| ("the background", key.uid.to_owned()));
        let working = self
            .workers
            .keys()
            .map(|key| ("a worker", key.uid.to_owned()));
        queued
            .chain(known)
            .chain(background)
            .chain(working)
            .collect()
    }

    /// The beginning of the oldest work that is not done.
    pub(crate) fn oldest_work(&self) -> Option<Duration> {
        self.workers.values().map(Worker::begun).min()
    }

    /// The number of objects in the index; none without an index.
    pub(crate) fn indexed(&self, key: &str) -> Option<(usize, usize)> {
        let has_index = self.options.setup.has_index;
        has_index.then(|| (self.index.objects(), self.index.get(key).len()))
    }

    /// The uids and positions of daemons and timers that run.
    pub(crate) fn running_background(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.background.running().map(|(key, at)| (key.uid, at))
    }

    /// Whether a daemon or timer has ended by itself, or is abandoned.
    pub(crate) fn has_finished(&self, uid: &str, at: usize) -> bool {
        self.background.has_finished(uid, at)
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn now(&mut self) -> Now {
        let number = self.number();
        let steady = uptime(self.clock);
        Now {
            wall: self.clock.wall,
            steady,
            seed: self.options.behaviour.number((self.options.run, number)),
            stopping: false,
            running: self.coordination.pauses.is_running(steady),
            epoch: self.coordination.pauses.epoch(),
        }
    }

    fn reading(&self) -> PauseReading {
        PauseReading {
            epoch: self.coordination.pauses.epoch(),
            running: self.coordination.pauses.is_running(uptime(self.clock)),
        }
    }

    fn may_write(&self) -> bool {
        self.coordination.pauses.may_write(uptime(self.clock))
    }

    fn report(&mut self, fact: OperatorFact) {
        self.effects.push(ActorEffect::Report(fact));
    }

    fn set_timer(&mut self, purpose: TimerPurpose, after: Duration) {
        let timer = self.number();
        self.timers.insert(timer, purpose);
        let at = self.clock.now.after(after);
        self.effects.push(ActorEffect::SetTimer { timer, at });
    }

    fn send(&mut self, purpose: CallPurpose, kind: KindId, verb: Verb) -> u64 {
        let call = self.number();
        let namespace = match purpose {
            CallPurpose::Coordination => self.options.coordination_namespace,
            _ => NAMESPACE,
        };
        self.calls.insert(call, purpose);
        let request = ApiRequest {
            user: OPERATOR.into(),
            kind,
            namespace: Some(namespace.into()),
            verb,
        };
        self.effects.push(ActorEffect::Call { call, request });
        call
    }

    fn watch(&mut self, purpose: WatchPurpose, kind: KindId, options: WatchOptions) {
        let watch = self.number();
        self.watches.insert(watch, purpose);
        self.effects.push(ActorEffect::OpenWatch {
            watch,
            user: OPERATOR.into(),
            kind,
            namespace: Some(NAMESPACE.into()),
            options,
        });
    }

    // --- coordination

    fn coordinate(&mut self, step: CoordinationStep) {
        match step {
            CoordinationStep::Nothing => {}
            CoordinationStep::Wait(wait) => {
                self.timers
                    .retain(|_, it| *it != TimerPurpose::Coordination);
                self.set_timer(TimerPurpose::Coordination, wait);
            }
            CoordinationStep::Send(verb, limit) => {
                let kind = self.options.coordination_kind;
                let call = self.send(CallPurpose::Coordination, kind, verb);
                self.set_timer(TimerPurpose::CoordinationTimeout(call), limit);
            }
        }
    }

    fn coordination_is_waiting(&self) -> bool {
        !self
            .calls
            .values()
            .any(|it| *it == CallPurpose::Coordination)
    }

    fn watch_coordination(&mut self) {
        let options = WatchOptions {
            fields: Some(format!("metadata.name={NAME}")),
            bookmarks: true,
            ..WatchOptions::default()
        };
        let kind = self.options.coordination_kind;
        self.watch(WatchPurpose::Coordination, kind, options);
    }

    fn coordination_event(&mut self, event: &ServerEvent) {
        self.coordination.observe(event, self.clock);
        self.go_on_with_coordination();
    }

    fn go_on_with_coordination(&mut self) {
        if self.coordination_is_waiting() {
            let step = self.coordination.go_on(self.clock);
            self.coordinate(step);
        }
    }

    /// The time of a request is over, unless it was answered.
    fn time_out(&mut self, call: u64) {
        if self.calls.contains_key(&call) {
            self.answered(call, CallOutcome::TimedOut);
        }
    }

    // --- the stream

    fn go_on_with_stream(&mut self, step: SimulatedStreamStep) {
        let mut step = step;
        loop {
            step = match step {
                SimulatedStreamStep::Nothing => return,
                SimulatedStreamStep::List(continue_token) => {
                    let options = ListOptions {
                        labels: self.options.setup.selectors.label_selector(),
                        limit: Some(PAGE),
                        continue_token,
                        ..ListOptions::default()
                    };
                    self.send(CallPurpose::List, self.options.kind, Verb::List(options));
                    return;
                }
                SimulatedStreamStep::Watch(version) => {
                    let options = WatchOptions {
                        labels: self.options.setup.selectors.label_selector(),
                        resource_version: Some(version),
                        bookmarks: true,
                        timeout: Some(Duration::from_secs(290)),
                        ..WatchOptions::default()
                    };
                    self.watch(WatchPurpose::Stream, self.options.kind, options);
                    return;
                }
                SimulatedStreamStep::Wait(pause) => {
                    return self.set_timer(TimerPurpose::Stream, pause);
                }
                SimulatedStreamStep::Send(event) => {
                    let number = self.number();
                    let words = (self.options.run, number, "sends");
                    if self.options.behaviour.is_slow(words) {
                        return self.set_timer(TimerPurpose::Sent, SLOW_SEND);
                    }
                    self.received(event);
                    self.stream.sent()
                }
            };
        }
    }

    /// An event has reached the index and the queue.
    fn received(&mut self, (key, state): KeyedEvent<SimulatedKey>) {
        if self.options.setup.has_index {
            self.update_index(&key, state.event_type, &state.text);
        }
        if state.event_type != WatchEventType::Deleted {
            self.background.update_latest(&key, &state.text);
        }
        let mode = self.batch_mode();
        let number = self.number();
        let over_budget = self
            .options
            .behaviour
            .is_slow((self.options.run, number, "budget"))
            && mode.can_read_instead(state.event_type);
        let queued = QueuedEvent {
            event_type: state.event_type,
            version: state.version,
            text: (!over_budget).then_some(state.text),
        };
        let (rules, now) = (self.rules(), self.reading());
        self.queue
            .push(&rules, &mut self.waiting, key, now, |_, batch| {
                batch.push(queued, mode);
            });
    }

    fn update_index(
        &mut self,
        key: &SimulatedKey,
        event_type: WatchEventType,
        object: &serde_json::Value,
    ) {
        let subject = Subject::object(ObjectView::new(object));
        let handlers = self.options.setup.registry.handlers();
        let mut indexers = handlers.iter().filter(|it| it.trigger == Trigger::Index);
        let matches = indexers.any(|it| it.matches(&subject));
        if planted!(IndexKeepsDeleted) && event_type == WatchEventType::Deleted {
            return;
        }
        if event_type == WatchEventType::Deleted || !matches {
            return self.index.discard(&key.uid);
        }
        let value = object["spec"]["a"].as_u64().unwrap_or_default();
        self.index
            .replace(&key.uid, [(format!("a={value}"), value)]);
    }

    fn batch_mode(&self) -> BatchMode {
        match self.options.setup.needs_each_event {
            true => BatchMode::EveryEvent,
            false => BatchMode::NewestOnly,
        }
    }

    fn rules(&self) -> SimulatedRules {
        SimulatedRules {
            needs_each_event: self.options.setup.needs_each_event,
        }
    }

    fn requeue(&mut self, key: Arc<SimulatedKey>) {
        let (rules, now) = (self.rules(), self.reading());
        self.queue
            .push(&rules, &mut self.waiting, key, now, |_, batch| {
                batch.requeue()
            });
    }

    // --- daemons and timers

    fn perform_background(&mut self) {
        while !self.background.commands.is_empty() {
            for command in std::mem::take(&mut self.background.commands) {
                match command {
                    BackgroundCommand::WakeAfter(it, Duration::ZERO) => self.wake_background(&it),
                    BackgroundCommand::WakeAfter(it, wait) => {
                        self.set_timer(TimerPurpose::Background(it), wait);
                    }
                    BackgroundCommand::Requeue(key) => self.requeue(key),
                    BackgroundCommand::Write(it) => self.begin_background_write(&it),
                    BackgroundCommand::Started((key, at)) => {
                        self.report(OperatorFact::BackgroundStarted { uid: key.uid, at });
                    }
                    BackgroundCommand::Ended((key, at)) => {
                        self.report(OperatorFact::BackgroundEnded { uid: key.uid, at });
                    }
                }
            }
        }
    }

    fn wake_background(&mut self, it: &InstanceRef) {
        let now = uptime(self.clock);
        let may_begin = self.coordination.pauses.is_running(now);
        self.background.wake(it, may_begin, now);
    }

    fn begin_background_write(&mut self, it: &InstanceRef) {
        let Some(known) = self.background.latest(&it.0).cloned() else {
            return;
        };
        let mut patch = ObjectPatch::new();
        patch.merge(json!({"status": {"daemon": it.1}}));
        let rules = WriteRules {
            status_endpoint: self.options.setup.status_endpoint,
            on_conflict: OnConflict::Repeat,
            on_forbidden: OnForbidden::RetryForMinute {
                ends_at_stop: false,
            },
            read_back: ReadBack::Always,
        };
        let now = self.now();
        let write = ObjectWrite::new(it.0.uid, &known, patch, rules, &now);
        if let Some(slot) = self.background.write_mut(it) {
            *slot = Some(Box::new(write));
        }
        self.go_on_with_background_write(it, None);
    }

    fn go_on_with_background_write(&mut self, it: &InstanceRef, outcome: Option<CallOutcome>) {
        let now = self.now();
        let may_write = self.may_write();
        let Some(write) = self.background.write_mut(it).and_then(Option::as_mut) else {
            return;
        };
        let mut answer = outcome.map(|it| requests::answer(&write.request(), it));
        if !may_write {
            answer = Some(kopf_core::machine::answer::Answer::LeaseEnded);
        }
        loop {
            match write.step(answer.take(), &now) {
                RequestEffect::Report(_) => {}
                RequestEffect::Send if !may_write => {
                    answer = Some(kopf_core::machine::answer::Answer::LeaseEnded);
                }
                RequestEffect::Send => {
                    let request = write.request();
                    let is_patch = matches!(request, ObjectRequest::Patch { .. });
                    let verb = requests::verb(&request, &it.0.name);
                    let verb = verb.unwrap_or_else(|| Verb::Get {
                        name: Arc::clone(&it.0.name),
                    });
                    let purpose = CallPurpose::Background(it.clone());
                    let call = self.send(purpose, self.options.kind, verb);
                    if is_patch {
                        self.report_sent(it.0.uid, call, false);
                    }
                    return;
                }
                RequestEffect::Wait(pause) => {
                    return self.set_timer(TimerPurpose::Background(it.clone()), pause.pause);
                }
                RequestEffect::Done(result) => {
                    if let Ok(WriteResult::Written(newer) | WriteResult::Stripped(newer, _)) =
                        result
                    {
                        self.background.update_latest(&it.0, &newer);
                    }
                    if let Some(slot) = self.background.write_mut(it) {
                        *slot = None;
                    }
                    return self.wake_background(it);
                }
            }
        }
    }

    fn report_sent(&mut self, uid: &'static str, call: u64, has_records: bool) {
        let fact = ActorEffect::Report(OperatorFact::Sent {
            uid,
            call,
            has_records,
        });
        // Claims know the sender of a request before it arrives.
        let at = self.effects.len() - 1;
        self.effects.insert(at, fact);
    }

    // --- pauses

    /// Follows the coordination into a pause and out of it.
    fn follow_pauses(&mut self) {
        let reading = self.reading();
        if self.period != Some(reading) {
            let before = self.period.replace(reading);
            let ran = before.is_some_and(|it| it.running);
            let new_epoch = before.is_none_or(|it| it.epoch != reading.epoch);
            if ran != reading.running || before.is_none() {
                self.report(OperatorFact::Gate {
                    running: reading.running,
                });
            }
            if ran && (new_epoch || !reading.running) {
                self.background.pause(uptime(self.clock));
            }
            if reading.running && (new_epoch || !ran) {
                self.background.resume();
            }
            self.restart_stream(reading);
        }
        let rules = self.rules();
        self.queue.follow_pauses(&rules, &mut self.waiting, reading);
        if !self.may_write() {
            self.cut_off();
        }
    }

    fn restart_stream(&mut self, reading: PauseReading) {
        let epoch = reading.running.then_some(reading.epoch);
        if self.stream.epoch == epoch {
            return;
        }
        self.stream.restart(epoch);
        self.calls.retain(|_, it| *it != CallPurpose::List);
        let open = self
            .watches
            .iter()
            .find(|(_, it)| **it == WatchPurpose::Stream);
        if let Some((&watch, _)) = open {
            self.watches.remove(&watch);
            self.effects.push(ActorEffect::CloseWatch { watch });
        }
        let of_stream = |it: &TimerPurpose| matches!(it, TimerPurpose::Stream | TimerPurpose::Sent);
        self.timers.retain(|_, it| !of_stream(it));
        let step = self.stream.begin();
        self.go_on_with_stream(step);
    }

    /// The lease has ended: nothing that waits goes on.
    fn cut_off(&mut self) {
        let waiting: Vec<Arc<SimulatedKey>> = self.workers.keys().cloned().collect();
        for key in waiting {
            self.cut_worker(&key);
        }
        for it in self.background.writing() {
            self.go_on_with_background_write(&it, None);
        }
    }

    /// Starts workers for the objects that are ready, and does what they lead to.
    fn pump(&mut self) {
        loop {
            self.follow_pauses();
            self.perform_background();
            let open =
                !self.options.setup.has_index || self.stream.listed == Some(self.queue.epoch());
            let next = match self.queue.is_paused() || !open {
                true => None,
                false => self.waiting.ready.pop_front(),
            };
            let Some(key) = next else {
                break;
            };
            let rules = self.rules();
            if let Some(started) = self.queue.start(&rules, &key) {
                self.begin_work(key, started);
            }
        }
        for (timer, wait) in self.waiting.take_planned() {
            let at = self.clock.now.after(wait);
            self.effects.push(ActorEffect::SetTimer { timer, at });
        }
    }

    // --- inputs

    fn answered(&mut self, call: u64, outcome: CallOutcome) {
        match self.calls.remove(&call) {
            None => {}
            Some(CallPurpose::Coordination) => {
                let step = self.coordination.answered(&outcome, self.clock);
                self.coordinate(step);
            }
            Some(CallPurpose::List) => {
                let step = match outcome {
                    CallOutcome::Answered(ApiAnswer {
                        body: AnswerBody::List(list),
                        ..
                    }) => self.stream.page_arrived(list),
                    CallOutcome::Answered(answer) => {
                        self.stream.list_failed(retry_after(&answer), 0.5)
                    }
                    CallOutcome::ConnectionLost | CallOutcome::TimedOut => {
                        self.stream.list_failed(None, 0.5)
                    }
                };
                self.go_on_with_stream(step);
            }
            Some(CallPurpose::Worker(key)) => self.worker_answered(&key, outcome),
            Some(CallPurpose::Background(it)) => {
                self.go_on_with_background_write(&it, Some(outcome));
            }
        }
    }

    fn watched(&mut self, watch: u64, event: ServerEvent) {
        match self.watches.get(&watch) {
            None => {}
            Some(WatchPurpose::Stream) => {
                if event.event_type == ServerEventType::Error {
                    self.watches.remove(&watch);
                }
                let step = self.stream.event_arrived(event);
                self.go_on_with_stream(step);
            }
            Some(WatchPurpose::Coordination) => {
                if event.event_type == ServerEventType::Error {
                    self.watches.remove(&watch);
                    self.set_timer(TimerPurpose::WatchCoordination, Duration::from_secs(1));
                }
                self.coordination_event(&event);
            }
            Some(WatchPurpose::NextState(key)) => {
                let key = Arc::clone(key);
                if event.event_type == ServerEventType::Bookmark {
                    return;
                }
                self.watches.remove(&watch);
                self.effects.push(ActorEffect::CloseWatch { watch });
                let answer = match event.event_type {
                    ServerEventType::Error => ApiAnswer {
                        code: 410,
                        body: AnswerBody::Text("expired"),
                    },
                    _ => ApiAnswer {
                        code: 200,
                        body: AnswerBody::Object(event.object),
                    },
                };
                self.worker_answered(&key, CallOutcome::Answered(answer));
            }
        }
    }

    fn watch_ended(&mut self, watch: u64, failure: Option<ApiAnswer>) {
        match self.watches.remove(&watch) {
            None => {}
            Some(WatchPurpose::Stream) => {
                let step = self.stream.watch_ended(failure);
                self.go_on_with_stream(step);
            }
            Some(WatchPurpose::Coordination) => {
                self.set_timer(TimerPurpose::WatchCoordination, Duration::from_secs(1));
            }
            Some(WatchPurpose::NextState(key)) => {
                let outcome = match failure {
                    Some(answer) => CallOutcome::Answered(answer),
                    None => CallOutcome::ConnectionLost,
                };
                self.worker_answered(&key, outcome);
            }
        }
    }

    fn timer_fired(&mut self, timer: u64) {
        if let Some(key) = self.waiting.expired(timer) {
            return self.queue.timer_expired(&mut self.waiting, key);
        }
        match self.timers.remove(&timer) {
            None => {}
            Some(TimerPurpose::Stream) => {
                let step = self.stream.begin();
                self.go_on_with_stream(step);
            }
            Some(TimerPurpose::Sent) => {
                if let Some(event) = self.stream.sending.clone() {
                    self.received(event);
                    let step = self.stream.sent();
                    self.go_on_with_stream(step);
                }
            }
            Some(TimerPurpose::Coordination) => self.go_on_with_coordination(),
            Some(TimerPurpose::CoordinationTimeout(call)) => self.time_out(call),
            Some(TimerPurpose::WatchCoordination) => self.watch_coordination(),
            Some(TimerPurpose::Worker(key)) => self.worker_timer(&key),
            Some(TimerPurpose::Background(it)) => {
                let writes = self
                    .background
                    .write_mut(&it)
                    .is_some_and(|it| it.is_some());
                let waits = !self
                    .calls
                    .values()
                    .any(|call| *call == CallPurpose::Background(it.clone()));
                match writes && waits {
                    true => self.go_on_with_background_write(&it, None),
                    false => self.wake_background(&it),
                }
            }
        }
    }
}

impl Actor for SimulatedOperator {
    type Fact = OperatorFact;

    fn start(&mut self, clock: ActorClock) -> Effects {
        self.clock = clock;
        if self.options.mode != CoordinationMode::Alone {
            self.watch_coordination();
        }
        let step = self.coordination.begin(clock);
        self.coordinate(step);
        self.pump();
        std::mem::take(&mut self.effects)
    }

    fn handle(&mut self, clock: ActorClock, input: ActorInput) -> Effects {
        self.clock = clock;
        match input {
            ActorInput::Answered { call, outcome } => self.answered(call, outcome),
            ActorInput::Watched { watch, event } => self.watched(watch, event),
            ActorInput::WatchEnded { watch, failure } => self.watch_ended(watch, failure),
            ActorInput::TimerFired { timer } => self.timer_fired(timer),
        }
        self.pump();
        std::mem::take(&mut self.effects)
    }
}
