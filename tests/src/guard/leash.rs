//! A leash for one child process: it runs the child, and kills it when whoever holds the other end
//! of its standard input is gone.
//!
//! Standard error carries all output of the child. Standard output carries two lines of the leash:
//! the child's process id, and how it ended.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

/// What a leash reports on its standard output, one JSON document per line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
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

/// Runs the command until it ends or standard input closes.
pub fn run(command: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    let mut command = command.into_iter();
    let program = command.next().ok_or(io::ErrorKind::InvalidInput)?;
    let log = || io::stderr().as_fd().try_clone_to_owned().map(Stdio::from);
    let mut child = Command::new(program)
        .args(command)
        .stdin(Stdio::null())
        .stdout(log()?)
        .stderr(log()?)
        .process_group(0)
        .spawn()?;
    let group = Pid::from_child(&child);
    report(Report::Started {
        pid: group.as_raw_nonzero().get(),
    })?;
    thread::spawn(move || {
        let mut nothing = Vec::new();
        // An error is the end of the holder just as much.
        let _ = io::stdin().lock().read_to_end(&mut nothing);
        // The group is gone if the child has just ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    });
    let status = child.wait()?;
    // Whatever the child left behind in its group ends with it.
    let _ = kill_process_group(group, Signal::KILL);
    // Nobody listens any more when the holder is gone.
    let _ = report(Report::Ended {
        code: status.code(),
        signal: status.signal(),
    });
    Ok(())
}

fn report(report: Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &report)?;
    out.write_all(b"\n")?;
    out.flush()
}
