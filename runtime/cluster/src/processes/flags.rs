//! The command lines of the components.

use super::{ControlPlaneProcesses, DataLifetime};
use crate::component::Component;

/// What the tests of operators need: without the controllers of workloads, no object changes behind a
/// test's back.
const TEST_CONTROLLERS: &str =
    "garbage-collector-controller,namespace-controller,serviceaccount-controller";

/// All that run by default; those of clouds and nodes find nothing to do.
const ALL_CONTROLLERS: &str = "*";

impl ControlPlaneProcesses {
    pub(super) fn flags_of(&self, component: Component) -> Vec<String> {
        match component {
            Component::Etcd => self.etcd_flags(),
            Component::ApiServer => self.api_server_flags(),
            Component::ControllerManager => self.controller_manager_flags(),
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn etcd_flags(&self) -> Vec<String> {
        let etcd = self.etcd_url();
        let peer = self.url_of(self.ports.etcd_peer);
        let mut flags = vec![
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={etcd}"),
            format!("--advertise-client-urls={etcd}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--log-level=error".to_owned(),
        ];
        match self.lifetime {
            DataLifetime::Temporary => flags.push("--unsafe-no-fsync".to_owned()),
            DataLifetime::Kept => flags.extend(self.etcd_tls_flags()),
        }
        flags
    }

    /// Other users of the machine reach its loopback, so clients need a certificate.
    fn etcd_tls_flags(&self) -> Vec<String> {
        let (ca, certificate, key) = (
            self.path("etcd-ca.pem"),
            self.path("etcd.pem"),
            self.path("etcd.key"),
        );
        let mut flags = Vec::new();
        for prefix in ["--", "--peer-"] {
            flags.push(format!("{prefix}client-cert-auth"));
            flags.push(format!("{prefix}trusted-ca-file={ca}"));
            flags.push(format!("{prefix}cert-file={certificate}"));
            flags.push(format!("{prefix}key-file={key}"));
        }
        flags
    }

    pub(super) fn etcd_url(&self) -> String {
        self.url_of(self.ports.etcd)
    }

    fn url_of(&self, port: u16) -> String {
        let scheme = match self.lifetime {
            DataLifetime::Temporary => "http",
            DataLifetime::Kept => "https",
        };
        format!("{scheme}://127.0.0.1:{port}")
    }

    fn api_server_flags(&self) -> Vec<String> {
        let path = |name: &str| self.path(name);
        let mut flags = vec![
            format!("--etcd-servers={}", self.etcd_url()),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--secure-port={}", self.ports.api_server),
            format!("--tls-cert-file={}", path("server.pem")),
            format!("--tls-private-key-file={}", path("server.key")),
            format!("--client-ca-file={}", path("ca.pem")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", path("service-account.pub")),
            format!(
                "--service-account-signing-key-file={}",
                path("service-account.key")
            ),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--allow-privileged=true".to_owned(),
            format!("--audit-policy-file={}", path("audit-policy.json")),
            format!("--audit-log-path={}", path("audit.log")),
        ];
        match self.lifetime {
            DataLifetime::Temporary => {
                flags.push("--audit-log-mode=blocking".to_owned());
                // Rotation would hide requests from tests that count them.
                flags.push("--audit-log-maxsize=10000".to_owned());
            }
            DataLifetime::Kept => {
                flags.push(format!("--etcd-cafile={}", path("etcd-ca.pem")));
                flags.push(format!("--etcd-certfile={}", path("etcd.pem")));
                flags.push(format!("--etcd-keyfile={}", path("etcd.key")));
                flags.push("--audit-log-maxsize=16".to_owned());
                flags.push("--audit-log-maxbackup=1".to_owned());
            }
        }
        flags.extend(self.api_server_flags.iter().cloned());
        flags
    }

    fn controller_manager_flags(&self) -> Vec<String> {
        let controllers = match self.lifetime {
            DataLifetime::Temporary => TEST_CONTROLLERS,
            DataLifetime::Kept => ALL_CONTROLLERS,
        };
        vec![
            format!("--kubeconfig={}", self.kubeconfig().display()),
            format!("--controllers={controllers}"),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            format!(
                "--service-account-private-key-file={}",
                self.path("service-account.key")
            ),
            format!("--root-ca-file={}", self.path("ca.pem")),
        ]
    }
}
