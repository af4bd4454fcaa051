//! One peering object of one API group: whether it is there, who is in it, and the writes to it.

use std::collections::BTreeSet;
use std::time::Duration;

use kopf_core::handler::selector::Selectors;
use kopf_core::peering::{ClockReading, OwnPeer, Peer, PeeringDecision, Peers, removal};
use kube::Client;
use serde_json::Value;
use serde_json::value::RawValue;
use tracing::warn;

use crate::client::requests::{self, KindApi, PatchBody, PatchTarget};
use crate::client::resource::{ResourceSpec, Scope, StatusSubresource};
use crate::watch::KindIndex;
use crate::watch::known_objects::Retain;
use crate::watch::stream::{Stream, StreamSettings};
use crate::watch::stream_health::StreamHealth;

/// The API groups that peerings are defined in: today's, and that of old versions of Kopf.
const GROUPS: [&str; 2] = ["kopf.dev", "zalando.org"];

const VERSION: &str = "v1";

/// How long the server may take to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Which peering it is, and where.
#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) client: Client,
    pub(crate) name: String,
    /// None stands for the whole cluster.
    pub(crate) namespace: Option<String>,
}

/// Why a request about peerings failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the server did not say what it serves: {0}")]
    Discovery(#[source] Box<kube::Error>),
    #[error("the server did not say in time what it serves")]
    Timeout,
    #[error("{0}")]
    Write(#[from] requests::Error),
}

/// What is known of the peering object.
pub(super) enum Presence {
    /// Nobody has asked yet, or got an answer.
    Unknown,
    /// Its kind is not defined.
    NotServed,
    /// There is none of that name.
    Missing,
    /// It may not be used.
    Refused(String),
    /// It is there, with these records.
    Found(Peers),
}

/// A peering object that may or may not exist.
pub(super) struct Table {
    seat: Seat,
    group: &'static str,
    endpoint: Option<Endpoint>,
    presence: Presence,
    /// Records whose removal was asked for.
    buried: BTreeSet<String>,
    watched: bool,
}

struct Endpoint {
    api: KindApi,
    target: PatchTarget,
}

// === impl Seat ===

impl Seat {
    /// Writes or removes a record, in every API group in which the peering object exists.
    ///
    /// Returns how many there are.
    pub(crate) async fn set(&self, identity: &str, peer: Option<&Peer>) -> Result<usize, Error> {
        let mut count = 0;
        for mut table in Table::all(self) {
            table.look().await?;
            let Some(endpoint) = &table.endpoint else {
                continue;
            };
            let patch = match peer {
                Some(peer) => peer.announcement(),
                None => removal([identity]),
            };
            match endpoint.patch(self, &patch).await {
                Ok(_) => count += 1,
                Err(requests::Error::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(count)
    }
}

// === impl Table ===

impl Table {
    /// The tables of all API groups.
    pub(super) fn all(seat: &Seat) -> Vec<Self> {
        GROUPS
            .iter()
            .map(|group| Self {
                seat: seat.clone(),
                group,
                endpoint: None,
                presence: Presence::Unknown,
                buried: BTreeSet::new(),
                watched: false,
            })
            .collect()
    }

    pub(super) fn presence(&self) -> &Presence {
        &self.presence
    }

    pub(super) fn is_served(&self) -> bool {
        self.endpoint.is_some()
    }

    pub(super) fn is_found(&self) -> bool {
        matches!(self.presence, Presence::Found(_))
    }

    /// Whether it is known if there is anybody to pause for.
    pub(super) fn is_settled(&self) -> bool {
        !matches!(self.presence, Presence::Unknown)
    }

    /// Asks whether the kind is defined, unless that is known; `true` if it turns out to be.
    pub(super) async fn look(&mut self) -> Result<bool, Error> {
        if self.is_served() {
            return Ok(false);
        }
        let (kind, plural, scope) = match self.seat.namespace {
            Some(_) => ("KopfPeering", "kopfpeerings", Scope::Namespaced),
            None => ("ClusterKopfPeering", "clusterkopfpeerings", Scope::Cluster),
        };
        let Some(status) = discover(&self.seat.client, self.group, plural).await? else {
            self.presence = Presence::NotServed;
            return Ok(false);
        };
        let spec = ResourceSpec {
            group: self.group,
            version: VERSION,
            kind,
            plural,
            scope,
            status,
        };
        let mut selectors = Selectors::default();
        let field = "metadata.name".to_owned();
        selectors.fields.insert(field, self.seat.name.clone());
        self.endpoint = Some(Endpoint {
            api: KindApi::new(self.seat.client.clone(), spec, selectors),
            target: match status {
                StatusSubresource::Present => PatchTarget::Status,
                StatusSubresource::Absent => PatchTarget::Body,
            },
        });
        self.presence = Presence::Unknown;
        Ok(true)
    }

    /// The stream of the object, once it can be watched; asked for again, there is none.
    pub(super) fn stream(&mut self, kind: KindIndex, settings: &StreamSettings) -> Option<Stream> {
        let usable = !matches!(self.presence, Presence::Unknown | Presence::Refused(_));
        let endpoint = self.endpoint.as_ref().filter(|_| usable && !self.watched)?;
        self.watched = true;
        Some(Stream {
            api: endpoint.api.clone(),
            kind,
            namespace: self.seat.namespace.clone(),
            retain: Retain::Identity,
            settings: settings.clone(),
            observed: StreamHealth::unobserved(),
        })
    }

    /// Writes the own record, and takes in what the object then is.
    pub(super) async fn announce(
        &mut self,
        own: &Peer,
        now: ClockReading,
    ) -> Result<&'static str, Error> {
        let Some(endpoint) = &self.endpoint else {
            return Ok("not served");
        };
        match endpoint.patch(&self.seat, &own.announcement()).await {
            Ok(object) => {
                self.observe(&object, now);
                Ok("ok")
            }
            Err(requests::Error::NotFound) => {
                self.presence = Presence::Missing;
                Ok("not found")
            }
            Err(error) if error.is_forbidden() => {
                if !matches!(self.presence, Presence::Refused(_)) {
                    warn!("the peering {:?} may not be used: {error}", self.seat.name);
                }
                self.presence = Presence::Refused(error.to_string());
                Ok("forbidden")
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes in the object as the stream brought it; `true` if it was not there before.
    pub(super) fn saw(&mut self, text: &RawValue, now: ClockReading) -> bool {
        let appeared = !self.is_found();
        if let Ok(object) = serde_json::from_str::<Value>(text.get()) {
            self.observe(&object, now);
        }
        appeared
    }

    /// The object is gone.
    pub(super) fn lost(&mut self) -> bool {
        self.presence = Presence::Missing;
        false
    }

    fn observe(&mut self, object: &Value, now: ClockReading) {
        if !self.is_found() {
            self.presence = Presence::Found(Peers::default());
        }
        if let Presence::Found(peers) = &mut self.presence {
            peers.observe(object, now);
        }
    }

    pub(super) fn verdict(&self, own: &OwnPeer, now: ClockReading) -> Option<PeeringDecision> {
        match &self.presence {
            Presence::Found(peers) => Some(peers.verdict(own, now)),
            _ => None,
        }
    }

    /// Removes the records of operators that are gone, once each.
    pub(super) async fn bury(&mut self, dead: Vec<String>) -> Result<(), Error> {
        let dead: BTreeSet<String> = dead.into_iter().collect();
        let fresh: Vec<&str> = dead.difference(&self.buried).map(String::as_str).collect();
        if !fresh.is_empty() {
            self.remove(fresh).await?;
        }
        self.buried = dead;
        Ok(())
    }

    pub(super) async fn remove<'a>(
        &self,
        identities: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Error> {
        let Some(endpoint) = &self.endpoint else {
            return Ok(());
        };
        match endpoint.patch(&self.seat, &removal(identities)).await {
            Ok(_) | Err(requests::Error::NotFound) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

// === impl Endpoint ===

impl Endpoint {
    async fn patch(&self, seat: &Seat, patch: &Value) -> Result<Value, requests::Error> {
        let body = PatchBody::Merge(patch);
        let namespace = seat.namespace.as_deref();
        let request = self.api.patch(namespace, &seat.name, self.target, &body);
        // Whoever waits here for long does not see others come meanwhile.
        let answer = tokio::time::timeout(PATIENCE, request).await;
        answer.unwrap_or(Err(requests::Error::Timeout))
    }
}

/// Whether the server serves this resource, and if so, whether with an endpoint for the status.
async fn discover(
    client: &Client,
    group: &str,
    plural: &str,
) -> Result<Option<StatusSubresource>, Error> {
    let request = http::Request::get(format!("/apis/{group}/{VERSION}"))
        .body(Vec::new())
        .map_err(|error| Error::Discovery(Box::new(kube::Error::HttpError(error))))?;
    let answer = tokio::time::timeout(PATIENCE, client.request::<Value>(request)).await;
    let resources = match answer {
        Err(_) => return Err(Error::Timeout),
        // Whoever may not even ask has nobody to meet there.
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 403 | 404) => return Ok(None),
        Ok(Err(error)) => return Err(Error::Discovery(Box::new(error))),
        Ok(Ok(resources)) => resources,
    };
    let listed = resources["resources"].as_array();
    let has = |name: &str| listed.into_iter().flatten().any(|it| it["name"] == name);
    Ok(has(plural).then(|| {
        if has(&format!("{plural}/status")) {
            StatusSubresource::Present
        } else {
            StatusSubresource::Absent
        }
    }))
}
