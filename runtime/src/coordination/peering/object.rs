//! One peering object of one API group: its state, the records in it, and the writes to it.

use std::collections::BTreeSet;
use std::time::Duration;

use kopf_core::handler::watch_selectors::WatchSelectors;
use kopf_core::machine::request::{PatchContent, PatchEndpoint};
use kopf_core::peering::{OwnPeer, Peer, PeeringDecision, Peers, removal};
use kopf_core::time::ClockReading;
use kube::Client;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tracing::warn;

use crate::client::requests::{self, KindApi};
use crate::client::resource::{ResourceSpec, Scope, StatusSubresource};
use crate::watch::KindIndex;
use crate::watch::stream::{StreamSettings, WatchStream};
use crate::watch::stream_health::StreamHealth;
use kopf_core::watch::known_objects::Retention;

/// The API groups of peerings: the current one, and that of old versions of Kopf.
const GROUPS: [&str; 2] = ["kopf.dev", "zalando.org"];

const VERSION: &str = "v1";

/// The time that the API server has to respond.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The name and the namespace of a peering.
#[derive(Clone)]
pub(crate) struct PeeringRef {
    pub(crate) client: Client,
    pub(crate) name: String,
    /// None for a ClusterKopfPeering.
    pub(crate) namespace: Option<String>,
}

