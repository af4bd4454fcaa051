//! What the server serves at present: read at the start, and again whenever that may have changed.
//!
//! Definitions of kinds are watched if that is allowed, by their metadata alone. Their news arrive
//! before the server has made up its mind, so that it is asked until it agrees with them.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::selection::expectation::{ExpectedKinds, KindPresence};
use kube::Client;
use tokio::sync::{mpsc, watch};
use tracing::{debug, info, warn};

use crate::client::backoff::Backoff;
use crate::client::discovery::{self, Catalog};
use crate::client::requests::{self, KindApi};
use crate::client::resource::{KindSpec, ResourceDescription};
use crate::coordination::pause::PauseGate;
use crate::watch::known_objects::Retain;
use crate::watch::stream::{self, Sink, Stream, StreamSettings};
use crate::watch::stream_health::StreamHealth;
use crate::watch::unserved::DEFINITIONS;
use crate::watch::{KindIndex, ObjectKey, QueueItem, WatchEventType};

/// How long is believed what no definition contradicts: kinds of other servers have none.
const LONGEST_FAITH: Duration = Duration::from_secs(300);

/// The same where definitions cannot be watched.
const BLIND_FAITH: Duration = Duration::from_secs(30);

/// Definitions often come in flocks.
const FLOCKING: Duration = Duration::from_millis(100);

/// How soon the server is asked again when it does not agree with the definitions.
const FIRST_DOUBT: Duration = Duration::from_millis(100);
const LONGEST_DOUBT: Duration = Duration::from_secs(5);

/// How often, before it is believed: some definitions never come into force.
const DOUBTS: u32 = 12;

/// How often it is asked again when it agrees: not every change of a definition is in its name.
const RECHECKS: u32 = 2;

const NEWS_IN_FLIGHT: usize = 64;

/// What the server serves, or none as long as it has not been asked.
pub(super) type Discovered = Option<Arc<Catalog>>;

/// Keeps up to date what the server serves.
pub(super) struct DiscoveryWatcher {
    client: Client,
    streams: StreamSettings,
    /// How long the server may take to answer.
    patience: Duration,
    published: watch::Sender<Discovered>,
    catalog: Arc<Catalog>,
    expected: ExpectedKinds,
}

/// Finds out what the server says about kinds that nobody watches; for ever, as they may come
/// later.
pub(super) async fn describe(
    kinds: Vec<(KindSpec, ResourceDescription)>,
    client: Client,
    patience: Duration,
) {
    let mut backoff = Backoff::new(FIRST_DOUBT, LONGEST_FAITH);
    loop {
        for (kind, description) in &kinds {
            let asked = discovery::description(&client, kind, patience);
            if let Err(error) = description.discover_if_stale(asked).await {
                debug!(kind = %kind.kind, "it cannot be described: {error}");
                description.mark_stale();
            }
        }
        tokio::time::sleep(backoff.next(None)).await;
    }
}

impl DiscoveryWatcher {
    /// The view of what is served, and the task that keeps it up to date.
    pub(super) fn send_out(
        client: Client,
        streams: StreamSettings,
        patience: Duration,
        scanning: bool,
    ) -> (
        watch::Receiver<Discovered>,
        impl Future<Output = ()> + use<>,
    ) {
        let (published, view) = watch::channel(None);
        let watcher = Self {
            client,
            streams,
            patience,
            published,
            catalog: Arc::default(),
            expected: ExpectedKinds::default(),
        };
        (view, watcher.run(scanning))
    }

    async fn run(mut self, scanning: bool) {
        let mut backoff = Backoff::new(self.streams.first_pause, self.streams.longest_pause);
        while let Err(error) = self.look().await {
            let pause = backoff.next(error.retry_after());
            warn!("the server does not say what it serves: {error}; trying again in {pause:.1?}");
            tokio::time::sleep(pause).await;
        }
        let definitions = KindApi::new(self.client.clone(), DEFINITIONS, Default::default());
        let definitions = definitions.metadata_only().with_timeout(self.patience);
        if !scanning {
            info!("looking for kinds that come later is switched off");
            loop {
                tokio::time::sleep(LONGEST_FAITH).await;
                self.look_again().await;
            }
        }
        let mut told = false;
        while let Err(error) = definitions.list_page(None, 1, None).await {
            if error.is_forbidden() && !std::mem::replace(&mut told, true) {
                warn!(
                    "without the permission to list and watch customresourcedefinitions, \
                     it is noticed late that kinds come and go"
                );
            }
            tokio::time::sleep(BLIND_FAITH).await;
            self.look_again().await;
        }
        let (sink, news) = mpsc::channel(NEWS_IN_FLIGHT);
        let stream = Stream {
            api: definitions,
            kind: KindIndex(0),
            namespace: None,
            retain: Retain::Identity,
            settings: self.streams.clone(),
            observed: StreamHealth::unobserved(),
        };
        let watching = stream::run(stream, Sink::Queue(sink), PauseGate::always());
        tokio::join!(watching, self.follow(news));
    }

    async fn follow(&mut self, mut news: mpsc::Receiver<(Arc<ObjectKey>, QueueItem)>) {
        let mut doubt = Backoff::new(FIRST_DOUBT, LONGEST_DOUBT);
        let (mut doubts, mut rechecks) = (0_u32, 0_u32);
        loop {
            let is_believed = self.expected.is_met_by(&self.catalog) && rechecks == 0;
            let patience = if is_believed || doubts == DOUBTS {
                doubt.reset();
                LONGEST_FAITH
            } else {
                doubts += 1;
                rechecks = rechecks.saturating_sub(1);
                doubt.next(None)
            };
            let first = tokio::time::timeout(patience, news.recv()).await;
            if let Ok(first) = first {
                let Some((key, news_of_it)) = first else {
                    return;
                };
                let mut matters = self.hear(&key.name, &news_of_it);
                let flock = async {
                    while let Some((key, news)) = news.recv().await {
                        matters |= self.hear(&key.name, &news);
                    }
                };
                // Whoever comes later is the first of the next flock.
                let _ = tokio::time::timeout(FLOCKING, flock).await;
                if !matters {
                    continue;
                }
                doubts = 0;
                rechecks = RECHECKS;
            }
            self.look_again().await;
        }
    }

    /// Takes in what is told about a definition; whether that may change what is served.
    fn hear(&mut self, name: &str, news: &QueueItem) -> bool {
        let QueueItem::Seen(watch_event) = news else {
            return false;
        };
        let presence = match watch_event.event_type {
            WatchEventType::Listed => KindPresence::Known,
            WatchEventType::Added | WatchEventType::Modified => KindPresence::Changed,
            WatchEventType::Deleted => KindPresence::Gone,
        };
        self.expected.saw(name, presence, &self.catalog)
    }

    async fn look_again(&mut self) {
        if let Err(error) = self.look().await {
            warn!("the server does not say what it serves: {error}");
        }
    }

    async fn look(&mut self) -> Result<(), requests::Error> {
        let catalog = discovery::catalog(&self.client, &self.catalog, self.patience).await?;
        let is_news = *self.catalog != catalog || self.published.borrow().is_none();
        if is_news {
            self.catalog = Arc::new(catalog);
            self.published.send_replace(Some(Arc::clone(&self.catalog)));
        }
        self.expected.settle(&self.catalog);
        Ok(())
    }
}
