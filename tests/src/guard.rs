//! The process that owns a control plane and ends it when nobody holds a lease any more.
//!
//! A lease is an open connection to the guard's socket. However its holder ends (return, panic,
//! Ctrl-C, `kill -9`), the kernel closes the connection, so nothing depends on clean-up code in the
//! test process. The guard is a child of the test process that needed it first, in a process group
//! of its own, and outlives that process while others hold leases.

use std::env;
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

use crate::assets::Assets;
use crate::failure::Failure;

pub mod leash;
mod plane;
pub(crate) mod protocol;

use plane::Plane;
pub use protocol::Component;
use protocol::{Access, Reply, Request};

/// How long a shared control plane waits for the next test binary of a run.
///
/// Together with the end of its processes this must stay below the 10 seconds after which nothing
/// may be left.
const SHARED_GRACE: Duration = Duration::from_secs(5);

/// How long the process that started a guard may take to connect.
const FIRST_LEASE: Duration = Duration::from_secs(7);

/// The first line that a guard prints: it accepts connections at the path that follows.
pub(crate) const LISTENING: &str = "listening ";

/// The program that runs guards and leashes.
const PROGRAM: &str = "control-plane";

/// The program that runs guards and leashes is not where cargo puts it.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} is missing; `cargo build -p kopf-tests --bins` builds it, as `cargo test` of that package does",
    .0.display()
)]
pub struct MissingProgram(PathBuf);

/// Whom a control plane serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The one process that started it.
    Private,
    /// Every process that finds it through this registration.
    Shared {
        /// Held while joining, starting or ending it.
        lock: PathBuf,
        /// Says where its socket is.
        registration: PathBuf,
    },
}

/// What a guard is told on its command line.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) assets: Assets,
    pub(crate) audience: Audience,
    pub(crate) api_server_flags: Vec<String>,
}

/// Why a guard gave up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line is not one that the harness writes.
    #[error("unexpected arguments of the guard: {0}")]
    Arguments(String),
    /// Its folder, socket or registration failed.
    #[error("{0}")]
    Io(&'static str, #[source] io::Error),
}

#[derive(Clone, Debug)]
enum Startup {
    Running,
    Ready(Access),
    Failed(String),
}

/// Finds the program beside the test binary, which cargo puts into `deps/` below it.
pub(crate) fn program() -> Result<PathBuf, MissingProgram> {
    let test = env::current_exe().unwrap_or_default();
    let beside = test.parent().unwrap_or(Path::new("/"));
    let folder = if beside.ends_with("deps") {
        beside.parent().unwrap_or(beside)
    } else {
        beside
    };
    let program = folder.join(PROGRAM);
    if program.is_file() {
        Ok(program)
    } else {
        Err(MissingProgram(program))
    }
}

/// Runs a guard until its last lease is returned.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let options = Options::parse(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Io("start the runtime", source))?;
    let outcome = runtime.block_on(serve(options));
    if let Err(error) = &outcome {
        // Whoever waits for the announcement hears this instead; later on nobody listens.
        let _ = announce(&Failure::describe(error));
    }
    outcome
}

async fn serve(options: Options) -> Result<(), Error> {
    let folder = tempfile::Builder::new()
        .prefix("kopf-control-plane-")
        .tempdir()
        .map_err(|source| Error::Io("create a temporary folder", source))?;
    let socket = folder.path().join("guard.sock");
    let listener = UnixListener::bind(&socket)
        .map_err(|source| Error::Io("listen on a socket in the temporary folder", source))?;
    if let Audience::Shared { registration, .. } = &options.audience {
        fs::write(registration, socket.as_os_str().as_encoded_bytes())
            .map_err(|source| Error::Io("register the control plane", source))?;
    }
    announce(&format!("{LISTENING}{}", socket.display()))
        .map_err(|source| Error::Io("announce the socket", source))?;

    let plane = Arc::new(Mutex::new(Plane::new(
        folder.path(),
        options.assets.clone(),
        options.api_server_flags.clone(),
    )));
    let (startup, started) = watch::channel(Startup::Running);
    let starting = tokio::spawn({
        let plane = Arc::clone(&plane);
        async move {
            let outcome = match plane.lock().await.start().await {
                Ok(access) => Startup::Ready(access),
                Err(error) => Startup::Failed(error.to_string()),
            };
            startup.send_replace(outcome);
        }
    });
    until_unused(&listener, &options.audience, &plane, &started, &socket).await?;
    starting.abort();
    // Waiting for the abort releases the plane, and ends what was only half started.
    let _ = starting.await;
    plane.lock().await.end().await;
    drop(listener);
    folder
        .close()
        .map_err(|source| Error::Io("remove the temporary folder", source))
}

