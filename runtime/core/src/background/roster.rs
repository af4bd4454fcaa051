//! Which daemons and timers an object should have, given those that it has.

use super::stopping::StopReason;

/// What there is of one daemon or timer of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Nothing; it may be started.
    Absent,
    /// It runs, or waits for its next tick.
    Running,
    /// It was asked to stop, and has not stopped yet.
    Stopping,
    /// It was asked to stop, did not, and is not waited for any more.
    Abandoned,
    /// It ended by itself, for as long as this operator runs.
    Finished,
}

/// What is known of the object and the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It exists, and nobody wants it deleted.
    Alive {
        /// Whether the finalizer holds it already.
        held: bool,
    },
    /// Somebody wants it deleted.
    Deleting,
}

/// What is to be done about one daemon or timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Leave,
    /// It is to be started.
    Start,
    /// It is to be asked to stop.
    Stop(StopReason),
}

/// Tells what to do about one daemon or timer; `matches` says whether its filters hold.
///
/// Nothing starts before the finalizer is there: otherwise the object could go and leave a
/// daemon behind. What is stopping has to be gone before it can be started again.
#[must_use]
pub fn step(presence: Presence, matches: bool, life: Life) -> Step {
    match (presence, life) {
        (Presence::Absent, Life::Alive { held: true }) if matches => Step::Start,
        (Presence::Running, Life::Deleting) => Step::Stop(StopReason::ResourceDeleted),
        (Presence::Running, Life::Alive { .. }) if !matches => {
            Step::Stop(StopReason::FiltersMismatch)
        }
        _ => Step::Leave,
    }
}

/// Whether the object must not go, or not be let go, because of a daemon or timer.
#[must_use]
pub fn holds(presence: Presence, matches: bool, life: Life) -> bool {
    match presence {
        Presence::Running | Presence::Stopping => true,
        Presence::Absent => matches && life != Life::Deleting,
        Presence::Abandoned | Presence::Finished => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Life = Life::Alive { held: true };
    const FREE: Life = Life::Alive { held: false };

    #[test]
    fn a_matching_object_is_held_first_and_attended_then() {
        assert!(holds(Presence::Absent, true, FREE));
        assert_eq!(step(Presence::Absent, true, FREE), Step::Leave);
        assert_eq!(step(Presence::Absent, true, HELD), Step::Start);
        assert_eq!(step(Presence::Running, true, HELD), Step::Leave);
    }

    #[test]
    fn what_no_longer_matches_stops_and_then_lets_the_object_go() {
        let stop = Step::Stop(StopReason::FiltersMismatch);
        assert_eq!(step(Presence::Running, false, HELD), stop);
        assert_eq!(step(Presence::Stopping, false, HELD), Step::Leave);
        assert!(holds(Presence::Stopping, false, HELD));
        assert!(!holds(Presence::Absent, false, HELD));
    }

    #[test]
    fn what_matches_again_while_it_stops_is_started_when_it_has_stopped() {
        assert_eq!(step(Presence::Stopping, true, HELD), Step::Leave);
        assert_eq!(step(Presence::Absent, true, HELD), Step::Start);
    }

    #[test]
    fn nothing_is_started_for_an_object_that_is_being_deleted() {
        let stop = Step::Stop(StopReason::ResourceDeleted);
        assert_eq!(step(Presence::Absent, true, Life::Deleting), Step::Leave);
        assert!(!holds(Presence::Absent, true, Life::Deleting));
        assert_eq!(step(Presence::Running, true, Life::Deleting), stop);
        assert!(holds(Presence::Stopping, true, Life::Deleting));
    }

    #[test]
    fn what_was_given_up_lets_the_object_go_and_has_no_double() {
        assert!(!holds(Presence::Abandoned, true, Life::Deleting));
        assert_eq!(step(Presence::Abandoned, true, HELD), Step::Leave);
    }

    #[test]
    fn what_ended_by_itself_neither_starts_again_nor_holds_the_object() {
        assert_eq!(step(Presence::Finished, true, HELD), Step::Leave);
        assert!(!holds(Presence::Finished, true, HELD));
    }
}
