//! An operator (or any other program) as a child process: its log, its signals, its end.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, kill_process};
use tokio::sync::watch;
use tokio::time::timeout;

pub use rustix::process::Signal;

use crate::failure::Failure;
use crate::guard;
use crate::guard::leash::Report;
use crate::sandbox::PATIENCE;

/// How many lines of the log a failure shows.
const LOG_LINES: usize = 60;

/// How long the rest of the log of an ended program is waited for.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(5);

/// A running program. It ends with this value, and with the test process however that ends.
#[derive(Debug)]
pub struct Operator {
    leash: Child,
    /// Closing it ends the program.
    hold: Option<ChildStdin>,
    pid: Pid,
    log: Arc<Log>,
    ended: watch::Receiver<Option<Ending>>,
}

/// A program about to be started.
#[derive(Debug)]
pub struct Builder {
    program: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    removed: Vec<OsString>,
    folder: Option<PathBuf>,
    log: Arc<Log>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It returned this code.
    Exit(i32),
    /// This signal ended it.
    Signal(i32),
    /// The process that watched it is gone.
    Unknown,
}

/// What a program has written so far, standard output and standard error together.
#[derive(Debug, Default)]
pub(crate) struct Log {
    lines: Mutex<Vec<String>>,
    length: watch::Sender<usize>,
}

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The leash is missing.
    #[error(transparent)]
    Leash(#[from] guard::MissingProgram),
    /// The program could not be run.
    #[error("run {program}")]
    Spawn {
        /// Which program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// The leash reports no process.
    #[error("{program} did not start:\n{log}")]
    NotStarted {
        /// Which program.
        program: String,
        /// What was written instead.
        log: String,
    },
}

// === impl Builder ===

impl Builder {
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

    /// Sets one variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Takes a variable away that the test process has.
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
    pub fn start(self) -> Result<Operator, Error> {
        let program = self.program.to_string_lossy().into_owned();
        let failed = |source| Error::Spawn {
            program: program.clone(),
            source,
        };
        let mut leash = Command::new(guard::program()?);
        if let Some(folder) = &self.folder {
            leash.current_dir(folder);
        }
        for name in &self.removed {
            leash.env_remove(name);
        }
        let mut leash = leash
            .arg("leash")
            .arg(&self.program)
            .args(&self.arguments)
            .envs(self.variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C ends the test process, and with it the leash.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let hold = leash.stdin.take();
        let (filled, complete) = mpsc::channel();
        if let Some(output) = leash.stderr.take() {
            let log = Arc::clone(&self.log);
            thread::spawn(move || {
                log.fill_from(output);
                // Nobody waits for it if the program did not start.
                let _ = filled.send(());
            });
        }
        let mut reports = leash
            .stdout
            .take()
            .into_iter()
            .flat_map(|out| BufReader::new(out).lines());
        let Some(Report::Started { pid }) = next_report(&mut reports) else {
            leash.wait().map_err(failed)?;
            return Err(Error::NotStarted {
                program,
                log: self.log.tail(LOG_LINES),
            });
        };
        let pid = Pid::from_raw(pid).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        let (ending, ended) = watch::channel(None);
        thread::spawn(move || {
            let outcome = match next_report(&mut reports) {
                Some(Report::Ended {
                    code: Some(code), ..
                }) => Ending::Exit(code),
                Some(Report::Ended {
                    signal: Some(signal),
                    ..
                }) => Ending::Signal(signal),
                _ => Ending::Unknown,
            };
            // Whoever sees the end may look at the log next. A process that left the program's
            // group could keep the log open for ever.
            let _ = complete.recv_timeout(LAST_WORDS_WITHIN);
            ending.send_replace(Some(outcome));
        });
        Ok(Operator {
            leash,
            hold,
            pid,
            log: self.log,
            ended,
        })
    }
}

fn next_report(lines: &mut impl Iterator<Item = io::Result<String>>) -> Option<Report> {
    serde_json::from_str(&lines.next()?.ok()?).ok()
}

// === impl Operator ===

impl Operator {
    pub(crate) fn builder(program: &Path, log: Arc<Log>) -> Builder {
        Builder {
            program: program.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            removed: Vec::new(),
            folder: None,
            log,
        }
    }

    /// Prepares to run a program that needs no control plane.
    pub fn of(program: impl AsRef<Path>) -> Builder {
        Self::builder(program.as_ref(), Arc::default())
    }

    /// The process id of the program itself.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Everything it has written so far.
    pub fn log(&self) -> String {
        self.log.tail(usize::MAX)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.pid, signal)?)
    }

    /// Waits for a line that contains `text`, from the beginning of the log, and returns it.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str) -> impl Future<Output = Result<String, Failure>> {
        self.wait_for_log_within(text, PATIENCE)
    }

    /// The same with a patience of the caller's.
    #[track_caller]
    pub fn wait_for_log_within(
        &self,
        text: &str,
        patience: Duration,
    ) -> impl Future<Output = Result<String, Failure>> {
        let failure = Failure::here();
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
            match timeout(patience, searching).await {
                Ok(Some(line)) => Ok(line),
                Ok(None) | Err(_) => Err(failure.saying(format!(
                    "no line of the log contains `{text}` after {} s; its end:\n{}",
                    patience.as_secs(),
                    self.log.tail(LOG_LINES)
                ))),
            }
        }
    }

    /// Waits until the program ends by itself.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<Ending, Failure>> {
        self.wait_within(PATIENCE)
    }

    /// The same with a patience of the caller's.
    #[track_caller]
    pub fn wait_within(&self, patience: Duration) -> impl Future<Output = Result<Ending, Failure>> {
        let failure = Failure::here();
        async move {
            let mut ended = self.ended.clone();
            let ending = timeout(patience, ended.wait_for(Option::is_some)).await;
            match ending {
                Ok(Ok(ending)) => Ok(ending.unwrap_or(Ending::Unknown)),
                Ok(Err(_)) => Ok(Ending::Unknown),
                Err(_) => Err(failure.saying(format!(
                    "still running after {} s; the end of its log:\n{}",
                    patience.as_secs(),
                    self.log.tail(LOG_LINES)
                ))),
            }
        }
    }

    /// Asks the program to end, as Kubernetes does, and waits until it has.
    pub async fn terminate(&self) -> Result<Ending, Failure> {
        self.signal(Signal::TERM)?;
        self.wait().await
    }

    /// Ends the program at once and waits until it has.
    pub async fn kill(&self) -> Result<Ending, Failure> {
        self.signal(Signal::KILL)?;
        self.wait().await
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.hold = None;
        // The leash ends right after the program that it kills.
        let _ = self.leash.wait();
    }
}

// === impl Log ===

impl Log {
    fn fill_from(&self, output: impl io::Read) {
        let mut lines = BufReader::new(output);
        let mut line = Vec::new();
        while lines
            .read_until(b'\n', &mut line)
            .is_ok_and(|length| length > 0)
        {
            self.lines()
                .push(String::from_utf8_lossy(&line).trim_end().to_owned());
            self.length.send_modify(|length| *length += 1);
            line.clear();
        }
    }

    /// The last lines.
    pub(crate) fn tail(&self, count: usize) -> String {
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
