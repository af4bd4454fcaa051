//! How long an operator takes to stop, and the time that its pod needs for that.

use std::time::Duration;

/// The time for cleanup handlers that is left after all other steps.
const CLEANUP: Duration = Duration::from_secs(2);

/// The time limits of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopTimes {
    /// For running handlers to finish.
    pub grace: Duration,
    /// To post the last Kubernetes events after that.
    pub posting_grace: Duration,
    /// For the whole stop, including cleanup handlers, unless the other two need more.
    pub deadline: Duration,
}

// === impl StopTimes ===

impl StopTimes {
    /// The time for the whole stop. A longer grace for handlers does not shorten the cleanup.
    #[must_use]
    pub fn total(&self) -> Duration {
        let others = self.grace.saturating_add(self.posting_grace);
        others.saturating_add(CLEANUP).max(self.deadline)
    }

    /// The `terminationGracePeriodSeconds` of its pod: whole seconds, and one more for the end of
    /// the process.
    #[must_use]
    pub fn pod_seconds(&self) -> u64 {
        let total = self.total();
        let begun = u64::from(total.subsec_nanos() > 0);
        let seconds = total.as_secs().saturating_add(begun).saturating_add(1);
        seconds.min(i64::MAX.unsigned_abs())
    }
}

/// Fits the 30 seconds that Kubernetes gives a pod by default.
impl Default for StopTimes {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(25),
            posting_grace: Duration::from_secs(2),
            deadline: Duration::from_secs(29),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_has_the_time_that_the_stop_needs() {
        let seconds = Duration::from_secs;
        let defaults = StopTimes::default();
        assert_eq!(
            (defaults.total(), defaults.pod_seconds()),
            (seconds(29), 30)
        );
        let long = StopTimes {
            grace: seconds(60),
            ..defaults
        };
        assert_eq!((long.total(), long.pod_seconds()), (seconds(64), 65));
        let short = StopTimes {
            grace: Duration::from_millis(1500),
            deadline: seconds(1),
            ..defaults
        };
        assert_eq!(short.total(), Duration::from_millis(5500));
        assert_eq!(short.pod_seconds(), 7);
        let endless = StopTimes {
            grace: Duration::MAX,
            ..defaults
        };
        assert_eq!(endless.pod_seconds(), i64::MAX.unsigned_abs());
    }
}
