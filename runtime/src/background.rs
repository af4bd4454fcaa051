//! Daemons and timers of all objects: which ones run, from their start to their stop.
//!
//! The pipeline passes in the states of objects, and the core decides what starts and stops.
//! Daemons are tasks, timers are entries of a delay queue. The scheduler owns both, so that none
//! of them outlives the operator.

mod attempt;
mod daemon;
pub(crate) mod declaration;
mod instance;
pub(crate) mod instance_report;
mod scheduler;
mod timer;
mod timer_calls;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use kopf_core::background::Moment;
use kopf_core::background::desired::{InstanceState, ObjectLife};
use kopf_core::background::life::{ObjectBackground, StartGate, reconcile};
use kopf_core::background::stopping::StopReason;
use kopf_core::background::timing::Ticker;
use kopf_core::cause::Subject;
use kopf_core::object::ObjectView;
use kopf_core::object::resource_version::ResourceVersion;
use kopf_core::table;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use self::attempt::InstanceRunner;
use self::declaration::{BackgroundHandler, RegisteredBackground};
use self::instance::{Instance, InstanceEndOnDrop};
use self::timer::SchedulerCommand;
use self::timer::Timer;
use crate::process::execute::handler_scope::OperatorServices;
use crate::process::persist::background_write;
use crate::queue::worker_limit::QueueLimits;
use crate::settings::Settings;
use crate::task::heartbeat::Heartbeat;
use crate::watch::ObjectKey;
use crate::watch::latest::LatestState;

/// The time for daemons to end after they were cancelled, once all graces are over.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// All daemons and timers of an operator.
pub(crate) struct Background {
    services: Arc<BackgroundServices>,
    /// Never held across an await.
    objects: Mutex<HashMap<Arc<ObjectKey>, Arc<ObjectInstances>>>,
    /// Never held across an await.
    start_gate: Mutex<StartGate<Arc<ObjectKey>>>,
    /// Timers that were started for objects found in a list.
    listed_timers: AtomicU32,
}

/// The daemons and timers of an operator before its scheduler runs.
pub(crate) struct BackgroundSetup {
    pub(crate) background: Arc<Background>,
    /// Objects to process again, as one of their daemons or timers has ended.
    pub(crate) requeues: mpsc::UnboundedReceiver<Arc<ObjectKey>>,
    commands: mpsc::UnboundedReceiver<SchedulerCommand>,
}

/// The settings, clients and channels that all daemons and timers share.
struct BackgroundServices {
    settings: Arc<Settings>,
    operator: Arc<OperatorServices>,
    origin: Instant,
    commands: mpsc::UnboundedSender<SchedulerCommand>,
    requeues: mpsc::UnboundedSender<Arc<ObjectKey>>,
}

/// The daemons and timers of one object.
struct ObjectInstances {
    latest: Arc<LatestState>,
    /// Never held across an await.
    table: Mutex<InstanceTable>,
}

struct InstanceTable {
    /// In the order of the kind's daemons and timers.
    handles: Box<[Option<InstanceHandle>]>,
    /// Of the object's essence when it changed last.
    digest: u64,
}

/// A daemon or timer of an object.
#[derive(Clone)]
enum InstanceHandle {
    Daemon(Arc<Instance>),
    Timer(Arc<Timer>),
}

/// The daemons and timers of an object while they are started and stopped.
struct ReconciledObject<'a> {
    background: &'a Background,
    observed: &'a ObservedObject<'a>,
    instances: Option<Arc<ObjectInstances>>,
    /// Whether one of them is to be started later.
    postponed: bool,
}

/// The newest state of an object, with the daemons and timers that are declared for its kind.
pub(crate) struct ObservedObject<'a> {
    pub(crate) key: &'a Arc<ObjectKey>,
    pub(crate) handlers: &'a [Arc<BackgroundHandler>],
    pub(crate) object: &'a Value,
    pub(crate) essence: &'a Value,
    pub(crate) life: ObjectLife,
    /// True if the object comes from a list, maybe together with many others.
    pub(crate) listed: bool,
}

// === impl BackgroundSetup ===

