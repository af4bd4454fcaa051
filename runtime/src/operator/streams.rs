//! One stream for each kind and each served namespace, as kinds and namespaces come and go.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Error;
use super::declarations::{Declarations, Revision};
use super::discovery::Discovered;
use super::namespaces::{NamespaceScope, Served};
use crate::client::requests::KindApi;
use crate::client::resource::Scope;
use crate::coordination::pause::PauseGate;
use crate::health::metrics::KindMetrics;
use crate::index::readiness::{Gate, ListTicket};
use crate::index::update::{self, IndexUpdater, Indexer};
use crate::process::Kind;
use crate::process::execute::scope::OperatorServices;
use crate::process::persist::finalizer_sweep::Sweep;
use crate::task::heartbeat::Heartbeats;
use crate::task::{TaskEnd, Tasks};
use crate::watch::known_objects::Retain;
use crate::watch::stream::{self, Sink, Stream, StreamSettings};
use crate::watch::stream_health::StreamHealth;
use crate::watch::{KindIndex, ObjectKey, QueueItem};

/// Sightings on their way to the indices of a stream.
const NEWS_IN_FLIGHT: usize = 64;

/// What every stream has.
pub(super) struct Course {
    pub(super) settings: StreamSettings,
    pub(super) sink: mpsc::Sender<(Arc<ObjectKey>, QueueItem)>,
    pub(super) pause_gate: PauseGate,
    pub(super) finalizer: String,
    /// Of those who fill indices.
    pub(super) services: Arc<OperatorServices>,
    pub(super) gate: Gate,
    pub(super) listed: Gate,
    pub(super) default_backoff: Duration,
    pub(super) heartbeats: Heartbeats,
}

/// A kind, as its streams see it.
struct Lane {
    kind: KindIndex,
    api: KindApi,
    scope: Scope,
    retain: Retain,
    sweeps: bool,
    indexers: Vec<Indexer>,
    only_indexes: bool,
    metrics: Arc<KindMetrics>,
}

/// Nobody may think that there is nothing to wait for before the streams are there.
pub(super) type Starting = (ListTicket, Option<ListTicket>);

/// Where namespaced objects are looked for.
enum Ground {
    /// It is not known yet.
    Unknown,
    Everywhere,
    Namespaces(BTreeSet<String>),
}

/// One stream: a kind, and the namespace unless it is everywhere.
type Position = (KindIndex, Option<String>);

/// All streams of an operator.
pub(super) struct Streams {
    course: Course,
    declarations: Declarations,
    lanes: BTreeMap<KindIndex, Lane>,
    ground: Ground,
    streams: Tasks,
    /// How to end each stream.
    running: HashMap<Position, CancellationToken>,
    /// The names of streams that are about to end: until then, nobody takes their places.
    leaving: BTreeSet<String>,
    served: Option<watch::Receiver<Served>>,
    discovered: Option<watch::Receiver<Discovered>>,
    /// Keeps everybody waiting before the namespaces and the kinds are known.
    waiting: Option<Starting>,
}

// === impl Streams ===

impl Streams {
    /// Starts the streams that there can be already.
    pub(super) fn start(
        course: Course,
        mut declarations: Declarations,
        discovered: Option<watch::Receiver<Discovered>>,
        namespace_scope: NamespaceScope,
        starting: Starting,
    ) -> Result<Self, Error> {
        let settled = declarations.settled()?;
        let (ground, served) = match namespace_scope {
            NamespaceScope::Cluster => (Ground::Everywhere, None),
            NamespaceScope::Fixed(names) => (Ground::Namespaces(names), None),
            NamespaceScope::Followed(served) => (Ground::Unknown, Some(served)),
        };
        let mut reach = Self {
            course,
            declarations,
            lanes: BTreeMap::new(),
            ground,
            streams: Tasks::default(),
            running: HashMap::new(),
            leaving: BTreeSet::new(),
            served,
            discovered,
            waiting: Some(starting),
        };
        reach.serve(settled);
        if let Some(served) = &mut reach.served {
            served.mark_changed();
        }
        if let Some(discovered) = &mut reach.discovered {
            discovered.mark_changed();
        }
        reach.adapt();
        if reach.served.is_none() && reach.discovered.is_none() {
            reach.waiting = None;
        }
        Ok(reach)
    }

    /// Whether nothing will ever be seen.
    pub(super) fn is_idle(&self) -> bool {
        self.lanes.is_empty() && self.discovered.is_none()
    }

    /// Follows the namespaces and the kinds until a stream ends, which only a defect can cause.
    pub(super) async fn ended(&mut self) -> TaskEnd {
        loop {
            tokio::select! {
                ended = self.streams.ended() => match ended {
                    TaskEnd::Finished(name) if self.leaving.remove(&name) => {}
                    ended => return ended,
                },
                served = changed(self.served.as_mut()) => {
                    if let Some(served) = served {
                        self.ground = Ground::Namespaces(served);
                    }
                }
                catalog = changed(self.discovered.as_mut()) => {
                    if let Some(catalog) = catalog {
                        let Revision { gone, come } = self.declarations.revise(&catalog);
                        self.lanes.retain(|kind, _| !gone.contains(kind));
                        self.serve(come);
                    }
                }
            }
            self.adapt();
            if self.knows_all() {
                self.waiting = None;
            }
        }
    }

    /// Ends all streams, without any regard to what they have seen.
    pub(super) async fn cancel(self) {
        self.streams.cancel().await;
    }

