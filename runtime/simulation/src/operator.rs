//! A simulated operator process: it performs the effects of the machines of kopf-core.
//!
//! Every decision about objects, queue, freshness, daemons, timers, indices, pauses and elections
//! is that of kopf-core. What the runtime does in tasks is done here on one queue of events.

mod background;
mod background_writes;
mod children;
mod coordinating;
mod coordination;
mod fact;
mod inputs;
mod key;
mod label;
mod pausing;
mod queueing;
mod reconciling;
mod requests;
mod setup;
mod stop;
mod stream;
mod streaming;
mod sub_handlers;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::index::IndexTable;
use kopf_core::machine::now::Now;
use kopf_core::queue::{ObjectQueue, PauseReading};
use kopf_core::watch::known_objects::Retention;

use crate::server::{ApiRequest, KindId, Verb, WatchOptions};
use crate::time::VirtualTime;
use crate::world::{Actor, ActorClock, ActorEffect, ActorInput};

use background::{InstanceRef, SimulatedBackground};
use children::SimulatedChildren;
use coordination::{Coordination, uptime};
pub(crate) use queueing::MOST_KEPT_STATES;
use queueing::{KeptStates, SimulatedRules, WaitingKeys};
use stop::StopPhase;
use stream::{SimulatedStream, SteadyHasher};
use worker::Worker;

pub(crate) use children::owner_of;
pub(crate) use coordination::{CoordinationMode, NAME, peering_object, timings};
pub use fact::{BegunCall, OperatorFact};
pub(crate) use key::SimulatedKey;
pub(crate) use label::LABEL;
pub(crate) use reconciling::{CHILD_KIND, wanted_children};
pub(crate) use setup::{Behaviour, OperatorSetup, indexed_value};
pub(crate) use sub_handlers::{declared_of, parent_of, sub_field, sub_handlers};

/// The namespace of all objects.
pub(crate) const NAMESPACE: &str = "default";

/// The user of all operators.
pub(crate) const OPERATOR: &str = "operator";

type Effects = Vec<ActorEffect<OperatorFact>>;

/// What distinguishes one operator process from another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperatorOptions {
    pub(crate) setup: &'static OperatorSetup,
    pub(crate) behaviour: Behaviour,
    pub(crate) mode: CoordinationMode,
    pub(crate) kind: KindId,
    /// The kind of the children, if there are any.
    pub(crate) child_kind: Option<KindId>,
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
    child_stream: SimulatedStream,
    children: SimulatedChildren,
    queue: ObjectQueue<SimulatedRules, u64, SteadyHasher>,
    waiting: WaitingKeys,
    kept: KeptStates,
    workers: BTreeMap<Arc<SimulatedKey>, Box<Worker>>,
    background: SimulatedBackground,
    index: IndexTable<&'static str, String, u64>,
    calls: BTreeMap<u64, CallPurpose>,
    watches: BTreeMap<u64, WatchPurpose>,
    timers: BTreeMap<u64, TimerPurpose>,
    numbers: u64,
    /// The last known answers to whether it runs, and since when.
    period: Option<PauseReading>,
    /// The part of its stop.
    stop: Option<StopPhase>,
    effects: Effects,
}

/// The objects of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamRole {
    Objects,
    Children,
}

/// The purpose of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CallPurpose {
    List(StreamRole),
    Coordination,
    /// The Lease or the record of the process is given up.
    Leave,
    Worker(Arc<SimulatedKey>),
    Background(InstanceRef),
}

/// The purpose of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WatchPurpose {
    Stream(StreamRole),
    Coordination,
    /// The first state after a version.
    NextState(Arc<SimulatedKey>),
}

/// The purpose of a timer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TimerPurpose {
    Stream(StreamRole),
    Sent(StreamRole),
    Coordination,
    /// The time of a request of the coordination is over.
    CoordinationTimeout(u64),
    WatchCoordination,
    /// The time for workers and daemons to end is over.
    Grace,
    /// The time to give up the Lease is over.
    Leave,
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
            child_stream: SimulatedStream::new(Retention::Identity),
            children: SimulatedChildren::default(),
            queue: ObjectQueue::new(0),
            waiting: WaitingKeys::default(),
            kept: KeptStates::default(),
            workers: BTreeMap::new(),
            background: SimulatedBackground::new(options.setup, options.behaviour),
            index: IndexTable::default(),
            calls: BTreeMap::new(),
            watches: BTreeMap::new(),
            timers: BTreeMap::new(),
            numbers: 0,
            period: None,
            stop: None,
            effects: Vec::new(),
            options,
        }
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> usize {
        self.options.process
    }

    /// Whether attempts may begin.
    pub(crate) fn runs(&self) -> bool {
        self.period.is_some_and(|it| it.running)
    }

    /// Whether it does nothing more before something happens, but for what it repeats for ever;
    /// requests have been safe since then.
    pub(crate) fn is_idle(&self, since: VirtualTime) -> bool {
        let of_coordination = |it: &CallPurpose| *it == CallPurpose::Coordination;
        let is_periodic = |it: &TimerPurpose| {
            matches!(
                it,
                TimerPurpose::Coordination
                    | TimerPurpose::CoordinationTimeout(_)
                    | TimerPurpose::WatchCoordination
            )
        };
        // What was lost before may still end the lease.
        self.stop.is_none()
            && (!self.runs() || self.coordination.was_accepted_since(since))
            && self.workers.is_empty()
            && self.waiting.is_empty()
            && self.calls.values().all(of_coordination)
            && self.timers.values().all(is_periodic)
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
        let owners = self.children.owners();
        let owners = owners.map(|key| ("the children", key.uid.to_owned()));
        queued
            .chain(known)
            .chain(owners)
            .chain(background)
            .chain(working)
            .collect()
    }

    /// The beginning of the oldest work that is not done.
    pub(crate) fn oldest_work(&self) -> Option<Duration> {
        self.workers.values().map(|it| it.begun()).min()
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

    fn stream_mut(&mut self, role: StreamRole) -> &mut SimulatedStream {
        match role {
            StreamRole::Objects => &mut self.stream,
            StreamRole::Children => &mut self.child_stream,
        }
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
            stopping: self.stop.is_some(),
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
            CallPurpose::Coordination | CallPurpose::Leave => self.options.coordination_namespace,
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

    fn stop(&mut self, clock: ActorClock) -> Effects {
        self.clock = clock;
        self.begin_stop();
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
