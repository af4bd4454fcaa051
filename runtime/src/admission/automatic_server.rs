//! The default webhook server: behind a Service if the operator runs in a pod, else on this machine.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::admission::certificate::Certificate;
use kopf_core::admission::local_cluster::{ClusterHints, LocalCluster};
use kube::config::Kubeconfig;
use kube::{Client, Config};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use tracing::info;

use super::certificates::Certificates;
use super::options::AutomaticServerOptions;
use super::server::{AdvertisedAddress, Server};
use super::tunnel::Tunnel;

/// How long the API server may take to send its certificate.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// The namespace of the pod in which this process runs, if it does.
pub(super) fn pod_namespace() -> Option<String> {
    std::env::var_os("KUBERNETES_SERVICE_HOST")?;
    let file = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
    let namespace = std::fs::read_to_string(file).ok()?;
    Some(namespace.trim().to_owned()).filter(|namespace| !namespace.is_empty())
}

/// A server that fits the environment.
pub(super) enum AutomaticServer {
    /// The cluster reaches it.
    Direct(Box<Server>),
    /// It is behind a tunnel.
    Tunnelled(Tunnel),
}

/// A server with addresses that fit the environment.
pub(super) async fn automatic_server(
    operator: &str,
    options: &AutomaticServerOptions,
    client: &Client,
) -> AutomaticServer {
    let server = match (&options.host, pod_namespace()) {
        (None, Some(namespace)) => in_pod(operator, &namespace, options),
        (Some(host), _) => Server::local(host).listen(Ipv4Addr::UNSPECIFIED.into()),
        (None, None) => {
            let cluster = detect(client).await;
            let server = Server::local(cluster.host());
            if !cluster.is_this_machine() {
                info!(
                    "the cluster looks like {cluster:?}: its API server is to reach this machine as `{}`",
                    cluster.host()
                );
                server.listen(Ipv4Addr::UNSPECIFIED.into())
            } else if let Some(tunnel) = &options.tunnel {
                info!("the cluster is not a known local one: webhooks go through a tunnel");
                let tunnel = tunnel.clone();
                let tunnel = tunnel.with_server(|server| with_addresses(server, options));
                return AutomaticServer::Tunnelled(tunnel);
            } else {
                server
            }
        }
    };
    let server = with_addresses(server, options);
    AutomaticServer::Direct(Box::new(match &options.ca_file {
        Some(file) => server.write_ca(file),
        None => server,
    }))
}

fn with_addresses(server: Server, options: &AutomaticServerOptions) -> Server {
    let server = match options.listen {
        Some(address) => server.listen(address),
        None => server,
    };
    match options.port {
        Some(port) => server.port(port),
        None => server,
    }
}

/// A server behind a Service.
fn in_pod(operator: &str, namespace: &str, options: &AutomaticServerOptions) -> Server {
    let name = options.service_name(operator);
    let server = Server::behind_service(namespace, &name, &name);
    match &options.secret {
        Some(secret) => server.certificates(Certificates::Secret {
            name: secret.clone(),
        }),
        None => server,
    }
}

async fn detect(client: &Client) -> LocalCluster {
    let kubeconfig = Kubeconfig::read().ok();
    let config = Config::infer().await.ok();
    let version = client.apiserver_version().await.ok();
    let names = match &config {
        Some(config) => certificate_names(config).await.unwrap_or_default(),
        None => Vec::new(),
    };
    LocalCluster::guess(&ClusterHints {
        context: kubeconfig
            .as_ref()
            .and_then(|config| config.current_context.as_deref()),
        server: config.as_ref().and_then(|config| config.cluster_url.host()),
        version: version.as_ref().map(|version| version.git_version.as_str()),
        certificate: &names,
    })
}

/// The names in the certificate of the API server, and the name of its issuer.
async fn certificate_names(config: &Config) -> Option<Vec<String>> {
    let mut roots = RootCertStore::empty();
    for authority in config.root_cert.iter().flatten() {
        roots.add(CertificateDer::from(authority.as_slice())).ok()?;
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let url = &config.cluster_url;
    let host = url.host()?.trim_matches(['[', ']']);
    let expected = config.tls_server_name.as_deref().unwrap_or(host);
    let expected = ServerName::try_from(expected.to_owned()).ok()?;
    let handshake = async {
        let stream = TcpStream::connect((host, url.port_u16().unwrap_or(443))).await;
        let connector = TlsConnector::from(Arc::new(tls));
        connector.connect(expected, stream.ok()?).await.ok()
    };
    let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake)
        .await
        .ok()??;
    let (_, session) = stream.get_ref();
    let certificate = Certificate::from_der(session.peer_certificates()?.first()?).ok()?;
    let Certificate {
        subject,
        issuer,
        dns_names,
        ..
    } = certificate;
    let names = [
        subject.common_name(),
        subject.get("organizationName"),
        issuer.common_name(),
    ];
    let names = names.into_iter().flatten().map(str::to_owned);
    Some(names.chain(dns_names).collect())
}

/// The namespaces that webhooks must not concern: those of the system, and the operator's own.
pub(super) fn protected_namespaces(server: Option<&Server>) -> Vec<String> {
    let mut names: Vec<String> = kopf_core::admission::configuration::SYSTEM_NAMESPACES
        .map(str::to_owned)
        .to_vec();
    let own = match server.map(|server| &server.advertised) {
        Some(AdvertisedAddress::Service { namespace, .. }) => Some(namespace.clone()),
        _ => pod_namespace(),
    };
    names.extend(own);
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_in_a_pod_uses_the_emitted_service_and_secret() {
        let mut options = AutomaticServerOptions::default();
        let kept = in_pod("evc-operator", "evc", &options);
        let service = AdvertisedAddress::Service {
            namespace: "evc".to_owned(),
            name: "evc-operator-webhook".to_owned(),
            port: 443,
        };
        assert_eq!(kept.advertised, service);
        assert_eq!(kept.listen.port(), Server::POD_PORT);
        let name = "evc-operator-webhook".to_owned();
        let is_kept = |it: &Certificates| matches!(it, Certificates::KeptSecret { name: kept, .. } if *kept == name);
        assert!(is_kept(&kept.certificates), "{:?}", kept.certificates);
        options.secret = Some(name.clone());
        let read = in_pod("evc-operator", "evc", &options);
        assert_eq!(read.certificates, Certificates::Secret { name });
        options.service = Some("mine".to_owned());
        let named = in_pod("evc-operator", "evc", &options).advertised;
        assert!(matches!(named, AdvertisedAddress::Service { name, .. } if name == "mine"));
    }

    #[test]
    fn system_namespaces_and_the_own_one_are_protected() {
        let server = Server::behind_service("mine", "svc", "secret");
        assert_eq!(
            protected_namespaces(Some(&server)),
            ["kube-node-lease", "kube-public", "kube-system", "mine"]
        );
    }
}