/// The reason for which a request about peerings failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("discovery failed: {0}")]
    Discovery(#[source] Box<kube::Error>),
    #[error("discovery failed: the API server did not respond in time")]
    Timeout,
    #[error("{0}")]
    Write(#[from] requests::Error),
}

/// The state of the peering object.
pub(super) enum PeeringObjectState {
    /// Not known yet.
    Unknown,
    /// The API server does not serve its kind.
    NotServed,
    /// There is no object of that name.
    Missing,
    /// The operator has no permission to use it.
    Forbidden(String),
    /// It exists, with these records.
    Found(Peers),
}

/// A peering object that may or may not exist.
pub(super) struct ObservedPeering {
    peering: PeeringRef,
    group: &'static str,
    api: Option<PeeringApi>,
    state: PeeringObjectState,
    /// The identities of records whose removal was requested.
    removal_requested: BTreeSet<String>,
    watched: bool,
}

struct PeeringApi {
    api: KindApi,
    target: PatchEndpoint,
}

// === impl PeeringRef ===

impl PeeringRef {
    fn kind(&self) -> (&'static str, &'static str, Scope) {
        match self.namespace {
            Some(_) => ("KopfPeering", "kopfpeerings", Scope::Namespaced),
            None => ("ClusterKopfPeering", "clusterkopfpeerings", Scope::Cluster),
        }
    }

    /// Writes or removes a record in every API group in which the peering object exists.
    ///
    /// Returns the number of these objects.
    pub(crate) async fn set(&self, identity: &str, peer: Option<&Peer>) -> Result<usize, Error> {
        let mut count = 0;
        for mut object in ObservedPeering::all(self) {
            object.discover().await?;
            let Some(api) = &object.api else {
                continue;
            };
            let patch = match peer {
                Some(peer) => peer.announcement(),
                None => removal([identity]),
            };
            match api.patch(self, &patch).await {
                Ok(_) => count += 1,
                Err(requests::Error::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(count)
    }
}

// === impl ObservedPeering ===

impl ObservedPeering {
    /// The peering objects of all API groups.
    pub(super) fn all(peering: &PeeringRef) -> Vec<Self> {
        GROUPS
            .iter()
            .map(|group| Self {
                peering: peering.clone(),
                group,
                api: None,
                state: PeeringObjectState::Unknown,
                removal_requested: BTreeSet::new(),
                watched: false,
            })
            .collect()
    }

    pub(super) fn state(&self) -> &PeeringObjectState {
        &self.state
    }

    pub(super) fn is_served(&self) -> bool {
        self.api.is_some()
    }

    pub(super) fn is_found(&self) -> bool {
        matches!(self.state, PeeringObjectState::Found(_))
    }

    pub(super) fn is_known(&self) -> bool {
        !matches!(self.state, PeeringObjectState::Unknown)
    }

    /// Discovers whether the API server serves the kind; `true` if it does since this call.
    pub(super) async fn discover(&mut self) -> Result<bool, Error> {
        if self.is_served() {
            return Ok(false);
        }
        let (kind, plural, scope) = self.peering.kind();
        let Some(status) = discover(&self.peering.client, self.group, plural).await? else {
            self.state = PeeringObjectState::NotServed;
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
        let mut selectors = WatchSelectors::default();
        let field = "metadata.name".to_owned();
        selectors.fields.insert(field, self.peering.name.clone());
        self.api = Some(PeeringApi {
            api: KindApi::new(self.peering.client.clone(), spec, selectors),
            target: match status {
                StatusSubresource::Present => PatchEndpoint::Status,
                StatusSubresource::Absent => PatchEndpoint::Object,
            },
        });
        self.state = PeeringObjectState::Unknown;
        Ok(true)
    }

    /// The stream of the object, once it can be watched; none at further calls.
    pub(super) fn stream(
        &mut self,
        kind: KindIndex,
        settings: &StreamSettings,
    ) -> Option<WatchStream> {
        let usable = !matches!(
            self.state,
            PeeringObjectState::Unknown | PeeringObjectState::Forbidden(_)
        );
        let api = self.api.as_ref().filter(|_| usable && !self.watched)?;
        self.watched = true;
        Some(WatchStream {
            runs_in_pauses: false,
            api: api.api.clone(),
            kind,
            namespace: self.peering.namespace.clone(),
            retention: Retention::Identity,
            settings: settings.clone(),
            health: StreamHealth::unobserved(),
        })
    }

    /// Writes the own record, and observes the object in the response.
    pub(super) async fn announce(
        &mut self,
        own: &Peer,
        now: ClockReading,
    ) -> Result<&'static str, Error> {
        let Some(api) = &self.api else {
            return Ok("not served");
        };
        match api.patch(&self.peering, &own.announcement()).await {
            Ok(object) => {
                self.observe(&object, now);
                Ok("ok")
            }
            Err(requests::Error::NotFound) => {
                self.state = PeeringObjectState::Missing;
                Ok("not found")
            }
            Err(error) if error.is_forbidden() => {
                if !matches!(self.state, PeeringObjectState::Forbidden(_)) {
                    warn!(
                        "the peering {:?} may not be used: {error}",
                        self.peering.name
                    );
                }
                self.state = PeeringObjectState::Forbidden(error.to_string());
                Ok("forbidden")
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Creates the object; its records come with the next announcement.
    pub(super) async fn create(&self) -> Result<(), Error> {
        let Some(api) = &self.api else {
            return Ok(());
        };
        match api.create(&self.peering, self.group).await {
            // Another operator was faster.
            Ok(()) | Err(requests::Error::Conflict(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Observes the object of a watch event; `true` if it did not exist before.
    pub(super) fn observe_text(&mut self, text: &RawValue, now: ClockReading) -> bool {
        let appeared = !self.is_found();
        if let Ok(object) = serde_json::from_str::<Value>(text.get()) {
            self.observe(&object, now);
        }
        appeared
    }

    /// The object was deleted; returns `false`, as it did not appear.
    pub(super) fn observe_deletion(&mut self) -> bool {
        self.state = PeeringObjectState::Missing;
        false
    }

    fn observe(&mut self, object: &Value, now: ClockReading) {
        if !self.is_found() {
            self.state = PeeringObjectState::Found(Peers::default());
        }
        if let PeeringObjectState::Found(peers) = &mut self.state {
            peers.observe(object, now);
        }
    }

    pub(super) fn decide(&self, own: &OwnPeer, now: ClockReading) -> Option<PeeringDecision> {
        match &self.state {
            PeeringObjectState::Found(peers) => Some(peers.decide(own, now)),
            _ => None,
        }
    }

    /// Removes expired records, once each.
    pub(super) async fn remove_dead(&mut self, dead: Vec<String>) -> Result<(), Error> {
        let dead: BTreeSet<String> = dead.into_iter().collect();
        let fresh: Vec<&str> = dead
            .difference(&self.removal_requested)
            .map(String::as_str)
            .collect();
        if !fresh.is_empty() {
            self.remove(fresh).await?;
        }
        self.removal_requested = dead;
        Ok(())
    }

    pub(super) async fn remove<'a>(
        &self,
        identities: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Error> {
        let Some(api) = &self.api else {
            return Ok(());
        };
        match api.patch(&self.peering, &removal(identities)).await {
            Ok(_) | Err(requests::Error::NotFound) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

// === impl PeeringApi ===

impl PeeringApi {
    async fn create(&self, peering: &PeeringRef, group: &str) -> Result<(), requests::Error> {
        let (kind, ..) = peering.kind();
        let body = json!({
            "apiVersion": format!("{group}/{VERSION}"),
            "kind": kind,
            "metadata": {"name": peering.name},
        });
        let request = self.api.create(peering.namespace.as_deref(), &body);
        let response = tokio::time::timeout(REQUEST_TIMEOUT, request).await;
        response
            .unwrap_or(Err(requests::Error::Timeout))
            .map(|_| ())
    }

    async fn patch(&self, peering: &PeeringRef, patch: &Value) -> Result<Value, requests::Error> {
        let body = PatchContent::Merge(patch);
        let namespace = peering.namespace.as_deref();
        let request = self.api.patch(namespace, &peering.name, self.target, body);
        // While this waits, watch events of the peering are not read.
        let response = tokio::time::timeout(REQUEST_TIMEOUT, request).await;
        response.unwrap_or(Err(requests::Error::Timeout))
    }
}

/// The status subresource of a peering resource; none if the API server does not serve it.
async fn discover(
    client: &Client,
    group: &str,
    plural: &str,
) -> Result<Option<StatusSubresource>, Error> {
    let request = http::Request::get(format!("/apis/{group}/{VERSION}"))
        .body(Vec::new())
        .map_err(|error| Error::Discovery(Box::new(kube::Error::HttpError(error))))?;
    let response = tokio::time::timeout(REQUEST_TIMEOUT, client.request::<Value>(request)).await;
    let resources = match response {
        Err(_) => return Err(Error::Timeout),
        // Without the permission for discovery, the operator cannot use the peering either.
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
