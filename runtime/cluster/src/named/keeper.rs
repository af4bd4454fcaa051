//! The keeper: the process that runs a named control plane until it gets a signal.
//!
//! It starts again what crashes. Its own crash ends all components, because each is wrapped.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::warn;

use super::keeper_state::{KeeperPhase, KeeperState, Pods};
use crate::binaries::Binaries;
use crate::component::Component;
use crate::node;
use crate::processes::{self, ControlPlaneProcesses, DataLifetime};
use crate::program::Program;
use crate::test_failure::TestFailure;
use crate::user;

/// The subcommand of [`crate::Program`] that runs a keeper.
pub(crate) const SUBCOMMAND: &str = "@keep";

/// The interval between checks of the components.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The time that other commands may take to look at the lock; longer means another keeper.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// A component that ends this often within [`RESTART_WINDOW`] is not started again.
const MOST_RESTARTS: usize = 5;
const RESTART_WINDOW: Duration = Duration::from_secs(60);

/// The options of a keeper; its command line has them as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeeperOptions {
    pub(crate) folder: PathBuf,
    pub(crate) binaries: Binaries,
    /// The version and origin of the binaries, for people.
    pub(crate) description: String,
    pub(crate) version: Option<String>,
    pub(crate) pods: Pods,
}

/// The reasons why a keeper ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("unexpected arguments of the keeper")]
    Arguments(#[source] serde_json::Error),
    #[error("cannot {0}")]
    Io(&'static str, #[source] io::Error),
    #[error(transparent)]
    Kubeconfig(#[from] user::Error),
    #[error("another process keeps this cluster")]
    Locked,
    #[error(transparent)]
    Processes(processes::Error),
    #[error("{problem}\nIf its data are damaged, delete them: kopf-gen cluster reset {name}")]
    Data { problem: String, name: String },
    #[error("{} ends again and again; {problem}", component.name())]
    Crashing {
        component: Component,
        problem: String,
    },
}

/// The lock that a keeper holds; it contains the keeper's process id.
pub(super) fn lock_in(folder: &Path) -> PathBuf {
    folder.join("lock")
}

/// Runs a keeper until SIGTERM.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let options = parse(arguments)?;
    let _lock = lock(&options.folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|source| Error::Io("start the runtime", source))?;
    // The client reports each check of a server that is still starting.
    tracing_subscriber::fmt()
        .with_env_filter("info,kube_client=off")
        .with_ansi(false)
        .with_writer(io::stderr)
        .init();
    let mut keeper = Keeper::new(options)?;
    let outcome = runtime.block_on(keeper.run());
    keeper.state.phase = match &outcome {
        Ok(()) => KeeperPhase::Stopped,
        Err(error) => KeeperPhase::Failed(TestFailure::describe(error)),
    };
    keeper.write_state()?;
    outcome
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<KeeperOptions, Error> {
    let text = arguments.into_iter().next().unwrap_or_default();
    serde_json::from_slice(text.as_encoded_bytes()).map_err(Error::Arguments)
}

fn lock(folder: &Path) -> Result<File, Error> {
    let failed = |source| Error::Io("lock the folder of the cluster", source);
    let options = &mut File::options();
    let options = options.create(true).truncate(false).read(true).write(true);
    let mut lock = options.open(lock_in(folder)).map_err(failed)?;
    let patience = Instant::now() + LOCK_PATIENCE;
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(fs::TryLockError::WouldBlock) if Instant::now() > patience => {
                return Err(Error::Locked);
            }
            Err(fs::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            Err(fs::TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
    lock.set_len(0).map_err(failed)?;
    writeln!(lock, "{}", std::process::id()).map_err(failed)?;
    Ok(lock)
}

struct Keeper {
    folder: PathBuf,
    processes: ControlPlaneProcesses,
    state: KeeperState,
    /// The times of the last restarts.
    restarts: Vec<Instant>,
}

// === impl Keeper ===

impl Keeper {
    fn new(options: KeeperOptions) -> Result<Self, Error> {
        let program = Program::this_executable()
            .map_err(|source| Error::Io("find the program of the keeper", source))?;
        let processes = ControlPlaneProcesses::new(
            &options.folder,
            options.binaries,
            program,
            DataLifetime::Kept,
        );
        Ok(Self {
            processes,
            state: KeeperState {
                keeper: i32::try_from(std::process::id()).unwrap_or_default(),
                phase: KeeperPhase::Starting,
                server: String::new(),
                binaries: options.description,
                version: options.version,
                pods: options.pods,
                restarts: 0,
            },
            folder: options.folder,
            restarts: Vec::new(),
        })
    }

    fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn write_state(&self) -> Result<(), Error> {
        let written = self.state.write(&self.folder);
        written.map_err(|source| Error::Io("write the state of the cluster", source))
    }

    async fn run(&mut self) -> Result<(), Error> {
        let catch = |kind| signal(kind).map_err(|source| Error::Io("catch signals", source));
        let mut signals = [
            catch(SignalKind::terminate())?,
            catch(SignalKind::interrupt())?,
        ];
        // A closed terminal is no reason to end.
        let _hangups = catch(SignalKind::hangup())?;
        self.write_state()?;
        let outcome = tokio::select! {
            outcome = self.serve() => outcome,
            () = any(&mut signals) => Ok(()),
        };
        self.processes.stop_all().await;
        outcome
    }

    /// Starts all components and the node, and components again that end.
    async fn serve(&mut self) -> Result<(), Error> {
        let started = self.processes.start().await;
        let addresses = started.map_err(|error| self.at_start(error))?;
        let context = format!("kopf-gen-{}", self.name());
        let copy = self.folder.join("kubeconfig");
        user::copy_renamed(&self.processes.kubeconfig(), &copy, &context)?;
        self.state.server = addresses.api_server;
        self.state.phase = KeeperPhase::Ready;
        self.write_state()?;
        let node = simulated_node(self.state.pods, self.processes.kubeconfig());
        tokio::select! {
            outcome = self.watch_components() => outcome,
            outcome = node => outcome,
        }
    }

    /// Starts components again that end.
    async fn watch_components(&mut self) -> Result<(), Error> {
        let mut ticks = interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Some(ended) = self.processes.take_ended() {
                self.restart(ended).await?;
            }
        }
    }

    async fn restart(&mut self, ended: processes::Error) -> Result<(), Error> {
        let processes::Error::Died { component, .. } = ended else {
            return Err(Error::Processes(ended));
        };
        // The rest of the text is the end of the component's own log.
        let text = ended.to_string();
        warn!("{}", text.lines().next().unwrap_or_default());
        let now = Instant::now();
        self.restarts
            .retain(|earlier| now.duration_since(*earlier) < RESTART_WINDOW);
        if self.restarts.len() >= MOST_RESTARTS {
            return Err(Error::Crashing {
                component,
                problem: ended.to_string(),
            });
        }
        self.restarts.push(now);
        self.state.restarts += 1;
        match self.processes.revive(component).await {
            // The same component, or another, has ended meanwhile: the next check sees to it.
            Ok(()) | Err(processes::Error::Died { .. }) => {}
            Err(error) => return Err(Error::Processes(error)),
        }
        self.write_state()
    }

    /// Points at `reset` where damaged data are the likely reason.
    fn at_start(&self, error: processes::Error) -> Error {
        let may_be_damage = match &error {
            processes::Error::Died { component, .. }
            | processes::Error::NotReady { component, .. } => {
                matches!(component, Component::Etcd | Component::ApiServer)
            }
            processes::Error::Certificates(_) => true,
            _ => false,
        };
        if !may_be_damage {
            return Error::Processes(error);
        }
        Error::Data {
            problem: error.to_string(),
            name: self.name(),
        }
    }
}

/// Plays Pods, if wanted; never ends by itself.
async fn simulated_node(pods: Pods, kubeconfig: PathBuf) -> Result<(), Error> {
    if pods == Pods::Simulated {
        let client = user::client_from(&kubeconfig).await?;
        node::run(client, std::future::pending()).await;
    }
    std::future::pending().await
}

async fn any(signals: &mut [Signal; 2]) {
    let [first, second] = signals;
    tokio::select! {
        _ = first.recv() => {}
        _ = second.recv() => {}
    }
}
