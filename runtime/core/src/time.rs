//! Timestamps as Kopf stores them: UTC, ISO 8601, microseconds, explicit offset; and wall clocks
//! that jump.

use std::time::Duration;

use jiff::{Timestamp, civil::DateTime, tz::Offset};

/// The largest difference between two clocks that are in order.
pub const LARGEST_DRIFT: Duration = Duration::from_secs(5);

/// A point in time on both clocks of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall clock, which may differ from those of other machines.
    pub wall: Timestamp,
    /// The monotonic clock: the time since a fixed moment.
    pub uptime: Duration,
}

// === impl ClockReading ===

impl ClockReading {
    /// How far the wall clock was set back from this reading to a later one; zero if it was not.
    #[must_use]
    pub fn set_back(&self, later: &Self) -> Duration {
        let passed = later.uptime.saturating_sub(self.uptime);
        let set_back = elapsed(later.wall, after(self.wall, passed));
        match set_back > LARGEST_DRIFT {
            true => set_back,
            false => Duration::ZERO,
        }
    }
}

/// Formats like Python's `isoformat(timespec="microseconds")` of a UTC time.
#[must_use]
pub fn format(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// Parses what Kopf may have written: any offset, and naive times of old versions as UTC.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let naive: DateTime = text.parse().ok()?;
        Offset::UTC.to_timestamp(naive).ok()
    })
}

/// Drops the nanoseconds, so that a stored time equals the one in memory.
#[must_use]
pub fn to_micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

/// Time from `earlier` to `later`, zero if the clock went back.
#[must_use]
pub fn elapsed(earlier: Timestamp, later: Timestamp) -> Duration {
    later.duration_since(earlier).try_into().unwrap_or_default()
}

/// `time` plus a delay, at most the latest representable time.
#[must_use]
pub fn after(time: Timestamp, delay: Duration) -> Timestamp {
    time.checked_add(delay).unwrap_or(Timestamp::MAX)
}

/// `time` minus a duration, at least the earliest representable time.
#[must_use]
pub fn before(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_sub(duration).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_python_does() {
        let time: Timestamp = "2020-12-31T23:59:59.000042Z".parse().expect("valid");
        assert_eq!(format(time), "2020-12-31T23:59:59.000042+00:00");
        let whole: Timestamp = "2020-01-01T00:00:00Z".parse().expect("valid");
        assert_eq!(format(whole), "2020-01-01T00:00:00.000000+00:00");
    }

    #[test]
    fn stored_times_are_read_back_with_any_offset_or_none() {
        let time: Timestamp = "2020-12-31T23:59:59.123456Z".parse().expect("valid");
        assert_eq!(parse("2020-12-31T23:59:59.123456+00:00"), Some(time));
        assert_eq!(parse("2021-01-01T01:59:59.123456+02:00"), Some(time));
        assert_eq!(parse("2020-12-31T23:59:59.123456"), Some(time));
        assert_eq!(parse("yesterday"), None);
    }

    #[test]
    fn a_wall_clock_is_set_back_only_if_it_is_behind_by_more_than_its_drift() {
        let at = |wall, uptime| ClockReading {
            wall: Timestamp::from_second(wall).expect("a time"),
            uptime: Duration::from_secs(uptime),
        };
        let before = at(1000, 10);
        let cases = [(1060, 0), (1055, 0), (1054, 6), (-2540, 3600), (4660, 0)];
        for (wall, expected) in cases {
            let set_back = before.set_back(&at(wall, 70));
            assert_eq!(set_back, Duration::from_secs(expected), "{wall}");
        }
    }

    #[test]
    fn the_elapsed_time_of_a_clock_that_went_back_is_zero() {
        let now: Timestamp = "2020-01-01T00:00:00Z".parse().expect("valid");
        assert_eq!(
            elapsed(after(now, Duration::from_secs(5)), now),
            Duration::ZERO
        );
        assert_eq!(
            elapsed(now, after(now, Duration::from_secs(5))),
            Duration::from_secs(5)
        );
    }
}
