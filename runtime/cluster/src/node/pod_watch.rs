//! Lists and watches the Pods of all namespaces, for ever.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use tokio::sync::mpsc::{Sender, error::SendError};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::{Error, request};

const PAGE_SIZE: u32 = 500;

/// The API server sends a bookmark about once a minute: a longer silence is a dead connection.
const LONGEST_SILENCE: Duration = Duration::from_secs(150);

/// The pause before the next list, so that a failing API server is not asked in a hot loop.
const PAUSE: Duration = Duration::from_secs(1);

/// A change of the Pods of the cluster.
#[derive(Debug)]
pub(super) enum PodChange {
    /// All Pods that exist now.
    Listed(Vec<Pod>),
    /// A new or changed Pod.
    Applied(Box<Pod>),
    /// A Pod that is gone.
    Deleted(Box<Pod>),
}

/// The reasons why a list or a watch ended.
enum WatchEnd {
    Failed(Error),
    /// The next watch starts at this resource version.
    Closed(String),
    ReceiverDropped,
}

/// Sends all changes until the receiver is dropped.
pub(super) async fn watch_pods(client: &Client, changes: &Sender<PodChange>) {
    let pods: Api<Pod> = Api::all(client.clone());
    let mut position = None;
    loop {
        let end = match position.take() {
            None => match list(&pods, changes).await {
                Ok(version) => watch(&pods, version, changes).await,
                Err(end) => end,
            },
            Some(version) => watch(&pods, version, changes).await,
        };
        match end {
            WatchEnd::ReceiverDropped => return,
            WatchEnd::Closed(version) => position = Some(version),
            WatchEnd::Failed(error) if error.code() == Some(410) => debug!("the watch is too old"),
            WatchEnd::Failed(error) => warn!(
                error = &error as &dyn std::error::Error,
                "the simulated node lists the Pods again"
            ),
        }
        sleep(PAUSE).await;
    }
}

/// Lists all Pods; returns the resource version from which to watch.
async fn list(pods: &Api<Pod>, changes: &Sender<PodChange>) -> Result<String, WatchEnd> {
    let mut params = ListParams::default().limit(PAGE_SIZE);
    let mut all = Vec::new();
    loop {
        let page = request("list Pods", pods.list(&params)).await?;
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => {
                changes.send(PodChange::Listed(all)).await?;
                return Ok(page.metadata.resource_version.unwrap_or_default());
            }
        }
    }
}

async fn watch(pods: &Api<Pod>, version: String, changes: &Sender<PodChange>) -> WatchEnd {
    match try_watch(pods, version, changes).await {
        Ok(version) => WatchEnd::Closed(version),
        Err(end) => end,
    }
}

/// Watches until the API server closes the watch; returns the last resource version.
async fn try_watch(
    pods: &Api<Pod>,
    mut version: String,
    changes: &Sender<PodChange>,
) -> Result<String, WatchEnd> {
    const ACTION: &str = "watch Pods";
    let mut events = request(ACTION, pods.watch(&WatchParams::default(), &version))
        .await?
        .boxed();
    loop {
        let next = timeout(LONGEST_SILENCE, events.try_next()).await;
        let event = next.map_err(|_| Error::Timeout { action: ACTION })?;
        let failed = |source| Error::Request {
            action: ACTION,
            source: Box::new(source),
        };
        let change = match event.map_err(failed)? {
            None => return Ok(version),
            Some(WatchEvent::Bookmark(bookmark)) => {
                version = bookmark.metadata.resource_version;
                continue;
            }
            Some(WatchEvent::Error(status)) => return Err(failed(kube::Error::Api(status)).into()),
            Some(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) => {
                PodChange::Applied(Box::new(pod))
            }
            Some(WatchEvent::Deleted(pod)) => PodChange::Deleted(Box::new(pod)),
        };
        let (PodChange::Applied(pod) | PodChange::Deleted(pod)) = &change else {
            continue;
        };
        if let Some(newer) = &pod.metadata.resource_version {
            version.clone_from(newer);
        }
        changes.send(change).await?;
    }
}

// === impl WatchEnd ===

impl From<Error> for WatchEnd {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<SendError<PodChange>> for WatchEnd {
    fn from(_: SendError<PodChange>) -> Self {
        Self::ReceiverDropped
    }
}
