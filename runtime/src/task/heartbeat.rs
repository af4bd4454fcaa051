//! How the operator's parts are: whether each still moves, and what it still lacks.
//!
//! A part that must never stop owns a [`Heartbeat`] and says by when it moves again; one that waits
//! for the world owns a [`ReadinessCondition`]. The health endpoint reads both, from a thread of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Nobody waits for it.
const NEVER: u64 = u64::MAX;

/// The view of all parts; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heartbeats {
    shared: Arc<HeartbeatRegistry>,
}

#[derive(Debug, Default)]
struct HeartbeatRegistry {
    watch: Arc<ObserverClock>,
    /// Never held across an await; nobody takes it on a path that is taken often.
    parts: Mutex<RegisteredParts>,
}

/// The time that the observer has seen pass, in milliseconds.
///
/// It stands still while the whole process does: whoever was stopped or starved with the rest is
/// not to blame for that.
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
    /// When the part has to move again, by the observer's watch.
    due: AtomicU64,
    watch: Arc<ObserverClock>,
}

/// The sign of life of one part; the part is forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    beat: Arc<HeartbeatDeadline>,
}

/// What one part lacks; the part is forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct ReadinessCondition {
    state: Arc<Mutex<ConditionState>>,
}

/// How a part gets along with the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConditionState {
    /// Nothing is expected of it at the moment.
    Idle,
    /// It has not come so far yet.
    Pending(String),
    /// All is well.
    Fine,
    /// What it is about does not exist.
    Absent(String),
    /// It cannot do its work.
    Failing(String),
}

/// Where the operator as a whole is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum OperatorPhase {
    /// Not all of its parts have been started.
    #[default]
    Starting,
    /// It does what it is for.
    Running,
    /// It was told to stop.
    Stopping,
    /// Something without which it cannot go on is gone.
    Broken(String),
}

/// A part that has not moved for longer than it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StuckPart {
    pub(crate) part: String,
    pub(crate) late: Duration,
}

// === impl Heartbeats ===

impl Heartbeats {
    /// A sign of life for a part; it is not waited for until it says so.
    pub(crate) fn heartbeat(&self, part: impl Into<String>) -> Heartbeat {
        let beat = Arc::new(HeartbeatDeadline {
            due: AtomicU64::new(NEVER),
            watch: Arc::clone(&self.shared.watch),
        });
        let mut parts = self.parts();
        parts.deadlines.retain(|(_, beat)| beat.strong_count() > 0);
        parts.deadlines.push((part.into(), Arc::downgrade(&beat)));
        Heartbeat { beat }
    }

    /// A place for a part to say what it lacks.
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

    /// Says where the operator as a whole is; what is broken stays broken.
    pub(crate) fn enter_phase(&self, phase: OperatorPhase) {
        let mut parts = self.parts();
        if !matches!(parts.phase, OperatorPhase::Broken(_)) {
            parts.phase = phase;
        }
    }

    pub(crate) fn phase(&self) -> OperatorPhase {
        self.parts().phase.clone()
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, by: Duration) {
        self.shared.watch.0.fetch_add(millis(by), Ordering::Relaxed);
    }

    /// Who is late by more than `tolerance`.
    pub(crate) fn stuck(&self, tolerance: Duration) -> Vec<StuckPart> {
        let now = self.shared.watch.now();
        let parts = self.parts();
        let beats = parts.deadlines.iter().filter_map(|(part, beat)| {
            let late = now.checked_sub(beat.upgrade()?.due.load(Ordering::Relaxed))?;
            (late > millis(tolerance)).then(|| StuckPart {
                part: part.clone(),
                late: Duration::from_millis(late),
            })
        });
        beats.collect()
    }

    /// The state of every part that has one.
    pub(crate) fn conditions(&self) -> Vec<(String, ConditionState)> {
        let parts = self.parts();
        let states = parts
            .conditions
            .iter()
            .filter_map(|(part, state)| Some((part.clone(), locked(&*state.upgrade()?).clone())));
        states.collect()
    }

    fn parts(&self) -> MutexGuard<'_, RegisteredParts> {
        locked(&self.shared.parts)
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
    /// Of a part that nobody looks at.
    pub(crate) fn unobserved() -> Self {
        Heartbeats::default().heartbeat("")
    }

    /// The part moves again within this time.
    pub(crate) fn within(&self, time: Duration) {
        let due = self.beat.watch.now().saturating_add(millis(time));
        self.beat.due.store(due, Ordering::Relaxed);
    }

    /// The part waits for something that may never come.
    pub(crate) fn rest(&self) {
        self.beat.due.store(NEVER, Ordering::Relaxed);
    }
}

// === impl ReadinessCondition ===

impl ReadinessCondition {
    /// Of a part that nobody looks at.
    pub(crate) fn unobserved() -> Self {
        Heartbeats::default().condition("", ConditionState::Idle)
    }

    pub(crate) fn set(&self, state: ConditionState) {
        *locked(&self.state) = state;
    }

    /// Something is expected from now on; what is known already stays known.
    pub(crate) fn begin(&self, story: &str) {
        let mut state = locked(&self.state);
        if *state == ConditionState::Idle {
            *state = ConditionState::Pending(story.to_owned());
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
    fn a_part_is_stuck_when_it_is_late_by_more_than_is_tolerated() {
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
    fn nobody_is_late_who_rests_or_has_ended() {
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
    fn nobody_is_late_as_long_as_nobody_observes() {
        let heartbeats = Heartbeats::default();
        let queue = heartbeats.heartbeat("queue");
        queue.within(Duration::ZERO);
        assert!(heartbeats.stuck(Duration::ZERO).is_empty());
    }

    #[test]
    fn a_condition_is_known_as_long_as_its_part() {
        let heartbeats = Heartbeats::default();
        let stream = heartbeats.condition("widgets", ConditionState::Idle);
        stream.set(ConditionState::Failing("no".to_owned()));
        let failing = ConditionState::Failing("no".to_owned());
        assert_eq!(heartbeats.conditions(), [("widgets".to_owned(), failing)]);
        drop(stream);
        assert!(heartbeats.conditions().is_empty());
    }

    #[test]
    fn what_is_broken_stays_broken() {
        let heartbeats = Heartbeats::default();
        heartbeats.enter_phase(OperatorPhase::Running);
        let broken = OperatorPhase::Broken("the queue has ended".to_owned());
        heartbeats.enter_phase(broken.clone());
        heartbeats.enter_phase(OperatorPhase::Stopping);
        assert_eq!(heartbeats.phase(), broken);
    }
}
