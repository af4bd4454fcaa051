//! The processes of one control plane: their flags, start, readiness, signals and end.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{fs, io};

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::protocol::{Component, ControlPlaneEndpoints, SupervisorRequest};
use crate::binaries::Binaries;
use crate::pki::{self, Authority};
use crate::user::{self, User};

/// Long, because the machine may be compiling at the same time.
const READY_TIMEOUT: Duration = Duration::from_secs(120);

/// The interval between readiness checks of a starting server.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The number of sets of ports to try.
const PORT_ATTEMPTS: u32 = 3;

/// Below the range from which kernels take ports for outgoing connections, so that the port of a
/// killed server stays free.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// The audit log records metadata of requests and responses, no bodies.
const AUDIT_POLICY: &str = r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata","omitStages":["RequestReceived"]}]}"#;

pub(super) struct ControlPlaneProcesses {
    folder: PathBuf,
    binaries: Binaries,
    api_server_flags: Vec<String>,
    ports: Ports,
    running: BTreeMap<Component, Child>,
}

#[derive(Clone, Copy)]
struct Ports {
    etcd: u16,
    etcd_peer: u16,
    api_server: u16,
}

/// The reasons why a control plane did not start, or a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("prepare the control plane: {0}")]
    Prepare(#[from] io::Error),
    #[error("prepare the control plane: {0}")]
    Certificates(#[from] pki::Error),
    #[error("prepare the control plane: {0}")]
    User(#[from] user::Error),
    #[error("start {}: {source}", component.name())]
    Spawn {
        component: Component,
        source: io::Error,
    },
    #[error("{} ended with {status}; the end of its log:\n{log}", component.name())]
    Died {
        component: Component,
        status: std::process::ExitStatus,
        log: String,
    },
    #[error("{} did not serve within {} s; the end of its log:\n{log}", component.name(), READY_TIMEOUT.as_secs())]
    NotReady { component: Component, log: String },
    #[error("{} is not running", .0.name())]
    NotRunning(Component),
    #[error("{} is running already", .0.name())]
    Running(Component),
    #[error("there is no kube-controller-manager among the given binaries")]
    NoControllerManager,
    #[error("signal {}: {source}", component.name())]
    Signal {
        component: Component,
        source: io::Error,
    },
}

// === impl ControlPlaneProcesses ===

impl ControlPlaneProcesses {
    pub(super) fn new(folder: &Path, binaries: Binaries, api_server_flags: Vec<String>) -> Self {
        Self {
            folder: folder.to_owned(),
            binaries,
            api_server_flags,
            ports: Ports {
                etcd: 0,
                etcd_peer: 0,
                api_server: 0,
            },
            running: BTreeMap::new(),
        }
    }

    /// Starts all processes; with other ports if another program takes one in between.
    pub(super) async fn start(&mut self) -> Result<ControlPlaneEndpoints, Error> {
        fs::create_dir_all(self.folder.join("logs"))?;
        fs::create_dir_all(self.folder.join("scratch"))?;
        let authority = Authority::create_in(&self.folder)?;
        let server = authority.loopback_server()?;
        fs::write(self.folder.join("server.pem"), &server.certificate)?;
        fs::write(self.folder.join("server.key"), &server.key)?;
        pki::write_token_keys(
            &self.folder.join("service-account.key"),
            &self.folder.join("service-account.pub"),
        )?;
        fs::write(self.folder.join("audit-policy.json"), AUDIT_POLICY)?;

        let mut attempt = 1;
        loop {
            self.ports = Ports::pick()?;
            match self.start_components(&authority).await {
                Ok(()) => break,
                Err(Error::Died { log, .. })
                    if log.contains("address already in use") && attempt < PORT_ATTEMPTS =>
                {
                    attempt += 1;
                    self.end().await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(ControlPlaneEndpoints {
            folder: self.folder.clone(),
            server: self.ports.server(),
            etcd: self.ports.etcd(),
            supervisor: std::process::id(),
            has_controller_manager: self.binaries.kube_controller_manager.is_some(),
        })
    }

    async fn start_components(&mut self, authority: &Authority) -> Result<(), Error> {
        User::administrator("harness").certified(authority, &self.ports.server(), &self.folder)?;
        self.spawn(Component::Etcd)?;
        self.spawn(Component::ApiServer)?;
        self.wait_until_serving(Component::ApiServer).await?;
        // The controller manager exits if the API server does not answer within 10 seconds.
        if self.binaries.kube_controller_manager.is_some() {
            self.spawn(Component::ControllerManager)?;
        }
        Ok(())
    }

    pub(super) async fn execute(&mut self, request: SupervisorRequest) -> Result<(), Error> {
        match request {
            SupervisorRequest::Kill(component) => {
                let mut child = self
                    .running
                    .remove(&component)
                    .ok_or(Error::NotRunning(component))?;
                child
                    .kill()
                    .await
                    .map_err(|source| Error::Signal { component, source })
            }
            SupervisorRequest::Pause(component) => self.signal(component, Signal::STOP),
            SupervisorRequest::Resume(component) => self.signal(component, Signal::CONT),
            SupervisorRequest::Start(component) => {
                if self.running.contains_key(&component) {
                    return Err(Error::Running(component));
                }
                self.spawn(component)?;
                self.wait_until_serving(component).await
            }
            SupervisorRequest::SetApiServerFlags(flags) => {
                self.api_server_flags = flags;
                Ok(())
            }
        }
    }

    /// Kills every process and waits until it has ended.
    pub(super) async fn end(&mut self) {
        let mut running = std::mem::take(&mut self.running);
        for child in running.values_mut() {
            // An error means that the process has ended already.
            let _ = child.start_kill();
        }
        for child in running.values_mut() {
            let _ = child.wait().await;
        }
    }

    fn signal(&self, component: Component, signal: Signal) -> Result<(), Error> {
        let pid = self
            .running
            .get(&component)
            .and_then(Child::id)
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
            .ok_or(Error::NotRunning(component))?;
        kill_process(pid, signal).map_err(|source| Error::Signal {
            component,
            source: source.into(),
        })
    }

    fn spawn(&mut self, component: Component) -> Result<(), Error> {
        let program = match component {
            Component::Etcd => &self.binaries.etcd,
            Component::ApiServer => &self.binaries.kube_apiserver,
            Component::ControllerManager => self
                .binaries
                .kube_controller_manager
                .as_ref()
                .ok_or(Error::NoControllerManager)?,
        };
        let failed = |source| Error::Spawn { component, source };
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_of(component))
            .map_err(failed)?;
        let child = Command::new(program)
            .args(self.flags_of(component))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        self.running.insert(component, child);
        Ok(())
    }

    fn flags_of(&self, component: Component) -> Vec<String> {
        let path = |name: &str| self.folder.join(name).display().to_string();
        let (etcd, peer) = (
            self.ports.etcd(),
            format!("http://127.0.0.1:{}", self.ports.etcd_peer),
        );
        match component {
            Component::Etcd => vec![
                format!("--data-dir={}", path("etcd")),
                format!("--listen-client-urls={etcd}"),
                format!("--advertise-client-urls={etcd}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster=default={peer}"),
                "--unsafe-no-fsync".to_owned(),
                "--log-level=error".to_owned(),
            ],
            Component::ApiServer => [
                format!("--etcd-servers={etcd}"),
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
                "--audit-log-mode=blocking".to_owned(),
                // Rotation would hide requests from tests that count them.
                "--audit-log-maxsize=10000".to_owned(),
            ]
            .into_iter()
            .chain(self.api_server_flags.iter().cloned())
            .collect(),
            Component::ControllerManager => vec![
                format!("--kubeconfig={}", path("harness.kubeconfig")),
                "--controllers=garbage-collector-controller,namespace-controller,\
                 serviceaccount-controller"
                    .to_owned(),
                "--leader-elect=false".to_owned(),
                "--secure-port=0".to_owned(),
                format!(
                    "--service-account-private-key-file={}",
                    path("service-account.key")
                ),
                format!("--root-ca-file={}", path("ca.pem")),
            ],
        }
    }

    async fn wait_until_serving(&mut self, component: Component) -> Result<(), Error> {
        let deadline = Instant::now() + READY_TIMEOUT;
        let client = user::client_from(&self.folder.join("harness.kubeconfig")).await?;
        while !self.serves(component, &client).await {
            self.check_alive()?;
            if Instant::now() > deadline {
                return Err(Error::NotReady {
                    component,
                    log: self.log_tail(component),
                });
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    async fn serves(&self, component: Component, client: &kube::Client) -> bool {
        match component {
            Component::Etcd => TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports.etcd))
                .await
                .is_ok(),
            Component::ApiServer => {
                let request = http::Request::get("/readyz").body(Vec::new());
                let request = request.expect("a constant request is well formed");
                // The server may accept connections before it answers.
                let response = timeout(Duration::from_secs(5), client.request_text(request)).await;
                matches!(response, Ok(Ok(_)))
            }
            // It has no endpoint.
            Component::ControllerManager => true,
        }
    }

    /// Fails if a process has ended unexpectedly.
    pub(super) fn check_alive(&mut self) -> Result<(), Error> {
        let ended = self.running.iter_mut().find_map(|(component, child)| {
            let status = child.try_wait().ok().flatten()?;
            Some((*component, status))
        });
        match ended {
            None => Ok(()),
            Some((component, status)) => {
                let log = self.log_tail(component);
                Err(Error::Died {
                    component,
                    status,
                    log,
                })
            }
        }
    }

    fn log_of(&self, component: Component) -> PathBuf {
        self.folder
            .join("logs")
            .join(format!("{}.log", component.name()))
    }

    fn log_tail(&self, component: Component) -> String {
        let log = fs::read_to_string(self.log_of(component)).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

// === impl Ports ===

impl Ports {
    /// Three ports that are free now.
    fn pick() -> io::Result<Self> {
        // Binding all before releasing any keeps the three different.
        let bound = [free_port()?, free_port()?, free_port()?];
        let port = |index: usize| bound[index].local_addr().map(|address| address.port());
        Ok(Self {
            etcd: port(0)?,
            etcd_peer: port(1)?,
            api_server: port(2)?,
        })
    }

    fn server(self) -> String {
        format!("https://127.0.0.1:{}", self.api_server)
    }

    fn etcd(self) -> String {
        format!("http://127.0.0.1:{}", self.etcd)
    }
}

fn free_port() -> io::Result<TcpListener> {
    use std::hash::{BuildHasher as _, RandomState};
    let mut last = None;
    for attempt in 0..100_u32 {
        // A new `RandomState` is the standard library's only source of randomness.
        let random = RandomState::new().hash_one(attempt) % u64::from(PORTS.end - PORTS.start);
        let port = PORTS.start + u16::try_from(random).unwrap_or_default();
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()))
}
