//! Measures a command: CPU time of it and all its children, and the peak memory of the largest.
//!
//! The kernel keeps one high-water mark of memory for all children of a process. To get one per
//! command, this program runs the command through a copy of itself, which has a single child.

use std::ffi::OsString;
use std::io;
use std::ops::AddAssign;
use std::path::Path;
use std::process::{Command, ExitStatus, Output};
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

/// The name of the hidden command with which this program starts itself.
pub const SUBCOMMAND: &str = "metered";

/// The cost of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandCost {
    /// CPU time in user and system mode.
    pub cpu: Duration,
    /// Wall-clock time.
    pub wall: Duration,
    /// Bytes of memory that the largest process held at most.
    pub peak: u64,
}

/// Runs a command through a copy of this program; returns its output and cost.
///
/// # Errors
/// If it cannot be started, or its cost cannot be read back.
pub fn run(command: &Command, scratch: &Path) -> io::Result<(Output, CommandCost)> {
    let report = scratch.join("cost.json");
    let mut metered = Command::new(std::env::current_exe()?);
    metered
        .arg(SUBCOMMAND)
        .arg(&report)
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        metered.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => metered.env(name, value),
            None => metered.env_remove(name),
        };
    }
    let output = metered.output()?;
    let cost = serde_json::from_str(&std::fs::read_to_string(&report)?)?;
    Ok((output, cost))
}

/// The copy's part: runs the command, and writes the cost of all children of this process to a file.
///
/// # Errors
/// If the command cannot be started or the report not be written.
pub fn run_inner(report: &Path, command: &[OsString]) -> io::Result<ExitStatus> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no command"))?;
    let started = Instant::now();
    let status = Command::new(program).args(arguments).status()?;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cost = CommandCost {
        wall: started.elapsed(),
        ..CommandCost::from(&usage)
    };
    std::fs::write(report, serde_json::to_string(&cost)?)?;
    Ok(status)
}

/// The cost of all children of this process so far.
///
/// # Errors
/// If the kernel does not report it.
pub fn children() -> io::Result<CommandCost> {
    Ok(CommandCost::from(&getrusage(UsageWho::RUSAGE_CHILDREN)?))
}

// === impl CommandCost ===

impl CommandCost {
    /// The peak in megabytes.
    #[must_use]
    pub const fn megabytes(&self) -> u64 {
        self.peak / 1_000_000
    }
}

impl From<&Usage> for CommandCost {
    fn from(usage: &Usage) -> Self {
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        Self {
            cpu: Duration::from_micros(micros.try_into().unwrap_or(0)),
            wall: Duration::ZERO,
            // Linux counts in kibibytes.
            peak: u64::try_from(usage.max_rss()).unwrap_or(0) * 1024,
        }
    }
}

impl AddAssign for CommandCost {
    fn add_assign(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.wall += other.wall;
        self.peak = self.peak.max(other.peak);
    }
}
