//! What runs an operator under test, and how it has ended.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::FutureExt as _;
use kopf_cluster::ChildProcess;
use kopf_cluster::child_process::Ending;
use kopf_runtime::{Error, RunningOperator};

use super::TestFailure;
use super::log::CapturedLog;

/// The number of log lines that a failure shows.
const LOG_LINES: usize = 40;

/// An operator inside the test program, or as a separate program.
pub(super) struct OperatorHost {
    pub(super) kind: HostKind,
    /// Set when the test stops the operator, or waits for its end.
    may_end: AtomicBool,
}

pub(super) enum HostKind {
    InProcess {
        running: tokio::sync::Mutex<RunningOperator>,
        log: CapturedLog,
        /// The end of the operator: its result can be taken once.
        end: Mutex<Option<OperatorEnd>>,
    },
    /// Ends with the test process, however that ends.
    Program(ChildProcess),
}

/// The operators of a test, of which none may end by itself.
#[derive(Clone, Default)]
pub(super) struct WatchedOperators(Arc<Mutex<Vec<Weak<OperatorHost>>>>);

/// How an operator has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorEnd {
    /// The exit code of the operator, as its `--help` lists them; none if a signal ended it.
    pub exit_code: Option<i32>,
    /// The reason, as in the last line of the log.
    pub reason: String,
}

// === impl OperatorHost ===

impl OperatorHost {
    pub(super) fn new(kind: HostKind) -> Self {
        Self {
            kind,
            may_end: AtomicBool::new(false),
        }
    }

    pub(super) fn log(&self) -> String {
        match &self.kind {
            HostKind::InProcess { log, .. } => log.text(),
            HostKind::Program(program) => program.log(),
        }
    }

    /// Does not count the end of the operator as a failure any more.
    pub(super) fn may_end(&self) {
        self.may_end.store(true, Ordering::Relaxed);
    }

    /// How the operator has ended, if it has.
    pub(super) fn end(&self) -> Option<OperatorEnd> {
        match &self.kind {
            HostKind::Program(program) => Some(OperatorEnd::of_program(program.ending()?, self)),
            HostKind::InProcess { running, end, .. } => {
                let mut end = lock(end);
                if end.is_none()
                    // Otherwise a task waits until the operator is ready, and notices its end.
                    && let Ok(mut running) = running.try_lock()
                    && running.has_ended()
                {
                    *end = running.ended().now_or_never().map(OperatorEnd::from);
                }
                end.clone()
            }
        }
    }

    /// The failure of a test whose operator has ended.
    pub(super) fn failure(&self, end: &OperatorEnd) -> TestFailure {
        with_log(TestFailure::new(end.to_string()), &self.log())
    }
}

// === impl WatchedOperators ===

impl WatchedOperators {
    pub(super) fn add(&self, host: &Arc<OperatorHost>) {
        let mut hosts = lock(&self.0);
        hosts.retain(|host| host.strong_count() > 0);
        hosts.push(Arc::downgrade(host));
    }

    /// Fails if an operator has ended that the test did not stop.
    pub(super) fn check(&self) -> Result<(), TestFailure> {
        let hosts: Vec<Arc<OperatorHost>> =
            lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        for host in hosts {
            if !host.may_end.load(Ordering::Relaxed)
                && let Some(end) = host.end()
            {
                return Err(host.failure(&end));
            }
        }
        Ok(())
    }
}

// === impl OperatorEnd ===

impl OperatorEnd {
    fn of_program(ending: Ending, host: &OperatorHost) -> Self {
        let log = host.log();
        let last = log.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.unwrap_or("its log is empty").to_owned();
        let (exit_code, reason) = match ending {
            Ending::Exit(code) => (Some(code), last),
            Ending::Signal(number) => (None, format!("signal {number}; {last}")),
            Ending::Unknown => (None, last),
        };
        Self { exit_code, reason }
    }
}

impl From<Result<(), Error>> for OperatorEnd {
    fn from(ended: Result<(), Error>) -> Self {
        match ended {
            Ok(()) => Self {
                exit_code: Some(0),
                reason: "it was stopped".to_owned(),
            },
            Err(error) => Self {
                exit_code: Some(error.exit_code().into()),
                reason: TestFailure::describe(&error),
            },
        }
    }
}

impl fmt::Display for OperatorEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exit_code {
            Some(code) => write!(f, "the operator has ended with exit code {code}: ")?,
            None => write!(f, "the operator has ended without an exit code: ")?,
        }
        f.write_str(&self.reason)
    }
}

/// The failure with the end of the operator's log.
pub(super) fn with_log(failure: TestFailure, log: &str) -> TestFailure {
    let lines: Vec<&str> = log.lines().collect();
    let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
    let message = format!(
        "{}\n\nThe log of the operator:\n{last}\n",
        failure.message()
    );
    failure.with_message(message)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
