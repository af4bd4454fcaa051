//! Runs one stream per kind and served namespace, as kinds and namespaces come and go.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::declarations::{Declarations, HandledKindsChange};
use super::discovery::Discovered;
use super::error::Error;
use super::namespaces::{NamespaceScope, ServedNamespaces};
use crate::children::watcher::ChildWatcher;
use crate::children::{Children, WatchedKind};
use crate::client::requests::KindApi;
use crate::client::resource::Scope;
use crate::coordination::pause::PauseGate;
use crate::health::metrics::{KindMetrics, Metrics};
use crate::index::list_gate::{ListGate, PendingList};
use crate::index::update::{self, IndexUpdater, Indexer};
use crate::process::HandledKind;
use crate::process::execute::handler_scope::OperatorServices;
use crate::process::persist::finalizer_sweep::FinalizerSweep;
use crate::task::heartbeat::Heartbeats;
use crate::task::{TaskEnd, Tasks};
use crate::watch::stream::{self, StreamOutput, StreamSettings, WatchStream};
use crate::watch::stream_health::StreamHealth;
use crate::watch::{KindIndex, ObjectKey, QueueItem};
use kopf_core::watch::known_objects::Retention;

/// Watch events on their way to the indices of a stream.
const WATCH_EVENT_CHANNEL: usize = 64;

/// The services that all streams share.
pub(super) struct StreamServices {
    pub(super) settings: StreamSettings,
    pub(super) sink: mpsc::Sender<(Arc<ObjectKey>, QueueItem)>,
    pub(super) pause_gate: PauseGate,
    pub(super) finalizer: String,
    /// The services of index functions.
    pub(super) services: Arc<OperatorServices>,
    pub(super) gate: ListGate,
    /// The gate of lists for indices in a pause; none if no webhook reads indices then.
    pub(super) gate_of_pauses: Option<ListGate>,
    pub(super) listed: ListGate,
    pub(super) default_backoff: Duration,
    pub(super) heartbeats: Heartbeats,
    pub(super) children: Arc<Children>,
    pub(super) metrics: Metrics,
}

/// The properties of a kind that its streams need.
struct StreamedKind {
    kind: KindIndex,
    api: KindApi,
    scope: Scope,
    retention: Retention,
    sweeps: bool,
    indexers: Vec<Indexer>,
    only_indexes: bool,
    metrics: Arc<KindMetrics>,
}

/// Tickets that keep the operator unready until the first streams have their own.
pub(super) type StartupLists = (PendingList, Option<[PendingList; 2]>);

/// The namespaces that streams of namespaced kinds watch.
enum WatchedNamespaces {
    /// Not known yet.
    Unknown,
    Everywhere,
    Namespaces(BTreeSet<String>),
}

/// One stream: a kind, and a namespace unless it watches the whole cluster.
type StreamKey = (KindIndex, Option<String>);

/// All streams of an operator.
pub(super) struct Streams {
    services: StreamServices,
    declarations: Declarations,
    kinds: BTreeMap<KindIndex, StreamedKind>,
    namespaces: WatchedNamespaces,
    streams: Tasks,
    /// The tokens that end each stream.
    running: HashMap<StreamKey, CancellationToken>,
    /// The tokens that end each stream of children, and of objects that are referred to.
    related: HashMap<StreamKey, CancellationToken>,
    /// The task names of streams that are about to end. A new stream of that name starts after.
    ending: BTreeSet<String>,
    served: Option<watch::Receiver<ServedNamespaces>>,
    discovered: Option<watch::Receiver<Discovered>>,
    /// Held until the namespaces and the kinds are known.
    tickets: Option<StartupLists>,
}

// === impl Streams ===

impl Streams {
    /// Starts the streams of the kinds and namespaces that are known already.
    pub(super) fn start(
        services: StreamServices,
        mut declarations: Declarations,
        discovered: Option<watch::Receiver<Discovered>>,
        namespace_scope: NamespaceScope,
        tickets: StartupLists,
    ) -> Result<Self, Error> {
        let kinds = declarations.make_static_kinds()?;
        let (namespaces, served) = match namespace_scope {
            NamespaceScope::Cluster => (WatchedNamespaces::Everywhere, None),
            NamespaceScope::Fixed(names) => (WatchedNamespaces::Namespaces(names), None),
            NamespaceScope::Followed(served) => (WatchedNamespaces::Unknown, Some(served)),
        };
        let mut streams = Self {
            services,
            declarations,
            kinds: BTreeMap::new(),
            namespaces,
            streams: Tasks::default(),
            running: HashMap::new(),
            related: HashMap::new(),
            ending: BTreeSet::new(),
            served,
            discovered,
            tickets: Some(tickets),
        };
        streams.add_kinds(kinds);
        if let Some(served) = &mut streams.served {
            served.mark_changed();
        }
        if let Some(discovered) = &mut streams.discovered {
            discovered.mark_changed();
        }
        streams.reconcile();
        if streams.served.is_none() && streams.discovered.is_none() {
            streams.tickets = None;
        }
        Ok(streams)
    }

