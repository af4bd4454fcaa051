//! The objects in the cluster that tell API servers about the webhooks: made, mended, taken away.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::admission::configuration::{
    self, Address, ClientConfig, ConfigurationError, ConfiguredWebhook, WebhookNamespaces, entries,
    is_in_sync,
};
use kopf_core::admission::serving_replicas::ServingReplicas;
use kopf_core::admission::{WebhookRole, WebhookSpec};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, PostParams, Preconditions};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::reviewer::configured;
use super::server::chain;
use super::session::RevisedClientConfig;
use crate::client::resource::ResourceSpec;

/// How long the API server may take for one request.
const REQUEST: Duration = Duration::from_secs(30);

/// A replica that was not heard of in so many rounds is gone.
const ROUNDS: u32 = 4;

/// How long a newer state of shared certificates is believed in, though it cannot be seen.
const BELIEF: Duration = Duration::from_secs(120);

/// Each conflict means that another replica got further.
const ATTEMPTS: usize = 10;

const REPLICA: &str = "replicas.kopf-gen.dev/";
const REVISION: &str = "webhooks.kopf-gen.dev/revision";

/// Why the webhooks could not be made known.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Unnameable(#[from] ConfigurationError),
    #[error("{verb} the {kind} `{name}`")]
    Request {
        verb: &'static str,
        kind: &'static str,
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("the API server did not answer within {} s", REQUEST.as_secs())]
    Timeout,
    #[error("others change the {kind} `{name}` all the time")]
    Contended { kind: &'static str, name: String },
}

/// The configuration of all webhooks of an operator.
pub(super) struct ConfigurationManager {
    pub(super) name: String,
    pub(super) webhooks: Vec<(ResourceSpec, Arc<WebhookSpec>)>,
    pub(super) reach: WebhookNamespaces,
    pub(super) client: Client,
    pub(super) announcements: watch::Receiver<Option<RevisedClientConfig>>,
    /// What is known of other replicas, by role.
    presence: BTreeMap<WebhookRole, ServingReplicas>,
    /// What this process made itself, and may therefore remove.
    made: Vec<WebhookRole>,
    started: Instant,
    resync: Duration,
    /// Since when a newer state of the certificates is waited for.
    behind: Option<Instant>,
}

/// What is to be done about an object that was read.
enum ConfigurationAction {
    None,
    Put(Box<DynamicObject>),
    Delete,
}

// === impl Error ===

impl Error {
    /// Whether trying again makes sense.
    fn is_passing(&self) -> bool {
        match self {
            Self::Unnameable(_) => false,
            Self::Timeout | Self::Contended { .. } => true,
            Self::Request { source, .. } => {
                !matches!(&**source, kube::Error::Api(status) if status.code < 500 && status.code != 429)
            }
        }
    }
}

// === impl ConfigurationManager ===

impl ConfigurationManager {
    pub(super) fn new(
        name: String,
        webhooks: Vec<(ResourceSpec, Arc<WebhookSpec>)>,
        reach: WebhookNamespaces,
        client: Client,
        announcements: watch::Receiver<Option<RevisedClientConfig>>,
        resync: Duration,
    ) -> Self {
        let host = std::env::var("HOSTNAME").unwrap_or_default();
        let host: String = host
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(40)
            .collect();
        let me = format!("{host}{:08x}", fastrand::u32(..));
        let presence =
            WebhookRole::ALL.map(|role| (role, ServingReplicas::new(me.clone(), resync * ROUNDS)));
        Self {
            name,
            webhooks,
            reach,
            client,
            announcements,
            presence: presence.into(),
            made: Vec::new(),
            started: Instant::now(),
            resync,
            behind: None,
        }
    }

