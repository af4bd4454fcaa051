//! Daemons and timers: who accompanies which object, from start to stop.
//!
//! The pipeline tells what it sees of objects; decisions are the core's. A post holds what is
//! beside one object. Daemons are tasks, timers are entries of a clock, and both belong to one
//! crew, so that none of them outlives the operator.

mod attempt;
mod daemon;
pub(crate) mod declaration;
mod instance;
mod scheduler;
mod timer;
mod timer_calls;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use kopf_core::background::Moment;
use kopf_core::background::desired::{InstanceState, InstanceStep, ObjectLife, holds, step};
use kopf_core::background::stopping::StopReason;
use kopf_core::background::timing::Ticker;
use kopf_core::cause::Subject;
use kopf_core::object::ObjectView;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::error;

use self::attempt::Site;
use self::declaration::{Duty, Work};
use self::instance::{LastOut, Run};
use self::scheduler::Order;
use self::timer::Timer;
use crate::client::resource_version::ResourceVersion;
use crate::process::execute::scope::OperatorServices;
use crate::process::persist::background_write;
use crate::queue::QueueLimits;
use crate::settings::Settings;
use crate::task::heartbeat::Heartbeat;
use crate::watch::ObjectKey;
use crate::watch::latest::LatestState;

/// How long those who disobey may take to be interrupted, when all graces are over.
const LAST_GRACE: Duration = Duration::from_secs(1);

/// All daemons and timers of an operator.
pub(crate) struct Background {
    shared: Arc<Shared>,
    /// Never held across an await.
    posts: Mutex<HashMap<Arc<ObjectKey>, Arc<Post>>>,
    /// Never held across an await.
    gate: Mutex<Gate>,
    /// Timers that were started for objects found in a list.
    crowd: AtomicU32,
}

/// Whether daemons and timers may be started.
enum Gate {
    Open,
    /// Not now; these objects are to be looked at when they may.
    Closed(HashSet<Arc<ObjectKey>>),
}

/// Where the parts of an operator meet its daemons and timers.
pub(crate) struct Staff {
    pub(crate) background: Arc<Background>,
    /// Objects that are to be looked at again, as something beside them has ended.
    pub(crate) nudges: mpsc::UnboundedReceiver<Arc<ObjectKey>>,
    orders: mpsc::UnboundedReceiver<Order>,
}

/// What every daemon and timer has.
struct Shared {
    settings: Arc<Settings>,
    services: Arc<OperatorServices>,
    origin: Instant,
    orders: mpsc::UnboundedSender<Order>,
    nudges: mpsc::UnboundedSender<Arc<ObjectKey>>,
}

/// What is beside one object.
struct Post {
    live: Arc<LatestState>,
    /// Never held across an await.
    inner: Mutex<Inner>,
}

struct Inner {
    /// In the order of the kind's duties.
    members: Box<[Option<Member>]>,
    /// The state of the object when it last changed in what counts.
    digest: u64,
}

/// A daemon or timer beside an object.
#[derive(Clone)]
enum Member {
    Daemon(Arc<Run>),
    Timer(Arc<Timer>),
}

/// An object as it is seen now, with all that may accompany it.
pub(crate) struct Scene<'a> {
    pub(crate) key: &'a Arc<ObjectKey>,
    pub(crate) duties: &'a [Arc<Duty>],
    pub(crate) object: &'a Value,
    /// The part of the object whose changes count.
    pub(crate) essence: &'a Value,
    pub(crate) life: ObjectLife,
    /// Whether many objects may have been found at the same time.
    pub(crate) listed: bool,
}

// === impl Staff ===

impl Staff {
    pub(crate) fn new(settings: Arc<Settings>, services: Arc<OperatorServices>) -> Self {
        let (orders, ordered) = mpsc::unbounded_channel();
        let (nudges, nudged) = mpsc::unbounded_channel();
        let shared = Shared {
            settings,
            services,
            origin: Instant::now(),
            orders,
            nudges,
        };
        Self {
            background: Arc::new(Background {
                shared: Arc::new(shared),
                posts: Mutex::default(),
                gate: Mutex::new(Gate::Open),
                crowd: AtomicU32::new(0),
            }),
            nudges: nudged,
            orders: ordered,
        }
    }

    /// Runs all daemons and timers until `quit`, and hands the rest over.
    pub(crate) fn crew(
        self,
        limits: QueueLimits,
        heartbeat: Heartbeat,
        quit: CancellationToken,
    ) -> (
        impl Future<Output = ()> + Send + 'static,
        mpsc::UnboundedReceiver<Arc<ObjectKey>>,
    ) {
        let origin = self.background.shared.origin;
        let crew = scheduler::run(origin, self.orders, limits, heartbeat, quit);
        (crew, self.nudges)
    }
}

// === impl Background ===

