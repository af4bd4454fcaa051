//! The code with which the process ends, so that scripts and people know why.

use super::Error;

/// Something ended that never should.
const INTERNAL: u8 = 1;
// 2 is the code of a command line that makes no sense, which the parser of it returns.
/// The operator contradicts itself.
const DECLARATION: u8 = 3;
/// A startup handler has failed.
const STARTUP: u8 = 4;
/// There is no cluster, or no access to it.
const ACCESS: u8 = 5;
/// The surroundings do not give what the operator needs.
const SURROUNDINGS: u8 = 6;
/// A cleanup handler has failed.
const CLEANUP: u8 = 7;
/// The operator did not stop in time.
pub(super) const OVERDUE: u8 = 8;

/// What shells add to the number of a signal that ended a program.
const SIGNALLED: u8 = 128;

/// The code of a process that a signal has ended.
pub(super) fn of_signal(number: u8) -> u8 {
    SIGNALLED.saturating_add(number)
}

impl Error {
    /// The code with which [`Operator::main`](super::Operator::main) ends because of it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Ended(_) | Self::Process(_) => INTERNAL,
            Self::Declaration { .. }
            | Self::DeclaredTwice { .. }
            | Self::SharedId { .. }
            | Self::SelectedWebhook { .. }
            | Self::LeaderElection(_) => DECLARATION,
            Self::Startup(_) => STARTUP,
            Self::Login(_) | Self::Config(_) | Self::Client(_) => ACCESS,
            Self::Admission(_) | Self::Health(_) | Self::Peering(_) | Self::Definition { .. } => {
                SURROUNDINGS
            }
            Self::Cleanup(_) => CLEANUP,
        }
    }
}
