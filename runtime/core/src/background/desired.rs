//! Which daemons and timers an object should have, given those that it has.

use super::stopping::StopReason;

/// What there is of one daemon or timer of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
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
pub enum ObjectLife {
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
pub enum InstanceStep {
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
pub fn step(presence: InstanceState, matches: bool, life: ObjectLife) -> InstanceStep {
    match (presence, life) {
        (InstanceState::Absent, ObjectLife::Alive { held: true }) if matches => InstanceStep::Start,
        (InstanceState::Running, ObjectLife::Deleting) => {
            InstanceStep::Stop(StopReason::ResourceDeleted)
        }
        (InstanceState::Running, ObjectLife::Alive { .. }) if !matches => {
            InstanceStep::Stop(StopReason::FiltersMismatch)
        }
        _ => InstanceStep::Leave,
    }
}

/// Whether the object must not go, or not be let go, because of a daemon or timer.
#[must_use]
pub fn holds(presence: InstanceState, matches: bool, life: ObjectLife) -> bool {
    match presence {
        InstanceState::Running | InstanceState::Stopping => true,
        InstanceState::Absent => matches && life != ObjectLife::Deleting,
        InstanceState::Abandoned | InstanceState::Finished => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: ObjectLife = ObjectLife::Alive { held: true };
    const FREE: ObjectLife = ObjectLife::Alive { held: false };

    #[test]
    fn a_matching_object_is_held_first_and_attended_then() {
        assert!(holds(InstanceState::Absent, true, FREE));
        assert_eq!(step(InstanceState::Absent, true, FREE), InstanceStep::Leave);
        assert_eq!(step(InstanceState::Absent, true, HELD), InstanceStep::Start);
        assert_eq!(
            step(InstanceState::Running, true, HELD),
            InstanceStep::Leave
        );
    }

    #[test]
    fn what_no_longer_matches_stops_and_then_lets_the_object_go() {
        let stop = InstanceStep::Stop(StopReason::FiltersMismatch);
        assert_eq!(step(InstanceState::Running, false, HELD), stop);
        assert_eq!(
            step(InstanceState::Stopping, false, HELD),
            InstanceStep::Leave
        );
        assert!(holds(InstanceState::Stopping, false, HELD));
        assert!(!holds(InstanceState::Absent, false, HELD));
    }

    #[test]
    fn what_matches_again_while_it_stops_is_started_when_it_has_stopped() {
        assert_eq!(
            step(InstanceState::Stopping, true, HELD),
            InstanceStep::Leave
        );
        assert_eq!(step(InstanceState::Absent, true, HELD), InstanceStep::Start);
    }

    #[test]
    fn nothing_is_started_for_an_object_that_is_being_deleted() {
        let stop = InstanceStep::Stop(StopReason::ResourceDeleted);
        assert_eq!(
            step(InstanceState::Absent, true, ObjectLife::Deleting),
            InstanceStep::Leave
        );
        assert!(!holds(InstanceState::Absent, true, ObjectLife::Deleting));
        assert_eq!(
            step(InstanceState::Running, true, ObjectLife::Deleting),
            stop
        );
        assert!(holds(InstanceState::Stopping, true, ObjectLife::Deleting));
    }

    #[test]
    fn what_was_given_up_lets_the_object_go_and_has_no_double() {
        assert!(!holds(InstanceState::Abandoned, true, ObjectLife::Deleting));
        assert_eq!(
            step(InstanceState::Abandoned, true, HELD),
            InstanceStep::Leave
        );
    }

    #[test]
    fn what_ended_by_itself_neither_starts_again_nor_holds_the_object() {
        assert_eq!(
            step(InstanceState::Finished, true, HELD),
            InstanceStep::Leave
        );
        assert!(!holds(InstanceState::Finished, true, HELD));
    }
}
