//! Decides which daemons and timers of an object start and stop, and which hold its finalizer.

use super::stopping::StopReason;

/// The state of one daemon or timer of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// It does not run, and may be started.
    Absent,
    /// It runs, or waits for its next tick.
    Running,
    /// It got the stop signal, and has not stopped yet.
    Stopping,
    /// It got the stop signal, did not stop, and the operator no longer waits for it.
    Abandoned,
    /// It ended by itself, and does not start again in this process.
    Finished,
}

/// Whether the object is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectLife {
    /// It exists, and is not being deleted.
    Alive {
        /// Whether it has the finalizer.
        held: bool,
    },
    /// It is being deleted.
    Deleting,
}

/// The next step for one daemon or timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceStep {
    /// Nothing.
    Leave,
    /// Start it.
    Start,
    /// Send it the stop signal.
    Stop(StopReason),
}

/// Decides the next step for one daemon or timer; `matches` says whether its filters hold.
///
/// Nothing starts before the object has the finalizer: otherwise the API server could delete the
/// object while the daemon runs. A daemon that is stopping starts again only after it has stopped.
#[must_use]
pub fn step(state: InstanceState, matches: bool, life: ObjectLife) -> InstanceStep {
    match (state, life) {
        (InstanceState::Absent, ObjectLife::Alive { held: true }) if matches => InstanceStep::Start,
        (InstanceState::Absent, ObjectLife::Alive { .. })
            if matches && planted!(DaemonBeforeFinalizer) =>
        {
            InstanceStep::Start
        }
        (InstanceState::Running, ObjectLife::Deleting) => {
            InstanceStep::Stop(StopReason::ResourceDeleted)
        }
        (InstanceState::Running, ObjectLife::Alive { .. }) if !matches => {
            InstanceStep::Stop(StopReason::FiltersMismatch)
        }
        _ => InstanceStep::Leave,
    }
}

/// Whether the object needs the finalizer because of a daemon or timer.
#[must_use]
pub fn holds(state: InstanceState, matches: bool, life: ObjectLife) -> bool {
    match state {
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
    fn a_matching_object_gets_the_finalizer_before_the_daemon_starts() {
        assert!(holds(InstanceState::Absent, true, FREE));
        assert_eq!(step(InstanceState::Absent, true, FREE), InstanceStep::Leave);
        assert_eq!(step(InstanceState::Absent, true, HELD), InstanceStep::Start);
        assert_eq!(
            step(InstanceState::Running, true, HELD),
            InstanceStep::Leave
        );
    }

    #[test]
    fn a_daemon_that_no_longer_matches_stops_and_then_releases_the_object() {
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
    fn a_daemon_that_matches_again_while_stopping_starts_when_it_has_stopped() {
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
    fn an_abandoned_daemon_releases_the_object_and_does_not_start_again() {
        assert!(!holds(InstanceState::Abandoned, true, ObjectLife::Deleting));
        assert_eq!(
            step(InstanceState::Abandoned, true, HELD),
            InstanceStep::Leave
        );
    }

    #[test]
    fn a_finished_daemon_neither_starts_again_nor_holds_the_object() {
        assert_eq!(
            step(InstanceState::Finished, true, HELD),
            InstanceStep::Leave
        );
        assert!(!holds(InstanceState::Finished, true, HELD));
    }
}
