//! The webhook server of this crate: its options, and the run with reloaded certificates.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kopf_core::admission::configuration::{Address, ClientConfig};
use kopf_core::admission::rotation::RotationPolicy;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::certificate_set;
use super::certificates::{self, CertificateLoader, Certificates};
use super::connection::AcceptLoop;
use super::http_request::ReviewService;
use super::limits::WebhookLimits;
use super::tls::{self, ClientVerification, ServingCertificate};
use super::webhook_server::{ServeError, WebhookServer, WebhookSession};
use crate::handler::error::with_causes;

/// How often the server checks whether another program has made the first certificates.
const FIRST_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// A webhook server with HTTP/1.1 and HTTP/2.
#[derive(Clone, Debug)]
#[must_use]
pub struct Server {
    pub(super) listen: SocketAddr,
    pub(super) advertised: AdvertisedAddress,
    pub(super) certificates: Certificates,
    pub(super) ca_file: Option<PathBuf>,
    prefix: String,
    protocol: Protocol,
    hosts: Vec<String>,
    clients: Option<ClientVerification>,
    limits: WebhookLimits,
    check_every: Duration,
    linger: Duration,
}

/// The address that the API server connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdvertisedAddress {
    /// By a URL with this host.
    Host {
        /// The host name or IP address that the API server connects to.
        host: String,
        /// The port; by default the one on which the server listens.
        port: Option<u16>,
    },
    /// By a Service in the cluster.
    Service {
        /// The namespace of the Service.
        namespace: String,
        /// The name of the Service.
        name: String,
        /// The port of the Service.
        port: u16,
    },
}

/// The protocol of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Encrypted, as API servers require.
    #[default]
    Https,
    /// Not encrypted: only for tunnels that encrypt by themselves, and for experiments.
    Http,
}

/// The certificates that the server uses.
#[derive(PartialEq, Eq)]
struct LoadedCertificates {
    serving: ServingCertificate,
    client_authority: Option<String>,
}

// === impl Server ===

impl Server {
    /// A server on a free port of loopback, to which the API server connects by this host name.
    pub fn local(host: impl Into<String>) -> Self {
        let advertised = AdvertisedAddress::Host {
            host: host.into(),
            port: None,
        };
        Self::new((Ipv4Addr::LOCALHOST, 0).into(), advertised)
    }

    /// A server in a pod behind a Service. The operator keeps its certificates in a Secret of this
    /// name.
    pub fn behind_service(
        namespace: impl Into<String>,
        name: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        let advertised = AdvertisedAddress::Service {
            namespace: namespace.into(),
            name: name.into(),
            port: 443,
        };
        let certificates = Certificates::KeptSecret {
            name: secret.into(),
            policy: RotationPolicy::default(),
        };
        Self::new((Ipv4Addr::UNSPECIFIED, Self::POD_PORT).into(), advertised)
            .certificates(certificates)
    }

    /// The port in a pod: the target port of the Service that `kopf-gen` emits.
    pub const POD_PORT: u16 = 9443;

    /// A server that listens on one address, and to which the API server connects by another.
    pub fn new(listen: SocketAddr, advertised: AdvertisedAddress) -> Self {
        let linger = match advertised {
            AdvertisedAddress::Service { .. } => Duration::from_secs(3),
            AdvertisedAddress::Host { .. } => Duration::ZERO,
        };
        Self {
            listen,
            advertised,
            certificates: Certificates::SelfMade,
            ca_file: None,
            prefix: String::new(),
            protocol: Protocol::default(),
            hosts: Vec::new(),
            clients: None,
            limits: WebhookLimits::default(),
            check_every: Duration::from_secs(30),
            linger,
        }
    }

    /// Listens on another address.
    pub fn listen(mut self, address: IpAddr) -> Self {
        self.listen.set_ip(address);
        self
    }

    /// Listens on another port.
    pub fn port(mut self, port: u16) -> Self {
        self.listen.set_port(port);
        self
    }

    /// Sets the address that the API server connects to.
    pub fn advertised(mut self, advertised: AdvertisedAddress) -> Self {
        self.advertised = advertised;
        self
    }

    /// Serves the webhooks below a path.
    pub fn path(mut self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        let prefix = prefix.trim_matches('/');
        self.prefix = if prefix.is_empty() {
            String::new()
        } else {
            format!("/{prefix}")
        };
        self
    }

    /// Sets the source of the certificates.
    pub fn certificates(mut self, certificates: Certificates) -> Self {
        self.certificates = certificates;
        self
    }

    /// Adds a host name or IP address to the certificates that the server makes.
    pub fn also_known_as(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Writes the authority of the certificates to a file, for clients to trust the server.
    pub fn write_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(file.into());
        self
    }

