//! The namespaces that an operator serves: fixed, or watched as namespaces come and go.

use std::collections::BTreeSet;
use std::time::Duration;

use kopf_core::admission::configuration::WebhookNamespaces;
use kopf_core::object::ObjectView;
use kopf_core::scope::NamespacePattern;
use kopf_core::scope::matching::MatchingNamespaces;
use kube::Client;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use crate::client::backoff::Backoff;
use crate::client::requests::{self, KindApi};
use crate::client::resource::{ResourceSpec, Scope, StatusSubresource};
use crate::coordination::pause::PauseGate;
use crate::watch::stream::{self, StreamOutput, StreamSettings, WatchStream};
use crate::watch::stream_health::StreamHealth;
use crate::watch::{KindIndex, QueueItem, WatchEventType};
use kopf_core::watch::known_objects::Retention;

const NAMESPACES: ResourceSpec = ResourceSpec {
    group: "",
    version: "v1",
    kind: "Namespace",
    plural: "namespaces",
    scope: Scope::Cluster,
    status: StatusSubresource::Present,
};

/// The longest time until the operator notices a permission that was granted while it runs.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

const WATCH_EVENT_CHANNEL: usize = 16;

/// The namespaces in which an operator handles objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Namespaces {
    /// The whole cluster.
    #[default]
    All,
    /// These namespaces only; this does not restrict cluster-scoped kinds.
    Only(Vec<String>),
    /// The namespaces that match one of the patterns, as they come and go. This needs the
    /// permission to list and watch namespaces; without it, the operator serves the patterns that
    /// are names.
    Matching(Vec<NamespacePattern>),
}

/// The names of the served namespaces; none as long as they are not known.
pub(super) type ServedNamespaces = Option<BTreeSet<String>>;

/// The namespaces in which streams and peerings work.
#[derive(Debug, Clone)]
pub(super) enum NamespaceScope {
    /// The whole cluster, by one stream per kind.
    Cluster,
    /// These namespaces, whether they exist or not.
    Fixed(BTreeSet<String>),
    /// The namespaces that match patterns, as they come and go.
    Followed(watch::Receiver<ServedNamespaces>),
}

/// Watches namespaces, and publishes the names of those that match.
struct NamespaceWatcher {
    matching: MatchingNamespaces,
    api: KindApi,
    streams: StreamSettings,
    served: watch::Sender<ServedNamespaces>,
}

// === impl Namespaces ===

impl Namespaces {
    /// The namespaces that match one of these patterns; if all of them are names, only those.
    pub fn matching<P: Into<NamespacePattern>>(patterns: impl IntoIterator<Item = P>) -> Self {
        let patterns: Vec<NamespacePattern> = patterns.into_iter().map(Into::into).collect();
        let names = patterns.iter().map(|it| it.literal().map(str::to_owned));
        match names.collect() {
            Some(names) => Self::Only(names),
            None => Self::Matching(patterns),
        }
    }
}

impl From<&Namespaces> for WebhookNamespaces {
    fn from(namespaces: &Namespaces) -> Self {
        match namespaces {
            Namespaces::All => Self::AllBut(Vec::new()),
            Namespaces::Only(names) => Self::Only(names.clone()),
            Namespaces::Matching(patterns) => Self::Matching {
                patterns: patterns.clone(),
                but: Vec::new(),
            },
        }
    }
}

// === impl NamespaceScope ===

