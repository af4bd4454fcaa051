//! The processes of one control plane: their start, readiness, signals and end.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rustix::process::Signal;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::binaries::Binaries;
use crate::component::Component;
use crate::pki::{self, Authority};
use crate::program::Program;
use crate::user::{self, User};

mod component_process;
mod flags;
mod ports;

use component_process::ComponentProcess;
use ports::Ports;

/// Long, because the machine may be compiling at the same time.
const READY_TIMEOUT: Duration = Duration::from_secs(120);

/// The interval between readiness checks of a starting server.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The number of sets of ports to try.
const PORT_ATTEMPTS: u32 = 3;

/// The time that a component may take to end by itself.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The audit log records metadata of requests and responses, no bodies.
const AUDIT_POLICY: &str = r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata","omitStages":["RequestReceived"]}]}"#;

/// The user of the control plane's own clients.
const ADMINISTRATOR: &str = "harness";

/// The lifetime of the data of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataLifetime {
    /// The data end with the processes, so etcd need not write them to disk.
    Temporary,
    /// The next start continues with the data.
    Kept,
}

/// The processes of one control plane, and the folder of its files.
pub(crate) struct ControlPlaneProcesses {
    folder: PathBuf,
    binaries: Binaries,
    /// The program that runs each component, so that it ends with this process.
    program: Program,
    lifetime: DataLifetime,
    api_server_flags: Vec<String>,
    ports: Ports,
    running: BTreeMap<Component, ComponentProcess>,
}

/// The addresses of a control plane that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerAddresses {
    pub(crate) api_server: String,
    pub(crate) etcd: String,
}

