//! Virtual time: milliseconds since the start of a history.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

/// 2026-01-01T00:00:00Z: the first instant of every history, in seconds of the Unix epoch.
const FIRST_INSTANT: i64 = 1_767_225_600;

/// An instant of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct VirtualTime(u64);

// === impl VirtualTime ===

impl VirtualTime {
    /// The instant this many milliseconds after the start.
    #[must_use]
    pub fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// The milliseconds since the start.
    #[must_use]
    pub fn millis(self) -> u64 {
        self.0
    }

    /// The instant after a delay.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// The time since an earlier instant; zero if it is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The instant as a time of day.
    #[must_use]
    pub fn timestamp(self) -> Timestamp {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX / 2);
        Timestamp::from_millisecond((FIRST_INSTANT * 1000).saturating_add(millis))
            .unwrap_or(Timestamp::MAX)
    }

    /// The instant as the API server writes it: whole seconds.
    #[must_use]
    pub(crate) fn whole_seconds(self) -> String {
        self.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl fmt::Display for VirtualTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_server_writes_whole_seconds() {
        let time = VirtualTime::from_millis(61_999);
        assert_eq!(time.whole_seconds(), "2026-01-01T00:01:01Z");
        assert_eq!(time.to_string(), "61.999");
        assert_eq!(
            time.since(VirtualTime::from_millis(61_000)).as_millis(),
            999
        );
    }
}
