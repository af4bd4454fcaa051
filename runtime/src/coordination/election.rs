//! Keeps one replica the leader, by a Lease: the others wait until it is free.
//!
//! The leader tells the gate how long it may act; nothing has to notice the end of that time.

use std::time::Duration;

use kopf_core::election::{Candidate, ElectionStep, Lease, LeaseTimings};
use kopf_core::handler::selector::Selectors;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::client::requests::{self, KindApi, PatchBody, PatchTarget};
use crate::client::resource::{ResourceSpec, Scope, StatusSubresource};
use crate::client::resource_version::ResourceVersion;
use crate::coordination::clock::WallClock;
use crate::coordination::pause::{PauseGate, PauseHandle, PauseReason};
use crate::task::Tasks;
use crate::task::heartbeat::Heartbeat;
use crate::watch::known_objects::Retain;
use crate::watch::stream::{self, Sink, Stream, StreamSettings};
use crate::watch::stream_health::StreamHealth;
use crate::watch::{KindIndex, QueueItem, WatchEvent, WatchEventType};

const LEASES: ResourceSpec = ResourceSpec {
    group: "coordination.k8s.io",
    version: "v1",
    kind: "Lease",
    plural: "leases",
    scope: Scope::Namespaced,
    status: StatusSubresource::Absent,
};

/// How long giving the lease back may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// News on their way from the stream of the Lease.
const NEWS_IN_FLIGHT: usize = 16;

/// A replica that wants to lead.
pub(crate) struct Election {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Unlike that of any other process, also of an earlier one in the same pod.
    pub(crate) identity: String,
    pub(crate) terms: LeaseTimings,
    pub(crate) clock: WallClock,
    pub(crate) streams: StreamSettings,
    pub(crate) heartbeat: Heartbeat,
}

/// The Lease could not be made one's own.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the server did not answer in time")]
    Timeout,
    #[error("the answer is no Lease")]
    Unreadable,
    #[error("{0}")]
    Api(#[from] requests::Error),
}

/// A candidate at work.
struct Campaign<'a> {
    election: &'a Election,
    api: KindApi,
    candidate: Candidate,
    /// The Lease as it was seen last.
    object: Option<Value>,
    begun: Instant,
    standing: Standing,
}

/// What was told about this replica last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Waiting,
    Leading,
    /// The lease could not be renewed, and nobody else has taken it yet.
    Ousted,
}

/// Takes part in the election until `stop`; then gives the lease back.
///
/// The caller has forbidden everything before anybody could begin.
pub(crate) async fn run(election: Election, source: PauseHandle, stop: CancellationToken) {
    let mut campaign = Campaign::new(&election);
    tokio::select! {
        () = campaign.run(&source) => {}
        () = stop.cancelled() => {
            source.forbid(PauseReason::Standby { leader: None });
            campaign.give_back().await;
        }
    }
}

// === impl Campaign ===

impl<'a> Campaign<'a> {
    fn new(election: &'a Election) -> Self {
        let mut selectors = Selectors::default();
        let field = "metadata.name".to_owned();
        selectors.fields.insert(field, election.name.clone());
        Self {
            election,
            api: KindApi::new(election.client.clone(), LEASES, selectors),
            candidate: Candidate::new(election.identity.clone(), election.terms),
            object: None,
            begun: Instant::now(),
            standing: Standing::Waiting,
        }
    }

