//! The wrapper process around a child process: it runs the child, and kills it when its own standard
//! input closes, which the kernel does when the test process ends.
//!
//! Standard error carries all output of the child. Standard output carries two lines of the wrapper:
//! the child's process id, and its exit status.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

/// A line that the wrapper prints on its standard output, as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ChildReport {
    /// The child runs.
    Started {
        /// Its process id, which is also its process group.
        pid: i32,
    },
    /// The child ended.
    Ended {
        /// The exit code, unless a signal ended it.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
}

/// The subcommand of [`crate::Program`] that runs a child process.
pub(crate) const SUBCOMMAND: &str = "@run-child";

/// The subcommand of [`crate::Program`] that runs a component of a control plane.
pub(crate) const COMPONENT_SUBCOMMAND: &str = "@run-component";

/// Runs the command in the process group of this process until it ends or standard input closes, and
/// returns its exit code.
///
/// A signal to the group of a supervisor reaches its components too.
pub(crate) fn run_component(command: impl IntoIterator<Item = OsString>) -> io::Result<i32> {
    let mut child = prepare(command)?.spawn()?;
    let pid = Pid::from_child(&child);
    report(ChildReport::Started {
        pid: pid.as_raw_nonzero().get(),
    })?;
    on_closed_input(move || {
        // The component may have just ended by itself.
        let _ = kill_process(pid, Signal::KILL);
    });
    let status = child.wait()?;
    // As shells do.
    Ok(status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
}

fn prepare(command: impl IntoIterator<Item = OsString>) -> io::Result<Command> {
    let mut command = command.into_iter();
    let program = command.next().ok_or(io::ErrorKind::InvalidInput)?;
    let log = || io::stderr().as_fd().try_clone_to_owned().map(Stdio::from);
    let mut prepared = Command::new(program);
    prepared
        .args(command)
        .stdin(Stdio::null())
        .stdout(log()?)
        .stderr(log()?);
    Ok(prepared)
}

fn on_closed_input(kill: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        let mut nothing = Vec::new();
        // An error means that the other process ended, as the end of the input does.
        let _ = io::stdin().lock().read_to_end(&mut nothing);
        kill();
    });
}

/// Runs the command until it ends or standard input closes.
pub(crate) fn run(command: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    let mut child = prepare(command)?.process_group(0).spawn()?;
    let group = Pid::from_child(&child);
    report(ChildReport::Started {
        pid: group.as_raw_nonzero().get(),
    })?;
    on_closed_input(move || {
        // The group is gone if the child has just ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    });
    let status = child.wait()?;
    // Processes that the child left in its group end with it.
    let _ = kill_process_group(group, Signal::KILL);
    // The write fails if the test process has ended.
    let _ = report(ChildReport::Ended {
        code: status.code(),
        signal: status.signal(),
    });
    Ok(())
}

fn report(report: ChildReport) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &report)?;
    out.write_all(b"\n")?;
    out.flush()
}
