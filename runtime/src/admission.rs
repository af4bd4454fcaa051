//! Admission webhooks: served over HTTPS, and configured in the cluster by the operator itself.
//!
//! An operator with webhooks needs nothing else: in a cluster it serves behind the Service that
//! `kopf-gen` emits, with certificates that it keeps in a Secret and replaces in time; on a
//! developer's machine it serves on loopback, or where the local cluster reaches it. Everything
//! can be said explicitly with [`Webhooks`].

mod automatic_server;
mod certificates;
mod configuration_manager;
mod connection;
mod http_request;
mod issue;
mod reviewer;
pub(crate) mod running_webhooks;
mod secret;
mod server;
mod session;
mod tls;
mod tunnel;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use kopf_core::admission::configuration::{Address, ClientConfig};
pub use kopf_core::admission::rotation::RotationPolicy;

pub use self::certificates::Certificates;
pub use self::connection::WebhookLimits;
pub use self::reviewer::{ReviewError, Reviewer};
pub use self::server::{AdvertisedAddress, ClientVerification, Protocol, Server};
pub use self::session::{ServeError, WebhookServer, WebhookSession};
pub use self::tunnel::Tunnel;

/// How the webhooks of an operator are served and made known.
#[derive(Clone, Debug)]
#[must_use]
pub struct Webhooks {
    pub(crate) configuration: ConfigurationOwner,
    pub(crate) serving: ServerChoice,
    pub(crate) resync: Duration,
}

/// Who tells the API server about the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConfigurationOwner {
    /// The operator, in objects of this name; if there is none, one made of the operator's.
    Managed(Option<String>),
    /// Somebody else.
    External,
}

/// Where the webhooks are served.
#[derive(Clone)]
pub(crate) enum ServerChoice {
    /// Where it fits the surroundings.
    Automatic(AutomaticServerOptions),
    /// By the server of this crate.
    Server(Box<Server>),
    /// By something else.
    Custom(Arc<dyn WebhookServer>),
}

/// What can be said about serving on a developer's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AutomaticServerOptions {
    /// The name under which the cluster reaches this machine.
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
    /// The address of this machine on which it listens.
    pub(crate) listen: Option<std::net::IpAddr>,
    /// Where the authority is written, for other programs to trust the server.
    pub(crate) ca_file: Option<std::path::PathBuf>,
    /// A Secret with certificates that somebody else keeps, for serving in a pod.
    pub(crate) secret: Option<String>,
}

// === impl Webhooks ===

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            configuration: ConfigurationOwner::Managed(None),
            serving: ServerChoice::Automatic(AutomaticServerOptions::default()),
            resync: Duration::from_secs(30),
        }
    }
}

impl Webhooks {
    /// The operator configures its webhooks in objects of this name, such as `auto.kopf.dev`.
    pub fn managed(mut self, name: impl Into<String>) -> Self {
        self.configuration = ConfigurationOwner::Managed(Some(name.into()));
        self
    }

    /// Somebody else configures the webhooks, for example from the YAML that `kopf-gen` emits.
    pub fn unmanaged(mut self) -> Self {
        self.configuration = ConfigurationOwner::External;
        self
    }

    /// Looks this often whether the configuration is still as it should be.
    pub fn resync(mut self, pause: Duration) -> Self {
        self.resync = pause;
        self
    }

    /// In a pod, the certificates are in a Secret that somebody else keeps up to date.
    pub fn certificates_in(mut self, secret: impl Into<String>) -> Self {
        if let ServerChoice::Automatic(options) = &mut self.serving {
            options.secret = Some(secret.into());
        }
        self
    }

    /// Serves with these options instead of what fits the surroundings.
    pub fn server(mut self, server: Server) -> Self {
        self.serving = ServerChoice::Server(Box::new(server));
        self
    }

    /// Serves through a tunnel, or by a server of one's own.
    pub fn custom(mut self, server: impl WebhookServer) -> Self {
        self.serving = ServerChoice::Custom(Arc::new(server));
        self
    }
}

impl fmt::Debug for ServerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Automatic(options) => f.debug_tuple("Automatic").field(options).finish(),
            Self::Server(server) => f.debug_tuple("Server").field(server).finish(),
            Self::Custom(_) => f.write_str("Custom(…)"),
        }
    }
}