    async fn run(&mut self, source: &PauseHandle) {
        let (sink, mut news) = mpsc::channel(NEWS_IN_FLIGHT);
        let stream = Stream {
            api: self.api.clone(),
            kind: KindIndex(0),
            namespace: Some(self.election.namespace.clone()),
            retain: Retain::Identity,
            settings: self.election.streams.clone(),
            observed: StreamHealth::unobserved(),
        };
        let mut streams = Tasks::default();
        streams.spawn(
            "watch of the lease",
            stream::run(stream, Sink::Queue(sink), PauseGate::always()),
        );
        self.look().await;
        loop {
            self.tell(source);
            let wait = match self.candidate.step(self.now()) {
                ElectionStep::Acquire | ElectionStep::Renew => {
                    self.ask().await;
                    continue;
                }
                ElectionStep::Wait(wait) => wait,
            };
            self.election.heartbeat.within(wait);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                ended = streams.ended(), if !streams.is_empty() => {
                    warn!("the lease is not watched any more: {ended}");
                }
                Some((_, QueueItem::Seen(watch_event))) = news.recv() => self.saw(&watch_event),
            }
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Lets everybody know how long they may act.
    fn tell(&mut self, source: &PauseHandle) {
        let leader = self.candidate.other_holder().map(str::to_owned);
        match self.candidate.holds_until(self.now()) {
            Some(until) => {
                if self.standing != Standing::Leading {
                    info!(
                        "leading: {} holds the lease {}",
                        self.election.identity,
                        self.lease()
                    );
                }
                self.standing = Standing::Leading;
                source.resume_until(self.begun + until);
            }
            None if self.standing != Standing::Waiting && leader.is_none() => {
                self.standing = Standing::Ousted;
                source.forbid(PauseReason::LeaseLost);
            }
            None => {
                self.standing = Standing::Waiting;
                source.forbid(PauseReason::Standby { leader });
            }
        }
    }

    /// Tries to acquire the lease, or to renew it.
    async fn ask(&mut self) {
        let sent = self.now();
        match self.limited(self.claim()).await {
            Ok(object) => match read(&object) {
                Some(lease) => {
                    self.object = Some(object);
                    self.candidate.granted(lease, sent, self.now());
                }
                None => self.failed(&Error::Unreadable),
            },
            Err(Error::Api(requests::Error::Conflict(_) | requests::Error::NotFound)) => {
                debug!("the lease {} has changed meanwhile", self.lease());
                self.look().await;
                if self.candidate.other_holder().is_some() {
                    self.candidate.refused(self.now());
                }
            }
            Err(error) => {
                self.failed(&error);
                self.look().await;
            }
        }
    }

    fn failed(&mut self, error: &Error) {
        warn!(
            "the lease {} could not be acquired or renewed: {error}",
            self.lease()
        );
        self.candidate.refused(self.now());
    }

    /// Reads the Lease; what is not known stays as it was.
    async fn look(&mut self) {
        let namespace = Some(self.election.namespace.as_str());
        let get = async { Ok(self.api.get(namespace, &self.election.name).await?) };
        match self.limited(get).await {
            Ok(object) => self.observe(Some(object)),
            Err(Error::Api(requests::Error::NotFound)) => self.observe(None),
            Err(error) => debug!("the lease {} could not be read: {error}", self.lease()),
        }
    }

    /// Takes in what the watch brings, which may be older than the answer to the last request.
    fn saw(&mut self, watch_event: &WatchEvent) {
        let known = self.candidate.version().map(ResourceVersion::new);
        match (&watch_event.version, known) {
            (Some(seen), Some(known)) if seen.is_known_after(&known) => {}
            _ if watch_event.event_type == WatchEventType::Deleted => self.observe(None),
            _ => self.observe(serde_json::from_str(watch_event.text.get()).ok()),
        }
    }

    fn observe(&mut self, object: Option<Value>) {
        let now = self.now();
        self.candidate.observe(object.as_ref().and_then(read), now);
        self.object = object;
    }

    async fn claim(&self) -> Result<Value, Error> {
        let election = self.election;
        let now = format!("{:.6}", election.clock.now());
        let spec = self.object.as_ref().map(|object| &object["spec"]);
        let held = spec.is_some_and(|spec| spec["holderIdentity"] == *election.identity);
        let mut claim = json!({
            "holderIdentity": election.identity,
            "leaseDurationSeconds": election.terms.duration.as_secs(),
            "renewTime": now,
        });
        if !held {
            let before = spec.and_then(|spec| spec["leaseTransitions"].as_i64());
            claim["acquireTime"] = now.into();
            claim["leaseTransitions"] = before.map_or(0, |count| count.saturating_add(1)).into();
        }
        let namespace = Some(election.namespace.as_str());
        let Some(version) = self.candidate.version() else {
            let lease = json!({
                "apiVersion": LEASES.api_version(),
                "kind": LEASES.kind,
                "metadata": {"name": election.name, "namespace": election.namespace},
                "spec": claim,
            });
            return Ok(self.api.create(namespace, &lease).await?);
        };
        self.write(version, claim).await
    }

    /// Changes the Lease, provided that nobody else did.
    async fn write(&self, version: &str, spec: Value) -> Result<Value, Error> {
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": spec});
        let namespace = Some(self.election.namespace.as_str());
        let body = PatchBody::Merge(&patch);
        let name = &self.election.name;
        Ok(self
            .api
            .patch(namespace, name, PatchTarget::Body, &body)
            .await?)
    }

    /// Lets the others take over at once.
    async fn give_back(&mut self) {
        let holds = self.candidate.holds_until(self.now()).is_some();
        self.candidate.resign();
        let Some(version) = self.candidate.version().filter(|_| holds) else {
            return;
        };
        let now = format!("{:.6}", self.election.clock.now());
        let free = json!({"holderIdentity": null, "leaseDurationSeconds": 1, "renewTime": now});
        match timeout(FAREWELL, self.write(version, free)).await {
            Ok(Ok(_)) => info!("the lease {} is given back", self.lease()),
            Ok(Err(error)) => warn!("the lease {} is not given back: {error}", self.lease()),
            Err(_) => warn!("the lease {} is not given back: no answer", self.lease()),
        }
    }

    /// Leaves time for another attempt before the deadline.
    async fn limited(
        &self,
        request: impl Future<Output = Result<Value, Error>>,
    ) -> Result<Value, Error> {
        let limit = self.election.terms.renew_deadline / 2;
        self.election.heartbeat.within(limit);
        timeout(limit, request).await.unwrap_or(Err(Error::Timeout))
    }

    fn lease(&self) -> String {
        format!("{}/{}", self.election.namespace, self.election.name)
    }
}

fn read(object: &Value) -> Option<Lease> {
    let spec = &object["spec"];
    let holder = spec["holderIdentity"].as_str();
    let seconds = spec["leaseDurationSeconds"].as_u64().unwrap_or_default();
    Some(Lease {
        holder: holder.filter(|it| !it.is_empty()).map(str::to_owned),
        duration: Duration::from_secs(seconds),
        version: object["metadata"]["resourceVersion"].as_str()?.to_owned(),
    })
}
