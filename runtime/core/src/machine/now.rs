//! The values that a step of a machine cannot find out by itself.

use jiff::Timestamp;

use crate::{background::Moment, time::ClockReading};

/// The time, a random number, and whether the operator may act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Now {
    /// The time of day, for records on the object.
    pub wall: Timestamp,
    /// The time since the operator started, for pauses.
    pub steady: Moment,
    /// A random number.
    pub seed: u64,
    /// Whether the operator stops.
    pub stopping: bool,
    /// Whether an attempt may begin: the operator is not paused, and leads.
    pub running: bool,
    /// The number of pauses so far: what was planned before one is dropped.
    pub epoch: u64,
}

// === impl Now ===

impl Now {
    /// Both clocks.
    pub(super) fn clocks(&self) -> ClockReading {
        ClockReading {
            wall: self.wall,
            uptime: self.steady,
        }
    }

    /// The random number as a fraction from 0 to 1.
    #[must_use]
    pub(super) fn chance(&self) -> f64 {
        // The upper 32 bits fit into the fraction without rounding.
        let upper = u32::try_from(self.seed >> 32).unwrap_or(u32::MAX);
        f64::from(upper) / f64::from(u32::MAX)
    }
}
