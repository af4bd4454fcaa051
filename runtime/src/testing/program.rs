//! The operator under test, inside of the test program or as a program of its own.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::log::Log;
use super::{Cluster, Failure, TestResult};
use crate::operator::embedded::RunningOperator;
use crate::task::Tasks;

/// What the operator says when its health can be asked for.
const HEALTH: &str = "health is served at http://";

/// An operator that is about to be started as a program.
#[must_use = "nothing runs before it is started"]
pub struct Program {
    cluster: Cluster,
    path: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
}

/// An operator at work. When this is dropped, the operator ends, also when the test panics.
pub struct Operating {
    cluster: Cluster,
    log: Log,
    form: Form,
}

enum Form {
    Inside(RunningOperator),
    Program {
        child: Mutex<Child>,
        _readers: Tasks,
    },
}

// === impl Program ===

impl Program {
    pub(super) fn new(cluster: &Cluster, path: PathBuf) -> Self {
        Self {
            cluster: cluster.clone(),
            path,
            arguments: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// One more argument of `run`.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// One more environment variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let variable = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.variables.push(variable);
        self
    }

    /// Starts the program in the namespace of the test, and waits until it is ready.
    ///
    /// # Errors
    /// If it cannot be started, ends, or is not ready in time; with what it said.
    pub async fn start(self) -> Result<Operating, Failure> {
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
            .map_err(|error| Failure::new(format!("{}: {error}", self.path.display())))?;
        let log = Log::default();
        let mut readers = Tasks::default();
        if let Some(output) = child.stdout.take() {
            readers.spawn("output", copy(output, log.clone()));
        }
        if let Some(errors) = child.stderr.take() {
            readers.spawn("errors", copy(errors, log.clone()));
        }
        let operating = Operating {
            cluster: self.cluster,
            log,
            form: Form::Program {
                child: Mutex::new(child),
                _readers: readers,
            },
        };
        operating.ready().await?;
        Ok(operating)
    }
}

async fn copy(mut from: impl AsyncRead + Unpin, log: Log) {
    let mut buffer = [0; 4096];
    // A pipe that cannot be read any more has nothing more to say.
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        log.extend(&buffer[..length]);
    }
}

// === impl Operating ===

impl Operating {
    pub(super) fn inside(cluster: &Cluster, running: RunningOperator, log: Log) -> Self {
        Self {
            cluster: cluster.clone(),
            log,
            form: Form::Inside(running),
        }
    }

    /// Everything that the operator has said so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits until the operator has said this, and returns the line.
    ///
    /// # Errors
    /// If it has not in time; with what it said instead.
    pub async fn wait_for_log(&self, text: &str) -> Result<String, Failure> {
        let ask = async || {
            let log = self.log();
            let line = log.lines().find(|line| line.contains(text));
            Ok(line.map(str::to_owned))
        };
        let what = format!("it says {text:?}");
        let waited = self.cluster.eventually(&what, ask).await;
        waited.map_err(|failure| failure.with_log(&self.log()))
    }

    /// Lets the operator stop in its own time.
    ///
    /// # Errors
    /// If it ends with an error, or not in time.
    pub async fn stop(self) -> TestResult {
        let patience = self.cluster.patience;
        let ended = tokio::time::timeout(patience, async {
            match self.form {
                Form::Inside(running) => Ok(running.stop().await?),
                Form::Program { child, .. } => terminate(child).await,
            }
        });
        let late = |_| Failure::new(format!("the operator has not stopped within {patience:?}"));
        let ended = ended.await.map_err(late).flatten();
        ended.map_err(|failure| failure.with_log(&self.log.text()))
    }

    pub(super) async fn ready(&self) -> TestResult {
        let ask = async || match &self.form {
            Form::Inside(running) => match running.problems()[..] {
                [] => Ok(Some(())),
                _ if running.is_over() => Err(Failure::new("the operator has ended")),
                _ => Ok(None),
            },
            Form::Program { child, .. } => {
                if let Some(status) = lock(child).try_wait()? {
                    let story = format!("the operator has ended: {status}");
                    return Err(Failure::new(story));
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

    /// Where the program tells how it is.
    fn address(&self) -> Option<String> {
        let log = self.log();
        let (_, rest) = log.split_once(HEALTH)?;
        rest.split_once('/').map(|(address, _)| address.to_owned())
    }
}

fn lock(child: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    child
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Sends what Kubernetes sends to a pod that is to go, and waits for the end.
async fn terminate(child: Mutex<Child>) -> TestResult {
    let mut child = child
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(pid) = child.id() {
        let sent = Command::new("kill").arg(pid.to_string()).status().await?;
        if !sent.success() {
            return Err(Failure::new(format!(
                "the operator could not be told to stop: {sent}"
            )));
        }
    }
    let status = child.wait().await?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("the operator has ended: {status}")))
}

/// Asks the program itself; whoever does not answer is not ready.
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
