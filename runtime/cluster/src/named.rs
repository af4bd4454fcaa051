//! Named control planes: each survives the command that started it, keeps its data between runs, and
//! is there at most once.
//!
//! A keeper process runs the components. It holds the lock of the cluster's folder, so that the
//! kernel knows whether a cluster is up, whatever a crash has left in the files.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::binaries::{FoundBinaries, KubernetesVersion};
use crate::component::Component;
use crate::processes;
use crate::program::Program;

mod cluster_name;
pub(crate) mod keeper;
mod keeper_state;

pub use cluster_name::{ClusterName, InvalidClusterName};
pub use keeper_state::Pods;
use keeper_state::{KeeperPhase, KeeperState};

/// Longer than the keeper itself waits for its processes.
const UP_TIMEOUT: Duration = Duration::from_secs(300);

/// Longer than the keeper gives each of its processes to end.
const DOWN_TIMEOUT: Duration = Duration::from_secs(60);

/// The time that the API server of a cluster that is up may take to answer: its keeper may be
/// starting it again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A named control plane: its folder, and what can be done with it.
#[derive(Clone, Debug)]
pub struct NamedCluster {
    name: ClusterName,
    folder: PathBuf,
}

/// The lock of a cluster, which its keeper holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeeperLock {
    Free,
    /// The keeper has not written its id yet, or another command looks at the lock.
    JustTaken,
    HeldBy(Pid),
}

/// The ways in which `up` can end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpOutcome {
    /// The cluster was started.
    Started,
    /// The cluster was started again after a crash.
    Repaired,
    /// The cluster had been up already.
    WasUp,
}

/// The state of a named cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterStatus {
    /// There is none of this name.
    Absent,
    /// It has been stopped; its data are there.
    Down,
    /// Its keeper has ended without stopping it.
    Crashed,
    /// Its keeper reports a failure, and has ended.
    Failed(String),
    /// It is starting or stopping.
    Changing,
    /// It serves.
    Up(UpDetails),
}

/// The details of a cluster that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpDetails {
    /// The URL of the API server.
    pub server: String,
    /// The version and origin of the binaries.
    pub binaries: String,
    /// The process id of the keeper.
    pub keeper: i32,
    /// Whether Pods are played.
    pub pods: Pods,
    /// The number of times that a component had to be started again.
    pub restarts: u32,
}

/// The reasons why a command on a named cluster failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be handled.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The failed operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// There is no folder for data.
    #[error("neither XDG_DATA_HOME nor HOME says where to keep the data of clusters")]
    NoHome,
    /// The keeper could not be run.
    #[error("cannot start the process that keeps the cluster")]
    Keeper(#[source] io::Error),
    /// The cluster did not start.
    #[error("the cluster `{name}` did not start: {reason}\nIts logs are in {}", logs.display())]
    NotStarted {
        /// The name of the cluster.
        name: ClusterName,
        /// The reason of the keeper.
        reason: String,
        /// The folder of its logs.
        logs: PathBuf,
    },
    /// A newer Kubernetes has written the data.
    #[error(
        "Kubernetes {written} has written the data of the cluster `{name}`, and {requested} cannot be relied on to read them\nUse {written} or newer, or delete the data: kopf-gen cluster reset {name}"
    )]
    Downgrade {
        /// The name of the cluster.
        name: ClusterName,
        /// The version of the data.
        written: String,
        /// The version of the binaries.
        requested: KubernetesVersion,
    },
    /// The cluster did not stop.
    #[error("the cluster `{name}` has not stopped within {} s\nIts logs are in {}", DOWN_TIMEOUT.as_secs(), logs.display())]
    NotStopped {
        /// The name of the cluster.
        name: ClusterName,
        /// The folder of its logs.
        logs: PathBuf,
    },
    /// The cluster is not up.
    #[error("the cluster `{0}` is not up; start it: kopf-gen cluster up {0}")]
    NotUp(ClusterName),
}

// === impl NamedCluster ===

impl NamedCluster {
    /// The cluster of this name in the data folder of the user.
    pub fn of_user(name: ClusterName) -> Result<Self, Error> {
        Ok(Self::in_folder(&home()?, name))
    }

    /// The cluster of this name among those in `clusters`.
    pub fn in_folder(clusters: &Path, name: ClusterName) -> Self {
        let folder = clusters.join(name.as_str());
        Self { name, folder }
    }

