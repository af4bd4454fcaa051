//! The parts that can pause the operator: the election of a leader, and the peering.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::namespaces::{NamespaceScope, Served};
use super::streams::changed;
use super::{Error, identity};
use crate::coordination::clock::WallClock;
use crate::coordination::election::{self, Election};
use crate::coordination::pause::{PauseGate, PauseHandle, PauseReason, PauseSwitch};
use crate::coordination::peering::{self, Member};
use crate::health::metrics::Metrics;
use crate::settings::{LeaderElectionSettings, PeeringMode, PeeringSettings};
use crate::task::heartbeat::Heartbeats;
use crate::task::{TaskEnd, Tasks};
use crate::watch::stream::StreamSettings;

/// How long farewells may take; each request has a shorter limit of its own.
const GRACE: Duration = Duration::from_secs(5);

/// Everything that decides who else has a say.
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
    members: Tasks,
    /// How members of namespaces leave.
    places: HashMap<String, CancellationToken>,
    /// Members that are to end.
    leaving: BTreeSet<String>,
    served: Option<watch::Receiver<Served>>,
    /// Keeps the operator from starting before the first members are there.
    waiting: Option<PauseHandle>,
    peer: String,
    governed: CoordinationConfig,
    switch: PauseSwitch,
    pause_gate: PauseGate,
    leave: CancellationToken,
    elections: Tasks,
    resign: CancellationToken,
}

// === impl CoordinationTasks ===

impl CoordinationTasks {
    /// Starts what the settings ask for. The operator is paused until all of it agrees.
    pub(super) fn start(
        switch: &PauseSwitch,
        pause_gate: &PauseGate,
        governed: CoordinationConfig,
    ) -> Result<Self, Error> {
        let own = governed.identity.clone();
        let own = own.unwrap_or_else(|| identity::of_process(Timestamp::now()));
        let election = governed.election(&own)?;
        // The replicas are one to others: the next leader goes on with the record of the last.
        let peer = match &election {
            Some(election) => format!("{}/{}", election.namespace, election.name),
            None => own,
        };
        let mut coordination = Self {
            members: Tasks::default(),
            places: HashMap::new(),
            leaving: BTreeSet::new(),
            served: None,
            waiting: None,
            peer,
            governed,
            switch: switch.clone(),
            pause_gate: pause_gate.clone(),
            leave: CancellationToken::new(),
            elections: Tasks::default(),
            resign: CancellationToken::new(),
        };
        if let Some(election) = election {
            let source = switch.handle();
            source.forbid(PauseReason::Starting);
            let task = election::run(election, source, coordination.resign.clone());
            coordination.elections.spawn("leader election", task);
        }
        if coordination.governed.peering.mode != PeeringMode::Standalone {
            coordination.convene();
        }
        Ok(coordination)
    }

    /// Waits until one of them ends, which only a defect can cause, and follows the namespaces.
    pub(super) async fn ended(&mut self) -> TaskEnd {
        loop {
            tokio::select! {
                ended = self.members.ended() => match ended {
                    TaskEnd::Finished(name) if self.leaving.remove(&name) => {}
                    ended => return ended,
                },
                ended = self.elections.ended() => return ended,
                served = changed(self.served.as_mut()) => {
                    if let Some(served) = served {
                        self.follow(&served);
                    }
                }
            }
        }
    }

    /// Tells the others that this operator is gone: first the peers, then the other replicas.
    pub(super) async fn stop(self) {
        self.leave.cancel();
        self.members.drain(GRACE).await;
        self.resign.cancel();
        self.elections.drain(GRACE).await;
    }

    fn convene(&mut self) {
        match self.governed.namespace_scope.clone() {
            NamespaceScope::Cluster => self.join(None, self.switch.handle()),
            NamespaceScope::Fixed(names) => {
                for name in names {
                    self.join(Some(name), self.switch.handle());
                }
            }
            NamespaceScope::Followed(mut served) => {
                served.mark_changed();
                self.served = Some(served);
                self.waiting = Some(self.switch.handle());
            }
        }
    }

    /// Takes part in the peerings of these namespaces, and of no others.
    fn follow(&mut self, names: &BTreeSet<String>) {
        let gone = self.places.extract_if(|name, _| !names.contains(name));
        for (name, token) in gone.collect::<Vec<_>>() {
            self.leaving.insert(task_name(Some(&name)));
            token.cancel();
        }
        let early = self.waiting.take();
        for name in names {
            if !self.places.contains_key(name) {
                // A namespace that comes later is no reason to stop everything.
                let source = match early {
                    Some(_) => self.switch.handle(),
                    None => self.switch.handle_without_pause(),
                };
                self.join(Some(name.clone()), source);
            }
        }
        if let Some(waiting) = early {
            waiting.resume();
        }
    }

