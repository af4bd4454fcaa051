//! When an object is looked at next, if nobody changes it.

use std::time::Duration;

/// The longest sleep in one piece, so that a lost timer heals.
pub const LONGEST_SLEEP: Duration = Duration::from_secs(600);

/// What to do after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing is left to do.
    Rest,
    /// The event of our own write continues.
    AwaitEvent,
    /// Look again after this time, unless an event comes first.
    WakeAfter(Duration),
}

/// Tells what to do after a turn with these delays.
#[must_use]
pub fn next(patched: bool, delays: impl IntoIterator<Item = Duration>) -> Next {
    match delays.into_iter().min() {
        _ if patched => Next::AwaitEvent,
        Some(delay) => Next::WakeAfter(delay.min(LONGEST_SLEEP)),
        None => Next::Rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_delay_counts_and_long_ones_are_cut() {
        let seconds = Duration::from_secs;
        assert_eq!(next(false, []), Next::Rest);
        assert_eq!(next(true, []), Next::AwaitEvent);
        assert_eq!(next(true, [seconds(5)]), Next::AwaitEvent);
        assert_eq!(
            next(false, [seconds(9), seconds(5)]),
            Next::WakeAfter(seconds(5))
        );
        assert_eq!(
            next(false, [Duration::ZERO]),
            Next::WakeAfter(Duration::ZERO)
        );
        assert_eq!(
            next(false, [seconds(10_000)]),
            Next::WakeAfter(LONGEST_SLEEP)
        );
    }
}