    /// Sets whether connections are encrypted.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Verifies client certificates.
    pub fn verify_clients(mut self, verification: ClientVerification) -> Self {
        self.clients = Some(verification);
        self
    }

    /// Sets the limits for clients.
    pub fn limits(mut self, limits: WebhookLimits) -> Self {
        self.limits = limits.bounded();
        self
    }

    /// Checks for new certificates in this interval.
    pub fn check_every(mut self, pause: Duration) -> Self {
        self.check_every = pause;
        self
    }

    /// Accepts connections for so long after the operator begins to stop, until the Service no
    /// longer routes to the pod.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// The host names and IP addresses for a certificate.
    fn all_hosts(&self) -> Vec<String> {
        let mut hosts = match &self.advertised {
            AdvertisedAddress::Host { host, .. } => {
                vec![host.clone(), "localhost".to_owned(), "127.0.0.1".to_owned()]
            }
            AdvertisedAddress::Service {
                namespace, name, ..
            } => vec![
                format!("{name}.{namespace}.svc"),
                format!("{name}.{namespace}"),
                format!("{name}.{namespace}.svc.cluster.local"),
            ],
        };
        hosts.extend(self.hosts.iter().cloned());
        let mut kept = Vec::new();
        hosts.retain(|host| {
            let new = !kept.contains(host);
            kept.push(host.clone());
            new
        });
        hosts
    }

    fn address(&self, port: u16) -> Address {
        match &self.advertised {
            AdvertisedAddress::Host { host, port: other } => {
                let scheme = match self.protocol {
                    Protocol::Https => "https",
                    Protocol::Http => "http",
                };
                let host = if host.parse().is_ok_and(|ip: IpAddr| ip.is_ipv6()) {
                    format!("[{host}]")
                } else {
                    host.clone()
                };
                let port = other.unwrap_or(port);
                Address::Url(format!("{scheme}://{host}:{port}{}", self.prefix))
            }
            AdvertisedAddress::Service {
                namespace,
                name,
                port,
            } => Address::Service {
                namespace: namespace.clone(),
                name: name.clone(),
                port: *port,
                path: self.prefix.clone(),
            },
        }
    }

    async fn run(&self, session: WebhookSession) -> Result<(), ServeError> {
        let listener = TcpListener::bind(self.listen)
            .await
            .map_err(|error| ServeError::new(format!("cannot listen on {}", self.listen), error))?;
        let port = listener
            .local_addr()
            .map_err(|error| ServeError::new("cannot read the port of the listener", error))?
            .port();
        let address = self.address(port);
        let service =
            ReviewService::new(session.reviewer.clone(), &self.prefix, self.limits.clone());
        let closed = CancellationToken::new();
        let lingering = async {
            session.over().await;
            tokio::time::sleep(self.linger).await;
            closed.cancel();
        };
        let accept_loop = |tls_config| AcceptLoop {
            listener,
            tls_config,
            service: Arc::new(service),
            limits: self.limits.clone(),
        };
        if self.protocol == Protocol::Http {
            info!("webhooks are served without encryption on port {port}");
            session.announce(ClientConfig {
                address,
                ca_bundle: None,
            });
            tokio::join!(accept_loop(None).run(&closed), lingering);
            return Ok(());
        }
        let namespace = match &self.advertised {
            AdvertisedAddress::Service { namespace, .. } => namespace.as_str(),
            AdvertisedAddress::Host { .. } => session.client.default_namespace(),
        };
        let hosts = self.all_hosts();
        let mut loader =
            CertificateLoader::new(&self.certificates, hosts, &session.client, namespace);
        let failed = |error| ServeError::new("cannot use the certificates of the webhooks", error);
        let loaded = tokio::select! {
            loaded = self.load_first(&mut loader) => loaded,
            () = session.over() => return Ok(()),
        };
        let mut loaded = loaded.map_err(failed)?;
        let config = self.config(&loaded, &loader).map_err(failed)?;
        let (tls_config, current) = watch::channel(Arc::new(config));
        self.announce(&loaded, &address, &session)
            .await
            .map_err(failed)?;
        info!("webhooks are served on port {port}");
        let reloading = async {
            let mut warned = None;
            loop {
                warn_of_refusal(&loader, &loaded, &mut warned);
                tokio::time::sleep(self.check_every).await;
                if let Some(config) = self.reload(&mut loader, &mut loaded).await {
                    tls_config.send_replace(Arc::new(config));
                    if let Err(error) = self.announce(&loaded, &address, &session).await {
                        warn!("{}", with_causes(&error));
                    }
                }
            }
        };
        tokio::select! {
            ((), ()) = async { tokio::join!(accept_loop(Some(current)).run(&closed), lingering) } => Ok(()),
            () = reloading => Ok(()),
        }
    }

