//! The processes of the operator: their start, death and restart, as a kubelet does it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kopf_tests::child_process::{Ending, ProcessLog, Signal};
use kopf_tests::{ChildProcess, TestFailure};
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::clock;
use crate::fake_clock::FakeClock;
use crate::sabotage::Sabotage;
use crate::tested_operator::OperatorCommand;
use crate::workload;

/// The pause before an operator that ended by itself starts again.
const RESTART_PAUSE: Duration = Duration::from_millis(300);

/// The interval of looks at the processes.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The number of log lines that are kept of each process with something to report.
const KEPT_LINES: usize = 40;

/// What all processes of the operator have in common.
#[derive(Clone, Debug)]
pub(crate) struct ReplicaSetup {
    pub(crate) command: OperatorCommand,
    /// The clock of the processes, if it can be set.
    pub(crate) clock: Option<FakeClock>,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) journal: PathBuf,
    pub(crate) group: String,
    pub(crate) namespaces: String,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) verbose: bool,
    pub(crate) lease: Option<String>,
    pub(crate) lease_namespace: String,
}

/// The role of a process beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperatorRole {
    /// The operator, or a replica of it.
    Main,
    /// Another operator for the same objects, with a higher priority.
    Rival,
}

/// The life of one process.
#[derive(Clone, Debug)]
pub(crate) struct OperatorLife {
    pub(crate) pid: i32,
    pub(crate) role: OperatorRole,
    pub(crate) started: u64,
    pub(crate) ended: Option<u64>,
    pub(crate) ending: Option<Ending>,
    /// The times of SIGSTOP and SIGCONT.
    pub(crate) stops: Vec<(u64, u64)>,
    /// Its log, if it panicked or ended by itself, or if all logs are kept.
    pub(crate) log: Option<String>,
    pub(crate) by_itself: bool,
    pub(crate) panicked: bool,
}

/// A place for one process, which is always filled again.
#[derive(Debug)]
pub(crate) struct OperatorSlot {
    setup: ReplicaSetup,
    role: OperatorRole,
    identity: String,
    /// Whether this process has the webhooks.
    serves_gates: bool,
    running: Mutex<RunningSlot>,
}

#[derive(Debug, Default)]
struct RunningSlot {
    process: Option<ChildProcess>,
    lives: Vec<OperatorLife>,
    /// Whether the slot stays empty.
    closed: bool,
    keeps_logs: bool,
}

// === impl OperatorSlot ===

impl OperatorSlot {
    pub(crate) fn new(setup: &ReplicaSetup, role: OperatorRole, identity: &str) -> Self {
        Self {
            setup: setup.clone(),
            role,
            identity: identity.to_owned(),
            serves_gates: false,
            running: Mutex::new(RunningSlot {
                keeps_logs: setup.verbose,
                ..RunningSlot::default()
            }),
        }
    }

    /// The same slot with webhooks.
    pub(crate) fn with_gates(mut self) -> Self {
        self.serves_gates = true;
        self
    }

    /// Starts the process, unless it is running.
    pub(crate) async fn start(&self) -> Result<(), TestFailure> {
        let mut running = self.running.lock().await;
        running.closed = false;
        self.fill(&mut running)
    }

    fn fill(&self, running: &mut RunningSlot) -> Result<(), TestFailure> {
        if running.process.is_some() || running.closed {
            return Ok(());
        }
        let setup = &self.setup;
        let log = Arc::new(ProcessLog::default());
        let mut builder = setup
            .command
            .builder(log, &setup.namespaces)?
            .env("KUBECONFIG", &setup.kubeconfig)
            .env(workload::JOURNAL, &setup.journal)
            .env(workload::GROUP, &setup.group)
            .env("RUST_BACKTRACE", "1");
        if !setup.command.is_peer() {
            builder = builder.arg(if setup.verbose {
                "--verbose"
            } else {
                "--quiet"
            });
        }
        if setup.command.is_own() {
            builder = builder.args(["--id", &self.identity]);
        }
        if let Some(clock) = &setup.clock {
            builder = clock.prepare(builder);
        }
        if let Some(sabotage) = setup.sabotage {
            builder = builder.env(workload::SABOTAGE, sabotage.name());
        }
        if let Some(lease) = &setup.lease {
            builder = builder
                .env(workload::LEASE, lease)
                .args(["--lease-namespace", &setup.lease_namespace]);
        }
        if self.role == OperatorRole::Rival {
            builder = builder.args(["--priority", "100"]);
        }
        if self.serves_gates {
            builder = builder.env(workload::GATES, "yes");
        }
        let started = clock::now();
        let process = builder.start()?;
        running.lives.push(OperatorLife {
            pid: process.pid(),
            role: self.role,
            started,
            ended: None,
            ending: None,
            stops: Vec::new(),
            log: None,
            by_itself: false,
            panicked: false,
        });
        running.process = Some(process);
        Ok(())
    }