impl BackgroundSetup {
    pub(crate) fn new(settings: Arc<Settings>, services: Arc<OperatorServices>) -> Self {
        let (commands, command_receiver) = mpsc::unbounded_channel();
        let (requeues, requeue_receiver) = mpsc::unbounded_channel();
        let services = BackgroundServices {
            settings,
            operator: services,
            origin: Instant::now(),
            commands,
            requeues,
        };
        Self {
            background: Arc::new(Background {
                services: Arc::new(services),
                objects: Mutex::default(),
                start_gate: Mutex::new(StartGate::Open),
                listed_timers: AtomicU32::new(0),
            }),
            requeues: requeue_receiver,
            commands: command_receiver,
        }
    }

    /// The task that runs all daemons and timers until `quit`, and the objects to requeue.
    pub(crate) fn scheduler(
        self,
        limits: QueueLimits,
        heartbeat: Heartbeat,
        quit: CancellationToken,
    ) -> (
        impl Future<Output = ()> + Send + 'static,
        mpsc::UnboundedReceiver<Arc<ObjectKey>>,
    ) {
        let origin = self.background.services.origin;
        let scheduler = scheduler::run(origin, self.commands, limits, heartbeat, quit);
        (scheduler, self.requeues)
    }
}

// === impl Background ===

impl Background {
    /// Shows a newer state to the daemons and timers of an object, before the queue processes it.
    pub(crate) fn update_latest(
        &self,
        key: &ObjectKey,
        text: &Arc<RawValue>,
        version: Option<ResourceVersion>,
    ) {
        if let Some(instances) = self.instances(key)
            && let Some(handler) = instances.first_handler()
        {
            match handler.api.with_type_meta(text) {
                Ok(text) => instances.latest.update(text, version),
                Err(error) => error!(object = %key, "the object cannot be read: {error}"),
            }
        }
    }

    /// Shows the API server's answer to a write to the daemons and timers of an object.
    pub(crate) fn update_written(&self, key: &ObjectKey, newer: &Value) {
        if let Some(instances) = self.instances(key) {
            background_write::update_latest(&instances.latest, newer);
        }
    }

    /// Shows an older state: the API server was restored from a backup.
    pub(crate) fn replace_latest(&self, key: &ObjectKey, former: &Value) {
        if let Some(instances) = self.instances(key) {
            background_write::replace_latest(&instances.latest, former);
        }
    }

    /// The newest state of an object that has daemons or timers.
    pub(crate) fn latest(&self, key: &ObjectKey) -> Option<Value> {
        let text = self.instances(key)?.latest.snapshot().text;
        serde_json::from_str(text.get()).ok()
    }

    /// Starts and stops daemons and timers as the state of an object demands; returns whether it
    /// needs the finalizer.
    pub(crate) fn reconcile(&self, observed: &ObservedObject<'_>) -> bool {
        let subject = Subject::object(ObjectView::new(observed.object));
        let handlers = observed.handlers.iter();
        let matches = handlers.map(|handler| handler.spec.matches(&subject));
        let instances = self.instances(observed.key);
        // An event that arrived before the first daemon started was shown to none.
        let version = ObjectView::new(observed.object).resource_version();
        let version = version.map(ResourceVersion::new);
        if let Some(instances) = &instances
            && instances.latest.is_older_than(version.as_ref())
        {
            background_write::update_latest(&instances.latest, observed.object);
        }
        let mut reconciled = ReconciledObject {
            background: self,
            observed,
            instances,
            postponed: false,
        };
        let held = reconcile(&mut reconciled, matches, observed.life);
        if let Some(instances) = &reconciled.instances {
            if observed.handlers.iter().any(|handler| handler.idles()) {
                instances.note_change(digest(observed.essence), self.services.now());
            }
            if instances.is_empty() && !reconciled.postponed {
                table::remove(&mut self.objects(), observed.key);
            }
        }
        held
    }

    /// Stops the daemons and timers of an object that does not exist any more, and forgets it.
    pub(crate) fn object_gone(&self, key: &ObjectKey) {
        let Some(instances) = self.instances(key) else {
            return;
        };
        if let StartGate::Closed(waiting) = &mut *self.start_gate() {
            waiting.remove(key);
        }
        for handle in instances.handles() {
            if handle.instance().state() == InstanceState::Running {
                self.stop(&handle, StopReason::ResourceDeleted);
            }
        }
        let handles = instances.handles();
        if handles.iter().all(|handle| handle.instance().has_ended()) {
            table::remove(&mut self.objects(), key);
        }
    }

