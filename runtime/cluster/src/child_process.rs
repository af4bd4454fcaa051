//! An operator or another program as a child process: its log, signals and exit status.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, kill_process};
use tokio::sync::watch;
use tokio::time::timeout;

pub use rustix::process::Signal;

pub(crate) mod wrapper;

use wrapper::ChildReport;

use crate::program::{MissingProgram, Program};
use crate::test_failure::TestFailure;

/// The default time limit of waits: long, because machines are noisy, and only a failing test waits
/// that long.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of log lines that a failure shows.
const LOG_LINES: usize = 60;

/// The time to wait for the rest of an ended program's log.
const LOG_END_TIMEOUT: Duration = Duration::from_secs(5);

/// A running program. It ends with this value, and with the test process however that ends.
#[derive(Debug)]
pub struct ChildProcess {
    wrapper: Child,
    /// The standard input of the wrapper, which kills the program when it closes.
    stdin: Option<ChildStdin>,
    pid: Pid,
    log: Arc<ProcessLog>,
    ended: watch::Receiver<Option<Ending>>,
}

/// A program to start.
#[derive(Debug)]
pub struct ChildProcessBuilder {
    wrapper: Option<Program>,
    program: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    removed: Vec<OsString>,
    folder: Option<PathBuf>,
    log: Arc<ProcessLog>,
}

/// The exit status of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program exited with this code.
    Exit(i32),
    /// This signal ended the program.
    Signal(i32),
    /// The wrapper ended without a report.
    Unknown,
}

/// The output of a program so far, standard output and standard error together.
#[derive(Default)]
pub struct ProcessLog {
    lines: Mutex<Vec<String>>,
    length: watch::Sender<usize>,
    /// Takes each line, of which only the last ones are kept then.
    print: Option<PrintLine>,
}

type PrintLine = Box<dyn Fn(&str) + Send + Sync>;