impl Background {
    /// A newer state of an object has arrived, though its turn may not have come.
    pub(crate) fn saw(
        &self,
        key: &ObjectKey,
        text: &Arc<RawValue>,
        version: Option<ResourceVersion>,
    ) {
        if let Some(post) = self.post(key)
            && let Some(duty) = post.first_duty()
        {
            match duty.api.with_type_meta(text) {
                Ok(text) => post.live.update(text, version),
                Err(error) => error!(object = %key, "the object cannot be read: {error}"),
            }
        }
    }

    /// The server has answered with a newer state of an object.
    pub(crate) fn wrote(&self, key: &ObjectKey, newer: &Value) {
        if let Some(post) = self.post(key) {
            background_write::show(&post.live, newer);
        }
    }

    /// The server was set back, and what was newer never happened.
    pub(crate) fn restored(&self, key: &ObjectKey, former: &Value) {
        if let Some(post) = self.post(key) {
            background_write::set_back(&post.live, former);
        }
    }

    /// The newest state of an object that somebody accompanies.
    pub(crate) fn newest(&self, key: &ObjectKey) -> Option<Value> {
        let text = self.post(key)?.live.snapshot().text;
        serde_json::from_str(text.get()).ok()
    }

    /// Starts and stops what the state of an object demands; tells whether it needs the finalizer.
    pub(crate) fn tend(&self, scene: &Scene<'_>) -> bool {
        let mut post = self.post(scene.key);
        let subject = Subject::object(ObjectView::new(scene.object));
        let mut held = false;
        let mut put_off = false;
        for (at, duty) in scene.duties.iter().enumerate() {
            let matches = duty.spec.matches(&subject);
            let presence = |post: &Option<Arc<Post>>| {
                post.as_ref()
                    .map_or(InstanceState::Absent, |post| post.presence(at))
            };
            match step(presence(&post), matches, scene.life) {
                InstanceStep::Leave => {}
                InstanceStep::Start => {
                    let post = post.get_or_insert_with(|| self.open(scene));
                    match &mut *self.gate() {
                        Gate::Open => self.start(post, at, duty, scene),
                        Gate::Closed(waiting) => {
                            put_off = true;
                            waiting.insert(Arc::clone(scene.key));
                        }
                    }
                }
                InstanceStep::Stop(reason) => {
                    if let Some(member) = post.as_ref().and_then(|post| post.member(at)) {
                        self.stop(&member, reason);
                    }
                }
            }
            held |= holds(presence(&post), matches, scene.life);
        }
        if let Some(post) = post {
            if scene.duties.iter().any(|duty| duty.idles()) {
                post.compare(digest(scene.essence), self.shared.now());
            }
            if post.is_empty() && !put_off {
                self.posts().remove(scene.key);
            }
        }
        held
    }

    /// The object is gone for good, and nothing of it is to be remembered.
    pub(crate) fn gone(&self, key: &ObjectKey) {
        let Some(post) = self.post(key) else {
            return;
        };
        if let Gate::Closed(waiting) = &mut *self.gate() {
            waiting.remove(key);
        }
        for member in post.members() {
            if member.run().presence() == InstanceState::Running {
                self.stop(&member, StopReason::ResourceDeleted);
            }
        }
        if post.members().iter().all(|member| member.run().is_gone()) {
            self.posts().remove(key);
        }
    }

    /// Stops everything for this reason, and waits until all have stopped or are given up.
    ///
    /// Nothing is started until [`resume`](Self::resume).
    pub(crate) async fn pause(&self, reason: StopReason) {
        self.crowd.store(0, Ordering::Relaxed);
        *self.gate() = Gate::Closed(HashSet::new());
        let runs = self.stop_all(reason);
        if let Gate::Closed(waiting) = &mut *self.gate() {
            waiting.extend(runs.iter().map(|run| Arc::clone(&run.key)));
        }
        join_all(runs.iter().map(|run| run.settled())).await;
    }

    /// Lets daemons and timers be started again, and their objects be looked at.
    pub(crate) fn resume(&self) {
        let waiting = std::mem::replace(&mut *self.gate(), Gate::Open);
        if let Gate::Closed(waiting) = waiting {
            waiting.iter().for_each(|key| self.shared.nudge(key));
        }
    }

    /// Stops everything when the operator pauses, and lets it start when the operator goes on.
    pub(crate) async fn follow_pauses(self: Arc<Self>) {
        let pause_gate = &self.shared.services.pause_gate;
        loop {
            let epoch = pause_gate.running().await;
            self.resume();
            pause_gate.paused_since(epoch).await;
            tokio::select! {
                () = self.pause(StopReason::OperatorPausing) => {}
                // Whoever has not stopped by now starts again when it has.
                _ = pause_gate.running() => {}
            }
        }
    }

    /// Stops everything within `grace`, and names those who have not stopped by then.
    pub(crate) async fn shut_down(&self, grace: Duration) -> Vec<String> {
        let pause = self.pause(StopReason::OperatorExiting);
        if tokio::time::timeout(grace, pause).await.is_ok() {
            return Vec::new();
        }
        let left = self.stop_all(StopReason::Cancelled);
        let mut disobedient: Vec<String> = left
            .iter()
            .filter(|run| run.presence() == InstanceState::Stopping)
            .map(|run| run.to_string())
            .collect();
        disobedient.sort();
        let all = join_all(left.iter().map(|run| run.settled()));
        // Whoever does not react to this either is dropped with its task.
        let _ = tokio::time::timeout(LAST_GRACE, all).await;
        disobedient
    }

