//! Takes part in a peering: keeps the record of this operator alive, and pauses for its peers.
//!
//! One task runs per served namespace, or one for the whole cluster. It writes only to peering
//! objects, and affects the operator only by its own [`PauseHandle`].

mod object;

use std::time::Duration;

use fastrand::Rng;
use kopf_core::peering::{OwnPeer, Peer, PeeringAction, keepalive};
use kube::Client;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use self::object::{ObservedPeering, PeeringObjectState};
use crate::client::backoff::Backoff;
use crate::coordination::clock::WallClock;
use crate::coordination::pause::{PauseGate, PauseHandle, PauseReason};
use crate::health::metrics::{GaugeShare, Metrics};
use crate::settings::{PeeringMode, PeeringSettings};
use crate::task::Tasks;
use crate::task::heartbeat::Heartbeat;
use crate::watch::stream::{StreamOutput, StreamSettings};
use crate::watch::{KindIndex, QueueItem, WatchEventType};

pub(crate) use self::object::PeeringRef;

/// The pauses before a failed request is repeated. They stay short: a peer that does not see our
/// record takes over.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The interval of discovery while the peering resources are not defined.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);

/// The time to remove the own record at the end.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(3);

/// Watch events of the peering objects on their way to the task.
const WATCH_EVENT_CHANNEL: usize = 16;

/// The configuration of an operator that takes part in a peering.
pub(crate) struct PeeringConfig {
    pub(crate) client: Client,
    pub(crate) identity: String,
    pub(crate) settings: PeeringSettings,
    pub(crate) clock: WallClock,
    pub(crate) streams: StreamSettings,
    pub(crate) metrics: Metrics,
    /// The namespace of the peering object; none for a ClusterKopfPeering.
    pub(crate) namespace: Option<String>,
    pub(crate) heartbeat: Heartbeat,
}

/// The state of an operator that takes part in a peering.
struct PeeringTask<'a> {
    config: &'a PeeringConfig,
    own: OwnPeer,
    objects: Vec<ObservedPeering>,
    begun: Instant,
    renew_at: Instant,
    discover_at: Instant,
    recheck_at: Option<Instant>,
    warned: Vec<String>,
    discovery_failures: FailureLog,
    renewal_failures: FailureLog,
    /// The number of other operators, for the metrics.
    others: GaugeShare,
}

/// The failures of one kind of request since its last success.
struct FailureLog {
    backoff: Backoff,
    /// The message that was logged last.
    logged: String,
}

/// Takes part as long as this replica leads, until `stop`; then removes the own record.
pub(crate) async fn run(
    config: PeeringConfig,
    handle: &PauseHandle,
    pause_gate: PauseGate,
    stop: CancellationToken,
) {
    loop {
        config.heartbeat.rest();
        tokio::select! {
            () = stop.cancelled() => return,
            () = pause_gate.leading() => {}
        }
        let mut task = PeeringTask::new(&config);
        tokio::select! {
            () = task.take_part(handle) => {}
            () = stop.cancelled() => return task.leave().await,
            // The next leader continues the record.
            () = pause_gate.lease_ended() => handle.pause(PauseReason::Starting),
        }
    }
}

// === impl PeeringConfig ===

impl PeeringConfig {
    fn peering_ref(&self) -> PeeringRef {
        PeeringRef {
            client: self.client.clone(),
            name: self.settings.name.clone(),
            namespace: self.namespace.clone(),
        }
    }

    /// The scope of the peering, for messages.
    fn scope(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("in {namespace:?}"),
            None => "cluster-wide".to_owned(),
        }
    }
}

// === impl PeeringTask ===

impl<'a> PeeringTask<'a> {
    fn new(config: &'a PeeringConfig) -> Self {
        let now = Instant::now();
        Self {
            config,
            own: OwnPeer {
                identity: config.identity.clone(),
                priority: config.settings.priority,
                ties: config.settings.ties,
            },
            objects: ObservedPeering::all(&config.peering_ref()),
            begun: now,
            renew_at: now,
            discover_at: now,
            recheck_at: None,
            warned: Vec::new(),
            discovery_failures: FailureLog::default(),
            renewal_failures: FailureLog::default(),
            others: config.metrics.peers(),
        }
    }

