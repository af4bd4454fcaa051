//! Leader election by a Lease: one replica holds it, and the others wait until it is free.
//!
//! The leader sets the time up to which the gate lets it write, so that the gate closes by itself.

use std::time::Duration;

use kopf_core::election::LeaseTimings;
use kopf_core::election::elector::{ElectionAnswer, ElectionEffect, ElectionIdentity, Elector};
use kopf_core::handler::watch_selectors::WatchSelectors;
use kopf_core::machine::request::{PatchContent, PatchEndpoint};
use kube::Client;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::client::requests::{self, KindApi};
use crate::client::resource::{ResourceSpec, Scope, StatusSubresource};
use crate::coordination::clock::WallClock;
use crate::coordination::pause::{PauseGate, PauseHandle, PauseReason};
use crate::task::Tasks;
use crate::task::heartbeat::Heartbeat;
use crate::watch::stream::{self, StreamOutput, StreamSettings, WatchStream};
use crate::watch::stream_health::StreamHealth;
use crate::watch::{KindIndex, QueueItem, WatchEvent, WatchEventType};
use kopf_core::watch::known_objects::Retention;

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

/// Acquires and renews the Lease.
struct LeaderElector<'a> {
    config: &'a ElectionConfig,
    api: KindApi,
    elector: Elector,
    begun: Instant,
    state: LeadershipState,
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

// === impl LeaderElector ===

impl<'a> LeaderElector<'a> {
    fn new(config: &'a ElectionConfig) -> Self {
        let mut selectors = WatchSelectors::default();
        let field = "metadata.name".to_owned();
        selectors.fields.insert(field, config.name.clone());
        Self {
            config,
            api: KindApi::new(config.client.clone(), LEASES, selectors),
            elector: Elector::new(
                ElectionIdentity {
                    name: config.name.clone(),
                    namespace: config.namespace.clone(),
                    identity: config.identity.clone(),
                },
                config.timings,
            ),
            begun: Instant::now(),
            state: LeadershipState::Standby,
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
        let mut next = Some(self.elector.begin());
        loop {
            let step = match next.take() {
                Some(request) => request,
                None => {
                    self.report(handle);
                    self.elector.step(self.now(), self.config.clock.now())
                }
            };
            let wait = match step {
                ElectionEffect::Wait(wait) => wait,
                request => {
                    let answer = self.send(&request).await;
                    next = self.elector.answered(answer, self.now(), fastrand::f64());
                    self.report_failure();
                    continue;
                }
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
        let leader = self.elector.candidate().other_holder().map(str::to_owned);
        match self.elector.candidate().holds_until(self.now()) {
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

    /// Sends a request, and limits its time.
    async fn send(&self, request: &ElectionEffect) -> ElectionAnswer {
        let namespace = Some(self.config.namespace.as_str());
        let name = &self.config.name;
        let sent = async {
            match request {
                ElectionEffect::Create(lease) => self.api.create(namespace, lease).await,
                ElectionEffect::Patch(patch) => {
                    let body = PatchContent::Merge(patch);
                    let endpoint = PatchEndpoint::Object;
                    self.api.patch(namespace, name, endpoint, body).await
                }
                ElectionEffect::Get | ElectionEffect::Wait(_) => {
                    self.api.get(namespace, name).await
                }
            }
        };
        let limit = self.elector.request_timeout();
        self.config.heartbeat.within(limit);
        match timeout(limit, sent).await {
            Ok(Ok(object)) => ElectionAnswer::Lease(object),
            Ok(Err(requests::Error::Conflict(_))) => ElectionAnswer::Conflict,
            Ok(Err(requests::Error::NotFound)) => ElectionAnswer::NotFound,
            Ok(Err(error)) => ElectionAnswer::Failed {
                reason: error.to_string(),
                lasts: error.is_forbidden(),
            },
            Err(_) => ElectionAnswer::Failed {
                reason: "the server did not answer in time".to_owned(),
                lasts: false,
            },
        }
    }

    /// Logs a failure, unless it was the last one, too.
    fn report_failure(&mut self) {
        let Some(failure) = self.elector.take_failure() else {
            if self.state == LeadershipState::Leading {
                self.logged = None;
            }
            return;
        };
        let message = format!(
            "the lease {} could not be acquired or renewed: {failure}",
            self.lease()
        );
        if self.logged.as_ref() != Some(&message) {
            warn!("{message}");
            self.logged = Some(message);
        }
    }

    fn observe_watch_event(&mut self, watch_event: &WatchEvent) {
        let object = match watch_event.event_type {
            WatchEventType::Deleted => None,
            _ => serde_json::from_str(watch_event.text.get()).ok(),
        };
        let now = self.now();
        self.elector
            .observe_event(watch_event.version.as_ref(), object, now);
    }

    /// Releases the lease, so that another replica can acquire it at once.
    async fn release(&mut self) {
        let (now, wall) = (self.now(), self.config.clock.now());
        let Some(patch) = self.elector.release(now, wall) else {
            return;
        };
        match timeout(RELEASE_TIMEOUT, self.send_release(patch)).await {
            Ok(ElectionAnswer::Lease(_)) => info!("the lease {} is released", self.lease()),
            Ok(answer) => warn!("the lease {} is not released: {answer:?}", self.lease()),
            Err(_) => warn!("the lease {} is not released: no response", self.lease()),
        }
    }

    /// The stop may have cut off a renewal, after which the lease has another version.
    async fn send_release(&self, patch: Value) -> ElectionAnswer {
        let answer = self.send(&ElectionEffect::Patch(patch)).await;
        if !matches!(answer, ElectionAnswer::Conflict) {
            return answer;
        }
        match self.send(&ElectionEffect::Get).await {
            ElectionAnswer::Lease(lease) => {
                let wall = self.config.clock.now();
                match self.elector.release_as_read(&lease, wall) {
                    Some(patch) => self.send(&ElectionEffect::Patch(patch)).await,
                    None => answer,
                }
            }
            other => other,
        }
    }

    fn lease(&self) -> String {
        format!("{}/{}", self.config.namespace, self.config.name)
    }
}
