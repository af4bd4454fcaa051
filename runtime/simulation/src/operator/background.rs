//! The daemons and timers of an operator: what the runtime does in `background`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::background::desired::{InstanceState, ObjectLife};
use kopf_core::background::life::{InstanceLife, ObjectBackground, StartGate, reconcile};
use kopf_core::background::stopping::{StopReason, StopReasons, StopStage};
use kopf_core::background::timing::Ticker;
use kopf_core::cause::Subject;
use kopf_core::machine::object::BackgroundView;
use kopf_core::machine::write::ObjectWrite;
use kopf_core::object::ObjectView;
use kopf_core::object::resource_version::ResourceVersion;
use serde_json::Value;

use super::key::SimulatedKey;
use super::setup::{Behaviour, OperatorSetup};
use super::stream::SteadyHasher;

/// The interval of checks while the operator waits without end.
const POLLING: Duration = Duration::from_secs(60);

/// One of the daemons and timers of one object.
pub(crate) type InstanceRef = (Arc<SimulatedKey>, usize);

/// All daemons and timers of an operator.
pub(crate) struct SimulatedBackground {
    setup: &'static OperatorSetup,
    behaviour: Behaviour,
    objects: BTreeMap<Arc<SimulatedKey>, SimulatedInstances>,
    gate: StartGate<Arc<SimulatedKey>, SteadyHasher>,
    started: u64,
    /// What the operator has to do next.
    pub(crate) commands: Vec<BackgroundCommand>,
}

/// Something that the operator does for daemons and timers.
#[derive(Debug)]
pub(crate) enum BackgroundCommand {
    /// An instance is to be looked at after this time.
    WakeAfter(InstanceRef, Duration),
    /// The object is to be processed again.
    Requeue(Arc<SimulatedKey>),
    /// A daemon writes to its object.
    Write(InstanceRef),
    /// An instance has started.
    Started(InstanceRef),
    /// An instance has ended, or the operator does not wait for it any more.
    Ended(InstanceRef),
}

struct SimulatedInstances {
    latest: Arc<Value>,
    version: Option<ResourceVersion>,
    instances: Vec<Option<SimulatedInstance>>,
    digest: u64,
}

struct SimulatedInstance {
    life: InstanceLife,
    reasons: StopReasons,
    asked: Duration,
    number: u64,
    work: InstanceWork,
}

enum InstanceWork {
    Daemon {
        /// The write under way.
        write: Option<Box<ObjectWrite<'static>>>,
        has_written: bool,
        /// The time at which it ends by itself, or after the stop signal.
        ends_at: Option<Duration>,
    },
    Timer {
        ticker: Ticker,
        /// The end of the call under way.
        calling: Option<Duration>,
    },
}

/// The daemons and timers of an object while they are started and stopped.
struct Reconciled<'a> {
    background: &'a mut SimulatedBackground,
    key: &'a Arc<SimulatedKey>,
    view: &'a BackgroundView<'a>,
    now: Duration,
}

// === impl SimulatedBackground ===

impl SimulatedBackground {
    pub(crate) fn new(setup: &'static OperatorSetup, behaviour: Behaviour) -> Self {
        Self {
            setup,
            behaviour,
            objects: BTreeMap::new(),
            gate: StartGate::Open,
            started: 0,
            commands: Vec::new(),
        }
    }

