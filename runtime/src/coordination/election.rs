//! Leader election by a Lease: one replica holds it, and the others wait until it is free.
//!
//! The leader sets the time up to which the gate lets it write, so that the gate closes by itself.

use std::time::Duration;

use kopf_core::election::{Candidate, ElectionStep, Lease, LeaseTimings};
use kopf_core::handler::watch_selectors::WatchSelectors;
use kopf_core::machine::request::{PatchContent, PatchEndpoint};
use kopf_core::object::resource_version::ResourceVersion;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::client::backoff::Backoff;
use crate::client::requests::{self, KindApi};
use crate::client::resource::{ResourceSpec, Scope, StatusSubresource};
use crate::coordination::clock::WallClock;
use crate::coordination::pause::{PauseGate, PauseHandle, PauseReason};
use crate::task::Tasks;
use crate::task::heartbeat::Heartbeat;
use crate::watch::known_objects::Retention;
use crate::watch::stream::{self, StreamOutput, StreamSettings, WatchStream};
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

/// The time to release the lease.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest pause between requests that fail for want of a namespace or of a permission.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Watch events of the Lease on their way to the elector.
const WATCH_EVENT_CHANNEL: usize = 16;

/// The configuration of a replica that takes part in a leader election.
pub(crate) struct ElectionConfig {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Different from that of any other process, even an earlier one in the same pod.
    pub(crate) identity: String,
    pub(crate) timings: LeaseTimings,
    pub(crate) clock: WallClock,
    pub(crate) streams: StreamSettings,
    pub(crate) heartbeat: Heartbeat,
}

/// The reason for which the Lease could not be acquired or renewed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the server did not answer in time")]
    Timeout,
    #[error("the response is not a Lease")]
    Unreadable,
    #[error("the namespace \"{0}\" does not exist")]
    NoNamespace(String),
    #[error("{0}")]
    Api(#[from] requests::Error),
}

/// Acquires and renews the Lease.
struct LeaderElector<'a> {
    config: &'a ElectionConfig,
    api: KindApi,
    candidate: Candidate,
    /// The last known state of the Lease.
    object: Option<Value>,
    begun: Instant,
    state: LeadershipState,
    /// The pauses between requests that fail for want of a namespace or of a permission.
    backoff: Backoff,
    /// The failure that was logged last; it is logged again when another one was in between.
    logged: Option<String>,
}

/// The last state of this replica that was reported to the pause gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeadershipState {
    Standby,
    Leading,
    /// The lease could not be renewed, and no other replica has acquired it yet.
    LeaseLost,
}

/// Takes part in the election until `stop`; then releases the lease.
///
/// The caller has paused the operator by the handle before.
pub(crate) async fn run(config: ElectionConfig, handle: PauseHandle, stop: CancellationToken) {
    let mut elector = LeaderElector::new(&config);
    tokio::select! {
        () = elector.run(&handle) => {}
        () = stop.cancelled() => {
            handle.forbid(PauseReason::Standby { leader: None });
            elector.release().await;
        }
    }
}

// === impl Error ===

impl Error {
    /// Whether the same request fails until a person does something about it.
    fn lasts(&self) -> bool {
        match self {
            Self::NoNamespace(_) => true,
            Self::Api(error) => error.is_forbidden(),
            Self::Timeout | Self::Unreadable => false,
        }
    }
}

// === impl LeaderElector ===

impl<'a> LeaderElector<'a> {
    fn new(config: &'a ElectionConfig) -> Self {
        let mut selectors = WatchSelectors::default();
        let field = "metadata.name".to_owned();
        selectors.fields.insert(field, config.name.clone());
        Self {
            config,
            api: KindApi::new(config.client.clone(), LEASES, selectors),
            candidate: Candidate::new(config.identity.clone(), config.timings),
            object: None,
            begun: Instant::now(),
            state: LeadershipState::Standby,
            backoff: Backoff::new(config.timings.retry_period, LONGEST_PAUSE),
            logged: None,
        }
    }