    fn stop_all(&self, reason: StopReason) -> Vec<Arc<Run>> {
        let posts: Vec<Arc<Post>> = self.posts().values().cloned().collect();
        let members = posts.iter().flat_map(|post| post.members());
        let there = members.filter(|member| !member.run().is_gone());
        there
            .map(|member| {
                self.stop(&member, reason);
                Arc::clone(member.run())
            })
            .collect()
    }

    fn stop(&self, member: &Member, reason: StopReason) {
        let needs_escort = match member {
            Member::Daemon(run) => run.signal.raise(reason),
            Member::Timer(timer) => timer.stop(reason),
        };
        if needs_escort {
            let run = Arc::clone(member.run());
            let escort = run.see_off(Arc::clone(&self.shared));
            self.shared.order(Order::Run(escort.boxed()));
        }
    }

    fn open(&self, scene: &Scene<'_>) -> Arc<Post> {
        let version = ObjectView::new(scene.object).resource_version();
        let text =
            serde_json::value::to_raw_value(scene.object).expect("JSON can be written as JSON");
        let live = LatestState::new(text.into(), version.map(ResourceVersion::new));
        let post = Arc::new(Post {
            live: Arc::new(live),
            inner: Mutex::new(Inner {
                members: scene.duties.iter().map(|_| None).collect(),
                digest: digest(scene.essence),
            }),
        });
        self.posts()
            .insert(Arc::clone(scene.key), Arc::clone(&post));
        post
    }

    fn start(&self, post: &Post, at: usize, duty: &Arc<Duty>, scene: &Scene<'_>) {
        let run = Arc::new(Run::new(duty, scene.key));
        let site = Site {
            shared: Arc::clone(&self.shared),
            run: Arc::clone(&run),
            live: Arc::clone(&post.live),
        };
        let delay = duty.initial_delay(scene.object);
        let member = match &duty.work {
            Work::Daemon(_) => {
                let alive = Arc::new(LastOut {
                    run: Arc::clone(&run),
                    shared: Arc::clone(&self.shared),
                });
                let task = daemon::accompany(site, delay, alive);
                self.shared.order(Order::Run(task.boxed()));
                Member::Daemon(run)
            }
            Work::Timer(part) => {
                let spread = if scene.listed {
                    let crowd = self.crowd.fetch_add(1, Ordering::Relaxed);
                    let longest = self.shared.settings.background.initial_spread;
                    part.timing.spread(crowd, fastrand::f64(), longest)
                } else {
                    Duration::ZERO
                };
                let ticker = Ticker::start(self.shared.now(), delay.saturating_add(spread));
                let timer = Arc::new(Timer::new(site, part, ticker));
                self.shared.order(Order::Arm(Arc::clone(&timer)));
                Member::Timer(timer)
            }
        };
        post.lock().members[at] = Some(member);
    }

    fn post(&self, key: &ObjectKey) -> Option<Arc<Post>> {
        self.posts().get(key).cloned()
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn posts(&self) -> MutexGuard<'_, HashMap<Arc<ObjectKey>, Arc<Post>>> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Shared ===

impl Shared {
    fn now(&self) -> Moment {
        self.origin.elapsed()
    }

    /// Without a crew the operator has stopped, and nothing is to be done any more.
    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    fn nudge(&self, key: &Arc<ObjectKey>) {
        let _ = self.nudges.send(Arc::clone(key));
    }
}

// === impl Post ===

impl Post {
    fn member(&self, at: usize) -> Option<Member> {
        self.lock().members.get(at).cloned().flatten()
    }

    fn members(&self) -> Vec<Member> {
        self.lock().members.iter().flatten().cloned().collect()
    }

    fn presence(&self, at: usize) -> InstanceState {
        self.member(at)
            .map_or(InstanceState::Absent, |member| member.run().presence())
    }

    fn first_duty(&self) -> Option<Arc<Duty>> {
        let inner = self.lock();
        let member = inner.members.iter().flatten().next()?;
        Some(Arc::clone(&member.run().duty))
    }

    fn is_empty(&self) -> bool {
        let members = self.members();
        let mut members = members.iter();
        members.all(|member| member.run().presence() == InstanceState::Absent)
    }

    /// Tells timers that wait for quiet whether the object has changed in what counts.
    fn compare(&self, digest: u64, now: Moment) {
        let mut inner = self.lock();
        if inner.digest == digest {
            return;
        }
        inner.digest = digest;
        for member in inner.members.iter().flatten() {
            if let Member::Timer(timer) = member {
                timer.change(now);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Member ===

impl Member {
    fn run(&self) -> &Arc<Run> {
        match self {
            Self::Daemon(run) => run,
            Self::Timer(timer) => &timer.site.run,
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