    /// The objects that have daemons or timers.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Arc<SimulatedKey>> {
        self.objects.keys()
    }

    /// The daemons and timers that run.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&Arc<SimulatedKey>, usize)> {
        self.objects.iter().flat_map(|(key, object)| {
            let instances = object.instances.iter().enumerate();
            let running = instances.filter(|(_, it)| {
                it.as_ref()
                    .is_some_and(|it| it.state() == InstanceState::Running)
            });
            running.map(move |(at, _)| (key, at))
        })
    }

    pub(crate) fn has_finished(&self, uid: &str, at: usize) -> bool {
        let mut objects = self.objects.iter();
        let object = objects.find(|(key, _)| key.uid == uid);
        let instance = object.and_then(|(_, it)| it.instances.get(at)?.as_ref());
        instance.is_some_and(|it| {
            matches!(
                it.state(),
                InstanceState::Finished | InstanceState::Abandoned
            )
        })
    }

    pub(crate) fn latest(&self, key: &Arc<SimulatedKey>) -> Option<&Arc<Value>> {
        self.objects.get(key).map(|object| &object.latest)
    }

    /// Shows a state, unless it is older than the newest one.
    pub(crate) fn update_latest(&mut self, key: &Arc<SimulatedKey>, object: &Arc<Value>) {
        let Some(known) = self.objects.get_mut(key) else {
            return;
        };
        let version = version(object);
        if let (Some(newer), Some(present)) = (&version, &known.version)
            && newer.is_not_newer_than(present)
        {
            return;
        }
        known.latest = Arc::clone(object);
        known.version = version;
    }

    pub(crate) fn replace_latest(&mut self, key: &Arc<SimulatedKey>, object: &Arc<Value>) {
        if let Some(known) = self.objects.get_mut(key) {
            known.latest = Arc::clone(object);
            known.version = version(object);
        }
    }

    /// Starts and stops daemons and timers; returns whether the object needs the finalizer.
    pub(crate) fn reconcile(
        &mut self,
        key: &Arc<SimulatedKey>,
        view: &BackgroundView<'_>,
        now: Duration,
    ) -> bool {
        if !planted!(HandledStateNotShown) {
            let is_older = self.objects.get(key).is_some_and(|known| {
                match (version(view.object), &known.version) {
                    (Some(version), Some(known)) => !version.is_not_newer_than(known),
                    _ => false,
                }
            });
            if is_older {
                self.update_latest(key, &Arc::new(view.object.clone()));
            }
        }
        let subject = Subject::object(ObjectView::new(view.object));
        let specs = self.setup.background.iter();
        let matches: Vec<bool> = specs.map(|it| it.spec.matches(&subject)).collect();
        let life: ObjectLife = view.life;
        let mut reconciled = Reconciled {
            background: self,
            key,
            view,
            now,
        };
        let held = reconcile(&mut reconciled, matches, life);
        let digest = self.behaviour.number(view.essence.to_string());
        let mut is_empty = false;
        if let Some(object) = self.objects.get_mut(key) {
            let has_changed = std::mem::replace(&mut object.digest, digest) != digest;
            for (at, instance) in object.instances.iter_mut().enumerate() {
                if let Some(instance) = instance
                    && let InstanceWork::Timer { ticker, .. } = &mut instance.work
                    && has_changed
                {
                    ticker.change(now);
                    let wake = BackgroundCommand::WakeAfter((Arc::clone(key), at), Duration::ZERO);
                    self.commands.push(wake);
                }
            }
            let mut instances = object.instances.iter().flatten();
            is_empty = instances.all(|it| it.state() == InstanceState::Absent);
        }
        if is_empty && !self.waits_for_start(key) {
            self.objects.remove(key);
        }
        held
    }

    fn waits_for_start(&self, key: &Arc<SimulatedKey>) -> bool {
        matches!(&self.gate, StartGate::Closed(waiting) if waiting.contains(key))
    }

    /// Stops the daemons and timers of an object that does not exist any more, and forgets it.
    pub(crate) fn object_gone(&mut self, key: &Arc<SimulatedKey>, now: Duration) {
        if let StartGate::Closed(waiting) = &mut self.gate {
            waiting.remove(key);
        }
        let count = self.objects.get(key).map_or(0, |it| it.instances.len());
        for at in 0..count {
            if self.state(key, at) == InstanceState::Running {
                self.stop(key, at, StopReason::ResourceDeleted, now);
            }
        }
        let ended = |object: &SimulatedInstances| {
            let mut instances = object.instances.iter().flatten();
            instances.all(|it| it.life.has_ended())
        };
        if self.objects.get(key).is_some_and(ended) {
            self.objects.remove(key);
        }
    }

    /// Whether nothing runs any more that the operator waits for.
    pub(crate) fn has_ended(&self) -> bool {
        let objects = self.objects.values();
        let mut instances = objects.flat_map(|it| it.instances.iter().flatten());
        instances.all(|it| it.life.has_ended() || !it.life.is_waited_for())
    }

    /// Stops everything: the operator pauses, or stops.
    pub(crate) fn stop_all(&mut self, reason: StopReason, now: Duration) {
        self.gate.close([]);
        let all: Vec<InstanceRef> = self
            .objects
            .iter()
            .flat_map(|(key, object)| {
                let instances = object.instances.iter().enumerate();
                let started =
                    instances.filter(|(_, it)| it.as_ref().is_some_and(|it| !it.life.has_ended()));
                started
                    .map(|(at, _)| (Arc::clone(key), at))
                    .collect::<Vec<_>>()
            })
            .collect();
        for (key, at) in all {
            if planted!(DaemonsGoOnInPause) {
                continue;
            }
            self.stop(&key, at, reason, now);
            self.gate.admits(key);
        }
    }

    /// Lets daemons and timers start again.
    pub(crate) fn resume(&mut self) {
        let mut waiting: Vec<_> = self.gate.open().into_iter().collect();
        waiting.sort();
        let requeues = waiting.into_iter().map(BackgroundCommand::Requeue);
        self.commands.extend(requeues);
    }

    fn state(&self, key: &Arc<SimulatedKey>, at: usize) -> InstanceState {
        let object = self.objects.get(key);
        let instance = object.and_then(|it| it.instances.get(at)?.as_ref());
        instance.map_or(InstanceState::Absent, SimulatedInstance::state)
    }

    fn instance(&mut self, (key, at): &InstanceRef) -> Option<&mut SimulatedInstance> {
        self.objects.get_mut(key)?.instances.get_mut(*at)?.as_mut()
    }

    fn start(
        &mut self,
        key: &Arc<SimulatedKey>,
        at: usize,
        view: &BackgroundView<'_>,
        now: Duration,
    ) {
        self.started += 1;
        let number = self.started;
        let declared = &self.setup.background[at];
        let finishes = self
            .behaviour
            .number((key.uid, at, number, "finishes"))
            .is_multiple_of(8);
        let work = match declared.timing {
            None => InstanceWork::Daemon {
                write: None,
                has_written: false,
                ends_at: finishes.then(|| now + Duration::from_secs(10)),
            },
            Some(_) => InstanceWork::Timer {
                ticker: Ticker::start(now, Duration::ZERO),
                calling: None,
            },
        };
        let digest = self.behaviour.number(view.essence.to_string());
        let count = self.setup.background.len();
        let object = self.objects.entry(Arc::clone(key)).or_insert_with(|| {
            let latest = Arc::new(view.object.clone());
            SimulatedInstances {
                version: version(&latest),
                latest,
                instances: (0..count).map(|_| None).collect(),
                digest,
            }
        });
        object.instances[at] = Some(SimulatedInstance {
            life: InstanceLife::begin(),
            reasons: StopReasons::default(),
            asked: now,
            number,
            work,
        });
        let it = (Arc::clone(key), at);
        self.commands.push(BackgroundCommand::Started(it.clone()));
        self.commands
            .push(BackgroundCommand::WakeAfter(it, Duration::ZERO));
    }

    fn stop(&mut self, key: &Arc<SimulatedKey>, at: usize, reason: StopReason, now: Duration) {
        let it = (Arc::clone(key), at);
        let behaviour = self.behaviour;
        let Some(instance) = self.instance(&it) else {
            return;
        };
        if instance.reasons.is_empty() {
            instance.asked = now;
        }
        instance.reasons.insert(reason);
        let number = instance.number;
        match &mut instance.work {
            InstanceWork::Timer { calling: None, .. } => {
                if instance.life.mark_ended() {
                    self.commands.push(BackgroundCommand::Ended(it));
                }
            }
            InstanceWork::Timer { .. } => {}
            InstanceWork::Daemon { ends_at, .. } => {
                let slow = behaviour.is_slow((key.uid, at, number, "stops"));
                let seconds = [0, 1, 4, 12][(number % 4) as usize];
                let takes = Duration::from_secs(if slow { seconds } else { 0 });
                let end = now + takes;
                *ends_at = Some(ends_at.map_or(end, |former| former.min(end)));
                self.commands
                    .push(BackgroundCommand::WakeAfter(it, Duration::ZERO));
            }
        }
    }

    /// Goes on with an instance: its function, and the stages of its stop.
    pub(crate) fn wake(&mut self, it: &InstanceRef, may_begin: bool, now: Duration) {
        let timing = self.setup.background[it.1].timing;
        let behaviour = self.behaviour;
        let Some(instance) = self.instance(it).filter(|it| !it.life.has_ended()) else {
            return;
        };
        let stopping = !instance.reasons.is_empty();
        let mut wake_at: Option<Duration> = None;
        let (mut ends, mut writes) = (false, false);
        match (&mut instance.work, timing) {
            (
                InstanceWork::Daemon {
                    write,
                    has_written,
                    ends_at,
                },
                _,
            ) => {
                if write.is_none() && !*has_written && !stopping && may_begin {
                    *has_written = true;
                    writes = behaviour.patches > 0;
                }
                ends = write.is_none() && !writes && ends_at.is_some_and(|end| end <= now);
                if ends && !stopping {
                    instance.life.mark_finished();
                }
                wake_at = ends_at.filter(|end| *end > now);
            }
            (InstanceWork::Timer { ticker, calling }, Some(timing)) => match calling {
                Some(end) if *end <= now => {
                    *calling = None;
                    let fails = instance.number % 5 == 0 && !stopping;
                    if fails && behaviour.failures > 0 {
                        ticker.retry(Duration::from_secs(5), now);
                        instance.number += 1;
                    } else {
                        ticker.finish(&timing, now);
                    }
                    ends = stopping;
                    wake_at = ticker.due(&timing).filter(|_| !stopping);
                }
                Some(end) => wake_at = Some(*end),
                None => match ticker.due(&timing) {
                    Some(due) if due <= now && may_begin => {
                        ticker.begin(&timing, now);
                        let takes = behaviour.duration((it.0.uid, due.as_millis()));
                        let end = now + takes.unwrap_or(Duration::from_millis(1));
                        *calling = Some(end);
                        wake_at = Some(end);
                    }
                    Some(due) if due <= now => wake_at = Some(now + Duration::from_secs(1)),
                    due => wake_at = due.map(|due| timing.wake_time(due)),
                },
            },
            (InstanceWork::Timer { .. }, None) => {}
        }
        self.conclude(it, ends, now);
        if writes {
            self.commands.push(BackgroundCommand::Write(it.clone()));
        }
        if let Some(at) = wake_at {
            let wait = at.saturating_sub(now);
            self.commands
                .push(BackgroundCommand::WakeAfter(it.clone(), wait));
        }
    }

    /// Ends an instance, or drives it through the stages of its stop.
    fn conclude(&mut self, it: &InstanceRef, ends: bool, now: Duration) {
        let policy = self.setup.background[it.1].stopping;
        let is_daemon = self.setup.background[it.1].timing.is_none();
        let Some(instance) = self.instance(it) else {
            return;
        };
        let mut commands = Vec::new();
        if ends {
            if instance.life.mark_ended() {
                commands.push(BackgroundCommand::Ended(it.clone()));
            }
            commands.push(BackgroundCommand::Requeue(Arc::clone(&it.0)));
        } else if !instance.reasons.is_empty() && is_daemon && instance.life.is_waited_for() {
            match policy.stage(POLLING, instance.asked, now) {
                StopStage::Graceful(left) | StopStage::Polling(left) => {
                    commands.push(BackgroundCommand::WakeAfter(it.clone(), left));
                }
                StopStage::Cancelling(left) => {
                    instance.reasons.insert(StopReason::Cancelled);
                    commands.push(BackgroundCommand::WakeAfter(it.clone(), left));
                }
                StopStage::Abandoned => {
                    instance.reasons.insert(StopReason::Abandoned);
                    instance.life.abandon();
                    commands.push(BackgroundCommand::Ended(it.clone()));
                    commands.push(BackgroundCommand::Requeue(Arc::clone(&it.0)));
                }
            }
        }
        self.commands.extend(commands);
    }

    /// The write of a daemon that is under way.
    pub(crate) fn write_mut(
        &mut self,
        it: &InstanceRef,
    ) -> Option<&mut Option<Box<ObjectWrite<'static>>>> {
        match &mut self.instance(it)?.work {
            InstanceWork::Daemon { write, .. } => Some(write),
            InstanceWork::Timer { .. } => None,
        }
    }

    /// The instances whose writes are under way.
    pub(crate) fn writing(&self) -> Vec<InstanceRef> {
        let objects = self.objects.iter().flat_map(|(key, object)| {
            let instances = object.instances.iter().enumerate();
            let writing = instances.filter(|(_, it)| {
                it.as_ref().is_some_and(|it| {
                    matches!(&it.work, InstanceWork::Daemon { write: Some(_), .. })
                })
            });
            writing.map(move |(at, _)| (Arc::clone(key), at))
        });
        objects.collect()
    }
}

// === impl SimulatedInstance ===

impl SimulatedInstance {
    fn state(&self) -> InstanceState {
        self.life.state(self.reasons)
    }
}

// === impl Reconciled ===

impl ObjectBackground for Reconciled<'_> {
    fn state(&self, at: usize) -> InstanceState {
        self.background.state(self.key, at)
    }

    fn start(&mut self, at: usize) {
        if self.background.gate.admits(Arc::clone(self.key)) {
            self.background.start(self.key, at, self.view, self.now);
        }
    }

    fn stop(&mut self, at: usize, reason: StopReason) {
        self.background.stop(self.key, at, reason, self.now);
    }
}

fn version(object: &Value) -> Option<ResourceVersion> {
    let version = ObjectView::new(object).resource_version();
    version.map(ResourceVersion::new)
}
