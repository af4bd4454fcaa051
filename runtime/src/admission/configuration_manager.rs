//! Creates, updates and deletes the webhook configuration objects of an operator.

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

use super::selected_kinds::SelectedKinds;
use super::webhook_server::RevisedClientConfig;
use crate::client::resource::ResourceTarget;
use crate::handler::error::with_causes;

/// How long the API server may take for one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A replica whose annotation has not changed for so many resyncs is gone.
const RESYNCS_UNTIL_GONE: u32 = 4;

/// How long this replica waits for the newer certificates that another replica has announced.
const NEWER_REVISION_TIMEOUT: Duration = Duration::from_secs(120);

/// Each conflict means that another replica has written.
const ATTEMPTS: usize = 10;

const REPLICA: &str = "replicas.kopf-gen.dev/";
const REVISION: &str = "webhooks.kopf-gen.dev/revision";

/// The webhook configuration could not be written.
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
    #[error("the API server did not answer within {} s", REQUEST_TIMEOUT.as_secs())]
    Timeout,
    #[error("other clients change the {kind} `{name}` all the time")]
    Contended { kind: &'static str, name: String },
}

/// Keeps the configuration of all webhooks of an operator up to date.
pub(super) struct ConfigurationManager {
    pub(super) name: String,
    pub(super) webhooks: Vec<(ResourceTarget, Arc<WebhookSpec>)>,
    selected: SelectedKinds,
    /// The resources of each selection that were logged last.
    logged: BTreeMap<String, String>,
    pub(super) namespaces: WebhookNamespaces,
    pub(super) client: Client,
    pub(super) client_configs: watch::Receiver<Option<RevisedClientConfig>>,
    /// The other replicas that serve, by role.
    replicas: BTreeMap<WebhookRole, ServingReplicas>,
    /// The objects that this process created, and may therefore delete.
    created: Vec<WebhookRole>,
    started: Instant,
    resync: Duration,
    /// Since when this replica waits for newer certificates.
    behind_since: Option<Instant>,
}

/// The write that follows a read.
enum ConfigurationAction {
    None,
    Put(Box<DynamicObject>),
    Delete,
}

// === impl Error ===

impl Error {
    /// Returns true if the same request may succeed later.
    fn is_temporary(&self) -> bool {
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
        webhooks: Vec<(ResourceTarget, Arc<WebhookSpec>)>,
        selected: SelectedKinds,
        namespaces: WebhookNamespaces,
        client: Client,
        client_configs: watch::Receiver<Option<RevisedClientConfig>>,
        resync: Duration,
    ) -> Self {
        let host = std::env::var("HOSTNAME").unwrap_or_default();
        let host: String = host
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(40)
            .collect();
        let replica = format!("{host}{:08x}", fastrand::u32(..));
        let replicas = WebhookRole::ALL.map(|role| {
            (
                role,
                ServingReplicas::new(replica.clone(), resync.saturating_mul(RESYNCS_UNTIL_GONE)),
            )
        });
        Self {
            name,
            webhooks,
            selected,
            logged: BTreeMap::new(),
            namespaces,
            client,
            client_configs,
            replicas: replicas.into(),
            created: Vec::new(),
            started: Instant::now(),
            resync,
            behind_since: None,
        }
    }

