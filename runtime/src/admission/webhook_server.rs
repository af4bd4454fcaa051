//! The interface between an operator and a webhook server, for custom servers and tunnels.

use futures::future::BoxFuture;
use kopf_core::admission::configuration::ClientConfig;
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::reviewer::Reviewer;

/// Receives admission reviews, passes them to the [`Reviewer`], and announces its address.
///
/// A tunnel usually runs the [`Server`](crate::admission::Server) of this crate behind itself:
///
/// ```no_run
/// use futures::future::BoxFuture;
/// use kopf_runtime::admission::{
///     Address, ClientConfig, Protocol, ServeError, Server, WebhookSession, WebhookServer,
/// };
///
/// struct MyTunnel;
///
/// impl WebhookServer for MyTunnel {
///     fn serve(&self, session: WebhookSession) -> BoxFuture<'_, Result<(), ServeError>> {
///         Box::pin(async move {
///             let (inner, mut announced) = session.divert();
///             let server = Server::local("localhost").protocol(Protocol::Http);
///             let serving = server.serve(inner);
///             let announcing = async {
///                 while let Some(local) = announced.next().await {
///                     // Here the tunnel to `local.address` would be opened.
///                     drop(local);
///                     let address = Address::Url("https://tunnel.example.com".to_owned());
///                     session.announce(ClientConfig { address, ca_bundle: None });
///                 }
///             };
///             tokio::select! {
///                 served = serving => served,
///                 () = announcing => Ok(()),
///             }
///         })
///     }
/// }
/// ```
pub trait WebhookServer: Send + Sync + 'static {
    /// Serves until the session is over. The operator stops if this returns earlier.
    ///
    /// # Errors
    /// If webhooks cannot be served any more.
    fn serve(&self, session: WebhookSession) -> BoxFuture<'_, Result<(), ServeError>>;
}

/// One run of an operator with webhooks, as a webhook server needs it.
#[derive(Clone)]
pub struct WebhookSession {
    pub(super) reviewer: Reviewer,
    pub(super) client_configs: watch::Sender<Option<RevisedClientConfig>>,
    pub(super) over: CancellationToken,
    pub(super) client: Client,
    pub(super) operator: &'static str,
}

/// The address and authority of a server, with the revision of its certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RevisedClientConfig {
    pub(super) client: ClientConfig,
    /// Grows with each change of certificates that replicas share.
    pub(super) revision: Option<u64>,
}

/// The client configurations that a server announces to the tunnel in front of it.
#[derive(Debug)]
pub struct ClientConfigs {
    receiver: watch::Receiver<Option<RevisedClientConfig>>,
}

/// Webhooks cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ServeError {
    message: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

// === impl WebhookSession ===

impl WebhookSession {
    /// Answers admission reviews.
    #[must_use]
    pub fn reviewer(&self) -> &Reviewer {
        &self.reviewer
    }

    /// Announces the address and the authority by which API servers reach the webhooks from now
    /// on. The operator writes them to the webhook configuration.
    pub fn announce(&self, client: ClientConfig) {
        self.announce_revision(client, None);
    }

    pub(super) fn announce_revision(&self, client: ClientConfig, revision: Option<u64>) {
        let announced = RevisedClientConfig { client, revision };
        self.client_configs.send_if_modified(|present| {
            let differs = present.as_ref() != Some(&announced);
            if differs {
                *present = Some(announced);
            }
            differs
        });
    }

    /// Waits until the server should stop to accept reviews.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }

    /// A session for a server behind a tunnel. The tunnel receives the client configurations that
    /// this server announces, instead of the operator.
    #[must_use]
    pub fn divert(&self) -> (Self, ClientConfigs) {
        let (client_configs, receiver) = watch::channel(None);
        let session = Self {
            client_configs,
            ..self.clone()
        };
        (session, ClientConfigs { receiver })
    }

    /// The client of the operator.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl std::fmt::Debug for WebhookSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookSession")
            .field("operator", &self.operator)
            .finish_non_exhaustive()
    }
}

// === impl ClientConfigs ===

impl ClientConfigs {
    /// The next client configuration; none when the server has ended.
    pub async fn next(&mut self) -> Option<ClientConfig> {
        self.receiver.changed().await.ok()?;
        let announced = self.receiver.borrow_and_update().clone();
        announced.map(|announced| announced.client)
    }
}

// === impl ServeError ===

impl ServeError {
    /// An error with its cause.
    pub fn new(
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            message: message.into(),
            source: Some(source.into()),
        }
    }

    /// An error without a cause.
    pub fn message(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }
}
