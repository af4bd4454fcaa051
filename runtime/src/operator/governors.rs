//! The parts that can pause the operator: the election of a leader, and the peering.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::{Error, Namespaces, identity};
use crate::activity::{Activity, Pause, Switch};
use crate::clock::WallClock;
use crate::engine::election::{self, Election};
use crate::engine::peering::{self, Member};
use crate::metrics::Metrics;
use crate::settings::{LeaderElectionSettings, PeeringMode, PeeringSettings};
use crate::task::{Ended, Tasks};
use crate::watch::stream::StreamSettings;

/// How long farewells may take; each request has a shorter limit of its own.
const GRACE: Duration = Duration::from_secs(5);

/// Everything that decides who else has a say.
pub(super) struct Governed<'a> {
    pub(super) client: Client,
    pub(super) name: &'static str,
    pub(super) namespaces: &'a Namespaces,
    pub(super) peering: PeeringSettings,
    pub(super) leader_election: Option<LeaderElectionSettings>,
    pub(super) identity: Option<String>,
    pub(super) clock: WallClock,
    pub(super) streams: StreamSettings,
    pub(super) metrics: Metrics,
}

/// The tasks that can pause the operator.
pub(super) struct Governors {
    members: Tasks,
    leave: CancellationToken,
    elections: Tasks,
    resign: CancellationToken,
}

// === impl Governors ===

impl Governors {
    /// Starts what the settings ask for. The operator is paused until all of it agrees.
    pub(super) fn start(
        switch: &Switch,
        activity: &Activity,
        governed: &Governed<'_>,
    ) -> Result<Self, Error> {
        let mut governors = Self {
            members: Tasks::default(),
            leave: CancellationToken::new(),
            elections: Tasks::default(),
            resign: CancellationToken::new(),
        };
        let own = governed.identity.clone();
        let own = own.unwrap_or_else(|| identity::of_process(Timestamp::now()));
        let election = governed.election(&own)?;
        // The replicas are one to others: the next leader goes on with the record of the last.
        let peer = match &election {
            Some(election) => format!("{}/{}", election.namespace, election.name),
            None => own,
        };
        if let Some(election) = election {
            let source = switch.source();
            source.forbid(Pause::Starting);
            let task = election::run(election, source, governors.resign.clone());
            governors.elections.spawn("leader election", task);
        }
        if governed.peering.mode != PeeringMode::Standalone {
            for namespace in governed.places() {
                let member = Member {
                    client: governed.client.clone(),
                    identity: peer.clone(),
                    settings: governed.peering.clone(),
                    clock: governed.clock,
                    streams: governed.streams.clone(),
                    metrics: governed.metrics.clone(),
                    namespace,
                };
                let (activity, leave) = (activity.clone(), governors.leave.clone());
                let task = peering::run(member, switch.source(), activity, leave);
                governors.members.spawn("peering", task);
            }
        }
        Ok(governors)
    }

    /// Waits until one of them ends, which only a defect can cause.
    pub(super) async fn ended(&mut self) -> Ended {
        tokio::select! {
            ended = self.members.ended(), if !self.members.is_empty() => ended,
            ended = self.elections.ended(), if !self.elections.is_empty() => ended,
            else => std::future::pending().await,
        }
    }

    /// Tells the others that this operator is gone: first the peers, then the other replicas.
    pub(super) async fn stop(self) {
        self.leave.cancel();
        self.members.drain(GRACE).await;
        self.resign.cancel();
        self.elections.drain(GRACE).await;
    }
}

// === impl Governed ===

impl Governed<'_> {
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
        }))
    }

    /// Where the peering objects are; none stands for the whole cluster.
    fn places(&self) -> Vec<Option<String>> {
        match self.namespaces {
            Namespaces::All => vec![None],
            Namespaces::Only(names) => {
                let unique: BTreeSet<&String> = names.iter().collect();
                unique.into_iter().cloned().map(Some).collect()
            }
        }
    }
}
