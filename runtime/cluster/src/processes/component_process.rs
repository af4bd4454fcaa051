//! One process of a control plane, wrapped so that it ends with the process that started it.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::child_process::wrapper::{self, ChildReport};
use crate::program::Program;

/// A log that is larger is put aside at the next start; the one before it is dropped.
const LARGEST_LOG: u64 = 16 * 1024 * 1024;

/// A running component. Dropping it kills the component.
pub(super) struct ComponentProcess {
    /// Its standard input stays open: the wrapper kills the component when it closes.
    wrapper: Child,
    pid: Pid,
}

// === impl ComponentProcess ===

impl ComponentProcess {
    /// Starts a component in `folder`, with its output at the end of `log`.
    pub(super) async fn start(
        program: &Program,
        binary: &Path,
        flags: &[String],
        folder: &Path,
        log: &Path,
    ) -> io::Result<Self> {
        let is_large = fs::metadata(log).is_ok_and(|log| log.len() > LARGEST_LOG);
        if is_large {
            fs::rename(log, log.with_extension("old.log"))?;
        }
        let log = File::options().create(true).append(true).open(log)?;
        let mut wrapper = Command::from(program.command(wrapper::COMPONENT_SUBCOMMAND))
            .arg(binary)
            .args(flags)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(false)
            .spawn()?;
        let mut line = String::new();
        if let Some(out) = wrapper.stdout.take() {
            BufReader::new(out).read_line(&mut line).await?;
        }
        let pid = match serde_json::from_str(&line) {
            Ok(ChildReport::Started { pid }) => Pid::from_raw(pid),
            _ => None,
        };
        match pid {
            Some(pid) => Ok(Self { wrapper, pid }),
            None => {
                let status = wrapper.wait().await?;
                let message = format!("cannot run {} ({status})", binary.display());
                Err(io::Error::other(message))
            }
        }
    }

    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.pid, signal)?)
    }

    pub(super) async fn kill(&mut self) -> io::Result<()> {
        self.signal(Signal::KILL)?;
        self.wait().await.map(drop)
    }

    /// Waits until the component has ended.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        // Waiting for the wrapper alone would close its input, which kills the component.
        let stdin = self.wrapper.stdin.take();
        let status = self.wrapper.wait().await;
        drop(stdin);
        status
    }

    /// The status with which the component has ended; none while it runs.
    pub(super) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.wrapper.try_wait()
    }
}
