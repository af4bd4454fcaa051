//! Watches which resources the API server serves: discovery at the start, and again on changes.
//!
//! The watcher follows the metadata of CustomResourceDefinitions, if it has the permission. Their
//! watch events arrive before discovery shows the change, so it repeats discovery until both agree.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::selection::expected_kinds::{DefinitionEvent, ExpectedKinds};
use kube::Client;
use tokio::sync::{mpsc, watch};
use tracing::{debug, info, warn};

use crate::client::backoff::Backoff;
use crate::client::discovery::{self, Catalog};
use crate::client::requests::{self, KindApi};
use crate::client::resource::{KindSpec, ResourceDescription};
use crate::coordination::pause::PauseGate;
use crate::watch::stream::{self, StreamOutput, StreamSettings, WatchStream};
use crate::watch::stream_health::StreamHealth;
use crate::watch::unserved::CUSTOM_RESOURCE_DEFINITIONS;
use crate::watch::{KindIndex, ObjectKey, QueueItem, WatchEventType};
use kopf_core::watch::known_objects::Retention;

/// The interval of discovery without a change: kinds of aggregated API servers have no definition.
const REFRESH_INTERVAL: Duration = Duration::from_secs(300);

/// The interval of discovery if definitions cannot be watched.
const REFRESH_INTERVAL_UNWATCHED: Duration = Duration::from_secs(30);

/// The time to wait for more definitions after the first: they often change together.
const BATCH_WINDOW: Duration = Duration::from_millis(100);

/// The pauses before discovery is repeated while it disagrees with the definitions.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(5);

/// The number of repetitions before the result is accepted: some definitions are never established.
const MAX_RETRIES: u32 = 12;

/// The number of repetitions after both agree: not every change of a definition is in its name.
const RECHECKS: u32 = 2;

const WATCH_EVENT_CHANNEL: usize = 64;

/// The served resources; none before the first discovery.
pub(super) type Discovered = Option<Arc<Catalog>>;

/// Keeps the catalog of served resources up to date.
pub(super) struct DiscoveryWatcher {
    client: Client,
    streams: StreamSettings,
    request_timeout: Duration,
    published: watch::Sender<Discovered>,
    catalog: Arc<Catalog>,
    expected: ExpectedKinds,
}

/// Discovers kinds that no stream watches. It never ends, as a kind may be defined later.
pub(super) async fn describe(
    kinds: Vec<(KindSpec, ResourceDescription)>,
    client: Client,
    request_timeout: Duration,
) {
    let mut backoff = Backoff::new(FIRST_RETRY, REFRESH_INTERVAL);
    loop {
        for (kind, description) in &kinds {
            let asked = discovery::description(&client, kind, request_timeout);
            if let Err(error) = description.discover_if_stale(asked).await {
                debug!(kind = %kind.kind, "discovery failed: {error}");
                description.mark_stale();
            }
        }
        tokio::time::sleep(backoff.next(None)).await;
    }
}

// === impl DiscoveryWatcher ===

impl DiscoveryWatcher {
    /// The view of the served resources, and the task that keeps it up to date.
    pub(super) fn start(
        client: Client,
        streams: StreamSettings,
        request_timeout: Duration,
        scanning: bool,
    ) -> (
        watch::Receiver<Discovered>,
        impl Future<Output = ()> + use<>,
    ) {
        let (published, view) = watch::channel(None);
        let watcher = Self {
            client,
            streams,
            request_timeout,
            published,
            catalog: Arc::default(),
            expected: ExpectedKinds::default(),
        };
        (view, watcher.run(scanning))
    }

