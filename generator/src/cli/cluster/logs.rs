//! `kopf-gen cluster logs`.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kopf_cluster::named::ClusterStatus;
use kopf_cluster::{Component, NamedCluster};

use super::{CommandStatus, Error, NameArgs, print};

/// The interval between looks at logs that are followed.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// Print the end of the logs of a cluster
#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    #[command(flatten)]
    cluster: NameArgs,
    /// Print only this log
    #[arg(long, short, value_name = "COMPONENT")]
    component: Option<LogSource>,
    /// The number of lines of each log
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    lines: usize,
    /// Go on with the lines that come
    #[arg(long, short)]
    follow: bool,
}

/// A log of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogSource {
    /// The process that starts and watches the others
    Keeper,
    /// The database
    Etcd,
    /// The API server
    KubeApiserver,
    /// The controllers
    KubeControllerManager,
}

pub(super) fn run(args: &LogsArgs) -> Result<CommandStatus, Error> {
    let cluster = args.cluster.cluster()?;
    if cluster.status()? == ClusterStatus::Absent {
        return Err(Error::NoLogs(cluster.name().clone()));
    }
    let sources = match args.component {
        Some(source) => vec![source],
        None => LogSource::value_variants().to_vec(),
    };
    let mut logs = Vec::new();
    for source in sources {
        let mut log = FollowedLog::new(source.path(&cluster));
        let text = log.read_on()?;
        let lines: Vec<&str> = text.lines().collect();
        print(&format!("==> {}", log.path.display()))?;
        for line in &lines[lines.len().saturating_sub(args.lines)..] {
            print(line)?;
        }
        logs.push(log);
    }
    if args.follow {
        follow(&mut logs)?;
    }
    Ok(CommandStatus::Ok)
}

/// Prints what is appended to logs, until this process ends.
fn follow(logs: &mut [FollowedLog]) -> Result<(), Error> {
    let several = logs.len() > 1;
    let mut last = logs.last().map(|log| log.path.clone());
    loop {
        for log in &mut *logs {
            let text = log.read_on()?;
            if text.is_empty() {
                continue;
            }
            if several && last.as_ref() != Some(&log.path) {
                print(&format!("==> {}", log.path.display()))?;
                last = Some(log.path.clone());
            }
            print(text.trim_end_matches('\n'))?;
        }
        thread::sleep(FOLLOW_INTERVAL);
    }
}

/// A log, and the length of what has been read of it.
struct FollowedLog {
    path: PathBuf,
    read: u64,
}

// === impl FollowedLog ===

impl FollowedLog {
    fn new(path: PathBuf) -> Self {
        Self { path, read: 0 }
    }

    /// The complete lines that came since the last call; of a file that was begun anew, all.
    fn read_on(&mut self) -> Result<String, Error> {
        let failed = |source| Error::Log(self.path.clone(), source);
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            // A component that has never run has no log.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(failed(error)),
        };
        if file.metadata().map_err(failed)?.len() < self.read {
            self.read = 0;
        }
        file.seek(SeekFrom::Start(self.read)).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let complete = bytes.iter().rposition(|byte| *byte == b'\n');
        bytes.truncate(complete.map_or(0, |end| end + 1));
        self.read += u64::try_from(bytes.len()).unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

// === impl LogSource ===

impl LogSource {
    fn path(self, cluster: &NamedCluster) -> PathBuf {
        match self {
            Self::Keeper => cluster.keeper_log(),
            Self::Etcd => cluster.log_of(Component::Etcd),
            Self::KubeApiserver => cluster.log_of(Component::ApiServer),
            Self::KubeControllerManager => cluster.log_of(Component::ControllerManager),
        }
    }
}
