//! What a webhook server is given, and what it gives back: the seam for custom servers and tunnels.

use futures::future::BoxFuture;
use kopf_core::admission::configuration::ClientConfig;
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::reviewer::Reviewer;

/// Receives reviews somewhere, has them answered, and says where that is.
///
/// A tunnel usually runs the [`Server`](super::Server) of this crate behind itself:
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
    /// Serves until the session is over; an end before that stops the operator.
    ///
    /// # Errors
    /// If nothing can be served any more.
    fn serve(&self, session: WebhookSession) -> BoxFuture<'_, Result<(), ServeError>>;
}

/// One run of an operator with webhooks.
#[derive(Clone)]
pub struct WebhookSession {
    pub(super) reviewer: Reviewer,
    pub(super) announcements: watch::Sender<Option<RevisedClientConfig>>,
    pub(super) over: CancellationToken,
    pub(super) client: Client,
    pub(super) operator: &'static str,
}

/// Where the webhooks can be reached, and how new that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RevisedClientConfig {
    pub(super) client: ClientConfig,
    /// For certificates that replicas share: grows with each of their changes.
    pub(super) revision: Option<u64>,
}

/// The announcements of a server, as a tunnel in front of it sees them.
#[derive(Debug)]
pub struct ClientConfigs {
    receiver: watch::Receiver<Option<RevisedClientConfig>>,
}

/// Why webhooks cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ServeError {
    message: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

// === impl WebhookSession ===

impl WebhookSession {
    /// Answers reviews.
    #[must_use]
    pub fn reviewer(&self) -> &Reviewer {
        &self.reviewer
    }

    /// Tells where the webhooks can be reached from now on.
    pub fn announce(&self, client: ClientConfig) {
        self.announce_revision(client, None);
    }

    pub(super) fn announce_revision(&self, client: ClientConfig, revision: Option<u64>) {
        let announcement = RevisedClientConfig { client, revision };
        self.announcements.send_if_modified(|present| {
            let differs = present.as_ref() != Some(&announcement);
            if differs {
                *present = Some(announcement);
            }
            differs
        });
    }

    /// Waits until no new reviews are to be accepted.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }

    /// A session for a server behind this one, whose announcements come here instead.
    #[must_use]
    pub fn divert(&self) -> (Self, ClientConfigs) {
        let (announcements, receiver) = watch::channel(None);
        let session = Self {
            announcements,
            ..self.clone()
        };
        (session, ClientConfigs { receiver })
    }

    /// A client for the cluster.
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
    /// The next announcement; none when there will not be any.
    pub async fn next(&mut self) -> Option<ClientConfig> {
        self.receiver.changed().await.ok()?;
        let announced = self.receiver.borrow_and_update().clone();
        announced.map(|announcement| announcement.client)
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

    /// An error that says it all.
    pub fn message(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }
}
