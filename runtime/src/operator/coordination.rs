//! Runs the leader election and the peerings of an operator, which can pause it.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::namespaces::{NamespaceScope, ServedNamespaces};
use super::streams::changed;
use super::{Error, identity};
use crate::coordination::clock::WallClock;
use crate::coordination::election::{self, ElectionConfig};
use crate::coordination::pause::{PauseGate, PauseHandle, PauseReason, PauseSwitch};
use crate::coordination::peering::{self, PeeringConfig};
use crate::health::metrics::Metrics;
use crate::settings::{LeaderElectionSettings, PeeringMode, PeeringSettings};
use crate::task::heartbeat::Heartbeats;
use crate::task::{TaskEnd, Tasks};
use crate::watch::stream::StreamSettings;

/// The time for the last writes to leases and peerings; each request has a shorter limit.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// The configuration of leader election and peering.
pub(super) struct CoordinationConfig {
    pub(super) client: Client,
    pub(super) name: &'static str,
    pub(super) namespace_scope: NamespaceScope,
    pub(super) peering: PeeringSettings,
    pub(super) leader_election: Option<LeaderElectionSettings>,
    pub(super) identity: Option<String>,
    pub(super) clock: WallClock,
    pub(super) streams: StreamSettings,
    pub(super) metrics: Metrics,
    pub(super) heartbeats: Heartbeats,
}

/// The tasks that can pause the operator.
pub(super) struct CoordinationTasks {
    peerings: Tasks,
    /// The tokens that end the peering of each namespace.
    running: HashMap<String, CancellationToken>,
    /// The names of peering tasks that are about to end.
    ending: BTreeSet<String>,
    /// The namespaces that were served last.
    wanted: BTreeSet<String>,
    served: Option<watch::Receiver<ServedNamespaces>>,
    /// Pauses the operator until the first namespaces are known.
    starting: Option<PauseHandle>,
    peer: String,
    config: CoordinationConfig,
    switch: PauseSwitch,
    pause_gate: PauseGate,
    stop_peerings: CancellationToken,
    elections: Tasks,
    stop_election: CancellationToken,
}

// === impl CoordinationTasks ===

impl CoordinationTasks {
    /// Starts what the settings ask for. The operator pauses until all of it allows it to run.
    pub(super) fn start(
        switch: &PauseSwitch,
        pause_gate: &PauseGate,
        config: CoordinationConfig,
    ) -> Result<Self, Error> {
        let own = config.identity.clone();
        let own = own.unwrap_or_else(|| identity::of_process(Timestamp::now()));
        let election = config.election(&own)?;
        // All replicas use one peering record: the next leader continues that of the last.
        let peer = match &election {
            Some(election) => format!("{}/{}", election.namespace, election.name),
            None => own,
        };
        let mut coordination = Self {
            peerings: Tasks::default(),
            running: HashMap::new(),
            ending: BTreeSet::new(),
            wanted: BTreeSet::new(),
            served: None,
            starting: None,
            peer,
            config,
            switch: switch.clone(),
            pause_gate: pause_gate.clone(),
            stop_peerings: CancellationToken::new(),
            elections: Tasks::default(),
            stop_election: CancellationToken::new(),
        };
        if let Some(election) = election {
            let handle = switch.handle();
            handle.forbid(PauseReason::Starting);
            let task = election::run(election, handle, coordination.stop_election.clone());
            coordination.elections.spawn("leader election", task);
        }
        if coordination.config.peering.mode != PeeringMode::Standalone {
            coordination.start_peerings();
        }
        Ok(coordination)
    }

    /// Starts and ends peerings as namespaces change, until a task ends by a defect.
    pub(super) async fn ended(&mut self) -> TaskEnd {
        loop {
            tokio::select! {
                ended = self.peerings.ended() => match ended {
                    // The namespace may be there again.
                    TaskEnd::Finished(name) if self.ending.remove(&*name) => self.follow_wanted(),
                    ended => return ended,
                },
                ended = self.elections.ended() => return ended,
                served = changed(self.served.as_mut()) => {
                    if let Some(served) = served {
                        self.follow(served);
                    }
                }
            }
        }
    }

