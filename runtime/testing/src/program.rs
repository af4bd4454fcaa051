//! The operator under test, inside the test program or as a separate program.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use kopf_cluster::child_process::{Ending, Signal};
use kopf_cluster::{ChildProcess, Program};
use kopf_runtime::RunningOperator;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

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

/// An operator that runs. Dropping this ends the operator, also when the test panics.
pub struct TestOperator {
    cluster: Cluster,
    host: OperatorHost,
}

enum OperatorHost {
    InProcess {
        running: RunningOperator,
        log: CapturedLog,
    },
    /// Ends with the test process, however that ends.
    Program(ChildProcess),
}

/// The number of log lines that a failure shows.
const LOG_LINES: usize = 40;

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
        let operator = TestOperator {
            cluster: self.cluster,
            host: OperatorHost::Program(program.start()?),
        };
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
        Self {
            cluster: cluster.clone(),
            host: OperatorHost::InProcess { running, log },
        }
    }

    /// The log of the operator so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.host.log()
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
        waited.map_err(|failure| with_log(failure, &self.log()))
    }

    /// Stops the operator gracefully.
    ///
    /// # Errors
    /// If it ends with an error, or not within the timeout.
    pub async fn stop(self) -> TestResult {
        let timeout = self.cluster.timeout;
        match self.host {
            OperatorHost::InProcess { running, log } => {
                let stopped = tokio::time::timeout(timeout, running.stop()).await;
                let stopped = match stopped {
                    Ok(stopped) => stopped.map_err(TestFailure::from),
                    Err(_) => Err(TestFailure::new(format!(
                        "the operator has not stopped within {timeout:?}"
                    ))),
                };
                stopped.map_err(|failure| with_log(failure, &log.text()))
            }
            OperatorHost::Program(program) => {
                program.signal(Signal::TERM)?;
                match program.wait_within(timeout).await? {
                    Ending::Exit(0) => Ok(()),
                    ending => {
                        let failure =
                            TestFailure::new(format!("the operator has ended: {ending:?}"));
                        Err(with_log(failure, &program.log()))
                    }
                }
            }
        }
    }

    pub(super) async fn ready(&self) -> TestResult {
        let waited = match &self.host {
            OperatorHost::InProcess { running, .. } => {
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
            OperatorHost::Program(program) => {
                let ask = async || self.is_ready(program).await;
                self.cluster.eventually("the operator is ready", ask).await
            }
        };
        waited.map_err(|failure| with_log(failure, &self.log()))
    }

    async fn is_ready(&self, program: &ChildProcess) -> Result<Option<()>, TestFailure> {
        if let Some(ending) = program.ending() {
            let message = format!("the operator has ended: {ending:?}");
            return Err(TestFailure::new(message));
        }
        match self.address() {
            Some(address) => Ok(is_ready(&address).await.then_some(())),
            None => Ok(None),
        }
    }

    /// The address of the health endpoint, from the log.
    fn address(&self) -> Option<String> {
        let log = self.log();
        let (_, rest) = log.split_once(HEALTH_LINE)?;
        rest.split_once('/').map(|(address, _)| address.to_owned())
    }
}

// === impl OperatorHost ===

impl OperatorHost {
    fn log(&self) -> String {
        match self {
            Self::InProcess { log, .. } => log.text(),
            Self::Program(program) => program.log(),
        }
    }
}

/// The failure with the end of the operator's log.
fn with_log(failure: TestFailure, log: &str) -> TestFailure {
    let lines: Vec<&str> = log.lines().collect();
    let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
    let message = format!(
        "{}\n\nThe log of the operator:\n{last}\n",
        failure.message()
    );
    failure.with_message(message)
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