impl NamespaceScope {
    /// The scope, and the task that keeps it up to date if it can change.
    pub(super) fn of(
        namespaces: &Namespaces,
        client: Client,
        streams: StreamSettings,
        request_timeout: Duration,
        scanning: bool,
    ) -> (Self, Option<impl Future<Output = ()> + use<>>) {
        let patterns = match namespaces {
            Namespaces::All => return (Self::Cluster, None),
            Namespaces::Only(names) => {
                return (Self::Fixed(names.iter().cloned().collect()), None);
            }
            Namespaces::Matching(patterns) => patterns.clone(),
        };
        let matching = MatchingNamespaces::new(patterns);
        if !scanning {
            warn_of_unmatched_globs(&matching, "the watch of namespaces is switched off");
            return (Self::Fixed(matching.literals()), None);
        }
        let (served, view) = watch::channel(None);
        let watcher = NamespaceWatcher {
            matching,
            api: KindApi::new(client, NAMESPACES, Default::default()).with_timeout(request_timeout),
            streams,
            served,
        };
        (Self::Followed(view), Some(watcher.run()))
    }
}

// === impl NamespaceWatcher ===

impl NamespaceWatcher {
    async fn run(mut self) {
        self.list_until_permitted().await;
        let (sink, mut watch_events) = mpsc::channel(WATCH_EVENT_CHANNEL);
        let stream = WatchStream {
            runs_in_pauses: false,
            api: self.api.clone(),
            kind: KindIndex(0),
            namespace: None,
            retention: Retention::Identity,
            health: StreamHealth::unobserved(),
            settings: self.streams.clone(),
        };
        let watching = stream::run(stream, StreamOutput::Queue(sink), PauseGate::always());
        let reading = async {
            while let Some((key, item)) = watch_events.recv().await {
                let QueueItem::Event(watch_event) = item else {
                    continue;
                };
                let (changed, from_now_on) = match watch_event.event_type {
                    WatchEventType::Deleted => (self.matching.remove(&key.name, &key.uid), "gone"),
                    _ => (self.matching.add(&key.name, &key.uid), "served from now on"),
                };
                if changed {
                    info!("namespace {:?} is {from_now_on}", key.name);
                    self.served.send_replace(Some(self.matching.names()));
                }
            }
        };
        tokio::join!(watching, reading);
    }

    /// Serves the patterns that are names as long as the API server forbids to list namespaces.
    async fn list_until_permitted(&mut self) {
        let mut backoff = Backoff::new(self.streams.first_pause, LONGEST_PAUSE);
        let mut warned = false;
        loop {
            match self.list().await {
                Ok(()) => return,
                Err(error) if error.is_forbidden() => {
                    if !std::mem::replace(&mut warned, true) {
                        let why = "there is no permission to list and watch namespaces";
                        warn_of_unmatched_globs(&self.matching, why);
                        self.served.send_replace(Some(self.matching.literals()));
                    }
                }
                Err(error) => warn!("namespaces cannot be listed: {error}"),
            }
            tokio::time::sleep(backoff.next(None)).await;
        }
    }

    /// Reads all pages before it publishes the names, so that streams do not start one by one.
    async fn list(&mut self) -> Result<(), requests::Error> {
        let mut next = None;
        loop {
            let size = self.streams.page_size;
            let page = self.api.list_metadata_page(None, size, next).await?;
            for namespace in &page.items {
                self.add(namespace);
            }
            next = page.next;
            if next.is_none() {
                let names = self.matching.names();
                info!("{} namespaces match and are served", names.len());
                self.served.send_replace(Some(names));
                return Ok(());
            }
        }
    }

    fn add(&mut self, namespace: &Value) {
        let view = ObjectView::new(namespace);
        if let (Some(name), Some(uid)) = (view.name(), view.uid()) {
            self.matching.add(name, uid);
        }
    }
}

fn warn_of_unmatched_globs(matching: &MatchingNamespaces, why: &str) {
    let globs: Vec<String> = matching
        .globs()
        .map(|it| format!("{it:?}", it = it.to_string()))
        .collect();
    let literals: Vec<String> = matching.literals().into_iter().collect();
    let served = if literals.is_empty() {
        "nothing is served".to_owned()
    } else {
        format!("only {} is served", literals.join(", "))
    };
    warn!(
        "{why}: the patterns {} match nothing, and {served}",
        globs.join(", ")
    );
}