    async fn run(&mut self, handle: &PauseHandle) {
        let (sink, mut watch_events) = mpsc::channel(WATCH_EVENT_CHANNEL);
        let stream = WatchStream {
            runs_in_pauses: false,
            api: self.api.clone(),
            kind: KindIndex(0),
            namespace: Some(self.config.namespace.clone()),
            retention: Retention::Identity,
            settings: self.config.streams.clone(),
            health: StreamHealth::unobserved(),
        };
        let mut streams = Tasks::default();
        streams.spawn(
            "watch of the lease",
            stream::run(stream, StreamOutput::Queue(sink), PauseGate::always()),
        );
        self.read_lease_or_log().await;
        loop {
            self.report(handle);
            let wait = match self.candidate.step(self.now()) {
                ElectionStep::Acquire | ElectionStep::Renew => {
                    self.acquire_or_renew().await;
                    continue;
                }
                ElectionStep::Wait(wait) => wait,
            };
            self.config.heartbeat.within(wait);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                ended = streams.ended(), if !streams.is_empty() => {
                    warn!("the lease is not watched any more: {ended}");
                }
                Some((_, QueueItem::Event(watch_event))) = watch_events.recv() => self.observe_watch_event(&watch_event),
            }
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Reports to the pause gate how long this replica may write.
    fn report(&mut self, handle: &PauseHandle) {
        let leader = self.candidate.other_holder().map(str::to_owned);
        match self.candidate.holds_until(self.now()) {
            Some(until) => {
                if self.state != LeadershipState::Leading {
                    info!(
                        "leading: {} holds the lease {}",
                        self.config.identity,
                        self.lease()
                    );
                }
                self.state = LeadershipState::Leading;
                handle.resume_until(self.begun + until);
            }
            None if self.state != LeadershipState::Standby && leader.is_none() => {
                self.state = LeadershipState::LeaseLost;
                handle.forbid(PauseReason::LeaseLost);
            }
            None => {
                self.state = LeadershipState::Standby;
                handle.forbid(PauseReason::Standby { leader });
            }
        }
    }

    async fn acquire_or_renew(&mut self) {
        let sent = self.now();
        match self.limited(self.claim()).await {
            Ok(object) => match read(&object) {
                Some(lease) => {
                    self.object = Some(object);
                    self.candidate.granted(lease, sent, self.now());
                    self.backoff.reset();
                    self.logged = None;
                }
                None => self.failed(&Error::Unreadable),
            },
            Err(Error::Api(requests::Error::Conflict(_) | requests::Error::NotFound)) => {
                debug!("the lease {} has changed meanwhile", self.lease());
                let before = self.candidate.version().map(str::to_owned);
                if let Err(error) = self.read_lease().await {
                    return self.failed(&error);
                }
                let unchanged = self.candidate.version() == before.as_deref();
                if unchanged || self.candidate.other_holder().is_some() {
                    self.candidate.refused(self.now());
                }
            }
            Err(error) => {
                self.failed(&error);
                self.read_lease_or_log().await;
            }
        }
    }

    fn failed(&mut self, error: &Error) {
        let message = format!(
            "the lease {} could not be acquired or renewed: {error}",
            self.lease()
        );
        if self.logged.as_ref() != Some(&message) {
            warn!("{message}");
            self.logged = Some(message);
        }
        self.candidate.refused(self.now());
        if error.lasts() {
            let pause = self.backoff.next(None);
            self.candidate.postpone(self.now(), pause);
        }
    }

    /// Reads the Lease; if that fails, its last known state stays.
    async fn read_lease(&mut self) -> Result<(), Error> {
        let namespace = Some(self.config.namespace.as_str());
        let get = async { Ok(self.api.get(namespace, &self.config.name).await?) };
        match self.limited(get).await {
            Ok(object) => self.observe(Some(object)),
            Err(Error::Api(requests::Error::NotFound)) => self.observe(None),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn read_lease_or_log(&mut self) {
        if let Err(error) = self.read_lease().await {
            debug!("the lease {} could not be read: {error}", self.lease());
        }
    }

    /// Observes a watch event, unless it is older than the response to the last request.
    fn observe_watch_event(&mut self, watch_event: &WatchEvent) {
        let known = self.candidate.version().map(ResourceVersion::new);
        match (&watch_event.version, known) {
            (Some(seen), Some(known)) if seen.is_not_newer_than(&known) => {}
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
        let config = self.config;
        let now = format!("{:.6}", config.clock.now());
        let spec = self.object.as_ref().map(|object| &object["spec"]);
        let held = spec.is_some_and(|spec| spec["holderIdentity"] == *config.identity);
        let mut claim = json!({
            "holderIdentity": config.identity,
            "leaseDurationSeconds": config.timings.duration.as_secs(),
            "renewTime": now,
        });
        if !held {
            let before = spec.and_then(|spec| spec["leaseTransitions"].as_i64());
            claim["acquireTime"] = now.into();
            claim["leaseTransitions"] = before.map_or(0, |count| count.saturating_add(1)).into();
        }
        let namespace = Some(config.namespace.as_str());
        let Some(version) = self.candidate.version() else {
            let lease = json!({
                "apiVersion": LEASES.api_version(),
                "kind": LEASES.kind,
                "metadata": {"name": config.name, "namespace": config.namespace},
                "spec": claim,
            });
            return match self.api.create(namespace, &lease).await {
                // A collection always exists: what is missing is the namespace around it.
                Err(requests::Error::NotFound) => Err(Error::NoNamespace(config.namespace.clone())),
                created => Ok(created?),
            };
        };
        self.write(version, claim).await
    }

    /// Writes the Lease; the API server rejects it if another process has written since.
    async fn write(&self, version: &str, spec: Value) -> Result<Value, Error> {
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": spec});
        let namespace = Some(self.config.namespace.as_str());
        let body = PatchContent::Merge(&patch);
        let name = &self.config.name;
        Ok(self
            .api
            .patch(namespace, name, PatchEndpoint::Object, body)
            .await?)
    }

    /// Releases the lease, so that another replica can acquire it at once.
    async fn release(&mut self) {
        let holds = self.candidate.holds_until(self.now()).is_some();
        self.candidate.resign();
        let Some(version) = self.candidate.version().filter(|_| holds) else {
            return;
        };
        let now = format!("{:.6}", self.config.clock.now());
        let free = json!({"holderIdentity": null, "leaseDurationSeconds": 1, "renewTime": now});
        match timeout(RELEASE_TIMEOUT, self.write(version, free)).await {
            Ok(Ok(_)) => info!("the lease {} is released", self.lease()),
            Ok(Err(error)) => warn!("the lease {} is not released: {error}", self.lease()),
            Err(_) => warn!("the lease {} is not released: no response", self.lease()),
        }
    }

    /// Limits a request, so that there is time for another attempt before the renew deadline.
    async fn limited(
        &self,
        request: impl Future<Output = Result<Value, Error>>,
    ) -> Result<Value, Error> {
        let limit = self.config.timings.renew_deadline / 2;
        self.config.heartbeat.within(limit);
        timeout(limit, request).await.unwrap_or(Err(Error::Timeout))
    }

    fn lease(&self) -> String {
        format!("{}/{}", self.config.namespace, self.config.name)
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
