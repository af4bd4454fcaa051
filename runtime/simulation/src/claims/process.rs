//! The processes that act in a history.

use crate::time::VirtualTime;

/// One start of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sender {
    pub(super) process: usize,
    pub(super) run: u32,
}

/// The last period in which a process ran, or the pause after it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RunningPeriod {
    /// Different for each period of a process.
    pub(super) number: u32,
    pub(super) since: VirtualTime,
    /// The start of the process.
    pub(super) run: u32,
}