    /// Whether there is nothing to watch, now or later.
    pub(super) fn is_idle(&self) -> bool {
        self.kinds.is_empty() && self.discovered.is_none()
    }

    /// Follows the namespaces and the kinds until a stream ends, which only a defect can cause.
    pub(super) async fn ended(&mut self) -> TaskEnd {
        loop {
            tokio::select! {
                ended = self.streams.ended() => match ended {
                    TaskEnd::Finished(name) if self.ending.remove(&name) => {}
                    ended => return ended,
                },
                served = changed(self.served.as_mut()) => {
                    if let Some(served) = served {
                        self.namespaces = WatchedNamespaces::Namespaces(served);
                    }
                }
                catalog = changed(self.discovered.as_mut()) => {
                    if let Some(catalog) = catalog {
                        let HandledKindsChange { removed, added } = self.declarations.resolve_kinds(&catalog);
                        self.kinds.retain(|kind, _| !removed.contains(kind));
                        self.add_kinds(added);
                    }
                }
            }
            self.reconcile();
            if self.knows_kinds_and_namespaces() {
                self.tickets = None;
            }
        }
    }

    /// Ends all streams at once; what they have read is dropped.
    pub(super) async fn cancel(self) {
        self.streams.cancel().await;
    }

    fn knows_kinds_and_namespaces(&self) -> bool {
        let discovered = self.discovered.as_ref();
        let knows_kinds = discovered.is_none_or(|it| it.borrow().is_some());
        knows_kinds && !matches!(self.namespaces, WatchedNamespaces::Unknown)
    }

    fn add_kinds(&mut self, kinds: Vec<KindIndex>) {
        for index in kinds {
            let kind = self.declarations.kinds().get(index);
            self.kinds.insert(index, StreamedKind::new(index, &kind));
        }
    }

    /// Ends and starts streams, so that there is one for each kind and namespace.
    fn reconcile(&mut self) {
        let wanted: BTreeSet<StreamKey> = self
            .kinds
            .values()
            .flat_map(|kind| {
                self.namespaces
                    .for_scope(kind.scope)
                    .map(|namespace| (kind.kind, namespace))
            })
            .collect();
        let gone = self.running.extract_if(|key, _| !wanted.contains(key));
        for ((kind, namespace), token) in gone.collect::<Vec<_>>() {
            token.cancel();
            let kind = self.declarations.kinds().get(kind);
            self.ending.insert(name(kind.api(), namespace.as_deref()));
        }
        self.reconcile_related();
        for key in wanted {
            let (kind, namespace) = &key;
            let name = name(&self.kinds[kind].api, namespace.as_deref());
            if !self.running.contains_key(&key) && !self.ending.contains(&name) {
                self.start_stream(key, name);
            }
        }
    }

    /// The same for the streams of children, and of objects that are referred to.
    fn reconcile_related(&mut self) {
        let children = Arc::clone(&self.services.children);
        let wanted: BTreeSet<StreamKey> = children
            .kinds()
            .iter()
            .flat_map(|kind| {
                let namespaces = self.namespaces.for_scope(kind.spec.scope);
                namespaces.map(|namespace| (kind.index, namespace))
            })
            .collect();
        let gone = self.related.extract_if(|key, _| !wanted.contains(key));
        for ((index, namespace), token) in gone.collect::<Vec<_>>() {
            token.cancel();
            children.set_watched(index, namespace.as_deref(), false);
            let kind = &children.kinds()[usize::from(index.0)];
            self.ending
                .insert(related_name(&children, kind, namespace.as_deref()));
        }
        for key in wanted {
            let kind = &children.kinds()[usize::from(key.0.0)];
            let name = related_name(&children, kind, key.1.as_deref());
            if !self.related.contains_key(&key) && !self.ending.contains(&name) {
                self.start_related(key, kind, name);
            }
        }
    }

    fn start_related(&mut self, key: StreamKey, kind: &WatchedKind, name: String) {
        let gone = CancellationToken::new();
        let services = &self.services;
        let namespace = key.1.clone();
        let api = services.children.watched_api(kind);
        let described = api.describe(namespace.as_deref());
        services
            .children
            .set_watched(kind.index, namespace.as_deref(), true);
        let watcher = ChildWatcher {
            children: Arc::clone(&services.children),
            kind: kind.index,
            namespace: namespace.clone(),
            lists: [
                services.gate.expect_list(described.clone()),
                services.listed.expect_list(described.clone()),
            ],
        };
        let metrics = services.metrics.kind(&kind.spec.kind, &kind.spec.group);
        let stream = WatchStream {
            api,
            kind: kind.index,
            health: StreamHealth::new(&services.heartbeats, metrics, &described),
            namespace,
            retention: Retention::Identity,
            settings: services.settings.clone(),
            runs_in_pauses: false,
        };
        let (sender, messages) = mpsc::channel(WATCH_EVENT_CHANNEL);
        let pause_gate = services.pause_gate.clone();
        let output = StreamOutput::Indices(sender);
        let stream = stream::run_until(stream, output, pause_gate, gone.clone());
        self.streams.spawn(name, async move {
            tokio::join!(stream, watcher.run(messages));
        });
        self.related.insert(key, gone);
    }