    async fn run(mut self, scanning: bool) {
        let mut backoff = Backoff::new(self.streams.first_pause, self.streams.longest_pause);
        while let Err(error) = self.refresh().await {
            let pause = backoff.next(error.retry_after());
            warn!("discovery of served resources failed: {error}; trying again in {pause:.1?}");
            tokio::time::sleep(pause).await;
        }
        let definitions = KindApi::new(
            self.client.clone(),
            CUSTOM_RESOURCE_DEFINITIONS,
            Default::default(),
        );
        let definitions = definitions
            .metadata_only()
            .with_timeout(self.request_timeout);
        if !scanning {
            info!("the watch for kinds that are defined later is switched off");
            loop {
                tokio::time::sleep(REFRESH_INTERVAL).await;
                self.refresh_or_warn().await;
            }
        }
        self.refresh_until_permitted(&definitions).await;
        let (sink, watch_events) = mpsc::channel(WATCH_EVENT_CHANNEL);
        let stream = WatchStream {
            runs_in_pauses: false,
            api: definitions,
            kind: KindIndex(0),
            namespace: None,
            retention: Retention::Identity,
            settings: self.streams.clone(),
            health: StreamHealth::unobserved(),
        };
        let watching = stream::run(stream, StreamOutput::Queue(sink), PauseGate::always());
        tokio::join!(watching, self.follow(watch_events));
    }

    /// Repeats discovery at an interval as long as the API server forbids to list definitions.
    async fn refresh_until_permitted(&mut self, definitions: &KindApi) {
        let mut warned = false;
        while let Err(error) = definitions.list_page(None, 1, None).await {
            if error.is_forbidden() && !std::mem::replace(&mut warned, true) {
                warn!(
                    "without the permission to list and watch customresourcedefinitions, \
                     the operator notices late that kinds come and go: {error}"
                );
            }
            tokio::time::sleep(REFRESH_INTERVAL_UNWATCHED).await;
            self.refresh_or_warn().await;
        }
    }

    async fn follow(&mut self, mut watch_events: mpsc::Receiver<(Arc<ObjectKey>, QueueItem)>) {
        let mut backoff = Backoff::new(FIRST_RETRY, LONGEST_RETRY);
        let (mut retries, mut rechecks) = (0_u32, 0_u32);
        loop {
            let is_accepted = self.expected.is_met_by(&self.catalog) && rechecks == 0;
            let pause = if is_accepted || retries == MAX_RETRIES {
                backoff.reset();
                REFRESH_INTERVAL
            } else {
                retries += 1;
                rechecks = rechecks.saturating_sub(1);
                backoff.next(None)
            };
            let first = tokio::time::timeout(pause, watch_events.recv()).await;
            if let Ok(first) = first {
                let Some((key, item)) = first else {
                    return;
                };
                let mut matters = self.expect(&key.name, &item);
                let batch = async {
                    while let Some((key, item)) = watch_events.recv().await {
                        matters |= self.expect(&key.name, &item);
                    }
                };
                // A later watch event begins the next batch.
                let _ = tokio::time::timeout(BATCH_WINDOW, batch).await;
                if !matters {
                    continue;
                }
                retries = 0;
                rechecks = RECHECKS;
            }
            self.refresh_or_warn().await;
        }
    }

    /// Notes what the watch says about a definition; `true` if it may change the served resources.
    fn expect(&mut self, name: &str, item: &QueueItem) -> bool {
        let QueueItem::Event(watch_event) = item else {
            return false;
        };
        let presence = match watch_event.event_type {
            WatchEventType::Listed => DefinitionEvent::Listed,
            WatchEventType::Added | WatchEventType::Modified => DefinitionEvent::Changed,
            WatchEventType::Deleted => DefinitionEvent::Deleted,
        };
        self.expected.observe(name, presence, &self.catalog)
    }

    async fn refresh_or_warn(&mut self) {
        if let Err(error) = self.refresh().await {
            warn!("discovery of served resources failed: {error}");
        }
    }

    async fn refresh(&mut self) -> Result<(), requests::Error> {
        let catalog = discovery::catalog(&self.client, &self.catalog, self.request_timeout).await?;
        let is_new = *self.catalog != catalog || self.published.borrow().is_none();
        if is_new {
            self.catalog = Arc::new(catalog);
            self.published.send_replace(Some(Arc::clone(&self.catalog)));
        }
        self.expected.forget_deleted(&self.catalog);
        Ok(())
    }
}
