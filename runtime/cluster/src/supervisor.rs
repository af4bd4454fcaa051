//! The supervisor: a process that runs a control plane until the last test process disconnects.
//!
//! A test process holds an open connection to the supervisor's socket. However the test process
//! ends (return, panic, Ctrl-C, `kill -9`), the kernel closes the connection, so nothing depends on
//! clean-up code in the test process. In the same way the processes of the control plane end with the
//! supervisor. The supervisor is a child of the first test process that
//! needed it, in a process group of its own, and outlives that process while others are connected.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::Instant;

use rustix::process::Signal;

use crate::binaries::Binaries;
use crate::processes::{self, ControlPlaneProcesses, DataLifetime};
use crate::program::Program;
use crate::test_failure::TestFailure;

pub(crate) mod protocol;

use protocol::{ControlPlaneEndpoints, SupervisorReply, SupervisorRequest};

/// The time that a shared control plane waits for the next test binary of a run.
///
/// Together with the end of its processes this must stay below 10 seconds: the tests of the harness
/// accept no process after that.
const SHARED_GRACE: Duration = Duration::from_secs(5);

/// The time that the process that started a supervisor may take to connect.
const FIRST_CONNECTION: Duration = Duration::from_secs(7);

/// The start of the first line that a supervisor prints; the path of its socket follows.
pub(crate) const LISTENING: &str = "listening ";

/// The subcommand of [`crate::Program`] that runs a supervisor.
pub(crate) const SUBCOMMAND: &str = "@supervise";

/// The processes that may use a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Only the process that started it.
    Private,
    /// Every process that finds it through the registration.
    Shared {
        /// The lock file, locked while a process joins, starts or ends the control plane.
        lock: PathBuf,
        /// The file with the path of the supervisor's socket.
        registration: PathBuf,
    },
}

/// The command-line options of a supervisor.
#[derive(Clone, Debug)]
pub(crate) struct SupervisorOptions {
    pub(crate) binaries: Binaries,
    pub(crate) sharing: Sharing,
    pub(crate) api_server_flags: Vec<String>,
}

/// The reasons why a supervisor failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The command line is not one that the harness writes.
    #[error("unexpected arguments of the supervisor: {0}")]
    Arguments(String),
    /// The folder, socket or registration failed.
    #[error("{0}")]
    Io(&'static str, #[source] io::Error),
}

#[derive(Clone, Debug)]
enum StartupState {
    Running,
    Ready(ControlPlaneEndpoints),
    Failed(String),
}

/// Runs a supervisor until the last test process disconnects.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let options = SupervisorOptions::parse(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Io("start the runtime", source))?;
    let outcome = runtime.block_on(serve(options));
    if let Err(error) = &outcome {
        // Before the announcement, the starting process reads this line instead of it. Later
        // it has closed the pipe.
        let _ = announce(&TestFailure::describe(error));
    }
    outcome
}

async fn serve(options: SupervisorOptions) -> Result<(), Error> {
    let folder = tempfile::Builder::new()
        .prefix("kopf-control-plane-")
        .tempdir()
        .map_err(|source| Error::Io("create a temporary folder", source))?;
    let socket = folder.path().join("supervisor.sock");
    let listener = UnixListener::bind(&socket)
        .map_err(|source| Error::Io("listen on a socket in the temporary folder", source))?;
    if let Sharing::Shared { registration, .. } = &options.sharing {
        fs::write(registration, socket.as_os_str().as_encoded_bytes())
            .map_err(|source| Error::Io("register the control plane", source))?;
    }
    announce(&format!("{LISTENING}{}", socket.display()))
        .map_err(|source| Error::Io("announce the socket", source))?;

    let program = Program::this_executable()
        .map_err(|source| Error::Io("find the program of the supervisor", source))?;
    let mut processes = ControlPlaneProcesses::new(
        folder.path(),
        options.binaries.clone(),
        program,
        DataLifetime::Temporary,
    );
    processes.set_api_server_flags(options.api_server_flags.clone());
    let processes = Arc::new(Mutex::new(processes));
    let (startup, started) = watch::channel(StartupState::Running);
    let starting = tokio::spawn({
        let processes = Arc::clone(&processes);
        let (folder, options) = (folder.path().to_owned(), options.clone());
        async move {
            let outcome = match processes.lock().await.start().await {
                Ok(addresses) => StartupState::Ready(ControlPlaneEndpoints {
                    folder,
                    server: addresses.api_server,
                    etcd: addresses.etcd,
                    supervisor: std::process::id(),
                    has_controller_manager: options.binaries.kube_controller_manager.is_some(),
                }),
                Err(error) => StartupState::Failed(error.to_string()),
            };
            startup.send_replace(outcome);
        }
    });
    accept_until_unused(&listener, &options.sharing, &processes, &started, &socket).await?;
    starting.abort();
    // Waiting for the abort releases the mutex, and ends processes that were just started.
    let _ = starting.await;
    processes.lock().await.kill_all().await;
    drop(listener);
    folder
        .close()
        .map_err(|source| Error::Io("remove the temporary folder", source))
}