    /// Keeps the configuration as it should be until `over`, then takes away what is not needed.
    ///
    /// # Errors
    /// If the first attempt shows that it will never succeed. Later failures are waited out.
    pub(super) async fn run(mut self, over: &CancellationToken) -> Result<(), Error> {
        let mut pause = Duration::from_millis(100);
        let mut known = false;
        loop {
            let announced = self.announcements.borrow_and_update().clone();
            if let Some(announced) = announced {
                match self.sync(&announced).await {
                    Ok(()) => {
                        if !known {
                            info!("the API server knows the webhooks as `{}`", self.name);
                        }
                        known = true;
                        pause = self.resync;
                    }
                    Err(error) if !known && !error.is_passing() => return Err(error),
                    Err(error) => {
                        warn!("the webhooks are not made known: {}", chain(&error));
                        pause = (pause * 2).min(self.resync);
                    }
                }
            }
            tokio::select! {
                () = over.cancelled() => break,
                changed = self.announcements.changed() => {
                    if changed.is_err() {
                        over.cancelled().await;
                        break;
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
        let announced = self.announcements.borrow().clone();
        if let (Some(announced), true) = (announced, known)
            && let Err(error) = self.depart(&announced).await
        {
            warn!("the webhooks stay configured: {}", chain(&error));
        }
        Ok(())
    }

    async fn sync(&mut self, announced: &RevisedClientConfig) -> Result<(), Error> {
        for role in WebhookRole::ALL {
            let wanted = self.entries(role, &announced.client)?;
            self.update(role, |manager, present| {
                manager.refreshed(role, present, &wanted, announced)
            })
            .await?;
        }
        Ok(())
    }

    async fn depart(&mut self, announced: &RevisedClientConfig) -> Result<(), Error> {
        for role in WebhookRole::ALL {
            let all = self.entries(role, &announced.client)?;
            let webhooks = self.configured();
            let left = configuration::persistent(&all, &webhooks, role);
            self.update(role, |manager, present| {
                manager.without_us(role, present, &all, &left, announced)
            })
            .await?;
        }
        Ok(())
    }

    fn configured(&self) -> Vec<ConfiguredWebhook<'_>> {
        let webhooks = self.webhooks.iter();
        webhooks
            .map(|(resource, spec)| configured(resource, spec))
            .collect()
    }

    fn entries(&self, role: WebhookRole, client: &ClientConfig) -> Result<Vec<Value>, Error> {
        let webhooks = self.configured();
        Ok(entries(role, &self.name, &webhooks, client, &self.reach)?)
    }

    /// The object as it should be while we serve.
    fn refreshed(
        &mut self,
        role: WebhookRole,
        present: Option<DynamicObject>,
        wanted: &[Value],
        announced: &RevisedClientConfig,
    ) -> ConfigurationAction {
        if present.is_none() && wanted.is_empty() {
            return ConfigurationAction::None;
        }
        let mut object = present.unwrap_or_else(|| DynamicObject::new(&self.name, &resource(role)));
        if self.is_behind(&object, announced) {
            debug!("another replica has newer certificates; waiting for them");
            return ConfigurationAction::None;
        }
        let in_sync = is_in_sync(&object.data, wanted);
        let revision = announced.revision.map(|revision| revision.to_string());
        let same_revision = object.annotations().get(REVISION) == revision.as_ref();
        let signed = self.sign(role, &mut object, announced);
        if in_sync && !signed && (same_revision || wanted.is_empty()) {
            return ConfigurationAction::None;
        }
        if let Some(revision) = revision.filter(|_| !wanted.is_empty()) {
            object
                .annotations_mut()
                .insert(REVISION.to_owned(), revision);
        }
        object.data["webhooks"] = json!(wanted);
        ConfigurationAction::Put(Box::new(object))
    }

    /// The object as it should be when we are gone.
    fn without_us(
        &mut self,
        role: WebhookRole,
        present: Option<DynamicObject>,
        all: &[Value],
        left: &[Value],
        announced: &RevisedClientConfig,
    ) -> ConfigurationAction {
        let Some(mut object) = present else {
            return ConfigurationAction::None;
        };
        if let Address::Service { .. } = announced.client.address {
            let marks = marks(&object);
            let clock = self.started.elapsed();
            let presence = self.presence.get_mut(&role);
            let presence = presence.expect("there is one for each role");
            presence.observe(&marks, clock);
            let key = format!("{REPLICA}{}", presence.me());
            let is_last = presence.is_last(clock);
            let marked = object.annotations_mut().remove(&key).is_some();
            if !is_last {
                return if marked {
                    ConfigurationAction::Put(Box::new(object))
                } else {
                    ConfigurationAction::None
                };
            }
            object
                .annotations_mut()
                .retain(|key, _| !key.starts_with(REPLICA));
        } else if !is_in_sync(&object.data, all) {
            info!("somebody else has taken over `{}`", self.name);
            return ConfigurationAction::None;
        }
        if left.is_empty() && self.made.contains(&role) {
            return ConfigurationAction::Delete;
        }
        object.annotations_mut().remove(REVISION);
        object.data["webhooks"] = json!(left);
        ConfigurationAction::Put(Box::new(object))
    }

    /// Whether a replica with newer certificates wrote the object: what we know would do harm.
    fn is_behind(&mut self, object: &DynamicObject, announced: &RevisedClientConfig) -> bool {
        let theirs = object.annotations().get(REVISION);
        let theirs: Option<u64> = theirs.and_then(|revision| revision.parse().ok());
        let newer = match (theirs, announced.revision) {
            (Some(theirs), Some(ours)) => theirs > ours,
            _ => false,
        };
        if !newer || matches!(announced.client.address, Address::Url(_)) {
            self.behind = None;
            return false;
        }
        let since = *self.behind.get_or_insert_with(Instant::now);
        since.elapsed() < BELIEF
    }

    /// Puts our sign of life on an object that replicas share; tells whether that was due.
    fn sign(
        &mut self,
        role: WebhookRole,
        object: &mut DynamicObject,
        announced: &RevisedClientConfig,
    ) -> bool {
        if matches!(announced.client.address, Address::Url(_)) {
            return false;
        }
        let clock = self.started.elapsed();
        let presence = self.presence.get_mut(&role);
        let presence = presence.expect("there is one for each role");
        presence.observe(&marks(object), clock);
        let annotations = object.annotations_mut();
        for dead in presence.dead(clock) {
            annotations.remove(&format!("{REPLICA}{dead}"));
        }
        let key = format!("{REPLICA}{}", presence.me());
        annotations.insert(key, clock.as_millis().to_string());
        true
    }

    /// Reads, changes and writes an object; again if somebody else was faster.
    async fn update(
        &mut self,
        role: WebhookRole,
        mut change: impl FnMut(&mut Self, Option<DynamicObject>) -> ConfigurationAction,
    ) -> Result<(), Error> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource(role));
        let name = self.name.clone();
        for _ in 0..ATTEMPTS {
            let present = answered(role, &name, "cannot read", api.get_opt(&name)).await?;
            let version = present
                .as_ref()
                .and_then(|object| object.resource_version());
            let done = match change(self, present) {
                ConfigurationAction::None => return Ok(()),
                ConfigurationAction::Put(object) if version.is_none() => {
                    let params = PostParams::default();
                    let made = answered(role, &name, "cannot create", api.create(&params, &object));
                    let made = made.await.map(drop);
                    if made.is_ok() {
                        self.made.push(role);
                    }
                    made
                }
                ConfigurationAction::Put(object) => {
                    let params = PostParams::default();
                    let request = api.replace(&name, &params, &object);
                    answered(role, &name, "cannot write", request)
                        .await
                        .map(drop)
                }
                ConfigurationAction::Delete => {
                    let unchanged = Preconditions {
                        resource_version: version,
                        uid: None,
                    };
                    let params = DeleteParams::default().preconditions(unchanged);
                    let request = api.delete(&name, &params);
                    answered(role, &name, "cannot delete", request)
                        .await
                        .map(drop)
                }
            };
            match done {
                Err(Error::Request { source, .. }) if is_conflict(&source) => {}
                other => return other,
            }
        }
        Err(Error::Contended {
            kind: role.configuration_kind(),
            name,
        })
    }
}

fn marks(object: &DynamicObject) -> BTreeMap<String, String> {
    let annotations = object.annotations().iter();
    annotations
        .filter_map(|(key, mark)| Some((key.strip_prefix(REPLICA)?.to_owned(), mark.clone())))
        .collect()
}

fn resource(role: WebhookRole) -> ApiResource {
    let kind = role.configuration_kind();
    let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    ApiResource::from_gvk_with_plural(&gvk, role.configuration_plural())
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

async fn answered<T>(
    role: WebhookRole,
    name: &str,
    verb: &'static str,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(REQUEST, request).await {
        Ok(answer) => answer.map_err(|source| Error::Request {
            verb,
            kind: role.configuration_kind(),
            name: name.to_owned(),
            source: Box::new(source),
        }),
        Err(_) => Err(Error::Timeout),
    }
}