    async fn take_part(&mut self, handle: &PauseHandle) {
        let (sink, mut watch_events) = mpsc::channel(WATCH_EVENT_CHANNEL);
        let mut streams = Tasks::default();
        loop {
            if self.discover_at <= Instant::now() {
                self.discover().await;
            }
            if self.renew_at <= Instant::now() {
                self.renew().await;
            }
            for (index, object) in (0..).map(KindIndex).zip(&mut self.objects) {
                if let Some(stream) = object.stream(index, &self.config.streams) {
                    let stream = crate::watch::stream::run(
                        stream,
                        StreamOutput::Queue(sink.clone()),
                        PauseGate::always(),
                    );
                    streams.spawn("watch of the peering", stream);
                }
            }
            self.decide(handle).await;
            let next = [Some(self.renew_at), Some(self.discover_at), self.recheck_at];
            let next = next.into_iter().flatten().min().unwrap_or(self.renew_at);
            let pause = next.saturating_duration_since(Instant::now());
            self.config.heartbeat.within(pause);
            tokio::select! {
                () = sleep_until(next) => {}
                ended = streams.ended(), if !streams.is_empty() => {
                    warn!("the peering is not watched any more: {ended}");
                }
                Some((key, QueueItem::Event(watch_event))) = watch_events.recv() => {
                    let now = self.now();
                    let object = &mut self.objects[usize::from(key.kind.0)];
                    let appeared = match watch_event.event_type {
                        WatchEventType::Deleted => object.observe_deletion(),
                        _ => object.observe_text(&watch_event.text, now),
                    };
                    if appeared {
                        self.renew_at = Instant::now();
                    }
                }
            }
        }
    }

    /// Discovers which peering resources the API server serves.
    async fn discover(&mut self) {
        let mut failures = Vec::new();
        for object in &mut self.objects {
            self.config.heartbeat.within(object::REQUEST_TIMEOUT);
            match object.discover().await {
                Ok(true) => self.renew_at = Instant::now(),
                Ok(false) => {}
                Err(error) => failures.push(format!("discovery of peerings failed: {error}")),
            }
        }
        let pause = self.discovery_failures.next_pause(&failures);
        self.discover_at = Instant::now() + pause.unwrap_or(DISCOVERY_INTERVAL);
    }

    /// Renews the own record, and reads those of the others in the response.
    async fn renew(&mut self) {
        let settings = &self.config.settings;
        let (name, scope) = (&settings.name, self.config.scope());
        let own = self.own_record();
        let leeway = Duration::from_secs(Rng::new().u64(5..=10));
        let interval = keepalive(settings.lifetime, leeway);
        let mut failures = Vec::new();
        let now = self.now();
        for object in self.objects.iter_mut().filter(|object| object.is_served()) {
            self.config.heartbeat.within(object::REQUEST_TIMEOUT);
            match object.announce(&own, now).await {
                Ok(result) => {
                    if !settings.stealth {
                        debug!("Keep-alive in {name:?} {scope}: {result}.");
                    }
                }
                Err(error) => {
                    failures.push(format!("Keep-alive in {name:?} {scope} failed: {error}"));
                }
            }
        }
        if let Err(error) = self.create(&own).await {
            failures.push(format!("Creation of {name:?} {scope} failed: {error}"));
        }
        let pause = self.renewal_failures.next_pause(&failures);
        self.renew_at = Instant::now() + pause.map_or(interval, |pause| pause.min(interval));
    }

    /// Creates the peering object if there is none and if this operator has to, with its record.
    async fn create(&mut self, own: &Peer) -> Result<(), object::Error> {
        let is_missing = |it: &ObservedPeering| it.is_known() && !it.is_found();
        let has_none = self.objects.iter().all(is_missing);
        let now = self.now();
        // The first API group is the current one.
        let Some(object) = self.objects.first_mut().filter(|it| it.is_served()) else {
            return Ok(());
        };
        if self.config.settings.mode != PeeringMode::Created || !has_none {
            return Ok(());
        }
        self.config.heartbeat.within(2 * object::REQUEST_TIMEOUT);
        object.create().await?;
        object.announce(own, now).await?;
        let name = &self.config.settings.name;
        info!("Created the peering {name:?} {}.", self.config.scope());
        Ok(())
    }

    fn own_record(&self) -> Peer {
        Peer {
            identity: self.own.identity.clone(),
            priority: self.own.priority,
            lifetime: self.config.settings.lifetime,
            lastseen: kopf_core::time::to_micros(self.config.clock.now()),
        }
    }

    fn now(&self) -> kopf_core::time::ClockReading {
        kopf_core::time::ClockReading {
            wall: self.config.clock.now(),
            uptime: self.begun.elapsed(),
        }
    }

