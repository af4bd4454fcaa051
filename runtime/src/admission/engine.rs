//! The webhooks of a running operator: a server, and the configuration that leads to it.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::admission::WebhookRole;
use kopf_core::admission::configuration::{ConfigurationError, WebhookNamespaces, names};
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::manager::{self, Manager};
use super::reviewer::{Reviewer, configured};
use super::session::{ServeError, Session, WebhookServer};
use super::{Configuration, Serving, Webhooks, default_server};
use crate::client::resource::ResourceSpec;
use crate::health::metrics::Metrics;
use crate::index::readiness::ReadyIndices;
use crate::registration::RegisteredWebhook;
use crate::task::Tasks;
use crate::task::heartbeat::{ConditionState, Heartbeats};

/// Running webhooks.
pub(crate) struct Engine {
    tasks: Tasks,
    failures: mpsc::Receiver<Error>,
    leaving: CancellationToken,
}

/// What webhooks share with the rest of the operator.
pub(crate) struct Around<'a> {
    pub(crate) lookup: ReadyIndices,
    pub(crate) heartbeats: &'a Heartbeats,
    pub(crate) metrics: &'a Metrics,
}

/// Why an operator has no webhooks, or no longer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the webhooks cannot be served")]
    Serve(#[source] ServeError),
    #[error("the webhook server has ended")]
    TaskEnd,
    #[error("the webhooks cannot be made known")]
    Manage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<ConfigurationError> for Error {
    fn from(error: ConfigurationError) -> Self {
        Self::Manage(Box::new(error))
    }
}

impl Engine {
    /// Starts to serve webhooks; they are made known as soon as they are served.
    pub(crate) async fn start(
        operator: &'static str,
        options: Webhooks,
        webhooks: Vec<(ResourceSpec, RegisteredWebhook)>,
        scope: WebhookNamespaces,
        client: Client,
        shared: Around<'_>,
    ) -> Result<Self, Error> {
        let Around {
            lookup,
            heartbeats,
            metrics,
        } = shared;
        let (server, own): (Arc<dyn WebhookServer>, Vec<String>) = match options.serving {
            Serving::Automatic(local) => {
                let server = default_server::fitting(operator, &local, &client).await;
                let own = default_server::protected_namespaces(Some(&server));
                (Arc::new(server), own)
            }
            Serving::Server(server) => {
                let own = default_server::protected_namespaces(Some(&server));
                (Arc::new(*server), own)
            }
            Serving::Custom(server) => (server, default_server::protected_namespaces(None)),
        };
        let reach = match scope {
            WebhookNamespaces::AllBut(_) => WebhookNamespaces::AllBut(own),
            WebhookNamespaces::Only(mut names) => {
                names.retain(|name| !own.contains(name));
                WebhookNamespaces::Only(names)
            }
            WebhookNamespaces::Matching { patterns, .. } => {
                WebhookNamespaces::Matching { patterns, but: own }
            }
        };
        let specs: Vec<_> = webhooks
            .iter()
            .map(|(resource, webhook)| (*resource, Arc::new(webhook.spec.clone())))
            .collect();
        let managed = match options.configuration {
            Configuration::Managed(name) => {
                let name = name.unwrap_or_else(|| format!("{operator}.kopf-gen.dev"));
                for role in WebhookRole::ALL {
                    let of_role: Vec<_> = specs
                        .iter()
                        .filter(|(_, spec)| spec.role == role)
                        .map(|(resource, spec)| configured(resource, spec))
                        .collect();
                    names(&name, &of_role)?;
                }
                Some(name)
            }
            Configuration::External => None,
        };

        let (announcements, announced) = watch::channel(None);
        let (failing, failures) = mpsc::channel(2);
        let leaving = CancellationToken::new();
        let over = CancellationToken::new();
        let session = Session {
            reviewer: Reviewer::new(webhooks, reach.clone(), client.clone(), lookup, metrics),
            announcements,
            over: over.clone(),
            client: client.clone(),
            operator,
        };
        let mut tasks = Tasks::default();
        let pending = ConditionState::Pending("they are not served yet".to_owned());
        let condition = heartbeats.condition("webhooks", pending);
        let (mut served, gone) = (announced.clone(), leaving.clone());
        tasks.spawn("readiness of webhooks", async move {
            if served.wait_for(Option::is_some).await.is_ok() {
                condition.set(ConditionState::Fine);
            }
            gone.cancelled().await;
        });
        let serving = failing.clone();
        tasks.spawn("webhook server", async move {
            let expected = session.over.clone();
            let failure = match server.serve(session).await {
                Err(error) => Error::Serve(error),
                Ok(()) if expected.is_cancelled() => return,
                Ok(()) => Error::TaskEnd,
            };
            // Nobody listens any more when the operator stops anyway.
            let _ = serving.send(failure).await;
        });
        let departing = leaving.clone();
        tasks.spawn("webhook configuration", async move {
            match managed {
                Some(name) => {
                    let manager =
                        Manager::new(name, specs, reach, client, announced, options.resync);
                    if let Err(error) = manager.run(&departing).await {
                        let error = Error::Manage(Box::<manager::Error>::new(error));
                        // The same.
                        let _ = failing.send(error).await;
                    }
                }
                None => departing.cancelled().await,
            }
            // Requests come until the API server knows that they should not.
            over.cancel();
        });
        Ok(Self {
            tasks,
            failures,
            leaving,
        })
    }

    /// Waits until something goes wrong for good.
    pub(crate) async fn failed(&mut self) -> Error {
        match self.failures.recv().await {
            Some(failure) => failure,
            None => Error::TaskEnd,
        }
    }

    /// Takes the configuration away if nobody else needs it, then lets reviews finish.
    pub(crate) async fn stop(self, grace: Duration) {
        self.leaving.cancel();
        self.tasks.drain(grace).await;
    }
}
