//! The result of a command, and its exit code.

use std::process::ExitCode;

/// The exit codes as `--help` lists them.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the input is invalid, or a file could not be read or written
  2  the command line is wrong
  3  --check: something is out of date
  4  a generated file was edited by hand and is not overwritten";

/// The result of a command. Each has its own exit code; clap uses 2 for a wrong command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandStatus {
    /// Done.
    Ok,
    /// The input is invalid, or something could not be read or written.
    Invalid,
    /// `--check` found files that are not up to date.
    Drift,
    /// A generated file was edited by hand and is not overwritten.
    Edited,
}

// === impl CommandStatus ===

impl From<CommandStatus> for ExitCode {
    fn from(status: CommandStatus) -> Self {
        Self::from(match status {
            CommandStatus::Ok => 0,
            CommandStatus::Invalid => 1,
            CommandStatus::Drift => 3,
            CommandStatus::Edited => 4,
        })
    }
}