/// Accepts leases until the last one has been returned for long enough.
async fn until_unused(
    listener: &UnixListener,
    audience: &Audience,
    plane: &Arc<Mutex<Plane>>,
    started: &watch::Receiver<Startup>,
    socket: &Path,
) -> Result<(), Error> {
    let catch = |kind| signal(kind).map_err(|source| Error::Io("catch signals", source));
    let mut interrupted = catch(SignalKind::interrupt())?;
    let mut terminated = catch(SignalKind::terminate())?;
    let (returned, mut returns) = mpsc::unbounded_channel();
    let mut leases = 0_usize;
    let mut unused_at = Instant::now() + FIRST_LEASE;
    loop {
        tokio::select! {
            connection = listener.accept() => {
                let (connection, _) =
                    connection.map_err(|source| Error::Io("accept a lease", source))?;
                leases += 1;
                tokio::spawn(hold(connection, Arc::clone(plane), started.clone(), returned.clone()));
            }
            Some(()) = returns.recv() => {
                leases -= 1;
                unused_at = Instant::now() + audience.grace();
            }
            () = tokio::time::sleep_until(unused_at), if leases == 0 => {
                match audience.close(socket) {
                    Ok(true) => return Ok(()),
                    // Somebody is about to connect.
                    Ok(false) => unused_at = Instant::now() + Duration::from_millis(100),
                    Err(source) => return Err(Error::Io("withdraw the registration", source)),
                }
            }
            _ = interrupted.recv() => return Ok(()),
            _ = terminated.recv() => return Ok(()),
        }
    }
}

/// Serves one lease. The connection stays open until the guard has gone, which is what a holder
/// that wants to see the end waits for.
async fn hold(
    mut connection: UnixStream,
    plane: Arc<Mutex<Plane>>,
    mut started: watch::Receiver<Startup>,
    returned: mpsc::UnboundedSender<()>,
) {
    // A broken connection is a returned lease like any other.
    let _ = converse(&mut connection, &plane, &mut started).await;
    // The guard's loop outlives every lease.
    let _ = returned.send(());
    std::future::pending::<()>().await;
}

async fn converse(
    connection: &mut UnixStream,
    plane: &Mutex<Plane>,
    started: &mut watch::Receiver<Startup>,
) -> io::Result<()> {
    let (incoming, mut outgoing) = connection.split();
    let mut lines = BufReader::new(incoming).lines();
    let greeting = tokio::select! {
        outcome = started.wait_for(|it| !matches!(it, Startup::Running)) => match outcome.as_deref() {
            Ok(Startup::Ready(access)) => Ok(access.clone()),
            Ok(Startup::Failed(message)) => Err(message.clone()),
            Ok(Startup::Running) | Err(_) => Err("the guard is ending".to_owned()),
        },
        // The holder died while it waited.
        _ = lines.next_line() => return Ok(()),
    };
    let greeting = match greeting {
        Ok(access) => match plane.lock().await.check_alive() {
            Ok(()) => Reply::Ready(access),
            Err(error) => Reply::Failed(error.to_string()),
        },
        Err(message) => Reply::Failed(message),
    };
    write_line(&mut outgoing, &greeting).await?;
    while let Some(line) = lines.next_line().await? {
        let request: Request = serde_json::from_str(&line)?;
        let reply = match plane.lock().await.obey(request).await {
            Ok(()) => Reply::Done,
            Err(error) => Reply::Failed(error.to_string()),
        };
        write_line(&mut outgoing, &reply).await?;
    }
    Ok(())
}

async fn write_line(outgoing: &mut (impl AsyncWrite + Unpin), reply: &Reply) -> io::Result<()> {
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

// === impl Audience ===

impl Audience {
    fn grace(&self) -> Duration {
        match self {
            Self::Private => Duration::ZERO,
            Self::Shared { .. } => SHARED_GRACE,
        }
    }

    /// Withdraws the registration; says no while another process holds the lock to join.
    fn close(&self, socket: &Path) -> io::Result<bool> {
        let Self::Shared { lock, registration } = self else {
            return Ok(true);
        };
        let turn = File::create(lock)?;
        match turn.try_lock() {
            Ok(()) => {
                // A control plane that failed may have been replaced already.
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

// === impl Options ===

impl Options {
    /// The command line from which [`Options::parse`] reads the same options.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut push = |name: &str, value: &std::ffi::OsStr| {
            arguments.push(name.into());
            arguments.push(value.to_owned());
        };
        push("--etcd", self.assets.etcd.as_os_str());
        push("--kube-apiserver", self.assets.kube_apiserver.as_os_str());
        if let Some(manager) = &self.assets.kube_controller_manager {
            push("--kube-controller-manager", manager.as_os_str());
        }
        if let Audience::Shared { lock, registration } = &self.audience {
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
            assets: Assets {
                etcd: etcd.ok_or_else(|| missing("--etcd"))?,
                kube_apiserver: api_server.ok_or_else(|| missing("--kube-apiserver"))?,
                kube_controller_manager: manager,
            },
            audience: match (lock, registration) {
                (Some(lock), Some(registration)) => Audience::Shared { lock, registration },
                (None, None) => Audience::Private,
                _ => return Err(missing("--lock or --registration")),
            },
            api_server_flags: flags,
        })
    }
}
