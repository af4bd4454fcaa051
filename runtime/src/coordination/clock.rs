//! The clock on the wall, which is right on most machines.

use jiff::{SignedDuration, Timestamp};

/// The wall clock, or one that is wrong by a known offset.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WallClock {
    offset: SignedDuration,
}

impl WallClock {
    /// A clock that is ahead by so much, or behind if it is negative.
    pub(crate) fn ahead(offset: SignedDuration) -> Self {
        Self { offset }
    }

    /// What it says now.
    pub(crate) fn now(self) -> Timestamp {
        let now = Timestamp::now();
        now.saturating_add(self.offset).unwrap_or(now)
    }
}