    /// Pauses or resumes the operator by the records of its peers, and removes expired records.
    async fn decide(&mut self, handle: &PauseHandle) {
        let now = self.now();
        let (mut higher, mut equal) = (Vec::new(), Vec::new());
        let (mut dead, mut recheck) = (Vec::new(), None);
        let mut others = 0;
        for (index, object) in self.objects.iter().enumerate() {
            let Some(decision) = object.decide(&self.own, now) else {
                continue;
            };
            match decision.action {
                PeeringAction::Run => {}
                PeeringAction::PauseForHigher(peers) => higher.extend(peers),
                PeeringAction::PauseForEqual(peers) => equal.extend(peers),
            }
            others += decision.alive;
            recheck = recheck.into_iter().chain(decision.recheck).min();
            dead.push((index, decision.dead));
        }
        self.others.set(others);
        self.recheck_at = recheck.map(|wait| Instant::now() + wait);
        self.warn_about(&equal);
        if !higher.is_empty() {
            handle.pause(PauseReason::Peers(names(&higher)));
        } else if !equal.is_empty() {
            handle.pause(PauseReason::Tie(names(&equal)));
        } else if let Some(reason) = self.missing() {
            handle.pause(PauseReason::NoPeering(reason));
        } else if self.objects.iter().all(ObservedPeering::is_known) {
            handle.resume();
        }
        for (index, dead) in dead {
            self.config.heartbeat.within(object::REQUEST_TIMEOUT);
            if let Err(error) = self.objects[index].remove_dead(dead).await {
                debug!("expired peering records were not removed: {error}");
            }
        }
    }

    /// The reason for which a mandatory peering cannot be used, if there is one.
    fn missing(&self) -> Option<String> {
        let mandatory = matches!(
            self.config.settings.mode,
            PeeringMode::Mandatory | PeeringMode::Created
        );
        let known = self.objects.iter().all(ObservedPeering::is_known);
        let found = self.objects.iter().any(ObservedPeering::is_found);
        if !mandatory || !known || found {
            return None;
        }
        let served = self.objects.iter().any(ObservedPeering::is_served);
        let (name, scope) = (&self.config.settings.name, self.config.scope());
        let forbidden = self.objects.iter().find_map(|object| match object.state() {
            PeeringObjectState::Forbidden(message) => Some(message),
            _ => None,
        });
        Some(match forbidden {
            Some(message) => format!("the peering {name:?} {scope} cannot be used: {message}"),
            None if served => format!("the peering {name:?} does not exist {scope}"),
            None => {
                "the API server does not serve peerings: their CustomResourceDefinition is missing"
                    .to_owned()
            }
        })
    }

    fn warn_about(&mut self, equal: &[Peer]) {
        let identities: Vec<String> = equal.iter().map(|peer| peer.identity.clone()).collect();
        if !identities.is_empty() && identities != self.warned {
            warn!(
                "Possibly conflicting operators with the same priority: {}. All of them pause: \
                 give them different priorities, or let their names decide.",
                names(equal)
            );
        }
        self.warned = identities;
    }

    async fn leave(&self) {
        let own = self.own.identity.as_str();
        for object in self.objects.iter().filter(|object| object.is_found()) {
            let removal = tokio::time::timeout(REMOVAL_TIMEOUT, object.remove([own]));
            match removal.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    warn!("the record of this operator stays in the peering: {error}")
                }
                Err(_) => warn!("the record of this operator stays in the peering: no response"),
            }
        }
    }
}

// === impl FailureLog ===

impl Default for FailureLog {
    fn default() -> Self {
        Self {
            backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
            logged: String::new(),
        }
    }
}

impl FailureLog {
    /// Logs failures that are new; returns the pause before the next attempt, if there are any.
    fn next_pause(&mut self, failures: &[String]) -> Option<Duration> {
        let message = failures.join("; ");
        if message != self.logged && !message.is_empty() {
            warn!("{message}");
        }
        self.logged = message;
        if failures.is_empty() {
            self.backoff.reset();
            return None;
        }
        Some(self.backoff.next(None))
    }
}

fn names(peers: &[Peer]) -> String {
    let names: Vec<String> = peers.iter().map(Peer::to_string).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_repeated_in_growing_pauses() {
        let mut failures = FailureLog::default();
        let refused = ["refused".to_owned()];
        let pauses: Vec<Duration> = (0..8)
            .filter_map(|_| failures.next_pause(&refused))
            .collect();
        assert!(pauses[0] <= FIRST_PAUSE);
        assert!(pauses[7] >= LONGEST_PAUSE / 2 && pauses[7] <= LONGEST_PAUSE);
        assert_eq!(failures.logged, "refused", "it is logged once");
        assert_eq!(failures.next_pause(&[]), None);
        assert!(
            failures.logged.is_empty(),
            "the next failure is logged again"
        );
        assert!(
            failures
                .next_pause(&refused)
                .is_some_and(|it| it <= FIRST_PAUSE)
        );
    }
}
