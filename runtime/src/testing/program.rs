//! The operator under test, inside the test program or as a separate program.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::log::CapturedLog;
use super::{Cluster, TestFailure, TestResult};
use crate::operator::embedded::RunningOperator;
use crate::task::Tasks;

/// The log line with the address of the health endpoint.
const HEALTH_LINE: &str = "health is served at http://";

/// An operator to be started as a separate program.
#[must_use = "nothing runs before it is started"]
pub struct OperatorProgram {
    cluster: Cluster,
    path: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
}

/// An operator that runs. Dropping this ends the operator, also when the test panics.
pub struct TestOperator {
    cluster: Cluster,
    log: CapturedLog,
    host: OperatorHost,
}

enum OperatorHost {
    InProcess(RunningOperator),
    Program {
        child: Mutex<Child>,
        _readers: Tasks,
    },
}

// === impl OperatorProgram ===

impl OperatorProgram {
    pub(super) fn new(cluster: &Cluster, path: PathBuf) -> Self {
        Self {
            cluster: cluster.clone(),
            path,
            arguments: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// Adds an argument of `run`.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let variable = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.variables.push(variable);
        self
    }

    /// Starts the program for the namespace of the test, and waits until it is ready.
    ///
    /// # Errors
    /// If it cannot be started, ends, or is not ready within the timeout; with its log.
    pub async fn start(self) -> Result<TestOperator, TestFailure> {
        let mut child = Command::new(&self.path)
            .args(["run", "--log-format", "plain", "--liveness"])
            .args(["http://127.0.0.1:0/healthz", "--namespace"])
            .arg(self.cluster.namespace())
            .args(&self.arguments)
            .envs(self.variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| TestFailure::new(format!("{}: {error}", self.path.display())))?;
        let log = CapturedLog::default();
        let mut readers = Tasks::default();
        if let Some(output) = child.stdout.take() {
            readers.spawn("output", copy(output, log.clone()));
        }
        if let Some(errors) = child.stderr.take() {
            readers.spawn("errors", copy(errors, log.clone()));
        }
        let operator = TestOperator {
            cluster: self.cluster,
            log,
            host: OperatorHost::Program {
                child: Mutex::new(child),
                _readers: readers,
            },
        };
        operator.ready().await?;
        Ok(operator)
    }
}

async fn copy(mut from: impl AsyncRead + Unpin, log: CapturedLog) {
    let mut buffer = [0; 4096];
    // A read error means that the program has ended.
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        log.extend(&buffer[..length]);
    }
}

// === impl TestOperator ===

impl TestOperator {
    pub(super) fn in_process(
        cluster: &Cluster,
        running: RunningOperator,
        log: CapturedLog,
    ) -> Self {
        Self {
            cluster: cluster.clone(),
            log,
            host: OperatorHost::InProcess(running),
        }
    }

    /// The log of the operator so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits until the operator has logged a line with this text, and returns the line.
    ///
    /// # Errors
    /// If it has not within the timeout; with its log.
    pub async fn wait_for_log(&self, text: &str) -> Result<String, TestFailure> {
        let ask = async || {
            let log = self.log();
            let line = log.lines().find(|line| line.contains(text));
            Ok(line.map(str::to_owned))
        };
        let what = format!("the operator logs {text:?}");
        let waited = self.cluster.eventually(&what, ask).await;
        waited.map_err(|failure| failure.with_log(&self.log()))
    }

    /// Stops the operator gracefully.
    ///
    /// # Errors
    /// If it ends with an error, or not within the timeout.
    pub async fn stop(self) -> TestResult {
        let timeout = self.cluster.timeout;
        let ended = tokio::time::timeout(timeout, async {
            match self.host {
                OperatorHost::InProcess(running) => Ok(running.stop().await?),
                OperatorHost::Program { child, .. } => terminate(child).await,
            }
        });
        let late = |_| TestFailure::new(format!("the operator has not stopped within {timeout:?}"));
        let ended = ended.await.map_err(late).flatten();
        ended.map_err(|failure| failure.with_log(&self.log.text()))
    }

    pub(super) async fn ready(&self) -> TestResult {
        let ask = async || match &self.host {
            OperatorHost::InProcess(running) => match running.problems()[..] {
                [] => Ok(Some(())),
                _ if running.is_over() => Err(TestFailure::new("the operator has ended")),
                _ => Ok(None),
            },
            OperatorHost::Program { child, .. } => {
                if let Some(status) = lock(child).try_wait()? {
                    return Err(TestFailure::new(format!(
                        "the operator has ended: {status}"
                    )));
                }
                match self.address() {
                    Some(address) => Ok(is_ready(&address).await.then_some(())),
                    None => Ok(None),
                }
            }
        };
        let waited = self.cluster.eventually("the operator is ready", ask).await;
        waited.map_err(|failure| failure.with_log(&self.log()))
    }

    /// The address of the health endpoint, from the log.
    fn address(&self) -> Option<String> {
        let log = self.log();
        let (_, rest) = log.split_once(HEALTH_LINE)?;
        rest.split_once('/').map(|(address, _)| address.to_owned())
    }
}

fn lock(child: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    child
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Sends SIGTERM, as the kubelet does, and waits for the end.
async fn terminate(child: Mutex<Child>) -> TestResult {
    let mut child = child
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(pid) = child.id() {
        let sent = Command::new("kill").arg(pid.to_string()).status().await?;
        if !sent.success() {
            return Err(TestFailure::new(format!(
                "cannot send a signal to the operator: {sent}"
            )));
        }
    }
    let status = child.wait().await?;
    if status.success() {
        return Ok(());
    }
    Err(TestFailure::new(format!(
        "the operator has ended: {status}"
    )))
}

/// Calls the readiness probe of the program; no answer means that it is not ready.
async fn is_ready(address: &str) -> bool {
    let ask = async {
        let mut connection = TcpStream::connect(address).await?;
        let request =
            format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer.starts_with(b"HTTP/1.1 200"))
    };
    ask.await.unwrap_or(false)
}