    /// Stops everything for this reason, and waits until all have ended or are abandoned.
    ///
    /// Nothing is started until [`resume`](Self::resume).
    pub(crate) async fn pause(&self, reason: StopReason) {
        self.listed_timers.store(0, Ordering::Relaxed);
        self.start_gate().close([]);
        let instances = self.stop_all(reason);
        if let StartGate::Closed(waiting) = &mut *self.start_gate() {
            waiting.extend(instances.iter().map(|instance| Arc::clone(&instance.key)));
        }
        join_all(instances.iter().map(|it| it.ended_or_abandoned())).await;
    }

    /// Lets daemons and timers start again, and requeues their objects.
    pub(crate) fn resume(&self) {
        let waiting = self.start_gate().open();
        waiting.iter().for_each(|key| self.services.requeue(key));
    }

    /// Stops everything when the operator pauses, and lets it start when the operator goes on.
    pub(crate) async fn follow_pauses(self: Arc<Self>) {
        let pause_gate = &self.services.operator.pause_gate;
        loop {
            let epoch = pause_gate.running().await;
            self.resume();
            pause_gate.paused_since(epoch).await;
            tokio::select! {
                () = self.pause(StopReason::OperatorPausing) => {}
                // A daemon that has not stopped by now is started again once it has.
                _ = pause_gate.running() => {}
            }
        }
    }

    /// Stops everything within `grace`; returns the names of those that have not stopped by then.
    pub(crate) async fn shut_down(&self, grace: Duration) -> Vec<String> {
        let pause = self.pause(StopReason::OperatorExiting);
        if tokio::time::timeout(grace, pause).await.is_ok() {
            return Vec::new();
        }
        let left = self.stop_all(StopReason::Cancelled);
        let mut unstopped: Vec<String> = left
            .iter()
            .filter(|instance| instance.state() == InstanceState::Stopping)
            .map(|instance| instance.to_string())
            .collect();
        unstopped.sort();
        let all = join_all(left.iter().map(|instance| instance.ended_or_abandoned()));
        // The scheduler drops the tasks of those that ignore the cancellation.
        let _ = tokio::time::timeout(CANCEL_GRACE, all).await;
        unstopped
    }

    fn stop_all(&self, reason: StopReason) -> Vec<Arc<Instance>> {
        let objects: Vec<Arc<ObjectInstances>> = self.objects().values().cloned().collect();
        let handles = objects.iter().flat_map(|instances| instances.handles());
        let started = handles.filter(|handle| !handle.instance().has_ended());
        started
            .map(|handle| {
                self.stop(&handle, reason);
                Arc::clone(handle.instance())
            })
            .collect()
    }

    fn stop(&self, handle: &InstanceHandle, reason: StopReason) {
        debug!("{} is signalled to exit: {reason}.", handle.instance());
        let needs_driver = match handle {
            InstanceHandle::Daemon(instance) => instance.signal.raise(reason),
            InstanceHandle::Timer(timer) => timer.stop(reason),
        };
        if needs_driver {
            let instance = Arc::clone(handle.instance());
            let stopping = instance.drive_stop(Arc::clone(&self.services)).boxed();
            self.services.command(SchedulerCommand::Spawn(stopping));
        }
    }

    fn insert(&self, observed: &ObservedObject<'_>) -> Arc<ObjectInstances> {
        let version = ObjectView::new(observed.object).resource_version();
        let text =
            serde_json::value::to_raw_value(observed.object).expect("JSON can be written as JSON");
        let latest = LatestState::new(text.into(), version.map(ResourceVersion::new));
        let instances = Arc::new(ObjectInstances {
            latest: Arc::new(latest),
            table: Mutex::new(InstanceTable {
                handles: observed.handlers.iter().map(|_| None).collect(),
                digest: digest(observed.essence),
            }),
        });
        self.objects()
            .insert(Arc::clone(observed.key), Arc::clone(&instances));
        instances
    }

