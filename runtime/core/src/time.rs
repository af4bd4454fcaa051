//! Timestamps as Kopf stores them: UTC, ISO 8601, microseconds, explicit offset.

use std::time::Duration;

use jiff::{Timestamp, civil::DateTime, tz::Offset};

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
