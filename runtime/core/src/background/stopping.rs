//! The stages of stopping a daemon: stop signal, cancellation, abandonment.

use std::{fmt, time::Duration};

use super::Moment;

/// The reason why a daemon or timer stops, or the stage that stopping has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StopReason {
    /// The object no longer matches the filters.
    FiltersMismatch = 1,
    /// The object is being deleted, or was deleted.
    ResourceDeleted = 1 << 1,
    /// The operator pauses because of another one.
    OperatorPausing = 1 << 2,
    /// The operator stops.
    OperatorExiting = 1 << 3,
    /// It did not stop by itself in time, and was cancelled.
    Cancelled = 1 << 4,
    /// It did not stop at all, and the operator no longer waits for it.
    Abandoned = 1 << 5,
}

/// A set of reasons; they accumulate.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct StopReasons(u8);

/// The durations of the stages of stopping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopPolicy {
    /// The time to stop by itself before it is cancelled.
    pub backoff: Option<Duration>,
    /// The time after the cancellation before it is abandoned; without it the operator neither cancels nor abandons the daemon.
    pub timeout: Option<Duration>,
    /// The interval of checks while the operator waits without end.
    pub polling: Option<Duration>,
}

/// A stage of stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopStage {
    /// It got the stop signal, and has this long to stop by itself.
    Graceful(Duration),
    /// It is cancelled, and has this long to end.
    Cancelling(Duration),
    /// The operator waits without end; this long until the next check.
    Polling(Duration),
    /// The operator no longer waits for it.
    Abandoned,
}

// === impl StopReason ===

impl StopReason {
    /// All reasons, in their order.
    pub const ALL: [Self; 6] = [
        Self::FiltersMismatch,
        Self::ResourceDeleted,
        Self::OperatorPausing,
        Self::OperatorExiting,
        Self::Cancelled,
        Self::Abandoned,
    ];
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FiltersMismatch => "filters mismatch",
            Self::ResourceDeleted => "resource deleted",
            Self::OperatorPausing => "operator pausing",
            Self::OperatorExiting => "operator exiting",
            Self::Cancelled => "cancelled",
            Self::Abandoned => "abandoned",
        })
    }
}

// === impl StopReasons ===

impl StopReasons {
    /// Adds a reason.
    pub fn insert(&mut self, reason: StopReason) {
        self.0 |= reason as u8;
    }

    /// Whether there is no reason to stop.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this is one of the reasons.
    #[must_use]
    pub fn contains(self, reason: StopReason) -> bool {
        self.0 & reason as u8 != 0
    }

    /// The reasons, in their order.
    pub fn iter(self) -> impl Iterator<Item = StopReason> {
        let all = StopReason::ALL.into_iter();
        all.filter(move |reason| self.contains(*reason))
    }
}

impl From<StopReason> for StopReasons {
    fn from(reason: StopReason) -> Self {
        Self(reason as u8)
    }
}

impl FromIterator<StopReason> for StopReasons {
    fn from_iter<I: IntoIterator<Item = StopReason>>(reasons: I) -> Self {
        let mut set = Self::default();
        for reason in reasons {
            set.insert(reason);
        }
        set
    }
}

impl fmt::Debug for StopReasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl fmt::Display for StopReasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.iter().map(|reason| reason.to_string()).collect();
        f.write_str(&words.join(", "))
    }
}

// === impl StopPolicy ===

impl StopPolicy {
    /// The stage at `now` of a daemon that got the stop signal at `asked`, with its remaining time.
    #[must_use]
    pub fn stage(&self, default_polling: Duration, asked: Moment, now: Moment) -> StopStage {
        let age = now.saturating_sub(asked);
        let backoff = self.backoff.unwrap_or_default();
        if age < backoff {
            return StopStage::Graceful(backoff - age);
        }
        let Some(timeout) = self.timeout else {
            let polling = self.polling.unwrap_or(default_polling);
            return StopStage::Polling(until_next(age - backoff, polling));
        };
        match (backoff.saturating_add(timeout)).checked_sub(age) {
            Some(left) if !left.is_zero() => StopStage::Cancelling(left),
            _ => StopStage::Abandoned,
        }
    }
}