    /// Removes the peering records, then gives up the lease.
    pub(super) async fn stop(self) {
        self.stop_peerings.cancel();
        self.peerings.drain(STOP_GRACE).await;
        self.stop_election.cancel();
        self.elections.drain(STOP_GRACE).await;
    }

    fn start_peerings(&mut self) {
        let scope = if self.config.peering.clusterwide {
            NamespaceScope::Cluster
        } else {
            self.config.namespace_scope.clone()
        };
        match scope {
            NamespaceScope::Cluster => self.start_peering(None, self.switch.handle()),
            NamespaceScope::Fixed(names) => {
                for name in names {
                    self.start_peering(Some(name), self.switch.handle());
                }
            }
            NamespaceScope::Followed(mut served) => {
                served.mark_changed();
                self.served = Some(served);
                self.starting = Some(self.switch.handle());
            }
        }
    }

    /// Starts and ends peerings, so that there is one for each of these namespaces.
    fn follow(&mut self, names: BTreeSet<String>) {
        self.wanted = names;
        self.follow_wanted();
    }

    /// The peering of a namespace that is there again starts after the former one has ended, which
    /// removes the record of this operator as its last act.
    fn follow_wanted(&mut self) {
        let names = self.wanted.clone();
        let gone = self.running.extract_if(|name, _| !names.contains(name));
        for (name, token) in gone.collect::<Vec<_>>() {
            self.ending.insert(task_name(Some(&name)));
            token.cancel();
        }
        let starting = self.starting.take();
        for name in &names {
            let ending = self.ending.contains(&task_name(Some(name)));
            if !ending && !self.running.contains_key(name) {
                // A namespace that comes later does not pause the handling of all others.
                let handle = match starting {
                    Some(_) => self.switch.handle(),
                    None => self.switch.handle_without_pause(),
                };
                self.start_peering(Some(name.clone()), handle);
            }
        }
        if let Some(handle) = starting {
            handle.resume();
        }
    }

    fn start_peering(&mut self, namespace: Option<String>, handle: PauseHandle) {
        let stop = self.stop_peerings.child_token();
        if let Some(namespace) = &namespace {
            self.running.insert(namespace.clone(), stop.clone());
        }
        let name = task_name(namespace.as_deref());
        let config = &self.config;
        let peering = PeeringConfig {
            client: config.client.clone(),
            identity: self.peer.clone(),
            settings: config.peering.clone(),
            clock: config.clock,
            streams: config.streams.clone(),
            metrics: config.metrics.clone(),
            heartbeat: config.heartbeats.heartbeat(format!("the {name}")),
            namespace,
        };
        let (pause_gate, stop_all) = (self.pause_gate.clone(), self.stop_peerings.clone());
        self.peerings.spawn(name, async move {
            peering::run(peering, &handle, pause_gate, stop).await;
            if !stop_all.is_cancelled() {
                // Peers in a namespace that the operator has left do not pause it any more.
                handle.resume();
            }
        });
    }
}

// === impl CoordinationConfig ===

impl CoordinationConfig {
    fn election(&self, own: &str) -> Result<Option<ElectionConfig>, Error> {
        let Some(settings) = &self.leader_election else {
            return Ok(None);
        };
        let timings = settings.timings();
        timings.check().map_err(Error::LeaderElection)?;
        let namespace = settings.namespace.as_deref();
        let namespace = namespace.unwrap_or(self.client.default_namespace());
        Ok(Some(ElectionConfig {
            client: self.client.clone(),
            name: settings.name.as_deref().unwrap_or(self.name).to_owned(),
            namespace: namespace.to_owned(),
            identity: identity::unique(own),
            timings,
            clock: self.clock,
            streams: self.streams.clone(),
            heartbeat: self.heartbeats.heartbeat("the leader election"),
        }))
    }
}