    fn knows_all(&self) -> bool {
        let discovered = self.discovered.as_ref();
        let knows_kinds = discovered.is_none_or(|it| it.borrow().is_some());
        knows_kinds && !matches!(self.ground, Ground::Unknown)
    }

    fn serve(&mut self, kinds: Vec<KindIndex>) {
        for index in kinds {
            let kind = self.declarations.kinds().get(index);
            self.lanes.insert(index, Lane::new(index, &kind));
        }
    }

    /// Ends and starts streams, so that there is one for each kind and place.
    fn adapt(&mut self) {
        let wanted: BTreeSet<Position> = self
            .lanes
            .values()
            .flat_map(|lane| {
                self.ground
                    .places(lane.scope)
                    .map(|place| (lane.kind, place))
            })
            .collect();
        let gone = self
            .running
            .extract_if(|position, _| !wanted.contains(position));
        for ((kind, namespace), token) in gone.collect::<Vec<_>>() {
            token.cancel();
            let kind = self.declarations.kinds().get(kind);
            self.leaving.insert(name(kind.api(), namespace.as_deref()));
        }
        for position in wanted {
            let (kind, namespace) = &position;
            let name = name(&self.lanes[kind].api, namespace.as_deref());
            if !self.running.contains_key(&position) && !self.leaving.contains(&name) {
                self.enter(position, name);
            }
        }
    }

    fn enter(&mut self, position: Position, name: String) {
        let gone = CancellationToken::new();
        let (kind, namespace) = &position;
        let lane = &self.lanes[kind];
        let (stream, sweep) = lane.stream(&self.course, namespace.as_deref());
        let (sink, updater) = lane.outlet(&self.course, namespace.as_deref());
        let pause_gate = self.course.pause_gate.clone();
        let stream = stream::run_until(stream, sink, pause_gate, gone.clone());
        let over = gone.clone();
        self.streams.spawn(name, async move {
            let sweeping = OptionFuture::from(sweep.map(Sweep::run));
            let sweeping = over.run_until_cancelled(sweeping);
            tokio::join!(sweeping, stream, OptionFuture::from(updater));
        });
        self.running.insert(position, gone);
    }
}

// === impl Ground ===

impl Ground {
    /// Where objects of this scope are looked for.
    fn places(&self, scope: Scope) -> impl Iterator<Item = Option<String>> {
        let (everywhere, names) = match (self, scope) {
            (Self::Everywhere, _) | (_, Scope::Cluster) => (Some(None), None),
            (Self::Namespaces(names), Scope::Namespaced) => (None, Some(names)),
            (Self::Unknown, Scope::Namespaced) => (None, None),
        };
        let names = names.into_iter().flatten().cloned().map(Some);
        everywhere.into_iter().chain(names)
    }
}

/// The name of the task of a stream.
fn name(api: &KindApi, namespace: Option<&str>) -> String {
    format!("watch {}", api.describe(namespace))
}

// === impl Lane ===

impl Lane {
    fn new(index: KindIndex, kind: &Kind) -> Self {
        Self {
            kind: index,
            api: kind.api().clone(),
            scope: kind.spec().scope,
            retain: kind.retain(),
            sweeps: kind.may_hide_leftovers(),
            indexers: kind.indexers().to_vec(),
            only_indexes: kind.only_indexes(),
            metrics: Arc::clone(kind.metrics()),
        }
    }

    /// Where the sightings of a stream go: to the queue, by way of the indices if there are any.
    fn outlet(
        &self,
        course: &Course,
        namespace: Option<&str>,
    ) -> (Sink, Option<impl Future<Output = ()> + use<>>) {
        let described = self.api.describe(namespace);
        let attendance = course.listed.ticket(described.clone());
        if self.indexers.is_empty() {
            let sink = Sink::Attended(course.sink.clone(), Box::new(attendance));
            return (sink, None);
        }
        let shared = update::Shared {
            indexers: self.indexers.clone(),
            api: self.api.clone(),
            services: Arc::clone(&course.services),
            default_backoff: course.default_backoff,
        };
        let queue = (!self.only_indexes).then(|| course.sink.clone());
        let tickets = [course.gate.ticket(described), attendance];
        let (outlet, told) = mpsc::channel(NEWS_IN_FLIGHT);
        let updater = IndexUpdater::new(shared, queue, tickets).run(told);
        (Sink::Indices(outlet), Some(updater))
    }

    fn stream(&self, course: &Course, namespace: Option<&str>) -> (Stream, Option<Sweep>) {
        let namespace = namespace.map(str::to_owned);
        let sweep = self.sweeps.then(|| Sweep {
            api: self.api.clone(),
            kind: self.kind,
            namespace: namespace.clone(),
            pause_gate: course.pause_gate.clone(),
            finalizer: course.finalizer.clone(),
        });
        let stream = Stream {
            api: self.api.clone(),
            kind: self.kind,
            observed: StreamHealth::new(
                &course.heartbeats,
                Arc::clone(&self.metrics),
                &self.api.describe(namespace.as_deref()),
            ),
            namespace,
            retain: self.retain,
            settings: course.settings.clone(),
        };
        (stream, sweep)
    }
}

/// A value after its next change; never, if it does not change.
pub(super) async fn changed<T: Clone>(view: Option<&mut watch::Receiver<T>>) -> T {
    let Some(view) = view else {
        return std::future::pending().await;
    };
    if view.changed().await.is_err() {
        return std::future::pending().await;
    }
    view.borrow_and_update().clone()
}
