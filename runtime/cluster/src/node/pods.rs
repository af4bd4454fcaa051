//! Plays the Pods: takes their changes, decides, and does the writes, a few at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::{Binding, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Status};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use tokio::sync::mpsc;
use tokio_util::time::{DelayQueue, delay_queue};
use tracing::warn;

use super::pod_action::{PodAction, concerns_this_node, next_action};
use super::pod_status::patch_of;
use super::pod_watch::{PodChange, watch_pods};
use super::{Error, FIELD_MANAGER, NODE_NAME, addresses, now, request};

/// The number of Pods that are written at once.
const CONCURRENT_WRITES: usize = 16;

/// The number of changes that wait for the node; then the watch waits.
const WAITING_CHANGES: usize = 256;

/// The pause after the first failed write of a Pod; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Namespace and name: a Pod that replaces one of the same name takes its place.
type PodKey = (String, String);

/// A Pod of this node, or one that waits for a node.
struct PlayedPod {
    pod: Pod,
    address: Option<Ipv4Addr>,
    failures: u32,
}

/// All Pods of this node, and what is to be done with them.
#[derive(Default)]
struct PodPlayer {
    pods: BTreeMap<PodKey, PlayedPod>,
    /// Pods to decide about.
    due: BTreeSet<PodKey>,
    /// Pods with a write under way.
    busy: BTreeSet<PodKey>,
    /// Pods to decide about later, each with one timer.
    later: DelayQueue<PodKey>,
    timers: BTreeMap<PodKey, delay_queue::Key>,
}

/// The end of a write.
struct Written {
    key: PodKey,
    uid: Option<String>,
    outcome: Result<(), Error>,
}

/// Plays the Pods for ever.
pub(super) async fn play(client: &Client) {
    let (sender, mut changes) = mpsc::channel(WAITING_CHANGES);
    let watching = watch_pods(client, &sender);
    let playing = async {
        let mut player = PodPlayer::default();
        let mut writes: FuturesUnordered<BoxFuture<'_, Written>> = FuturesUnordered::new();
        loop {
            while writes.len() < CONCURRENT_WRITES {
                let Some((key, pod, action)) = player.next_write() else {
                    break;
                };
                writes.push(Box::pin(write(client, key, pod, action)));
            }
            tokio::select! {
                change = changes.recv() => match change {
                    Some(change) => player.apply(change),
                    None => return,
                },
                Some(written) = writes.next() => player.finish(written),
                Some(expired) = player.later.next() => player.expire(expired.into_inner()),
            }
        }
    };
    tokio::select! {
        () = watching => {}
        () = playing => {}
    }
}

// === impl PodPlayer ===

impl PodPlayer {
    fn apply(&mut self, change: PodChange) {
        match change {
            PodChange::Listed(pods) => {
                let listed: BTreeSet<PodKey> = pods.iter().map(key_of).collect();
                self.pods.retain(|key, _| listed.contains(key));
                for pod in pods {
                    self.insert(pod);
                }
            }
            PodChange::Applied(pod) => self.insert(*pod),
            PodChange::Deleted(pod) => {
                self.pods.remove(&key_of(&pod));
            }
        }
    }

    fn insert(&mut self, pod: Pod) {
        let key = key_of(&pod);
        if !concerns_this_node(&pod) {
            self.pods.remove(&key);
            return;
        }
        let same = self
            .pods
            .remove(&key)
            .filter(|known| known.pod.metadata.uid == pod.metadata.uid);
        let (address, failures) = same.map_or((None, 0), |it| (it.address, it.failures));
        let address = reported_address(&pod).or(address);
        let played = PlayedPod {
            pod,
            address,
            failures,
        };
        self.pods.insert(key.clone(), played);
        self.due.insert(key);
    }

