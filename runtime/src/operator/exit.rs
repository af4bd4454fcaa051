//! The exit codes of the process.

use super::error::Error;

/// An essential task ended.
const INTERNAL: u8 = 1;
// 2 is the code of an invalid command line, which clap returns.
/// The declarations or settings are invalid.
const DECLARATION: u8 = 3;
/// A startup handler has failed.
const STARTUP: u8 = 4;
/// There is no cluster, or no access to it.
const ACCESS: u8 = 5;
/// The machine or the cluster does not provide what the operator needs.
const ENVIRONMENT: u8 = 6;
/// A cleanup handler has failed.
const CLEANUP: u8 = 7;
/// The operator did not stop in time.
pub(super) const OVERDUE: u8 = 8;

/// Shells add this to the number of a signal that ended a program.
const SIGNALLED: u8 = 128;

/// The code of a process that a signal has ended.
pub(super) fn of_signal(number: u8) -> u8 {
    SIGNALLED.saturating_add(number)
}

impl Error {
    /// The code with which [`Operator::main`](super::Operator::main) ends after this error.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Ended(_) | Self::Process(_) => INTERNAL,
            Self::Declaration { .. }
            | Self::DeclaredTwice { .. }
            | Self::SharedId { .. }
            | Self::Settings(_)
            | Self::LeaderElection(_) => DECLARATION,
            Self::Startup(_) => STARTUP,
            Self::Login(_) | Self::Inspection(_) => ACCESS,
            Self::Admission(_)
            | Self::Health(_)
            | Self::Page(_)
            | Self::Peering(_)
            | Self::Definition { .. } => ENVIRONMENT,
            Self::Cleanup(_) => CLEANUP,
        }
    }
}
