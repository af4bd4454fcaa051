//! The wall clock, with an offset for tests of wrong clocks.

use jiff::{SignedDuration, Timestamp};

/// The wall clock, shifted by an offset.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WallClock {
    offset: SignedDuration,
}

impl WallClock {
    /// A clock that is ahead by the offset, or behind if it is negative.
    pub(crate) fn ahead(offset: SignedDuration) -> Self {
        Self { offset }
    }

    /// The current time of this clock.
    pub(crate) fn now(self) -> Timestamp {
        let now = Timestamp::now();
        now.saturating_add(self.offset).unwrap_or(now)
    }
}