/// The time to the next multiple of `step`.
fn until_next(passed: Duration, step: Duration) -> Duration {
    let step = step.max(Duration::from_millis(1));
    let remainder = passed.as_nanos() % step.as_nanos();
    step - Duration::from_nanos(u64::try_from(remainder).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn stage(policy: StopPolicy, age: u64) -> StopStage {
        policy.stage(seconds(60), seconds(100), seconds(100 + age))
    }

    #[test]
    fn a_daemon_is_signalled_then_cancelled_then_abandoned() {
        let policy = StopPolicy {
            backoff: Some(seconds(3)),
            timeout: Some(seconds(5)),
            polling: None,
        };
        assert_eq!(stage(policy, 0), StopStage::Graceful(seconds(3)));
        assert_eq!(stage(policy, 2), StopStage::Graceful(seconds(1)));
        assert_eq!(stage(policy, 3), StopStage::Cancelling(seconds(5)));
        assert_eq!(stage(policy, 7), StopStage::Cancelling(seconds(1)));
        assert_eq!(stage(policy, 8), StopStage::Abandoned);
        assert_eq!(stage(policy, 800), StopStage::Abandoned);
    }

    #[test]
    fn without_a_backoff_it_is_cancelled_at_once() {
        let policy = StopPolicy {
            timeout: Some(seconds(5)),
            ..StopPolicy::default()
        };
        assert_eq!(stage(policy, 0), StopStage::Cancelling(seconds(5)));
    }

    #[test]
    fn a_timeout_of_zero_abandons_at_once() {
        let policy = StopPolicy {
            timeout: Some(Duration::ZERO),
            ..StopPolicy::default()
        };
        assert_eq!(stage(policy, 0), StopStage::Abandoned);
    }

    #[test]
    fn without_a_timeout_the_operator_waits_without_end() {
        let policy = StopPolicy {
            polling: Some(seconds(10)),
            ..StopPolicy::default()
        };
        assert_eq!(stage(policy, 0), StopStage::Polling(seconds(10)));
        assert_eq!(stage(policy, 1234), StopStage::Polling(seconds(6)));
        assert_eq!(
            stage(StopPolicy::default(), 0),
            StopStage::Polling(seconds(60))
        );
    }

    #[test]
    fn reasons_accumulate_and_are_listed() {
        let reasons: StopReasons = [StopReason::Cancelled, StopReason::ResourceDeleted]
            .into_iter()
            .collect();
        assert!(reasons.contains(StopReason::Cancelled));
        assert!(!reasons.contains(StopReason::OperatorExiting));
        assert_eq!(reasons.to_string(), "resource deleted, cancelled");
        assert!(StopReasons::default().is_empty());
    }

    proptest! {
        /// The stages take the documented total time; none has no length, and none comes twice.
        #[test]
        fn stages_follow_each_other(backoff in proptest::option::of(0u64..50), timeout in 0u64..50) {
            let policy = StopPolicy {
                backoff: backoff.map(seconds),
                timeout: Some(seconds(timeout)),
                polling: None,
            };
            let mut now = seconds(7);
            let mut cancelled = false;
            loop {
                match policy.stage(seconds(60), seconds(7), now) {
                    StopStage::Graceful(left) => {
                        prop_assert!(!cancelled && !left.is_zero());
                        now += left;
                    }
                    StopStage::Cancelling(left) => {
                        prop_assert!(!cancelled && !left.is_zero());
                        cancelled = true;
                        now += left;
                    }
                    StopStage::Abandoned => break,
                    StopStage::Polling(_) => prop_assert!(false, "there is a timeout"),
                }
            }
            prop_assert_eq!(now, seconds(7 + backoff.unwrap_or(0) + timeout));
            prop_assert_eq!(cancelled, timeout > 0);
        }
    }
}