    /// The next Pod that needs a write.
    fn next_write(&mut self) -> Option<(PodKey, Pod, PodAction)> {
        loop {
            let key = self
                .due
                .iter()
                .find(|key| !self.busy.contains(*key))?
                .clone();
            self.due.remove(&key);
            let address = self.address_of(&key);
            let Some(played) = self.pods.get_mut(&key) else {
                continue;
            };
            played.address = Some(address);
            match next_action(&played.pod, address, now()) {
                PodAction::Nothing => played.failures = 0,
                PodAction::Later(delay) => self.decide_later(key, delay),
                action => {
                    let pod = played.pod.clone();
                    self.busy.insert(key.clone());
                    return Some((key, pod, action));
                }
            }
        }
    }

    fn decide_later(&mut self, key: PodKey, delay: Duration) {
        match self.timers.get(&key) {
            Some(timer) => self.later.reset(timer, delay),
            None => {
                let timer = self.later.insert(key.clone(), delay);
                self.timers.insert(key, timer);
            }
        }
    }

    fn expire(&mut self, key: PodKey) {
        self.timers.remove(&key);
        self.due.insert(key);
    }

    fn address_of(&self, key: &PodKey) -> Ipv4Addr {
        let known = self.pods.get(key);
        if let Some(address) = known.and_then(|it| it.address) {
            return address;
        }
        let taken = self.pods.values().filter_map(|it| it.address).collect();
        let uid = known.and_then(|it| it.pod.metadata.uid.as_deref());
        addresses::choose(uid.unwrap_or_default(), &taken)
    }

    /// A failed write is tried again later, or at once when the watch brings a newer Pod.
    fn finish(&mut self, written: Written) {
        let Written { key, uid, outcome } = written;
        self.busy.remove(&key);
        let Some(played) = self.pods.get_mut(&key) else {
            return;
        };
        let Err(error) = outcome else {
            played.failures = 0;
            return;
        };
        if played.pod.metadata.uid != uid {
            return;
        }
        // The watch has yet to bring the change: another client was first, or the Pod is gone.
        if !matches!(error.code(), Some(404 | 409)) {
            let (namespace, name) = &key;
            warn!(error = &error as &dyn std::error::Error, %namespace, %name, "the simulated node tries again");
        }
        let pause = FIRST_PAUSE
            .saturating_mul(1 << played.failures.min(8))
            .min(LONGEST_PAUSE);
        played.failures = played.failures.saturating_add(1);
        self.decide_later(key, pause);
    }
}

fn key_of(pod: &Pod) -> PodKey {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    (part(&pod.metadata.namespace), part(&pod.metadata.name))
}

fn reported_address(pod: &Pod) -> Option<Ipv4Addr> {
    pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}

async fn write(client: &Client, key: PodKey, pod: Pod, action: PodAction) -> Written {
    let (namespace, name) = &key;
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let outcome = match action {
        PodAction::Bind => bind(&api, &pod, name).await,
        PodAction::Report(status) => {
            let params = PatchParams {
                field_manager: Some(FIELD_MANAGER.to_owned()),
                ..PatchParams::default()
            };
            let patch = Patch::Strategic(patch_of(&pod, &status));
            let answer = api.patch_status(name, &params, &patch);
            request("report the status of a Pod", answer)
                .await
                .map(drop)
        }
        PodAction::Remove => {
            let params = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(Preconditions {
                    uid: pod.metadata.uid.clone(),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            };
            let answer = api.delete(name, &params);
            request("remove a stopped Pod", answer).await.map(drop)
        }
        PodAction::Nothing | PodAction::Later(_) => Ok(()),
    };
    Written {
        uid: pod.metadata.uid,
        key,
        outcome,
    }
}

async fn bind(api: &Api<Pod>, pod: &Pod, name: &str) -> Result<(), Error> {
    let binding = Binding {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            uid: pod.metadata.uid.clone(),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            kind: Some("Node".to_owned()),
            name: Some(NODE_NAME.to_owned()),
            ..ObjectReference::default()
        },
    };
    let params = PostParams::default();
    let answer = api.create_subresource::<_, Status>("binding", name, &params, &binding);
    request("bind a Pod", answer).await.map(drop)
}
