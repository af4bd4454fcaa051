//! The heartbeats and readiness conditions of an operator's parts.
//!
//! A part that must never block owns a [`Heartbeat`], and sets the deadline of its next one; a part
//! that waits for the API server or for lists owns a [`ReadinessCondition`]. The health endpoint
//! reads both from a thread of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The deadline of a part that waits for something which may never come.
const NEVER: u64 = u64::MAX;

/// The heartbeats and conditions of all parts; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heartbeats {
    registry: Arc<HeartbeatRegistry>,
}

#[derive(Debug, Default)]
struct HeartbeatRegistry {
    clock: Arc<ObserverClock>,
    /// Never held across an await, and not locked on frequent paths.
    parts: Mutex<RegisteredParts>,
}

/// The time that the observer has measured, in milliseconds.
///
/// It stands still while the whole process is stopped or starved, so that no part is late for that.
#[derive(Debug, Default)]
struct ObserverClock(AtomicU64);

#[derive(Debug, Default)]
struct RegisteredParts {
    deadlines: Vec<(String, Weak<HeartbeatDeadline>)>,
    conditions: Vec<(String, Weak<Mutex<ConditionState>>)>,
    phase: OperatorPhase,
}

#[derive(Debug)]
struct HeartbeatDeadline {
    /// The time of the next heartbeat at the latest, by the observer's clock.
    due: AtomicU64,
    clock: Arc<ObserverClock>,
}

/// The heartbeat of one part; dropping it removes the part.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    deadline: Arc<HeartbeatDeadline>,
}

/// The readiness of one part; dropping it removes the part.
#[derive(Debug)]
pub(crate) struct ReadinessCondition {
    state: Arc<Mutex<ConditionState>>,
}

/// The state of a readiness condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConditionState {
    /// The part has nothing to do at the moment.
    Idle,
    /// The part is not ready yet.
    Pending(String),
    /// The part is ready.
    Fine,
    /// The API server does not serve the resource of the part.
    Absent(String),
    /// The part cannot do its work.
    Failing(String),
}

/// The phase of the operator as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum OperatorPhase {
    /// Not all parts have been started.
    #[default]
    Starting,
    /// All parts run.
    Running,
    /// The operator is being stopped.
    Stopping,
    /// An essential part has ended.
    Broken(String),
}

/// A part whose heartbeat is late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StuckPart {
    pub(crate) part: String,
    pub(crate) late: Duration,
}

// === impl Heartbeats ===

impl Heartbeats {
    /// Adds a part; it has no deadline until it sets one.
    pub(crate) fn heartbeat(&self, part: impl Into<String>) -> Heartbeat {
        let deadline = Arc::new(HeartbeatDeadline {
            due: AtomicU64::new(NEVER),
            clock: Arc::clone(&self.registry.clock),
        });
        let mut parts = self.parts();
        parts
            .deadlines
            .retain(|(_, deadline)| deadline.strong_count() > 0);
        parts
            .deadlines
            .push((part.into(), Arc::downgrade(&deadline)));
        Heartbeat { deadline }
    }

    /// Adds a readiness condition of a part.
    pub(crate) fn condition(
        &self,
        part: impl Into<String>,
        state: ConditionState,
    ) -> ReadinessCondition {
        let state = Arc::new(Mutex::new(state));
        let mut parts = self.parts();
        parts.conditions.retain(|(_, it)| it.strong_count() > 0);
        parts.conditions.push((part.into(), Arc::downgrade(&state)));
        ReadinessCondition { state }
    }

    /// Sets the phase; a broken operator stays broken.
    pub(crate) fn enter_phase(&self, phase: OperatorPhase) {
        let mut parts = self.parts();
        if !matches!(parts.phase, OperatorPhase::Broken(_)) {
            parts.phase = phase;
        }
    }

    pub(crate) fn phase(&self) -> OperatorPhase {
        self.parts().phase.clone()
    }

    /// Advances the observer's clock.
    pub(crate) fn advance(&self, by: Duration) {
        self.registry
            .clock
            .0
            .fetch_add(millis(by), Ordering::Relaxed);
    }

    /// The parts whose heartbeats are late by more than `tolerance`.
    pub(crate) fn stuck(&self, tolerance: Duration) -> Vec<StuckPart> {
        let now = self.registry.clock.now();
        let parts = self.parts();
        let stuck = parts.deadlines.iter().filter_map(|(part, deadline)| {
            let late = now.checked_sub(deadline.upgrade()?.due.load(Ordering::Relaxed))?;
            (late > millis(tolerance)).then(|| StuckPart {
                part: part.clone(),
                late: Duration::from_millis(late),
            })
        });
        stuck.collect()
    }