/// Accepts connections until none has been open for the grace period.
async fn accept_until_unused(
    listener: &UnixListener,
    sharing: &Sharing,
    processes: &Arc<Mutex<ControlPlaneProcesses>>,
    started: &watch::Receiver<StartupState>,
    socket: &Path,
) -> Result<(), Error> {
    let catch = |kind| signal(kind).map_err(|source| Error::Io("catch signals", source));
    let mut interrupted = catch(SignalKind::interrupt())?;
    let mut terminated = catch(SignalKind::terminate())?;
    let (closed, mut closings) = mpsc::unbounded_channel();
    let mut connections = 0_usize;
    let mut unused_at = Instant::now() + FIRST_CONNECTION;
    loop {
        tokio::select! {
            connection = listener.accept() => {
                let (connection, _) =
                    connection.map_err(|source| Error::Io("accept a connection", source))?;
                connections += 1;
                let served = serve_connection(
                    connection,
                    Arc::clone(processes),
                    started.clone(),
                    closed.clone(),
                );
                tokio::spawn(served);
            }
            Some(()) = closings.recv() => {
                connections -= 1;
                unused_at = Instant::now() + sharing.grace();
            }
            () = tokio::time::sleep_until(unused_at), if connections == 0 => {
                match sharing.unregister(socket) {
                    Ok(true) => return Ok(()),
                    // Another process holds the lock, and is about to connect.
                    Ok(false) => unused_at = Instant::now() + Duration::from_millis(100),
                    Err(source) => return Err(Error::Io("remove the registration", source)),
                }
            }
            _ = interrupted.recv() => return Ok(()),
            _ = terminated.recv() => return Ok(()),
        }
    }
}

/// Serves one connection. The supervisor's end stays open until the supervisor exits, so that a
/// test process can wait for that.
async fn serve_connection(
    mut connection: UnixStream,
    processes: Arc<Mutex<ControlPlaneProcesses>>,
    mut started: watch::Receiver<StartupState>,
    closed: mpsc::UnboundedSender<()>,
) {
    // A broken connection counts as closed.
    let _ = answer_requests(&mut connection, &processes, &mut started).await;
    // The receiver outlives every connection.
    let _ = closed.send(());
    std::future::pending::<()>().await;
}

async fn answer_requests(
    connection: &mut UnixStream,
    processes: &Mutex<ControlPlaneProcesses>,
    started: &mut watch::Receiver<StartupState>,
) -> io::Result<()> {
    let (incoming, mut outgoing) = connection.split();
    let mut lines = BufReader::new(incoming).lines();
    let startup = tokio::select! {
        outcome = started.wait_for(|it| !matches!(it, StartupState::Running)) => match outcome.as_deref() {
            Ok(StartupState::Ready(endpoints)) => Ok(endpoints.clone()),
            Ok(StartupState::Failed(message)) => Err(message.clone()),
            Ok(StartupState::Running) | Err(_) => Err("the supervisor is ending".to_owned()),
        },
        // The test process ended while it waited.
        _ = lines.next_line() => return Ok(()),
    };
    let first_reply = match startup {
        Ok(endpoints) => match processes.lock().await.check_alive() {
            Ok(()) => SupervisorReply::Ready(endpoints),
            Err(error) => SupervisorReply::Failed(error.to_string()),
        },
        Err(message) => SupervisorReply::Failed(message),
    };
    write_line(&mut outgoing, &first_reply).await?;
    while let Some(line) = lines.next_line().await? {
        let request: SupervisorRequest = serde_json::from_str(&line)?;
        let reply = match execute(&mut *processes.lock().await, request).await {
            Ok(()) => SupervisorReply::Done,
            Err(error) => SupervisorReply::Failed(error.to_string()),
        };
        write_line(&mut outgoing, &reply).await?;
    }
    Ok(())
}

