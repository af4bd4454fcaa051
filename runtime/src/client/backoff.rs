//! Growing pauses between attempts, with jitter so that many operators do not return at once.

use std::time::Duration;

/// Doubles from `first` to `limit`; each pause is between half and the whole of the step.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first: Duration,
    limit: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, limit: Duration) -> Self {
        Self {
            first,
            limit,
            failures: 0,
        }
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The pause before the next attempt, at least as long as the server asked for.
    pub(crate) fn next(&mut self, at_least: Option<Duration>) -> Duration {
        let step = self
            .first
            .saturating_mul(2_u32.saturating_pow(self.failures))
            .min(self.limit);
        self.failures = self.failures.saturating_add(1);
        let jittered = step / 2 + (step / 2).mul_f64(fastrand::f64());
        jittered.max(at_least.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_limit_and_start_over_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
        let first = backoff.next(None);
        assert!((50..=100).contains(&first.as_millis()), "{first:?}");
        let last = (0..40).map(|_| backoff.next(None)).last().unwrap();
        assert!((5_000..=10_000).contains(&last.as_millis()), "{last:?}");
        backoff.reset();
        assert!(backoff.next(None) <= Duration::from_millis(100));
    }

    #[test]
    fn retry_after_makes_the_pause_longer() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
        let asked = Duration::from_secs(30);
        assert_eq!(backoff.next(Some(asked)), asked);
    }
}
