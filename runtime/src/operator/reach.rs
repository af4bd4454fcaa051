//! One stream for each kind and each served namespace, as namespaces come and go.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::territory::{Served, Territory};
use crate::activity::Activity;
use crate::api::KindApi;
use crate::index::gate::{Gate, Ticket};
use crate::indexing::{self, Clerk, Indexer};
use crate::memo::Memos;
use crate::metrics::KindMetrics;
use crate::persist::release::Sweep;
use crate::process::Kind;
use crate::resource::Scope;
use crate::surroundings::Means;
use crate::task::{Ended, Tasks};
use crate::vitals::Vitals;
use crate::watch::census::Retain;
use crate::watch::observed::Observed;
use crate::watch::stream::{self, Sink, Stream, StreamSettings};
use crate::watch::{KindIndex, News, ObjectKey};

/// Sightings on their way to the indices of a stream.
const NEWS_IN_FLIGHT: usize = 64;

/// What every stream has.
pub(super) struct Course {
    pub(super) settings: StreamSettings,
    pub(super) sink: mpsc::Sender<(Arc<ObjectKey>, News)>,
    pub(super) activity: Activity,
    pub(super) finalizer: String,
    /// Of those who fill indices.
    pub(super) means: Arc<Means>,
    pub(super) gate: Gate,
    pub(super) listed: Gate,
    pub(super) default_backoff: Duration,
    pub(super) vitals: Vitals,
}

/// A kind, as its streams see it.
struct Lane {
    kind: KindIndex,
    api: KindApi,
    scope: Scope,
    retain: Retain,
    sweeps: bool,
    indexers: Vec<Indexer>,
    memos: Option<Arc<Memos>>,
    only_indexes: bool,
    metrics: Arc<KindMetrics>,
}

/// Nobody may think that there is nothing to wait for before the streams are there.
pub(super) type Starting = (Ticket, Option<Ticket>);

/// All streams of an operator.
pub(super) struct Reach {
    course: Course,
    lanes: Vec<Lane>,
    streams: Tasks,
    /// How to end the streams of a namespace.
    namespaces: HashMap<String, CancellationToken>,
    /// Streams that are to end.
    leaving: BTreeSet<String>,
    served: Option<watch::Receiver<Served>>,
    /// Keeps everybody waiting before the namespaces are known.
    waiting: Option<Starting>,
}

// === impl Reach ===

impl Reach {
    /// Starts the streams that there can be already.
    pub(super) fn start<'a>(
        course: Course,
        kinds: impl Iterator<Item = (KindIndex, &'a Kind)>,
        territory: Territory,
        starting: Starting,
    ) -> Self {
        let lanes = kinds.map(|(index, kind)| Lane {
            kind: index,
            api: kind.api().clone(),
            scope: kind.spec().scope,
            retain: kind.retain(),
            sweeps: kind.may_hide_leftovers(),
            indexers: kind.indexers().to_vec(),
            memos: kind.memos().cloned(),
            only_indexes: kind.only_indexes(),
            metrics: Arc::clone(kind.metrics()),
        });
        let mut reach = Self {
            course,
            lanes: lanes.collect(),
            streams: Tasks::default(),
            namespaces: HashMap::new(),
            leaving: BTreeSet::new(),
            served: None,
            waiting: None,
        };
        let everywhere = matches!(territory, Territory::Cluster);
        reach.enter(None, |scope| everywhere || scope == Scope::Cluster);
        match territory {
            Territory::Cluster => {}
            Territory::Fixed(names) => reach.serve(&names),
            Territory::Followed(mut served) => {
                served.mark_changed();
                reach.served = Some(served);
                reach.waiting = Some(starting);
            }
        }
        reach
    }

    /// Whether nothing will ever be seen.
    pub(super) fn is_idle(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Follows the namespaces until a stream ends, which only a defect can cause.
    pub(super) async fn ended(&mut self) -> Ended {
        loop {
            tokio::select! {
                ended = self.streams.ended() => match ended {
                    Ended::Finished(name) if self.leaving.remove(&name) => {}
                    ended => return ended,
                },
                served = changed(self.served.as_mut()) => {
                    if let Some(served) = served {
                        self.serve(&served);
                        self.waiting = None;
                    }
                }
            }
        }
    }

    /// Ends all streams, without any regard to what they have seen.
    pub(super) async fn cancel(self) {
        self.streams.cancel().await;
    }

    fn serve(&mut self, names: &BTreeSet<String>) {
        let gone = self.namespaces.extract_if(|name, _| !names.contains(name));
        for (name, token) in gone.collect::<Vec<_>>() {
            token.cancel();
            let namespaced = self
                .lanes
                .iter()
                .filter(|lane| lane.scope == Scope::Namespaced);
            self.leaving
                .extend(namespaced.map(|lane| lane.name(Some(&name))));
        }
        for name in names {
            if !self.namespaces.contains_key(name) {
                self.enter(Some(name), |scope| scope == Scope::Namespaced);
            }
        }
    }

    fn enter(&mut self, namespace: Option<&str>, concerns: impl Fn(Scope) -> bool) {
        let gone = CancellationToken::new();
        for lane in self.lanes.iter().filter(|lane| concerns(lane.scope)) {
            let (stream, sweep) = lane.stream(&self.course, namespace);
            let (sink, clerk) = lane.outlet(&self.course, namespace);
            let activity = self.course.activity.clone();
            let stream = stream::run_until(stream, sink, activity, gone.clone());
            let over = gone.clone();
            self.streams.spawn(lane.name(namespace), async move {
                let sweeping = OptionFuture::from(sweep.map(Sweep::run));
                let sweeping = over.run_until_cancelled(sweeping);
                tokio::join!(sweeping, stream, OptionFuture::from(clerk));
            });
        }
        if let Some(namespace) = namespace {
            self.namespaces.insert(namespace.to_owned(), gone);
        }
    }
}

// === impl Lane ===

impl Lane {
    fn name(&self, namespace: Option<&str>) -> String {
        format!("watch {}", self.api.describe(namespace))
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
        let shared = indexing::Shared {
            indexers: self.indexers.clone(),
            api: self.api.clone(),
            memos: self.memos.clone(),
            means: Arc::clone(&course.means),
            default_backoff: course.default_backoff,
        };
        let queue = (!self.only_indexes).then(|| course.sink.clone());
        let tickets = [course.gate.ticket(described), attendance];
        let (outlet, told) = mpsc::channel(NEWS_IN_FLIGHT);
        let clerk = Clerk::new(shared, queue, tickets).run(told);
        (Sink::Indices(outlet), Some(clerk))
    }

    fn stream(&self, course: &Course, namespace: Option<&str>) -> (Stream, Option<Sweep>) {
        let namespace = namespace.map(str::to_owned);
        let sweep = self.sweeps.then(|| Sweep {
            api: self.api.clone(),
            kind: self.kind,
            namespace: namespace.clone(),
            activity: course.activity.clone(),
            finalizer: course.finalizer.clone(),
        });
        let stream = Stream {
            api: self.api.clone(),
            kind: self.kind,
            observed: Observed::new(
                &course.vitals,
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

/// The namespaces after their next change; never, if they do not change.
pub(super) async fn changed(served: Option<&mut watch::Receiver<Served>>) -> Served {
    let Some(served) = served else {
        return std::future::pending().await;
    };
    if served.changed().await.is_err() {
        return std::future::pending().await;
    }
    served.borrow_and_update().clone()
}