    fn start(
        &self,
        instances: &ObjectInstances,
        at: usize,
        handler: &Arc<BackgroundHandler>,
        observed: &ObservedObject<'_>,
    ) {
        let instance = Arc::new(Instance::new(handler, observed.key));
        let runner = InstanceRunner {
            services: Arc::clone(&self.services),
            instance: Arc::clone(&instance),
            latest: Arc::clone(&instances.latest),
        };
        debug!("{instance} is started.");
        let delay = handler.initial_delay(observed.object);
        let handle = match &handler.registered {
            RegisteredBackground::Daemon(_) => {
                let alive = Arc::new(InstanceEndOnDrop {
                    instance: Arc::clone(&instance),
                    services: Arc::clone(&self.services),
                });
                let task = daemon::run(runner, delay, alive);
                self.services.command(SchedulerCommand::Spawn(task.boxed()));
                InstanceHandle::Daemon(instance)
            }
            RegisteredBackground::Timer(registered) => {
                let spread = if observed.listed {
                    let started = self.listed_timers.fetch_add(1, Ordering::Relaxed);
                    let longest = self.services.settings.background.initial_spread;
                    registered.timing.spread(started, fastrand::f64(), longest)
                } else {
                    Duration::ZERO
                };
                let ticker = Ticker::start(self.services.now(), delay.saturating_add(spread));
                let timer = Arc::new(Timer::new(runner, registered, ticker));
                let arm = SchedulerCommand::Arm(Arc::clone(&timer));
                self.services.command(arm);
                InstanceHandle::Timer(timer)
            }
        };
        instances.lock().handles[at] = Some(handle);
    }

    fn instances(&self, key: &ObjectKey) -> Option<Arc<ObjectInstances>> {
        self.objects().get(key).cloned()
    }

    fn start_gate(&self) -> MutexGuard<'_, StartGate<Arc<ObjectKey>>> {
        self.start_gate
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<Arc<ObjectKey>, Arc<ObjectInstances>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ReconciledObject ===

impl ObjectBackground for ReconciledObject<'_> {
    fn state(&self, at: usize) -> InstanceState {
        let instances = self.instances.as_ref();
        instances.map_or(InstanceState::Absent, |instances| instances.state(at))
    }

    fn start(&mut self, at: usize) {
        let (background, observed) = (self.background, self.observed);
        let instances = self
            .instances
            .get_or_insert_with(|| background.insert(observed));
        let mut gate = background.start_gate();
        if gate.admits(Arc::clone(observed.key)) {
            background.start(instances, at, &observed.handlers[at], observed);
        } else {
            self.postponed = true;
        }
    }

    fn stop(&mut self, at: usize, reason: StopReason) {
        let instances = self.instances.as_ref();
        if let Some(handle) = instances.and_then(|instances| instances.handle(at)) {
            self.background.stop(&handle, reason);
        }
    }
}

// === impl BackgroundServices ===

impl BackgroundServices {
    fn now(&self) -> Moment {
        self.origin.elapsed()
    }

    /// Without a scheduler the operator has stopped, and nothing is to be done any more.
    fn command(&self, command: SchedulerCommand) {
        let _ = self.commands.send(command);
    }

    fn requeue(&self, key: &Arc<ObjectKey>) {
        let _ = self.requeues.send(Arc::clone(key));
    }
}

// === impl ObjectInstances ===

impl ObjectInstances {
    fn handle(&self, at: usize) -> Option<InstanceHandle> {
        self.lock().handles.get(at).cloned().flatten()
    }

    fn handles(&self) -> Vec<InstanceHandle> {
        self.lock().handles.iter().flatten().cloned().collect()
    }

    fn state(&self, at: usize) -> InstanceState {
        self.handle(at)
            .map_or(InstanceState::Absent, |handle| handle.instance().state())
    }

    fn first_handler(&self) -> Option<Arc<BackgroundHandler>> {
        let table = self.lock();
        let handle = table.handles.iter().flatten().next()?;
        Some(Arc::clone(&handle.instance().handler))
    }

    fn is_empty(&self) -> bool {
        let handles = self.handles();
        let mut handles = handles.iter();
        handles.all(|handle| handle.instance().state() == InstanceState::Absent)
    }

    /// Restarts the idle time of timers if the essence of the object has changed.
    fn note_change(&self, digest: u64, now: Moment) {
        let mut table = self.lock();
        if table.digest == digest {
            return;
        }
        table.digest = digest;
        for handle in table.handles.iter().flatten() {
            if let InstanceHandle::Timer(timer) = handle {
                timer.change(now);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, InstanceTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl InstanceHandle ===

impl InstanceHandle {
    fn instance(&self) -> &Arc<Instance> {
        match self {
            Self::Daemon(instance) => instance,
            Self::Timer(timer) => &timer.runner.instance,
        }
    }
}

fn digest(essence: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    essence.to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
