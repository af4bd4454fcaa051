//! Local clusters for development, and the host name by which they reach this machine.

/// The kind of a local cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalCluster {
    /// k3d, or k3s by another name.
    K3d,
    /// minikube.
    Minikube,
    /// kind.
    Kind,
    /// Docker Desktop.
    DockerDesktop,
    /// Any other: the API server is expected to run on this machine.
    Unknown,
}

/// The facts by which a cluster is recognised.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterHints<'a> {
    /// The context of the kubeconfig.
    pub context: Option<&'a str>,
    /// The host of the API server.
    pub server: Option<&'a str>,
    /// The version of the API server, such as `v1.33.1+k3s1`.
    pub version: Option<&'a str>,
    /// The names in the certificate of the API server, and of its issuer.
    pub certificate: &'a [String],
}

impl LocalCluster {
    /// The most likely cluster.
    #[must_use]
    pub fn guess(hints: &ClusterHints<'_>) -> Self {
        let context = hints.context.unwrap_or_default();
        let version = hints.version.unwrap_or_default();
        let certified = |part: &str| hints.certificate.iter().any(|name| name.contains(part));
        if context.starts_with("k3d-")
            || version.contains("+k3s")
            || certified("k3s")
            || certified("k3d")
        {
            Self::K3d
        } else if context == "minikube" || certified("minikube") {
            Self::Minikube
        } else if context.starts_with("kind-") || certified("kind-") {
            Self::Kind
        } else if context.starts_with("docker-desktop")
            || context == "docker-for-desktop"
            || hints.server == Some("kubernetes.docker.internal")
            || certified("docker.internal")
            || certified("docker-for-desktop")
        {
            Self::DockerDesktop
        } else {
            Self::Unknown
        }
    }

    /// The name of this machine in the cluster.
    #[must_use]
    pub fn host(self) -> &'static str {
        match self {
            Self::K3d => "host.k3d.internal",
            Self::Minikube => "host.minikube.internal",
            Self::Kind | Self::DockerDesktop => "host.docker.internal",
            Self::Unknown => "localhost",
        }
    }

    /// Whether requests come from this machine itself, so that the server can listen locally.
    #[must_use]
    pub fn is_this_machine(self) -> bool {
        self == Self::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_recognised_by_any_of_the_facts() {
        let context = |context| ClusterHints {
            context: Some(context),
            ..ClusterHints::default()
        };
        let names = |name: &str| vec!["kubernetes".to_owned(), name.to_owned()];
        let (minikube, k3s) = (names("minikubeCA"), names("k3s-server-ca@1700000000"));
        let docker = names("docker-for-desktop");
        for (hints, expected, host) in [
            (context("k3d-dev"), LocalCluster::K3d, "host.k3d.internal"),
            (
                context("minikube"),
                LocalCluster::Minikube,
                "host.minikube.internal",
            ),
            (
                context("kind-dev"),
                LocalCluster::Kind,
                "host.docker.internal",
            ),
            (
                context("docker-desktop"),
                LocalCluster::DockerDesktop,
                "host.docker.internal",
            ),
            (context("production"), LocalCluster::Unknown, "localhost"),
            (
                ClusterHints {
                    version: Some("v1.33.1+k3s1"),
                    ..ClusterHints::default()
                },
                LocalCluster::K3d,
                "host.k3d.internal",
            ),
            (
                ClusterHints {
                    certificate: &minikube,
                    ..ClusterHints::default()
                },
                LocalCluster::Minikube,
                "host.minikube.internal",
            ),
            (
                ClusterHints {
                    certificate: &k3s,
                    ..ClusterHints::default()
                },
                LocalCluster::K3d,
                "host.k3d.internal",
            ),
            (
                ClusterHints {
                    certificate: &docker,
                    ..ClusterHints::default()
                },
                LocalCluster::DockerDesktop,
                "host.docker.internal",
            ),
        ] {
            let cluster = LocalCluster::guess(&hints);
            assert_eq!((cluster, cluster.host()), (expected, host), "{hints:?}");
        }
        assert!(LocalCluster::Unknown.is_this_machine() && !LocalCluster::Kind.is_this_machine());
    }
}
