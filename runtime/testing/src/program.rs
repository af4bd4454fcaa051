//! The operator under test, inside the test program or as a separate program.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kopf_cluster::child_process::Signal;
use kopf_cluster::{ChildProcess, Program};
use kopf_runtime::RunningOperator;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::host::{HostKind, OperatorEnd, OperatorHost, with_log};
use super::log::CapturedLog;
use super::{CONTROL_PLANE, Cluster, TestFailure, TestResult};

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

/// The interval at which the end of an operator is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// An operator that runs. Dropping this ends the operator, also when the test panics.
///
/// If it ends by itself, the next wait of the test fails with its exit code and the reason.
pub struct TestOperator {
    cluster: Cluster,
    host: Arc<OperatorHost>,
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
        let mut program = ChildProcess::command(&self.path)
            .under(Program::at(CONTROL_PLANE))
            .args(["run", "--log-format", "plain", "--liveness"])
            .args(["http://127.0.0.1:0/healthz", "--namespace"])
            .arg(self.cluster.namespace())
            .arg("--webhook-configuration")
            .arg(self.cluster.webhook_configuration())
            .args(&self.arguments)
            .env("KUBECONFIG", self.cluster.kubeconfig());
        for (name, value) in &self.variables {
            program = program.env(name, value);
        }
        let host = HostKind::Program(program.start()?);
        let operator = TestOperator::new(self.cluster, host);
        operator.ready().await?;
        Ok(operator)
    }
}

// === impl TestOperator ===

impl TestOperator {
    pub(super) fn in_process(
        cluster: &Cluster,
        running: RunningOperator,
        log: CapturedLog,
    ) -> Self {
        let host = HostKind::InProcess {
            running: tokio::sync::Mutex::new(running),
            log,
            end: std::sync::Mutex::default(),
        };
        Self::new(cluster.clone(), host)
    }

    fn new(cluster: Cluster, host: HostKind) -> Self {
        let host = Arc::new(OperatorHost::new(host));
        cluster.operators.add(&host);
        Self { cluster, host }
    }

    /// The log of the operator so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.host.log()
    }

    /// Waits until the operator has logged a line with this text, and returns the line.
    ///
    /// # Errors
    /// If it has not within the timeout, or has ended; with its log.
    pub async fn wait_for_log(&self, text: &str) -> Result<String, TestFailure> {
        let ask = async || {
            let log = self.log();
            let line = log.lines().find(|line| line.contains(text));
            Ok(line.map(str::to_owned))
        };
        let what = format!("the operator logs {text:?}");
        let waited = self.cluster.eventually(&what, ask).await;
        waited.map_err(|failure| self.explained(failure))
    }

    /// Stops the operator gracefully.
    ///
    /// # Errors
    /// If it ends with an error, or not within the timeout.
    pub async fn stop(self) -> TestResult {
        self.host.may_end();
        match &self.host.kind {
            HostKind::InProcess { running, .. } => running.lock().await.begin_stop(),
            HostKind::Program(program) if program.ending().is_none() => {
                program.signal(Signal::TERM)?;
            }
            HostKind::Program(_) => {}
        }
        let end = self.ended().await?;
        match end.exit_code {
            Some(0) => Ok(()),
            _ => Err(self.host.failure(&end)),
        }
    }

    /// Waits until the operator ends by itself, for tests of operators that should.
    ///
    /// # Errors
    /// If it still runs after the timeout; with its log.
    pub async fn ended(&self) -> Result<OperatorEnd, TestFailure> {
        self.host.may_end();
        let timeout = self.cluster.timeout;
        let ended = tokio::time::timeout(timeout, async {
            loop {
                if let Some(end) = self.host.end() {
                    return end;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        });
        ended.await.map_err(|_| {
            let message = format!("the operator has not stopped within {timeout:?}");
            with_log(TestFailure::new(message), &self.log())
        })
    }

    pub(super) async fn ready(&self) -> TestResult {
        let waited = match &self.host.kind {
            HostKind::InProcess { running, .. } => {
                let running = running.lock().await;
                let timeout = self.cluster.timeout;
                let late = |_| {
                    let problems = running.problems().join(", ");
                    TestFailure::new(format!(
                        "not within {timeout:?}: the operator is ready; {problems}"
                    ))
                };
                let ready = tokio::time::timeout(timeout, running.ready()).await;
                ready.map_err(late).and_then(|ready| Ok(ready?))
            }
            HostKind::Program(_) => {
                let ask = async || match self.address() {
                    Some(address) => Ok(is_ready(&address).await.then_some(())),
                    None => Ok(None),
                };
                self.cluster.eventually("the operator is ready", ask).await
            }
        };
        waited.map_err(|failure| self.explained(failure))
    }

    /// The failure with the end of the operator, if it has ended, and with its log.
    fn explained(&self, failure: TestFailure) -> TestFailure {
        match self.host.end() {
            Some(end) => self.host.failure(&end),
            None => with_log(failure, &self.log()),
        }
    }

    /// The address of the health endpoint, from the log.
    fn address(&self) -> Option<String> {
        let log = self.log();
        let (_, rest) = log.split_once(HEALTH_LINE)?;
        rest.split_once('/').map(|(address, _)| address.to_owned())
    }
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
