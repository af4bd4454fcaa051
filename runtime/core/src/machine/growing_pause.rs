//! Growing pauses between attempts, with jitter so that many operators do not return at once.

use std::time::Duration;

/// Doubles from `first` to `limit`; each pause is between half and the whole of the step.
#[derive(Clone, Debug)]
pub struct GrowingPause {
    first: Duration,
    limit: Duration,
    failures: u32,
}

impl GrowingPause {
    /// Pauses that grow from the first to the limit.
    #[must_use]
    pub const fn new(first: Duration, limit: Duration) -> Self {
        Self {
            first,
            limit,
            failures: 0,
        }
    }

    /// Starts over after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// The pause before the next attempt, at least as long as the server asked for; `chance` is
    /// from 0 to 1.
    #[must_use]
    pub fn next(&mut self, at_least: Option<Duration>, chance: f64) -> Duration {
        let step = self
            .first
            .saturating_mul(2_u32.saturating_pow(self.failures))
            .min(self.limit);
        self.failures = self.failures.saturating_add(1);
        let jittered = step / 2 + (step / 2).mul_f64(chance.clamp(0.0, 1.0));
        jittered.max(at_least.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses() -> GrowingPause {
        GrowingPause::new(Duration::from_millis(100), Duration::from_secs(10))
    }

    #[test]
    fn pauses_grow_to_the_limit_and_start_over_after_a_success() {
        let mut pauses = pauses();
        assert_eq!(pauses.next(None, 0.0), Duration::from_millis(50));
        assert_eq!(pauses.next(None, 1.0), Duration::from_millis(200));
        let last = (0..40).map(|_| pauses.next(None, 1.0)).last();
        assert_eq!(last, Some(Duration::from_secs(10)));
        pauses.reset();
        assert_eq!(pauses.next(None, 1.0), Duration::from_millis(100));
    }

    #[test]
    fn retry_after_makes_the_pause_longer() {
        let asked = Duration::from_secs(30);
        assert_eq!(pauses().next(Some(asked), 1.0), asked);
    }
}
