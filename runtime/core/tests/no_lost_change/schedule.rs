//! Decides when the model handles an object next, if no event comes.

use std::time::Duration;

/// The longest sleep in one piece.
const LONGEST_SLEEP: Duration = Duration::from_secs(600);

/// The step after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextTurn {
    /// Nothing is left to do.
    None,
    /// The event of the write in this turn continues.
    AfterEvent,
    /// Continue after this time, unless an event comes first.
    AfterDelay(Duration),
}

/// Decides the step after a turn with these delays.
pub(crate) fn next_turn(patched: bool, delays: impl IntoIterator<Item = Duration>) -> NextTurn {
    match delays.into_iter().min() {
        _ if patched => NextTurn::AfterEvent,
        Some(delay) => NextTurn::AfterDelay(delay.min(LONGEST_SLEEP)),
        None => NextTurn::None,
    }
}

#[test]
fn the_shortest_delay_counts_and_long_ones_are_cut() {
    let seconds = Duration::from_secs;
    assert_eq!(next_turn(false, []), NextTurn::None);
    assert_eq!(next_turn(true, []), NextTurn::AfterEvent);
    assert_eq!(next_turn(true, [seconds(5)]), NextTurn::AfterEvent);
    assert_eq!(
        next_turn(false, [seconds(9), seconds(5)]),
        NextTurn::AfterDelay(seconds(5))
    );
    assert_eq!(
        next_turn(false, [Duration::ZERO]),
        NextTurn::AfterDelay(Duration::ZERO)
    );
    assert_eq!(
        next_turn(false, [seconds(10_000)]),
        NextTurn::AfterDelay(LONGEST_SLEEP)
    );
}
