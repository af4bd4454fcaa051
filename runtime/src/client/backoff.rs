//! Growing pauses between attempts, with jitter so that many operators do not return at once.

use std::time::Duration;

use kopf_core::machine::growing_pause::GrowingPause;

/// Doubles from a first pause to a limit; each pause is between half and the whole of the step.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    pauses: GrowingPause,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, limit: Duration) -> Self {
        Self {
            pauses: GrowingPause::new(first, limit),
        }
    }

    pub(crate) fn reset(&mut self) {
        self.pauses.reset();
    }

    /// The pause before the next attempt, at least as long as the server asked for.
    pub(crate) fn next(&mut self, at_least: Option<Duration>) -> Duration {
        self.pauses.next(at_least, fastrand::f64())
    }
}