    /// Starts the process again whenever it has ended by itself, for as long as this is polled.
    pub(crate) async fn keep_running(&self) -> Result<(), TestFailure> {
        loop {
            let mut running = self.running.lock().await;
            let ended = running.process.as_ref().and_then(ChildProcess::ending);
            if let Some(ending) = ended {
                running.close(ending, true);
                drop(running);
                sleep(RESTART_PAUSE).await;
                running = self.running.lock().await;
            }
            self.fill(&mut running)?;
            drop(running);
            sleep(LOOK_EVERY).await;
        }
    }

    /// Kills the process (-9) and starts the next one.
    pub(crate) async fn kill(&self) -> Result<(), TestFailure> {
        let mut running = self.running.lock().await;
        running.kill().await?;
        self.fill(&mut running)
    }

    /// Stops the process by SIGTERM, and leaves the slot empty.
    pub(crate) async fn terminate(&self) -> Result<Option<Ending>, TestFailure> {
        let mut running = self.running.lock().await;
        running.closed = true;
        let Some(process) = &running.process else {
            return Ok(None);
        };
        let ending = process.terminate().await?;
        running.close(ending, ending != Ending::Exit(0));
        Ok(Some(ending))
    }

    /// Kills the process, and leaves the slot empty.
    pub(crate) async fn abandon(&self) -> Result<(), TestFailure> {
        let mut running = self.running.lock().await;
        running.closed = true;
        running.kill().await?;
        Ok(())
    }

    /// Stops the process by SIGSTOP for a while.
    pub(crate) async fn suspend(&self, time: Duration) -> Result<(), TestFailure> {
        let mut running = self.running.lock().await;
        let Some(process) = &running.process else {
            return Ok(());
        };
        let begun = clock::now();
        // It may have ended by itself in this moment; the next one starts soon.
        if process.signal(Signal::STOP).is_err() {
            return Ok(());
        }
        sleep(time).await;
        process.signal(Signal::CONT)?;
        if let Some(life) = running.lives.last_mut() {
            life.stops.push((begun, clock::now()));
        }
        Ok(())
    }

    /// The id of the running process.
    pub(crate) async fn pid(&self) -> Option<i32> {
        let running = self.running.lock().await;
        running.process.as_ref().map(ChildProcess::pid)
    }

    /// The id of the running process, and the last lines of its log.
    pub(crate) async fn log(&self) -> Option<(i32, String)> {
        let running = self.running.lock().await;
        let process = running.process.as_ref()?;
        Some((process.pid(), tail(&process.log())))
    }

    /// All lives so far.
    pub(crate) async fn lives(&self) -> Vec<OperatorLife> {
        self.running.lock().await.lives.clone()
    }
}

// === impl RunningSlot ===

impl RunningSlot {
    /// Kills the process, unless it has ended by itself in this moment.
    async fn kill(&mut self) -> Result<(), TestFailure> {
        let Some(process) = &self.process else {
            return Ok(());
        };
        let alive = process.signal(Signal::KILL).is_ok();
        let ending = process.wait().await?;
        self.close(ending, !alive);
        Ok(())
    }

    fn close(&mut self, ending: Ending, by_itself: bool) {
        let Some(process) = self.process.take() else {
            return;
        };
        let log = process.log();
        // In Rust, in Go, and in a call whose panic controller-runtime has caught.
        let panics = ["panicked", "panic: ", "Observed a panic"];
        let panicked = panics.iter().any(|text| log.contains(text));
        if let Some(life) = self.lives.last_mut() {
            life.ended = Some(clock::now());
            life.ending = Some(ending);
            life.panicked = panicked;
            life.by_itself = by_itself;
            life.log = if self.keeps_logs {
                Some(log)
            } else {
                (panicked || by_itself).then(|| tail(&log))
            };
        }
    }
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(KEPT_LINES)..].join("\n")
}