/// The reasons why a program did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The wrapper's program is missing.
    #[error(transparent)]
    MissingWrapper(#[from] MissingProgram),
    /// The program could not be run.
    #[error("run {program}")]
    Spawn {
        /// The program.
        program: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The wrapper reports no process.
    #[error("{program} did not start:\n{log}")]
    NotStarted {
        /// The program.
        program: String,
        /// Its output.
        log: String,
    },
}

// === impl ChildProcessBuilder ===

impl ChildProcessBuilder {
    /// Runs it under this program instead of the one beside this executable.
    #[must_use]
    pub fn under(mut self, wrapper: Program) -> Self {
        self.wrapper = Some(wrapper);
        self
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(|it| it.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Removes an environment variable that the test process has.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.removed.push(name.as_ref().to_owned());
        self
    }

    /// Runs it in this folder.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Starts the program.
    pub fn start(self) -> Result<ChildProcess, Error> {
        let program = self.program.to_string_lossy().into_owned();
        let failed = |source| Error::Spawn {
            program: program.clone(),
            source,
        };
        let wrapper = match self.wrapper {
            Some(wrapper) => wrapper,
            None => Program::beside_this_executable()?,
        };
        let mut wrapper = wrapper.command(wrapper::SUBCOMMAND);
        if let Some(folder) = &self.folder {
            wrapper.current_dir(folder);
        }
        for name in &self.removed {
            wrapper.env_remove(name);
        }
        let mut wrapper = wrapper
            .arg(&self.program)
            .args(&self.arguments)
            .envs(self.variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C ends the test process, and the wrapper after it.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let stdin = wrapper.stdin.take();
        let (filled, complete) = mpsc::channel();
        if let Some(output) = wrapper.stderr.take() {
            let log = Arc::clone(&self.log);
            thread::spawn(move || {
                log.fill_from(output);
                // The receiver is gone if the program did not start.
                let _ = filled.send(());
            });
        }
        let mut reports = wrapper
            .stdout
            .take()
            .into_iter()
            .flat_map(|out| BufReader::new(out).lines());
        let Some(ChildReport::Started { pid }) = next_report(&mut reports) else {
            wrapper.wait().map_err(failed)?;
            return Err(Error::NotStarted {
                program,
                log: self.log.tail(LOG_LINES),
            });
        };
        let pid = Pid::from_raw(pid).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        let (ending, ended) = watch::channel(None);
        thread::spawn(move || {
            let outcome = match next_report(&mut reports) {
                Some(ChildReport::Ended {
                    code: Some(code), ..
                }) => Ending::Exit(code),
                Some(ChildReport::Ended {
                    signal: Some(signal),
                    ..
                }) => Ending::Signal(signal),
                _ => Ending::Unknown,
            };
            // A test may read the log right after the end. A process that left the program's
            // group could keep the log open for ever.
            let _ = complete.recv_timeout(LOG_END_TIMEOUT);
            ending.send_replace(Some(outcome));
        });
        Ok(ChildProcess {
            wrapper,
            stdin,
            pid,
            log: self.log,
            ended,
        })
    }
}

fn next_report(lines: &mut impl Iterator<Item = io::Result<String>>) -> Option<ChildReport> {
    serde_json::from_str(&lines.next()?.ok()?).ok()
}

// === impl ChildProcess ===

impl ChildProcess {
    /// Prepares to run a program whose output goes to `log`.
    pub fn builder(program: &Path, log: Arc<ProcessLog>) -> ChildProcessBuilder {
        ChildProcessBuilder {
            wrapper: None,
            program: program.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            removed: Vec::new(),
            folder: None,
            log,
        }
    }

    /// Prepares to run a program that needs no control plane.
    pub fn command(program: impl AsRef<Path>) -> ChildProcessBuilder {
        Self::builder(program.as_ref(), Arc::default())
    }

    /// The process id of the program itself.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The whole log so far.
    pub fn log(&self) -> String {
        self.log.tail(usize::MAX)
    }

    /// The exit status, if the program has ended.
    pub fn ending(&self) -> Option<Ending> {
        *self.ended.borrow()
    }

    /// Waits until the program ends, however long that takes.
    pub async fn ended(&self) -> Ending {
        let mut ended = self.ended.clone();
        let ending = ended.wait_for(Option::is_some).await;
        ending
            .ok()
            .and_then(|ending| *ending)
            .unwrap_or(Ending::Unknown)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.pid, signal)?)
    }

    /// Waits for a line that contains `text`, from the beginning of the log, and returns it.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str) -> impl Future<Output = Result<String, TestFailure>> {
        self.wait_for_log_within(text, DEFAULT_TIMEOUT)
    }

    /// The same with another time limit.
    #[track_caller]
    pub fn wait_for_log_within(
        &self,
        text: &str,
        limit: Duration,
    ) -> impl Future<Output = Result<String, TestFailure>> {
        let failure = TestFailure::at_caller();
        async move {
            let mut length = self.log.length.subscribe();
            let searching = async {
                loop {
                    length.mark_unchanged();
                    if let Some(line) = self.log.find(text) {
                        return Some(line);
                    }
                    // The log outlives this borrow, so its sender cannot be gone.
                    length.changed().await.ok()?;
                }
            };
            match timeout(limit, searching).await {
                Ok(Some(line)) => Ok(line),
                Ok(None) | Err(_) => Err(failure.with_message(format!(
                    "no line of the log contains `{text}` after {} s; its end:\n{}",
                    limit.as_secs(),
                    self.log.tail(LOG_LINES)
                ))),
            }
        }
    }

    /// Waits until the program ends.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<Ending, TestFailure>> {
        self.wait_within(DEFAULT_TIMEOUT)
    }

    /// The same with another time limit.
    #[track_caller]
    pub fn wait_within(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Result<Ending, TestFailure>> {
        let failure = TestFailure::at_caller();
        async move {
            let mut ended = self.ended.clone();
            let ending = timeout(limit, ended.wait_for(Option::is_some)).await;
            match ending {
                Ok(Ok(ending)) => Ok(ending.unwrap_or(Ending::Unknown)),
                Ok(Err(_)) => Ok(Ending::Unknown),
                Err(_) => Err(failure.with_message(format!(
                    "still running after {} s; the end of its log:\n{}",
                    limit.as_secs(),
                    self.log.tail(LOG_LINES)
                ))),
            }
        }
    }

    /// Sends SIGTERM, as Kubernetes does, and waits until the program has ended.
    pub async fn terminate(&self) -> Result<Ending, TestFailure> {
        self.signal(Signal::TERM)?;
        self.wait().await
    }

    /// Sends SIGKILL and waits until the program has ended.
    pub async fn kill(&self) -> Result<Ending, TestFailure> {
        self.signal(Signal::KILL)?;
        self.wait().await
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.stdin = None;
        // The wrapper exits right after the program that it kills.
        let _ = self.wrapper.wait();
    }
}

// === impl ProcessLog ===

impl fmt::Debug for ProcessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines().len();
        f.debug_struct("ProcessLog").field("lines", &lines).finish()
    }
}

impl ProcessLog {
    /// A log whose lines are printed as they come; only the last ones are kept.
    #[must_use]
    pub fn printed(print: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            print: Some(Box::new(print)),
            ..Self::default()
        }
    }

    fn fill_from(&self, output: impl io::Read) {
        let mut lines = BufReader::new(output);
        let mut line = Vec::new();
        while lines
            .read_until(b'\n', &mut line)
            .is_ok_and(|length| length > 0)
        {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if let Some(print) = &self.print {
                print(&text);
                let mut lines = self.lines();
                let surplus = (lines.len() + 1).saturating_sub(LOG_LINES);
                lines.drain(..surplus);
            }
            self.lines().push(text);
            self.length.send_modify(|length| *length += 1);
            line.clear();
        }
    }

    /// The last lines.
    pub fn tail(&self, count: usize) -> String {
        let lines = self.lines();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }

    fn find(&self, text: &str) -> Option<String> {
        self.lines()
            .iter()
            .find(|line| line.contains(text))
            .cloned()
    }

    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
