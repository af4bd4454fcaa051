//! The options of an operator's webhooks: how they are served and configured in the cluster.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::server::Server;
use super::tunnel::Tunnel;
use super::webhook_server::WebhookServer;

/// The options for serving the webhooks of an operator and for configuring them in the cluster.
#[derive(Clone, Debug)]
#[must_use]
pub struct Webhooks {
    pub(crate) configuration: ConfigurationOwner,
    pub(crate) server: ServerChoice,
    pub(crate) resync: Duration,
}

/// The writer of the webhook configuration objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConfigurationOwner {
    /// The operator, in objects of this name; by default a name made of the operator's.
    Managed(Option<String>),
    /// Another program or a person.
    External,
}

/// The server of the webhooks.
#[derive(Clone)]
pub(crate) enum ServerChoice {
    /// The server of this crate, with addresses that fit the environment.
    Automatic(AutomaticServerOptions),
    /// The server of this crate, with these options.
    Server(Box<Server>),
    /// A server of the user.
    Custom(Arc<dyn WebhookServer>),
}

/// The options of a server that finds its addresses by itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct AutomaticServerOptions {
    /// The name under which the cluster reaches this machine.
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
    /// The address on which the server listens.
    pub(crate) listen: Option<std::net::IpAddr>,
    /// The server writes its certificate authority to this file, for clients to trust it.
    pub(crate) ca_file: Option<std::path::PathBuf>,
    /// In a pod, the Service through which the cluster reaches it.
    pub(crate) service: Option<String>,
    /// In a pod, the Secret with certificates that another program maintains.
    pub(crate) secret: Option<String>,
    /// For clusters that cannot reach this machine.
    pub(crate) tunnel: Option<Tunnel>,
}

// === impl AutomaticServerOptions ===

impl AutomaticServerOptions {
    /// The Service of an operator in a pod; by default the one that `kopf-gen` emits.
    pub(crate) fn service_name(&self, operator: &str) -> String {
        let given = self.service.clone();
        given.unwrap_or_else(|| format!("{operator}-webhook"))
    }
}

// === impl Webhooks ===

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            configuration: ConfigurationOwner::Managed(None),
            server: ServerChoice::Automatic(AutomaticServerOptions::default()),
            resync: Duration::from_secs(30),
        }
    }
}

impl Webhooks {
    /// Writes the webhook configuration to objects of this name, such as `auto.kopf.dev`.
    pub fn managed(mut self, name: impl Into<String>) -> Self {
        self.configuration = ConfigurationOwner::Managed(Some(name.into()));
        self
    }

    /// Does not write a webhook configuration: you apply one, for example the YAML that `kopf-gen`
    /// emits.
    pub fn unmanaged(mut self) -> Self {
        self.configuration = ConfigurationOwner::External;
        self
    }

    /// Checks and restores the webhook configuration in this interval.
    pub fn resync(mut self, pause: Duration) -> Self {
        self.resync = pause;
        self
    }

    /// In a pod, reads the certificates from a Secret that another program maintains, such as
    /// cert-manager.
    pub fn certificates_in(mut self, secret: impl Into<String>) -> Self {
        if let ServerChoice::Automatic(options) = &mut self.server {
            options.secret = Some(secret.into());
        }
        self
    }

    /// Outside of a pod, serves through this tunnel, unless the cluster is a local one that reaches
    /// this machine by itself. Every client that knows the public address can
    /// send reviews.
    pub fn auto_tunnel(mut self, tunnel: Tunnel) -> Self {
        if let ServerChoice::Automatic(options) = &mut self.server {
            options.tunnel = Some(tunnel);
        }
        self
    }

    /// Serves with this server instead of one that fits the environment.
    pub fn server(mut self, server: Server) -> Self {
        self.server = ServerChoice::Server(Box::new(server));
        self
    }

    /// Serves through a tunnel, or with a server of your own.
    pub fn custom(mut self, server: impl WebhookServer) -> Self {
        self.server = ServerChoice::Custom(Arc::new(server));
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