    /// Keeps the configuration up to date until `stop`, then removes what no other replica needs.
    ///
    /// # Errors
    /// If the first attempt fails permanently. Later failures are retried.
    pub(super) async fn run(mut self, stop: &CancellationToken) -> Result<(), Error> {
        let mut pause = Duration::from_millis(100);
        let mut configured = false;
        loop {
            let served = self.client_configs.borrow_and_update().clone();
            // Without the served resources, webhooks on selections would be removed for a moment.
            if let Some(served) = served.filter(|_| self.selected.are_known()) {
                self.log_selected();
                match self.sync(&served).await {
                    Ok(()) => {
                        if !configured {
                            info!("the webhooks are configured in `{}`", self.name);
                        }
                        configured = true;
                        pause = self.resync;
                    }
                    Err(error) if !configured && !error.is_temporary() => {
                        // Another replica would wait for the marks of this one.
                        let _ = self.withdraw(&served).await;
                        return Err(error);
                    }
                    Err(error) => {
                        warn!("cannot configure the webhooks: {}", with_causes(&error));
                        pause = pause.saturating_mul(2).min(self.resync);
                    }
                }
            }
            tokio::select! {
                () = stop.cancelled() => break,
                changed = self.client_configs.changed() => {
                    if changed.is_err() {
                        stop.cancelled().await;
                        break;
                    }
                }
                () = self.selected.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        let served = self.client_configs.borrow().clone();
        if let (Some(served), true) = (served, configured)
            && let Err(error) = self.withdraw(&served).await
        {
            warn!(
                "cannot remove the webhook configuration: {}",
                with_causes(&error)
            );
        }
        Ok(())
    }

    async fn sync(&mut self, served: &RevisedClientConfig) -> Result<(), Error> {
        for role in WebhookRole::ALL {
            let wanted = self.entries(role, &served.client)?;
            self.update(role, |manager, present| {
                manager.refreshed(role, present, &wanted, served)
            })
            .await?;
        }
        Ok(())
    }

    /// Removes what no other replica needs, as far as possible; returns the first failure.
    async fn withdraw(&mut self, served: &RevisedClientConfig) -> Result<(), Error> {
        let mut result = Ok(());
        for role in WebhookRole::ALL {
            let all = self.entries(role, &served.client)?;
            let webhooks = self.configured();
            let left = configuration::persistent(&all, &webhooks, role);
            let withdrawn = self.update(role, |manager, present| {
                manager.without_this_replica(role, present, &all, &left, served)
            });
            result = result.and(withdrawn.await);
        }
        result
    }

    fn configured(&self) -> Vec<ConfiguredWebhook<'_>> {
        let webhooks = self.webhooks.iter();
        webhooks
            .map(|(target, spec)| self.selected.configured(target, spec))
            .collect()
    }

    /// Logs the kinds of each selection whenever they have changed.
    fn log_selected(&mut self) {
        for (target, _) in &self.webhooks {
            let ResourceTarget::Selection(selector) = target else {
                continue;
            };
            let names = self.selected.of(selector);
            let names: Vec<String> = names.iter().map(|it| it.name()).collect();
            let names = names.join(", ");
            let logged = self.logged.insert(target.to_string(), names.clone());
            if logged.as_ref() == Some(&names) {
                continue;
            }
            if names.is_empty() {
                info!("the webhooks of {target} review no kinds at present");
            } else {
                info!("the webhooks of {target} review {names}");
            }
        }
    }

    fn entries(&self, role: WebhookRole, client: &ClientConfig) -> Result<Vec<Value>, Error> {
        let webhooks = self.configured();
        Ok(entries(
            role,
            &self.name,
            &webhooks,
            client,
            &self.namespaces,
        )?)
    }

    /// The object as it should be while this replica serves.
    fn refreshed(
        &mut self,
        role: WebhookRole,
        present: Option<DynamicObject>,
        wanted: &[Value],
        served: &RevisedClientConfig,
    ) -> ConfigurationAction {
        if present.is_none() && wanted.is_empty() {
            return ConfigurationAction::None;
        }
        let mut object = present.unwrap_or_else(|| DynamicObject::new(&self.name, &resource(role)));
        if self.is_behind(&object, served) {
            debug!("another replica has newer certificates; waiting until this one has them, too");
            return ConfigurationAction::None;
        }
        let in_sync = is_in_sync(&object.data, wanted);
        let revision = served.revision.map(|revision| revision.to_string());
        let same_revision = object.annotations().get(REVISION) == revision.as_ref();
        let marked = self.mark_serving(role, &mut object, served);
        if in_sync && !marked && (same_revision || wanted.is_empty()) {
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

    /// The object as it should be when this replica has stopped.
    fn without_this_replica(
        &mut self,
        role: WebhookRole,
        present: Option<DynamicObject>,
        all: &[Value],
        left: &[Value],
        served: &RevisedClientConfig,
    ) -> ConfigurationAction {
        let Some(mut object) = present else {
            return ConfigurationAction::None;
        };
        if let Address::Service { .. } = served.client.address {
            let marks = marks(&object);
            let clock = self.started.elapsed();
            let replicas = self.replicas.get_mut(&role);
            let replicas = replicas.expect("there is an entry for each role");
            replicas.observe(&marks, clock);
            let key = format!("{REPLICA}{}", replicas.name());
            let is_last = replicas.is_last(clock);
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
            info!(
                "another client has changed `{}`: it stays as it is",
                self.name
            );
            return ConfigurationAction::None;
        }
        if left.is_empty() && self.created.contains(&role) {
            return ConfigurationAction::Delete;
        }
        object.annotations_mut().remove(REVISION);
        object.data["webhooks"] = json!(left);
        ConfigurationAction::Put(Box::new(object))
    }

    /// Returns true if a replica with newer certificates wrote the object. The API server would no
    /// longer trust that replica if this one wrote its older authority.
    fn is_behind(&mut self, object: &DynamicObject, served: &RevisedClientConfig) -> bool {
        let theirs = object.annotations().get(REVISION);
        let theirs: Option<u64> = theirs.and_then(|revision| revision.parse().ok());
        let newer = match (theirs, served.revision) {
            (Some(theirs), Some(ours)) => theirs > ours,
            _ => false,
        };
        if !newer || matches!(served.client.address, Address::Url(_)) {
            self.behind_since = None;
            return false;
        }
        let since = *self.behind_since.get_or_insert_with(Instant::now);
        since.elapsed() < NEWER_REVISION_TIMEOUT
    }

    /// Marks an object that replicas share with the time at which this replica served; returns
    /// false if replicas do not share it.
    fn mark_serving(
        &mut self,
        role: WebhookRole,
        object: &mut DynamicObject,
        served: &RevisedClientConfig,
    ) -> bool {
        if matches!(served.client.address, Address::Url(_)) {
            return false;
        }
        let clock = self.started.elapsed();
        let replicas = self.replicas.get_mut(&role);
        let replicas = replicas.expect("there is an entry for each role");
        replicas.observe(&marks(object), clock);
        let annotations = object.annotations_mut();
        for dead in replicas.dead(clock) {
            annotations.remove(&format!("{REPLICA}{dead}"));
        }
        let key = format!("{REPLICA}{}", replicas.name());
        annotations.insert(key, clock.as_millis().to_string());
        true
    }

    /// Reads, changes and writes an object; again after a conflict.
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
                    let created =
                        answered(role, &name, "cannot create", api.create(&params, &object));
                    let created = created.await.map(drop);
                    if created.is_ok() {
                        self.created.push(role);
                    }
                    created
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
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(answer) => answer.map_err(|source| Error::Request {
            verb,
            kind: role.configuration_kind(),
            name: name.to_owned(),
            source: Box::new(source),
        }),
        Err(_) => Err(Error::Timeout),
    }
}
