//! The tasks of an operator's webhooks: the server and the manager of the webhook configuration.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::admission::configuration::{ConfigurationError, WebhookNamespaces, names};
use kopf_core::admission::{WebhookRole, WebhookSpec};
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::automatic_server::{self, AutomaticServer, protected_namespaces};
use super::configuration_manager::ConfigurationManager;
use super::options::{ConfigurationOwner, ServerChoice, Webhooks};
use super::reviewer::Reviewer;
use super::selected_kinds::SelectedKinds;
use super::webhook_server::{RevisedClientConfig, ServeError, WebhookServer, WebhookSession};
use crate::client::resource::ResourceTarget;
use crate::health::metrics::Metrics;
use crate::index::list_gate::GatedIndices;
use crate::registration::RegisteredWebhook;
use crate::task::Tasks;
use crate::task::heartbeat::{ConditionState, Heartbeats};

/// The webhooks of an operator that runs.
pub(crate) struct RunningWebhooks {
    tasks: Tasks,
    failures: mpsc::Receiver<Error>,
    stop: CancellationToken,
}

/// The parts of the operator that webhooks use.
pub(crate) struct WebhookDependencies<'a> {
    pub(crate) lookup: GatedIndices,
    pub(crate) selected: SelectedKinds,
    pub(crate) heartbeats: &'a Heartbeats,
    pub(crate) metrics: &'a Metrics,
}