    /// The names of all clusters in the data folder of the user.
    pub fn all_of_user() -> Result<Vec<ClusterName>, Error> {
        let Ok(entries) = fs::read_dir(home()?) else {
            return Ok(Vec::new());
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let names = names.filter_map(|name| name.to_str()?.parse().ok());
        let mut names: Vec<ClusterName> = names.collect();
        names.sort();
        Ok(names)
    }

    /// The name.
    pub fn name(&self) -> &ClusterName {
        &self.name
    }

    /// The folder of its data.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The kubeconfig of an administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// The log of a component.
    pub fn log_of(&self, component: Component) -> PathBuf {
        processes::log_in(&self.folder, component)
    }

    /// The log of the keeper.
    pub fn keeper_log(&self) -> PathBuf {
        self.logs().join("keeper.log")
    }

    fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// Starts the cluster unless it is up, and waits until it serves.
    ///
    /// The program is the one that [`crate::subcommand::run`] serves.
    pub fn up(
        &self,
        program: &Program,
        found: &FoundBinaries,
        pods: Pods,
    ) -> Result<UpOutcome, Error> {
        let before = self.responsive_status()?;
        if matches!(before, ClusterStatus::Up(_)) {
            return Ok(UpOutcome::WasUp);
        }
        self.refuse_downgrade(found)?;
        let logs = self.logs();
        let private = DirBuilder::new().recursive(true).mode(0o700).create(&logs);
        private.map_err(self.file("create", &logs))?;
        self.clear_lock()?;
        let mut keeper = self.start_keeper(program, found, pods)?;
        self.wait_until_up(&mut keeper)?;
        Ok(match before {
            ClusterStatus::Crashed | ClusterStatus::Failed(_) => UpOutcome::Repaired,
            _ => UpOutcome::Started,
        })
    }

    /// The state, but up only if the API server answers: the kernel takes a moment to release the
    /// lock of a killed keeper, and a keeper takes one to notice that a component has ended.
    pub fn responsive_status(&self) -> Result<ClusterStatus, Error> {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let status = self.status()?;
            if !matches!(status, ClusterStatus::Up(_)) || Instant::now() > deadline {
                return Ok(status);
            }
            // The lock is looked at once more after the answer.
            if processes::is_ready(&self.kubeconfig()) && self.status()? == status {
                return Ok(status);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn start_keeper(
        &self,
        program: &Program,
        found: &FoundBinaries,
        pods: Pods,
    ) -> Result<Child, Error> {
        let path = self.keeper_log();
        let log = File::options().create(true).append(true).open(&path);
        let log = log.map_err(self.file("open", &path))?;
        let options = keeper::KeeperOptions {
            folder: self.folder.clone(),
            binaries: found.binaries.clone(),
            description: found.to_string(),
            version: found.version.map(|version| version.to_string()),
            pods,
        };
        let options = serde_json::to_string(&options).map_err(io::Error::from);
        let options = options.map_err(Error::Keeper)?;
        let mut command = program.command(keeper::SUBCOMMAND);
        command
            .arg(options)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // Ctrl-C in this terminal is not meant for the cluster.
            .process_group(0);
        command.spawn().map_err(Error::Keeper)
    }

    /// Waits until this keeper, or the one that another command has just started, serves.
    fn wait_until_up(&self, keeper: &mut Child) -> Result<(), Error> {
        let deadline = Instant::now() + UP_TIMEOUT;
        let not_started = |reason: String| Error::NotStarted {
            name: self.name.clone(),
            reason,
            logs: self.logs(),
        };
        loop {
            let ended = keeper.try_wait().map_err(Error::Keeper)?;
            match self.status()? {
                ClusterStatus::Up(_) => return Ok(()),
                ClusterStatus::Failed(reason) if ended.is_some() => {
                    return Err(not_started(reason));
                }
                ClusterStatus::Crashed | ClusterStatus::Absent | ClusterStatus::Down
                    if ended.is_some() =>
                {
                    return Err(not_started("its keeper has ended".to_owned()));
                }
                _ if Instant::now() > deadline => {
                    return Err(not_started(format!(
                        "it does not serve after {} s",
                        UP_TIMEOUT.as_secs()
                    )));
                }
                _ => thread::sleep(POLL_INTERVAL),
            }
        }
    }

    fn refuse_downgrade(&self, found: &FoundBinaries) -> Result<(), Error> {
        let written = KeeperState::read(&self.folder).and_then(|state| state.version);
        let (Some(written), Some(requested)) = (written, found.version) else {
            return Ok(());
        };
        let is_newer = written
            .parse::<KubernetesVersion>()
            .is_ok_and(|written| written.minor_number() > requested.minor_number());
        if is_newer {
            return Err(Error::Downgrade {
                name: self.name.clone(),
                written,
                requested,
            });
        }
        Ok(())
    }

    /// Stops the cluster and waits until its processes have ended; whether it was up.
    pub fn down(&self) -> Result<bool, Error> {
        let deadline = Instant::now() + DOWN_TIMEOUT;
        let mut signalled = None;
        loop {
            match self.keeper()? {
                KeeperLock::Free => return Ok(signalled.is_some()),
                KeeperLock::HeldBy(keeper) if signalled != Some(keeper) => {
                    // It may have just ended.
                    let _ = kill_process(keeper, Signal::TERM);
                    signalled = Some(keeper);
                }
                KeeperLock::HeldBy(_) | KeeperLock::JustTaken => {}
            }
            if Instant::now() > deadline {
                return Err(Error::NotStopped {
                    name: self.name.clone(),
                    logs: self.logs(),
                });
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Stops the cluster and deletes all its data; whether there were any.
    pub fn reset(&self) -> Result<bool, Error> {
        self.down()?;
        match fs::remove_dir_all(&self.folder) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(self.file("delete", &self.folder)(source)),
        }
    }

    /// The state of the cluster.
    pub fn status(&self) -> Result<ClusterStatus, Error> {
        if !self.folder.is_dir() {
            return Ok(ClusterStatus::Absent);
        }
        let keeper = self.keeper()?;
        // After the lock: a keeper writes its state only while it holds the lock.
        let state = KeeperState::read(&self.folder);
        Ok(match (keeper, state) {
            (KeeperLock::HeldBy(keeper), Some(state))
                if state.phase == KeeperPhase::Ready && state.is_written_by(keeper) =>
            {
                ClusterStatus::Up(state.details(keeper))
            }
            (KeeperLock::HeldBy(_) | KeeperLock::JustTaken, _) => ClusterStatus::Changing,
            (KeeperLock::Free, Some(state)) => match state.phase {
                KeeperPhase::Starting | KeeperPhase::Ready => ClusterStatus::Crashed,
                KeeperPhase::Failed(reason) => ClusterStatus::Failed(reason),
                KeeperPhase::Stopped => ClusterStatus::Down,
            },
            (KeeperLock::Free, None) => ClusterStatus::Down,
        })
    }

    /// Removes the id of the last keeper, whose number another process may have by now.
    fn clear_lock(&self) -> Result<(), Error> {
        let path = keeper::lock_in(&self.folder);
        let options = &mut File::options();
        let options = options.create(true).truncate(false).write(true);
        let lock = options.open(&path).map_err(self.file("open", &path))?;
        match lock.try_lock() {
            Ok(()) => lock.set_len(0).map_err(self.file("write", &path)),
            // There is a new keeper.
            Err(fs::TryLockError::WouldBlock) => Ok(()),
            Err(fs::TryLockError::Error(source)) => Err(self.file("lock", &path)(source)),
        }
    }

    fn keeper(&self) -> Result<KeeperLock, Error> {
        let path = keeper::lock_in(&self.folder);
        let lock = match File::options().read(true).write(true).open(&path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(KeeperLock::Free),
            Err(source) => return Err(self.file("open", &path)(source)),
        };
        match lock.try_lock_shared() {
            Ok(()) => Ok(KeeperLock::Free),
            Err(fs::TryLockError::WouldBlock) => {
                let text = fs::read_to_string(&path).map_err(self.file("read", &path))?;
                let keeper = text.trim().parse().ok().and_then(Pid::from_raw);
                Ok(keeper.map_or(KeeperLock::JustTaken, KeeperLock::HeldBy))
            }
            Err(fs::TryLockError::Error(source)) => Err(self.file("lock", &path)(source)),
        }
    }

    fn file(&self, action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
        let path = path.to_owned();
        move |source| Error::File {
            action,
            path,
            source,
        }
    }
}

/// The folder of all clusters of this user.
fn home() -> Result<PathBuf, Error> {
    let variable = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let below_home = if cfg!(target_os = "macos") {
        "Library/Application Support"
    } else {
        ".local/share"
    };
    let data = variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(below_home)));
    Ok(data.ok_or(Error::NoHome)?.join("kopf-gen").join("clusters"))
}