/// The reasons why a control plane did not start, or a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
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
    pub(crate) fn new(
        folder: &Path,
        binaries: Binaries,
        program: Program,
        lifetime: DataLifetime,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            binaries,
            program,
            lifetime,
            api_server_flags: Vec::new(),
            ports: Ports::default(),
            running: BTreeMap::new(),
        }
    }

    /// Sets the additional flags of the API server, from its next start on.
    pub(crate) fn set_api_server_flags(&mut self, flags: Vec<String>) {
        self.api_server_flags = flags;
    }

    /// Starts all processes; with other ports if another program takes one in between.
    pub(crate) async fn start(&mut self) -> Result<ServerAddresses, Error> {
        fs::create_dir_all(self.folder.join("logs"))?;
        fs::create_dir_all(self.folder.join("scratch"))?;
        let authority = self.authority()?;
        fs::write(self.folder.join("audit-policy.json"), AUDIT_POLICY)?;

        let mut attempt = 1;
        loop {
            self.ports = Ports::pick(&self.folder, self.lifetime)?;
            match self.start_components(&authority).await {
                Ok(()) => break,
                Err(Error::Died { log, .. })
                    if log.contains("address already in use") && attempt < PORT_ATTEMPTS =>
                {
                    attempt += 1;
                    self.kill_all().await;
                }
                Err(error) => return Err(error),
            }
        }
        self.ports.remember(&self.folder)?;
        Ok(ServerAddresses {
            api_server: self.ports.server(),
            etcd: self.etcd_url(),
        })
    }

    /// The certificate authority with all keys: that of the last start, or a new one.
    fn authority(&self) -> Result<Authority, Error> {
        let signing_key = self.folder.join("service-account.key");
        // The key is written last.
        if self.lifetime == DataLifetime::Kept && signing_key.exists() {
            return Ok(Authority::open(&self.folder)?);
        }
        let authority = Authority::create_in(&self.folder)?;
        let server = authority.loopback_server()?;
        fs::write(self.folder.join("server.pem"), &server.certificate)?;
        fs::write(self.folder.join("server.key"), &server.key)?;
        // An authority of its own, so that a user of the API server is none of etcd.
        let etcd_authority = Authority::fresh()?;
        let etcd = etcd_authority.loopback_peer()?;
        fs::write(
            self.folder.join("etcd-ca.pem"),
            etcd_authority.certificate(),
        )?;
        fs::write(self.folder.join("etcd.pem"), &etcd.certificate)?;
        fs::write(self.folder.join("etcd.key"), &etcd.key)?;
        pki::write_token_keys(&signing_key, &self.folder.join("service-account.pub"))?;
        Ok(authority)
    }

    async fn start_components(&mut self, authority: &Authority) -> Result<(), Error> {
        User::administrator(ADMINISTRATOR).certified(
            authority,
            &self.ports.server(),
            &self.folder,
        )?;
        self.spawn(Component::Etcd).await?;
        self.spawn(Component::ApiServer).await?;
        self.wait_until_serving(Component::ApiServer).await?;
        // The controller manager exits if the API server does not answer within 10 seconds.
        if self.binaries.kube_controller_manager.is_some() {
            self.spawn(Component::ControllerManager).await?;
        }
        Ok(())
    }

    /// The kubeconfig with all permissions, with which the control plane's own clients work.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        kubeconfig_in(&self.folder)
    }

    /// Starts a process that has ended, and waits until it serves.
    pub(crate) async fn revive(&mut self, component: Component) -> Result<(), Error> {
        if self.running.contains_key(&component) {
            return Err(Error::Running(component));
        }
        let has_manager = self.running.contains_key(&Component::ControllerManager);
        self.spawn(component).await?;
        loop {
            match self.wait_until_serving(component).await {
                // It exits if the API server does not answer within 10 seconds.
                Err(Error::Died {
                    component: Component::ControllerManager,
                    ..
                }) if component == Component::ApiServer => {}
                served => break served?,
            }
        }
        if has_manager && !self.running.contains_key(&Component::ControllerManager) {
            self.spawn(Component::ControllerManager).await?;
        }
        Ok(())
    }

    /// Ends a process at once.
    pub(crate) async fn kill(&mut self, component: Component) -> Result<(), Error> {
        let process = self.running.remove(&component);
        let mut process = process.ok_or(Error::NotRunning(component))?;
        let killed = process.kill().await;
        killed.map_err(|source| Error::Signal { component, source })
    }

    /// Sends a signal to a process.
    pub(crate) fn signal(&self, component: Component, signal: Signal) -> Result<(), Error> {
        let process = self.running.get(&component);
        let sent = process.ok_or(Error::NotRunning(component))?.signal(signal);
        sent.map_err(|source| Error::Signal { component, source })
    }

    /// Kills every process and waits until it has ended.
    pub(crate) async fn kill_all(&mut self) {
        let mut running = std::mem::take(&mut self.running);
        for process in running.values() {
            // An error means that the process has ended already.
            let _ = process.signal(Signal::KILL);
        }
        for process in running.values_mut() {
            let _ = process.wait().await;
        }
    }

    /// Ends every process in turn, the database last, and kills those that take long.
    pub(crate) async fn stop_all(&mut self) {
        for component in Component::ALL.into_iter().rev() {
            if let Some(mut process) = self.running.remove(&component) {
                let _ = process.signal(Signal::TERM);
                if timeout(STOP_TIMEOUT, process.wait()).await.is_err() {
                    let _ = process.kill().await;
                }
            }
        }
    }

    async fn spawn(&mut self, component: Component) -> Result<(), Error> {
        let binary = match component {
            Component::Etcd => &self.binaries.etcd,
            Component::ApiServer => &self.binaries.kube_apiserver,
            Component::ControllerManager => self
                .binaries
                .kube_controller_manager
                .as_ref()
                .ok_or(Error::NoControllerManager)?,
        };
        let (flags, log) = (self.flags_of(component), self.log_of(component));
        let process =
            ComponentProcess::start(&self.program, binary, &flags, &self.folder, &log).await;
        let process = process.map_err(|source| Error::Spawn { component, source })?;
        self.running.insert(component, process);
        Ok(())
    }

    async fn wait_until_serving(&mut self, component: Component) -> Result<(), Error> {
        let deadline = Instant::now() + READY_TIMEOUT;
        let client = user::client_from(&self.kubeconfig()).await?;
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
            Component::ApiServer => answers_ready(client).await,
            // It has no endpoint.
            Component::ControllerManager => true,
        }
    }

    /// Fails if a process has ended unexpectedly.
    pub(crate) fn check_alive(&mut self) -> Result<(), Error> {
        match self.take_ended() {
            Some(ended) => Err(ended),
            None => Ok(()),
        }
    }

    /// A process that has ended unexpectedly; it counts as not running from now on.
    pub(crate) fn take_ended(&mut self) -> Option<Error> {
        let (component, status) = self.running.iter_mut().find_map(|(component, process)| {
            let status = process.ended().ok().flatten()?;
            Some((*component, status))
        })?;
        self.running.remove(&component);
        Some(Error::Died {
            component,
            status,
            log: self.log_tail(component),
        })
    }

    fn log_of(&self, component: Component) -> PathBuf {
        log_in(&self.folder, component)
    }

    fn log_tail(&self, component: Component) -> String {
        let log = fs::read(self.log_of(component)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

async fn answers_ready(client: &kube::Client) -> bool {
    let request = http::Request::get("/readyz").body(Vec::new());
    let request = request.expect("a constant request is well formed");
    // The server may accept connections before it answers.
    let response = timeout(Duration::from_secs(5), client.request_text(request)).await;
    matches!(response, Ok(Ok(_)))
}

/// Whether the API server of this kubeconfig answers that it is ready.
pub(crate) fn is_ready(kubeconfig: &Path) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.is_ok_and(|runtime| {
        runtime.block_on(async {
            match user::client_from(kubeconfig).await {
                Ok(client) => answers_ready(&client).await,
                Err(_) => false,
            }
        })
    })
}

/// The kubeconfig of the administrator of the control plane with this folder.
pub(crate) fn kubeconfig_in(folder: &Path) -> PathBuf {
    folder.join(format!("{ADMINISTRATOR}.kubeconfig"))
}

/// The log of a component of the control plane with this folder.
pub(crate) fn log_in(folder: &Path, component: Component) -> PathBuf {
    let name = format!("{}.log", component.name());
    folder.join("logs").join(name)
}