/// The webhooks could not be started, or have ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the webhooks cannot be served")]
    Serve(#[source] ServeError),
    #[error("the webhook server has ended")]
    Ended,
    #[error("the webhooks cannot be configured in the cluster")]
    Configure(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<ConfigurationError> for Error {
    fn from(error: ConfigurationError) -> Self {
        Self::Configure(Box::new(error))
    }
}

// === impl RunningWebhooks ===

impl RunningWebhooks {
    /// Starts the webhook server, and configures the webhooks as soon as they are served.
    pub(crate) async fn start(
        operator: &'static str,
        options: Webhooks,
        webhooks: Vec<(ResourceTarget, RegisteredWebhook)>,
        scope: WebhookNamespaces,
        client: Client,
        dependencies: WebhookDependencies<'_>,
    ) -> Result<Self, Error> {
        let (server, protected) = server(operator, options.server, &client).await;
        let namespaces = without(scope, protected);
        let specs: Vec<_> = webhooks
            .iter()
            .map(|(target, webhook)| (target.clone(), Arc::new(webhook.spec.clone())))
            .collect();
        let selected = dependencies.selected;
        let name = configuration_name(operator, options.configuration, &specs, &selected)?;

        let (client_configs, served) = watch::channel(None);
        let (failing, failures) = mpsc::channel(2);
        let stop = CancellationToken::new();
        let over = CancellationToken::new();
        let session = WebhookSession {
            reviewer: Reviewer::new(
                webhooks,
                namespaces.clone(),
                client.clone(),
                dependencies.lookup,
                selected.clone(),
                dependencies.metrics,
            ),
            client_configs,
            over: over.clone(),
            client: client.clone(),
            operator,
        };
        let mut tasks = Tasks::default();
        spawn_readiness(&mut tasks, dependencies.heartbeats, served.clone(), &stop);
        spawn_server(&mut tasks, server, session, failing.clone());
        let manager = name.map(|name| {
            ConfigurationManager::new(
                name,
                specs,
                selected,
                namespaces,
                client,
                served,
                options.resync,
            )
        });
        spawn_manager(&mut tasks, manager, stop.clone(), over, failing);
        Ok(Self {
            tasks,
            failures,
            stop,
        })
    }

    /// Waits until the webhooks fail permanently.
    pub(crate) async fn failed(&mut self) -> Error {
        match self.failures.recv().await {
            Some(failure) => failure,
            None => Error::Ended,
        }
    }

    /// Removes the webhook configuration if no other replica needs it, then waits for the reviews
    /// that have begun.
    pub(crate) async fn stop(self, grace: Duration) {
        self.stop.cancel();
        self.tasks.drain(grace).await;
    }
}

/// The server that the options ask for, and the namespaces that the webhooks must not concern.
async fn server(
    operator: &str,
    choice: ServerChoice,
    client: &Client,
) -> (Arc<dyn WebhookServer>, Vec<String>) {
    match choice {
        ServerChoice::Automatic(options) => {
            match automatic_server::automatic_server(operator, &options, client).await {
                AutomaticServer::Direct(server) => {
                    let protected = protected_namespaces(Some(&server));
                    (Arc::new(*server), protected)
                }
                AutomaticServer::Tunnelled(tunnel) => {
                    (Arc::new(tunnel), protected_namespaces(None))
                }
            }
        }
        ServerChoice::Server(server) => {
            let protected = protected_namespaces(Some(&server));
            (Arc::new(*server), protected)
        }
        ServerChoice::Custom(server) => (server, protected_namespaces(None)),
    }
}

fn without(scope: WebhookNamespaces, protected: Vec<String>) -> WebhookNamespaces {
    match scope {
        WebhookNamespaces::AllBut(_) => WebhookNamespaces::AllBut(protected),
        WebhookNamespaces::Only(mut names) => {
            names.retain(|name| !protected.contains(name));
            WebhookNamespaces::Only(names)
        }
        WebhookNamespaces::Matching { patterns, .. } => WebhookNamespaces::Matching {
            patterns,
            but: protected,
        },
    }
}

/// The name of the configuration objects; none if the operator does not manage them.
///
/// # Errors
/// If the configuration would have invalid or equal names of webhooks.
fn configuration_name(
    operator: &str,
    owner: ConfigurationOwner,
    specs: &[(ResourceTarget, Arc<WebhookSpec>)],
    selected: &SelectedKinds,
) -> Result<Option<String>, ConfigurationError> {
    let ConfigurationOwner::Managed(name) = owner else {
        return Ok(None);
    };
    let name = name.unwrap_or_else(|| format!("{operator}.kopf-gen.dev"));
    for role in WebhookRole::ALL {
        let of_role: Vec<_> = specs
            .iter()
            .filter(|(_, spec)| spec.role == role)
            .map(|(target, spec)| selected.configured(target, spec))
            .collect();
        names(&name, &of_role)?;
    }
    Ok(Some(name))
}

/// Makes the operator ready as far as webhooks are concerned when they are served.
fn spawn_readiness(
    tasks: &mut Tasks,
    heartbeats: &Heartbeats,
    mut served: watch::Receiver<Option<RevisedClientConfig>>,
    stop: &CancellationToken,
) {
    let pending = ConditionState::Pending("they are not served yet".to_owned());
    let condition = heartbeats.condition("webhooks", pending);
    let stop = stop.clone();
    tasks.spawn("readiness of webhooks", async move {
        if served.wait_for(Option::is_some).await.is_ok() {
            condition.set(ConditionState::Fine);
        }
        stop.cancelled().await;
    });
}

fn spawn_server(
    tasks: &mut Tasks,
    server: Arc<dyn WebhookServer>,
    session: WebhookSession,
    failing: mpsc::Sender<Error>,
) {
    tasks.spawn("webhook server", async move {
        let expected = session.over.clone();
        let failure = match server.serve(session).await {
            Err(error) => Error::Serve(error),
            Ok(()) if expected.is_cancelled() => return,
            Ok(()) => Error::Ended,
        };
        // The receiver is dropped when the operator stops anyway.
        let _ = failing.send(failure).await;
    });
}

fn spawn_manager(
    tasks: &mut Tasks,
    manager: Option<ConfigurationManager>,
    stop: CancellationToken,
    over: CancellationToken,
    failing: mpsc::Sender<Error>,
) {
    tasks.spawn("webhook configuration", async move {
        match manager {
            Some(manager) => {
                if let Err(error) = manager.run(&stop).await {
                    // The receiver is dropped when the operator stops anyway.
                    let _ = failing.send(Error::Configure(Box::new(error))).await;
                }
            }
            None => stop.cancelled().await,
        }
        // The API server sends reviews until the configuration is gone: only now the server stops.
        over.cancel();
    });
}
