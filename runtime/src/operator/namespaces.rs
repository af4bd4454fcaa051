//! Which namespaces are served at present: told once, or followed as namespaces come and go.

use std::collections::BTreeSet;
use std::time::Duration;

use kopf_core::object::ObjectView;
use kopf_core::scope::matching::MatchingNamespaces;
use kube::Client;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use super::Namespaces;
use crate::client::backoff::Backoff;
use crate::client::requests::{self, KindApi};
use crate::client::resource::{ResourceSpec, Scope, StatusSubresource};
use crate::coordination::pause::PauseGate;
use crate::watch::known_objects::Retain;
use crate::watch::stream::{self, Sink, Stream, StreamSettings};
use crate::watch::stream_health::StreamHealth;
use crate::watch::{KindIndex, QueueItem, WatchEventType};

const NAMESPACES: ResourceSpec = ResourceSpec {
    group: "",
    version: "v1",
    kind: "Namespace",
    plural: "namespaces",
    scope: Scope::Cluster,
    status: StatusSubresource::Present,
};

/// How long it takes at most until a permission that was given later is noticed.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

const NEWS_IN_FLIGHT: usize = 16;

/// The served namespaces, or none as long as they are not known.
pub(super) type Served = Option<BTreeSet<String>>;

/// Where the operator works.
#[derive(Debug, Clone)]
pub(super) enum NamespaceScope {
    /// Everywhere, without regard to namespaces.
    Cluster,
    /// In these namespaces, whether they exist or not.
    Fixed(BTreeSet<String>),
    /// In those that match patterns, as they come and go.
    Followed(watch::Receiver<Served>),
}

/// Finds out which namespaces match.
struct Follower {
    roll: MatchingNamespaces,
    api: KindApi,
    streams: StreamSettings,
    served: watch::Sender<Served>,
}

// === impl NamespaceScope ===

impl NamespaceScope {
    /// The territory, and the task that keeps it up to date if there is one.
    pub(super) fn of(
        namespaces: &Namespaces,
        client: Client,
        streams: StreamSettings,
        patience: Duration,
        scanning: bool,
    ) -> (Self, Option<impl Future<Output = ()> + use<>>) {
        let patterns = match namespaces {
            Namespaces::All => return (Self::Cluster, None),
            Namespaces::Only(names) => {
                return (Self::Fixed(names.iter().cloned().collect()), None);
            }
            Namespaces::Matching(patterns) => patterns.clone(),
        };
        let roll = MatchingNamespaces::new(patterns);
        if !scanning {
            tell_of_blindness(&roll, "looking for namespaces is switched off");
            return (Self::Fixed(roll.literals()), None);
        }
        let (served, view) = watch::channel(None);
        let follower = Follower {
            roll,
            api: KindApi::new(client, NAMESPACES, Default::default()).with_timeout(patience),
            streams,
            served,
        };
        (Self::Followed(view), Some(follower.run()))
    }
}

// === impl Follower ===

impl Follower {
    async fn run(mut self) {
        let mut backoff = Backoff::new(self.streams.first_pause, LONGEST_PAUSE);
        let mut blind = false;
        loop {
            match self.list().await {
                Ok(()) => break,
                Err(error) if error.is_forbidden() => {
                    if !std::mem::replace(&mut blind, true) {
                        let why = "there is no permission to list and watch namespaces";
                        tell_of_blindness(&self.roll, why);
                        self.served.send_replace(Some(self.roll.literals()));
                    }
                }
                Err(error) => warn!("namespaces cannot be listed: {error}"),
            }
            tokio::time::sleep(backoff.next(None)).await;
        }
        let (sink, mut news) = mpsc::channel(NEWS_IN_FLIGHT);
        let stream = Stream {
            api: self.api.clone(),
            kind: KindIndex(0),
            namespace: None,
            retain: Retain::Identity,
            observed: StreamHealth::unobserved(),
            settings: self.streams.clone(),
        };
        let watching = stream::run(stream, Sink::Queue(sink), PauseGate::always());
        let reading = async {
            while let Some((key, news)) = news.recv().await {
                let QueueItem::Seen(watch_event) = news else {
                    continue;
                };
                let (changed, from_now_on) = match watch_event.event_type {
                    WatchEventType::Deleted => (self.roll.went(&key.name, &key.uid), "gone"),
                    _ => (self.roll.came(&key.name, &key.uid), "served from now on"),
                };
                if changed {
                    info!("namespace {:?} is {from_now_on}", key.name);
                    self.served.send_replace(Some(self.roll.names()));
                }
            }
        };
        tokio::join!(watching, reading);
    }

    /// Reads all namespaces at once, so that nobody has to begin with a part of them.
    async fn list(&mut self) -> Result<(), requests::Error> {
        let mut next = None;
        loop {
            let size = self.streams.page_size;
            let page = self.api.list_metadata_page(None, size, next).await?;
            for namespace in &page.items {
                self.meet(namespace);
            }
            next = page.next;
            if next.is_none() {
                let names = self.roll.names();
                info!("{} namespaces match and are served", names.len());
                self.served.send_replace(Some(names));
                return Ok(());
            }
        }
    }

    fn meet(&mut self, namespace: &Value) {
        let view = ObjectView::new(namespace);
        if let (Some(name), Some(uid)) = (view.name(), view.uid()) {
            self.roll.came(name, uid);
        }
    }
}

fn tell_of_blindness(roll: &MatchingNamespaces, why: &str) {
    let globs: Vec<String> = roll
        .globs()
        .map(|it| format!("{it:?}", it = it.to_string()))
        .collect();
    let literals: Vec<String> = roll.literals().into_iter().collect();
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