    /// The state of every readiness condition.
    pub(crate) fn conditions(&self) -> Vec<(String, ConditionState)> {
        let parts = self.parts();
        let conditions = parts
            .conditions
            .iter()
            .filter_map(|(part, state)| Some((part.clone(), locked(&*state.upgrade()?).clone())));
        conditions.collect()
    }

    fn parts(&self) -> MutexGuard<'_, RegisteredParts> {
        locked(&self.registry.parts)
    }
}

// === impl ObserverClock ===

impl ObserverClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl Heartbeat ===

impl Heartbeat {
    /// A heartbeat that the health endpoint does not check.
    pub(crate) fn unobserved() -> Self {
        Heartbeats::default().heartbeat("")
    }

    /// Sets the deadline of the next heartbeat.
    pub(crate) fn within(&self, time: Duration) {
        let due = self.deadline.clock.now().saturating_add(millis(time));
        self.deadline.due.store(due, Ordering::Relaxed);
    }

    /// Removes the deadline: the part waits for something that may never come.
    pub(crate) fn rest(&self) {
        self.deadline.due.store(NEVER, Ordering::Relaxed);
    }
}

// === impl ReadinessCondition ===

impl ReadinessCondition {
    /// A condition that the health endpoint does not check.
    pub(crate) fn unobserved() -> Self {
        Heartbeats::default().condition("", ConditionState::Idle)
    }

    pub(crate) fn set(&self, state: ConditionState) {
        *locked(&self.state) = state;
    }

    /// Makes an idle part pending; any other state stays.
    pub(crate) fn begin(&self, message: &str) {
        let mut state = locked(&self.state);
        if *state == ConditionState::Idle {
            *state = ConditionState::Pending(message.to_owned());
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn late(heartbeats: &Heartbeats) -> Vec<String> {
        let stuck = heartbeats.stuck(10 * SECOND).into_iter();
        stuck.map(|it| it.part).collect()
    }

    #[test]
    fn a_part_is_stuck_when_its_heartbeat_is_later_than_tolerated() {
        let heartbeats = Heartbeats::default();
        let (queue, stream) = (
            heartbeats.heartbeat("queue"),
            heartbeats.heartbeat("stream"),
        );
        queue.within(SECOND);
        stream.within(60 * SECOND);
        heartbeats.advance(11 * SECOND);
        assert!(late(&heartbeats).is_empty());
        heartbeats.advance(SECOND);
        assert_eq!(late(&heartbeats), ["queue"]);
        queue.within(SECOND);
        assert!(late(&heartbeats).is_empty());
    }

    #[test]
    fn a_part_without_deadline_or_that_has_ended_is_not_late() {
        let heartbeats = Heartbeats::default();
        let (queue, stream) = (
            heartbeats.heartbeat("queue"),
            heartbeats.heartbeat("stream"),
        );
        queue.within(SECOND);
        stream.within(SECOND);
        heartbeats.advance(60 * SECOND);
        queue.rest();
        drop(stream);
        assert!(late(&heartbeats).is_empty());
    }

    #[test]
    fn no_part_is_late_while_the_observer_clock_stands_still() {
        let heartbeats = Heartbeats::default();
        let queue = heartbeats.heartbeat("queue");
        queue.within(Duration::ZERO);
        assert!(heartbeats.stuck(Duration::ZERO).is_empty());
    }

    #[test]
    fn a_condition_is_removed_with_its_part() {
        let heartbeats = Heartbeats::default();
        let stream = heartbeats.condition("widgets", ConditionState::Idle);
        stream.set(ConditionState::Failing("no".to_owned()));
        let failing = ConditionState::Failing("no".to_owned());
        assert_eq!(heartbeats.conditions(), [("widgets".to_owned(), failing)]);
        drop(stream);
        assert!(heartbeats.conditions().is_empty());
    }

    #[test]
    fn a_broken_operator_stays_broken() {
        let heartbeats = Heartbeats::default();
        heartbeats.enter_phase(OperatorPhase::Running);
        let broken = OperatorPhase::Broken("the queue has ended".to_owned());
        heartbeats.enter_phase(broken.clone());
        heartbeats.enter_phase(OperatorPhase::Stopping);
        assert_eq!(heartbeats.phase(), broken);
    }
}