fn task_name(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("peering in {namespace}"),
        None => "peering".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kube::Config;

    use super::*;
    use crate::health::metrics::Metrics;

    /// A configuration with an API server that cannot be reached.
    fn config(heartbeats: &Heartbeats) -> CoordinationConfig {
        let unreachable = Config::new("http://127.0.0.1:1".parse().expect("an address"));
        CoordinationConfig {
            client: Client::try_from(unreachable).expect("a client"),
            name: "operator",
            namespace_scope: NamespaceScope::Fixed(["a".to_owned()].into()),
            peering: PeeringSettings::default(),
            leader_election: None,
            identity: Some("me".to_owned()),
            clock: WallClock::default(),
            streams: StreamSettings {
                page_size: 100,
                inactivity_timeout: Duration::from_secs(70),
                server_timeout: Duration::from_secs(300),
                first_pause: Duration::from_millis(100),
                longest_pause: Duration::from_secs(30),
            },
            metrics: Metrics::new("operator", Default::default()),
            heartbeats: heartbeats.clone(),
        }
    }

    /// The parts that are stuck after ten minutes without progress.
    fn late(heartbeats: &Heartbeats) -> Vec<String> {
        heartbeats.advance(Duration::from_secs(600));
        let stuck = heartbeats.stuck(Duration::from_secs(30)).into_iter();
        stuck.map(|it| it.part).collect()
    }

    async fn assert_stuck_part_is_named(config: CoordinationConfig, part: &str) {
        let heartbeats = config.heartbeats.clone();
        let (switch, pause_gate) = PauseSwitch::new();
        let coordination =
            CoordinationTasks::start(&switch, &pause_gate, config).expect("valid settings");
        assert!(late(&heartbeats).is_empty(), "it has not begun");
        // The other tasks run only while this one waits.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(late(&heartbeats), [part]);
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let stuck = heartbeats.stuck(Duration::from_secs(30));
            assert!(
                stuck.is_empty(),
                "it is not stuck though the server does not answer: {stuck:?}"
            );
        }
        coordination.stop().await;
        assert!(late(&heartbeats).is_empty(), "it has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stuck_peering_is_named() {
        let heartbeats = Heartbeats::default();
        assert_stuck_part_is_named(config(&heartbeats), "the peering in a").await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_stuck_election_is_named() {
        let heartbeats = Heartbeats::default();
        let config = CoordinationConfig {
            peering: PeeringSettings::standalone(),
            leader_election: Some(LeaderElectionSettings::default()),
            ..config(&heartbeats)
        };
        assert_stuck_part_is_named(config, "the leader election").await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_has_ended_is_named() {
        let heartbeats = Heartbeats::default();
        let both = || CoordinationConfig {
            leader_election: Some(LeaderElectionSettings::default()),
            ..config(&heartbeats)
        };
        let (switch, pause_gate) = PauseSwitch::new();
        let start =
            || CoordinationTasks::start(&switch, &pause_gate, both()).expect("valid settings");
        let mut coordination = start();
        coordination.stop_election.cancel();
        let ended = coordination.ended().await.to_string();
        assert_eq!(ended, "task `leader election` ended by itself");
        let mut coordination = start();
        coordination.stop_peerings.cancel();
        let ended = coordination.ended().await.to_string();
        assert_eq!(ended, "task `peering in a` ended by itself");
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_may_come_and_go_faster_than_its_peering_ends() {
        let (names, served) = watch::channel(None);
        let heartbeats = Heartbeats::default();
        let config = CoordinationConfig {
            namespace_scope: NamespaceScope::Followed(served),
            ..config(&heartbeats)
        };
        let (switch, pause_gate) = PauseSwitch::new();
        let mut coordination =
            CoordinationTasks::start(&switch, &pause_gate, config).expect("valid settings");
        for present in [true, false, true, false, true] {
            let names = present.then(|| "a".to_owned()).into_iter().collect();
            coordination.follow(names);
        }
        assert!(
            coordination.running.is_empty(),
            "the first one has not ended"
        );
        drop(names);
        let ended = tokio::time::timeout(Duration::from_secs(60), coordination.ended()).await;
        assert!(ended.is_err(), "{ended:?}");
        assert!(coordination.running.contains_key("a"), "the next one runs");
        assert!(coordination.ending.is_empty());
        coordination.stop().await;
    }
}
