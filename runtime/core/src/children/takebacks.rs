//! How often a field was taken from us: a fight with another client is not fought for ever.

use std::time::Duration;

use crate::background::Moment;

/// The number of times that a child is taken back within the window.
const MAX_TAKEBACKS: usize = 3;

/// The time in which they are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// The last times at which fields of one child were taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Takebacks {
    times: Vec<Moment>,
}

// === impl Takebacks ===

impl Takebacks {
    /// Counts one, unless there were too many within the window: then the child is left.
    pub fn may_take_back(&mut self, now: Moment) -> bool {
        self.times.retain(|time| now.saturating_sub(*time) < WINDOW);
        if self.times.len() >= MAX_TAKEBACKS {
            return false;
        }
        self.times.push(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_taken_back_three_times_within_a_minute() {
        let mut takebacks = Takebacks::default();
        let mut at = |second| takebacks.may_take_back(Duration::from_secs(second));
        assert!(at(0) && at(10) && at(20));
        assert!(!at(30));
        assert!(!at(59));
        assert!(at(60), "the first one is over");
        assert!(!at(61));
    }
}