    /// Waits for certificates that another program has not made yet.
    async fn load_first(
        &self,
        loader: &mut CertificateLoader,
    ) -> Result<LoadedCertificates, certificates::Error> {
        let mut warned = false;
        loop {
            match self.load(loader).await {
                Err(error) if error.is_early() => {
                    if !std::mem::replace(&mut warned, true) {
                        warn!("webhooks are not served yet: {}", with_causes(&error));
                    }
                    tokio::time::sleep(self.check_every.min(FIRST_CHECK_INTERVAL)).await;
                }
                loaded => return loaded,
            }
        }
    }

    async fn load(
        &self,
        loader: &mut CertificateLoader,
    ) -> Result<LoadedCertificates, certificates::Error> {
        let client_authority = match &self.clients {
            Some(clients) => Some(clients.authority().read().await?),
            None => None,
        };
        Ok(LoadedCertificates {
            serving: loader.load(Timestamp::now()).await?,
            client_authority,
        })
    }

    /// The new TLS configuration, if the certificates have changed and can be used.
    async fn reload(
        &self,
        loader: &mut CertificateLoader,
        loaded: &mut LoadedCertificates,
    ) -> Option<ServerConfig> {
        let newer = match self.load(loader).await {
            Ok(newer) if newer == *loaded => return None,
            Ok(newer) => self.config(&newer, loader).map(|config| (newer, config)),
            Err(error) => Err(error),
        };
        match newer {
            Ok((newer, config)) => {
                info!("new certificates are served from now on");
                *loaded = newer;
                Some(config)
            }
            Err(error) => {
                warn!("cannot reload the certificates: {}", with_causes(&error));
                None
            }
        }
    }

    fn config(
        &self,
        loaded: &LoadedCertificates,
        loader: &CertificateLoader,
    ) -> Result<ServerConfig, certificates::Error> {
        let clients = self
            .clients
            .as_ref()
            .zip(loaded.client_authority.as_deref());
        Ok(tls::server_config(
            &loaded.serving,
            &loader.origin(),
            clients,
        )?)
    }

    /// Writes the authority file, and announces address and authority to the session.
    async fn announce(
        &self,
        loaded: &LoadedCertificates,
        address: &Address,
        session: &WebhookSession,
    ) -> Result<(), certificates::Error> {
        let bundle = &loaded.serving.bundle;
        if let (Some(file), Some(bundle)) = (&self.ca_file, bundle) {
            let written = tokio::fs::write(file, bundle).await;
            written.map_err(|source| certificates::Error::File {
                path: file.clone(),
                source,
            })?;
            info!("the authority of the webhooks is in {}", file.display());
        }
        let client = ClientConfig {
            address: address.clone(),
            ca_bundle: bundle.clone(),
        };
        session.announce_revision(client, loaded.serving.revision);
        Ok(())
    }
}

/// Warns once of a certificate that clients refuse.
fn warn_of_refusal(
    loader: &CertificateLoader,
    loaded: &LoadedCertificates,
    warned: &mut Option<String>,
) {
    let origin = loader.origin().chain;
    let refusal = certificate_set::refusal(&loaded.serving.chain, &origin, Timestamp::now());
    if let Some(refusal) = refusal.as_ref().filter(|it| warned.as_ref() != Some(it)) {
        warn!("{refusal}");
    }
    *warned = refusal;
}

impl WebhookServer for Server {
    fn serve(&self, session: WebhookSession) -> BoxFuture<'_, Result<(), ServeError>> {
        Box::pin(self.run(session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announced_address_is_the_one_that_the_api_server_connects_to() {
        let local = Server::local("localhost").path("/hooks/");
        assert_eq!(
            local.address(1234),
            Address::Url("https://localhost:1234/hooks".to_owned())
        );
        let tunnelled = Server::local("::1").protocol(Protocol::Http);
        assert_eq!(
            tunnelled.address(80),
            Address::Url("http://[::1]:80".to_owned())
        );
        let service = Server::behind_service("ns", "svc", "secret");
        assert_eq!(
            service.address(9443),
            Address::Service {
                namespace: "ns".to_owned(),
                name: "svc".to_owned(),
                port: 443,
                path: String::new(),
            }
        );
        assert_eq!(service.all_hosts()[0], "svc.ns.svc");
        assert_eq!(local.all_hosts(), ["localhost", "127.0.0.1"]);
    }
}