async fn execute(
    processes: &mut ControlPlaneProcesses,
    request: SupervisorRequest,
) -> Result<(), processes::Error> {
    match request {
        SupervisorRequest::Kill(component) => processes.kill(component).await,
        SupervisorRequest::Pause(component) => processes.signal(component, Signal::STOP),
        SupervisorRequest::Resume(component) => processes.signal(component, Signal::CONT),
        SupervisorRequest::Start(component) => processes.revive(component).await,
        SupervisorRequest::SetApiServerFlags(flags) => {
            processes.set_api_server_flags(flags);
            Ok(())
        }
    }
}

async fn write_line(
    outgoing: &mut (impl AsyncWrite + Unpin),
    reply: &SupervisorReply,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    outgoing.write_all(&line).await
}

fn announce(line: &str) -> io::Result<()> {
    use io::Write as _;
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

// === impl Sharing ===

impl Sharing {
    fn grace(&self) -> Duration {
        match self {
            Self::Private => Duration::ZERO,
            Self::Shared { .. } => SHARED_GRACE,
        }
    }

    /// Removes the registration; false while another process holds the lock to join.
    fn unregister(&self, socket: &Path) -> io::Result<bool> {
        let Self::Shared { lock, registration } = self else {
            return Ok(true);
        };
        let lock = File::create(lock)?;
        match lock.try_lock() {
            Ok(()) => {
                // Another supervisor may have replaced one that failed.
                if fs::read(registration)? == socket.as_os_str().as_encoded_bytes() {
                    fs::remove_file(registration)?;
                }
                Ok(true)
            }
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

// === impl SupervisorOptions ===

impl SupervisorOptions {
    /// The command line from which [`SupervisorOptions::parse`] reads the same options.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut push = |name: &str, value: &std::ffi::OsStr| {
            arguments.push(name.into());
            arguments.push(value.to_owned());
        };
        push("--etcd", self.binaries.etcd.as_os_str());
        push("--kube-apiserver", self.binaries.kube_apiserver.as_os_str());
        if let Some(manager) = &self.binaries.kube_controller_manager {
            push("--kube-controller-manager", manager.as_os_str());
        }
        if let Sharing::Shared { lock, registration } = &self.sharing {
            push("--lock", lock.as_os_str());
            push("--registration", registration.as_os_str());
        }
        for flag in &self.api_server_flags {
            push("--api-server-flag", flag.as_ref());
        }
        arguments
    }

    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        let (mut etcd, mut api_server, mut manager) = (None, None, None);
        let (mut lock, mut registration, mut flags) = (None, None, Vec::new());
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let unexpected = || Error::Arguments(name.to_string_lossy().into_owned());
            let value = arguments.next().ok_or_else(unexpected)?;
            match name.to_str() {
                Some("--etcd") => etcd = Some(PathBuf::from(value)),
                Some("--kube-apiserver") => api_server = Some(PathBuf::from(value)),
                Some("--kube-controller-manager") => manager = Some(PathBuf::from(value)),
                Some("--lock") => lock = Some(PathBuf::from(value)),
                Some("--registration") => registration = Some(PathBuf::from(value)),
                Some("--api-server-flag") => flags.push(value.to_string_lossy().into_owned()),
                _ => return Err(unexpected()),
            }
        }
        let missing = |name: &str| Error::Arguments(format!("{name} is missing"));
        Ok(Self {
            binaries: Binaries {
                etcd: etcd.ok_or_else(|| missing("--etcd"))?,
                kube_apiserver: api_server.ok_or_else(|| missing("--kube-apiserver"))?,
                kube_controller_manager: manager,
            },
            sharing: match (lock, registration) {
                (Some(lock), Some(registration)) => Sharing::Shared { lock, registration },
                (None, None) => Sharing::Private,
                _ => return Err(missing("--lock or --registration")),
            },
            api_server_flags: flags,
        })
    }
}