    fn start_stream(&mut self, key: StreamKey, name: String) {
        let gone = CancellationToken::new();
        let (kind, namespace) = &key;
        let kind = &self.kinds[kind];
        let (stream, sweep) = kind.stream(&self.services, namespace.as_deref());
        let (sink, updater) = kind.sink(&self.services, namespace.as_deref());
        let pause_gate = self.services.pause_gate.clone();
        let stream = stream::run_until(stream, sink, pause_gate, gone.clone());
        let over = gone.clone();
        self.streams.spawn(name, async move {
            let sweeping = OptionFuture::from(sweep.map(FinalizerSweep::run));
            let sweeping = over.run_until_cancelled(sweeping);
            tokio::join!(sweeping, stream, OptionFuture::from(updater));
        });
        self.running.insert(key, gone);
    }
}

// === impl WatchedNamespaces ===

impl WatchedNamespaces {
    /// The namespaces to watch for a kind of this scope; `None` is the whole cluster.
    fn for_scope(&self, scope: Scope) -> impl Iterator<Item = Option<String>> {
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

/// The name of the task of a stream of children, or of objects that are referred to.
fn related_name(children: &Children, kind: &WatchedKind, namespace: Option<&str>) -> String {
    let described = children.watched_api(kind).describe(namespace);
    format!("watch {described} for reconcile {}", kind.index.0)
}

// === impl StreamedKind ===

impl StreamedKind {
    fn new(index: KindIndex, kind: &HandledKind) -> Self {
        Self {
            kind: index,
            api: kind.api().clone(),
            scope: kind.spec().scope,
            retention: kind.retention(),
            sweeps: kind.may_have_unselected_finalizers(),
            indexers: kind.indexers().to_vec(),
            only_indexes: kind.only_indexes(),
            metrics: Arc::clone(kind.metrics()),
        }
    }

    /// The receiver of a stream's watch events: the queue, or the index updater in front of it.
    fn sink(
        &self,
        services: &StreamServices,
        namespace: Option<&str>,
    ) -> (StreamOutput, Option<impl Future<Output = ()> + use<>>) {
        let described = self.api.describe(namespace);
        let listed_ticket = services.listed.expect_list(described.clone());
        if self.indexers.is_empty() {
            let sink =
                StreamOutput::QueueWithObserver(services.sink.clone(), Box::new(listed_ticket));
            return (sink, None);
        }
        let shared = update::IndexEvaluator {
            indexers: self.indexers.clone(),
            api: self.api.clone(),
            services: Arc::clone(&services.services),
            default_backoff: services.default_backoff,
        };
        let queue = (!self.only_indexes).then(|| services.sink.clone());
        let in_pauses = services.gate_of_pauses.as_ref();
        let lists = update::IndexLists {
            in_pauses: in_pauses.map(|gate| gate.expect_list(described.clone())),
            running: [services.gate.expect_list(described), listed_ticket],
        };
        let (sender, watch_events) = mpsc::channel(WATCH_EVENT_CHANNEL);
        let updater = IndexUpdater::new(shared, queue, lists).run(watch_events);
        (StreamOutput::Indices(sender), Some(updater))
    }

    fn stream(
        &self,
        services: &StreamServices,
        namespace: Option<&str>,
    ) -> (WatchStream, Option<FinalizerSweep>) {
        let namespace = namespace.map(str::to_owned);
        let sweep = self.sweeps.then(|| FinalizerSweep {
            api: self.api.clone(),
            kind: self.kind,
            namespace: namespace.clone(),
            pause_gate: services.pause_gate.clone(),
            finalizer: services.finalizer.clone(),
        });
        let stream = WatchStream {
            api: self.api.clone(),
            kind: self.kind,
            health: StreamHealth::new(
                &services.heartbeats,
                Arc::clone(&self.metrics),
                &self.api.describe(namespace.as_deref()),
            ),
            namespace,
            retention: self.retention,
            settings: services.settings.clone(),
            runs_in_pauses: services.gate_of_pauses.is_some() && !self.indexers.is_empty(),
        };
        (stream, sweep)
    }
}

/// Waits for the next change of a value and returns it; never, if there is nothing to watch.
pub(super) async fn changed<T: Clone>(view: Option<&mut watch::Receiver<T>>) -> T {
    let Some(view) = view else {
        return std::future::pending().await;
    };
    if view.changed().await.is_err() {
        return std::future::pending().await;
    }
    view.borrow_and_update().clone()
}