    fn join(&mut self, namespace: Option<String>, source: PauseHandle) {
        let place = self.leave.child_token();
        if let Some(namespace) = &namespace {
            self.places.insert(namespace.clone(), place.clone());
        }
        let name = task_name(namespace.as_deref());
        let governed = &self.governed;
        let member = Member {
            client: governed.client.clone(),
            identity: self.peer.clone(),
            settings: governed.peering.clone(),
            clock: governed.clock,
            streams: governed.streams.clone(),
            metrics: governed.metrics.clone(),
            heartbeat: governed.heartbeats.heartbeat(format!("the {name}")),
            namespace,
        };
        let (pause_gate, whole) = (self.pause_gate.clone(), self.leave.clone());
        self.members.spawn(name, async move {
            peering::run(member, &source, pause_gate, place).await;
            if !whole.is_cancelled() {
                // What others say where the operator is no longer is none of its business.
                source.resume();
            }
        });
    }
}

// === impl CoordinationConfig ===

impl CoordinationConfig {
    fn election(&self, own: &str) -> Result<Option<Election>, Error> {
        let Some(settings) = &self.leader_election else {
            return Ok(None);
        };
        let terms = settings.terms();
        terms.check().map_err(Error::LeaderElection)?;
        let namespace = settings.namespace.as_deref();
        let namespace = namespace.unwrap_or(self.client.default_namespace());
        Ok(Some(Election {
            client: self.client.clone(),
            name: settings.name.as_deref().unwrap_or(self.name).to_owned(),
            namespace: namespace.to_owned(),
            identity: identity::unique(own),
            terms,
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

    /// Governors of an operator whose API server is away.
    fn governed(heartbeats: &Heartbeats) -> CoordinationConfig {
        let nowhere = Config::new("http://127.0.0.1:1".parse().expect("an address"));
        CoordinationConfig {
            client: Client::try_from(nowhere).expect("a client"),
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

    /// Who is late when nobody has moved for ten minutes.
    fn late(heartbeats: &Heartbeats) -> Vec<String> {
        heartbeats.advance(Duration::from_secs(600));
        let stuck = heartbeats.stuck(Duration::from_secs(30)).into_iter();
        stuck.map(|it| it.part).collect()
    }

    async fn names_those_who_are_stuck(governed: CoordinationConfig, part: &str) {
        let heartbeats = governed.heartbeats.clone();
        let (switch, pause_gate) = PauseSwitch::new();
        let coordination =
            CoordinationTasks::start(&switch, &pause_gate, governed).expect("it makes sense");
        assert!(late(&heartbeats).is_empty(), "it has not begun");
        // Nobody else moves as long as this task does not wait.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(late(&heartbeats), [part]);
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let stuck = heartbeats.stuck(Duration::from_secs(30));
            assert!(
                stuck.is_empty(),
                "it moves though nobody answers: {stuck:?}"
            );
        }
        coordination.stop().await;
        assert!(late(&heartbeats).is_empty(), "it has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peering_that_is_stuck_is_named() {
        let heartbeats = Heartbeats::default();
        names_those_who_are_stuck(governed(&heartbeats), "the peering in a").await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_election_that_is_stuck_is_named() {
        let heartbeats = Heartbeats::default();
        let governed = CoordinationConfig {
            peering: PeeringSettings::standalone(),
            leader_election: Some(LeaderElectionSettings::default()),
            ..governed(&heartbeats)
        };
        names_those_who_are_stuck(governed, "the leader election").await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_has_ended_is_named() {
        let heartbeats = Heartbeats::default();
        let both = || CoordinationConfig {
            leader_election: Some(LeaderElectionSettings::default()),
            ..governed(&heartbeats)
        };
        let (switch, pause_gate) = PauseSwitch::new();
        let start =
            || CoordinationTasks::start(&switch, &pause_gate, both()).expect("it makes sense");
        let mut coordination = start();
        coordination.resign.cancel();
        let ended = coordination.ended().await.to_string();
        assert_eq!(ended, "task `leader election` ended by itself");
        let mut coordination = start();
        coordination.leave.cancel();
        let ended = coordination.ended().await.to_string();
        assert_eq!(ended, "task `peering in a` ended by itself");
    }
}
