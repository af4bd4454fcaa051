//! Detects that another client keeps reverting our writes, and decides how long to pause.
//!
//! Two clients that revert each other's writes would continue as fast as the API server responds.
//! So the states of an object are remembered while we write to it very often: if a state returns
//! after we wrote to it, another client has reverted our write.

use std::{
    collections::{HashSet, VecDeque},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    cause::detect::ObservedChange,
    handler::{HandlerId, Trigger, registry::Registry},
    object::{ObjectView, diff::Baseline, finalizer},
    persistence::Persistence,
    progress::record::Record,
    time,
};

/// The number of writes within the window above which reverts are suspected.
const MAX_WRITES: u8 = 10;

/// The length of the window in seconds.
const WINDOW: u16 = 10;

/// The time without reverts after which the history is dropped.
const QUIET_PERIOD: Duration = Duration::from_secs(60);

/// The longest pause, for objects that users change to and fro on purpose.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The number of states that are remembered.
const REMEMBERED: usize = 16;

/// The rate of writes to an object; every object has one, so it is small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteRate {
    since: u16,
    writes: u8,
    has_history: bool,
}

/// The digest of a state: two states with the same digest lead to the same write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateDigest(u64);

/// The states of an object to which we write very often.
#[derive(Clone, Debug, Default)]
pub struct RevertHistory {
    written_on: VecDeque<StateDigest>,
    /// The number of reverts so far.
    reverts: u32,
    /// The end of the last pause.
    paused_until: Timestamp,
    /// The state for which that pause was made.
    paused_on: Option<StateDigest>,
}

// === impl WriteRate ===

impl WriteRate {
    /// Counts a write.
    pub fn count(&mut self, now: Timestamp) {
        let now = seconds(now);
        if now.wrapping_sub(self.since) > WINDOW {
            self.since = now;
            self.writes = 0;
        }
        self.writes = self.writes.saturating_add(1);
    }

    /// Whether states are to be remembered.
    #[must_use]
    pub fn is_suspicious(self, now: Timestamp) -> bool {
        let recent = seconds(now).wrapping_sub(self.since) <= WINDOW;
        self.has_history || recent && self.writes > MAX_WRITES
    }

    /// Records whether there is a [`RevertHistory`] of the object.
    pub fn set_has_history(&mut self, has_history: bool) {
        self.has_history = has_history;
    }
}

/// The last 16 bits of the seconds are enough for short times.
fn seconds(now: Timestamp) -> u16 {
    u16::try_from(now.as_second().rem_euclid(1 << 16)).unwrap_or_default()
}

// === impl StateDigest ===

impl StateDigest {
    /// The digest of all that decisions depend on, except annotations of other clients: a client
    /// that reverts our writes may write a time stamp each time. Records count without their times,
    /// which differ in each round.
    #[must_use]
    pub fn of(
        change: &ObservedChange,
        view: ObjectView<'_>,
        registry: &Registry,
        persistence: &Persistence,
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        // A time stamp of others must not hide that a state has returned.
        let new = change.new.without_annotations();
        new.as_value().to_string().hash(&mut hasher);
        match &change.old {
            Baseline::Known(old) => {
                let old = old.without_annotations();
                old.as_value().to_string().hash(&mut hasher);
            }
            old => format!("{old:?}").hash(&mut hasher),
        }
        finalizer::is_present(view, &persistence.finalizer).hash(&mut hasher);
        view.is_being_deleted().hash(&mut hasher);
        let mut ids = registry.owned_ids();
        let handlers = registry.handlers().iter();
        let reconcile = handlers.filter(|it| it.trigger == Trigger::Reconcile);
        ids.extend(reconcile.map(|it| it.id.clone()));
        // Any client can write a record that names itself as its own sub-handler.
        let mut seen: HashSet<HandlerId> = ids.iter().cloned().collect();
        while let Some(id) = ids.pop() {
            if let Some(record) = persistence.progress.fetch(&id, view) {
                let Record {
                    purpose,
                    retries,
                    success,
                    failure,
                    subrefs,
                    ..
                } = &record;
                format!("{id:?} {purpose:?} {subrefs:?}").hash(&mut hasher);
                (retries, success, failure).hash(&mut hasher);
                if planted!(RecordTimesHideReturn) {
                    (record.started, record.stopped).hash(&mut hasher);
                }
                let unseen = record.subrefs.into_iter();
                ids.extend(unseen.filter(|sub| seen.insert(sub.clone())));
            }
        }
        Self(hasher.finish())
    }
}

// === impl RevertHistory ===

impl RevertHistory {
    /// The pause before a write to this state, if another client has restored it. `pauses` gives
    /// the pause after so many reverts. After the pause, the write is made.
    pub fn pause_for(
        &mut self,
        state: StateDigest,
        now: Timestamp,
        pauses: impl Fn(u32) -> Duration,
    ) -> Option<Duration> {
        if self.paused_on.take() == Some(state) && now >= self.paused_until {
            return None;
        }
        if self.is_over(now) {
            *self = Self::default();
        }
        if !self.written_on.contains(&state) {
            return None;
        }
        let pause = pauses(self.reverts).min(LONGEST_PAUSE);
        self.reverts = self.reverts.saturating_add(1);
        self.paused_until = time::after(now, pause);
        self.paused_on = Some(state);
        Some(pause)
    }

    /// Forgets a state to which our own write has returned.
    pub fn forget(&mut self, state: StateDigest) {
        self.written_on.retain(|it| *it != state);
    }

    /// Records a write to a state.
    pub fn record_write(&mut self, state: StateDigest, now: Timestamp) {
        if self.written_on.is_empty() {
            self.paused_until = now;
        }
        if !self.written_on.contains(&state) {
            self.written_on.truncate(REMEMBERED - 1);
            self.written_on.push_front(state);
        }
    }

    /// Whether there was no revert for the quiet period.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        time::elapsed(self.paused_until, now) > QUIET_PERIOD
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use serde_json::json;

    use super::*;
    use crate::{
        cause::detect::{EventKind, ObjectHistory},
        handler::HandlerSpec,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).expect("in range")
    }

    fn pauses(reverts: u32) -> Duration {
        Duration::from_secs(u64::from(reverts) + 1)
    }

    #[test]
    fn only_many_writes_in_a_short_time_are_suspicious() {
        let mut slow = WriteRate::default();
        for second in 0..1000 {
            slow.count(at(second * 2));
            assert!(!slow.is_suspicious(at(second * 2)));
        }
        let mut quick = WriteRate::default();
        for _ in 0..MAX_WRITES {
            quick.count(at(0));
        }
        assert!(!quick.is_suspicious(at(1)));
        quick.count(at(1));
        assert!(quick.is_suspicious(at(1)));
        assert!(!quick.is_suspicious(at(100)));
        quick.set_has_history(true);
        assert!(quick.is_suspicious(at(100)));
    }

    #[test]
    fn the_times_of_records_do_not_hide_that_a_state_has_returned() {
        let digest = |started: &str, retries: u32| {
            let record = json!({"started": started, "stopped": started, "retries": retries});
            let body = json!({"metadata": {"uid": "u", "annotations": {
                "kopf.zalando.org/fn": record.to_string(),
            }}});
            let spec = HandlerSpec::new("fn", Trigger::Update);
            let registry = Registry::new([spec]).expect("declarations are valid");
            let persistence = Persistence::default();
            let (view, event) = (ObjectView::new(&body), EventKind::Changed);
            let history = ObjectHistory::begin(event);
            let change = persistence.observe_change(view, event, history, &registry);
            StateDigest::of(&change, view, &registry, &persistence)
        };
        let (one, later) = ("2020-01-01T00:00:00Z", "2020-01-01T00:00:01Z");
        assert_eq!(digest(one, 1), digest(later, 1));
        assert_ne!(digest(one, 1), digest(one, 2), "another attempt was made");
    }

    #[test]
    fn records_that_name_each_other_as_sub_handlers_have_a_digest() {
        let record = json!({"started": "2020-01-01T00:00:00Z", "subrefs": ["fn", "fn/sub"]});
        let body = json!({"metadata": {"uid": "u", "annotations": {
            "kopf.zalando.org/fn": record.to_string(),
            "kopf.zalando.org/fn.sub": record.to_string(),
        }}});
        let (digest, digested) = mpsc::channel();
        std::thread::spawn(move || {
            let spec = HandlerSpec::new("fn", Trigger::Update);
            let registry = Registry::new([spec]).expect("declarations are valid");
            let persistence = Persistence::default();
            let (view, event) = (ObjectView::new(&body), EventKind::Changed);
            let history = ObjectHistory::begin(event);
            let change = persistence.observe_change(view, event, history, &registry);
            digest.send(StateDigest::of(&change, view, &registry, &persistence))
        });
        digested
            .recv_timeout(Duration::from_secs(10))
            .expect("each record is read once");
    }

    #[test]
    fn a_write_rate_takes_four_bytes() {
        assert_eq!(size_of::<WriteRate>(), 4);
    }

    #[test]
    fn pauses_grow_with_each_revert_until_the_quiet_period() {
        let (one, other) = (StateDigest(1), StateDigest(2));
        let mut history = RevertHistory::default();
        let mut now = 0;
        for round in 0..5 {
            let pause = history.pause_for(one, at(now), pauses);
            if round > 0 {
                let pause = pause.expect("the state returned");
                assert_eq!(pause, Duration::from_secs(round));
                now += i64::try_from(pause.as_secs()).expect("short");
                assert_eq!(
                    history.pause_for(one, at(now), pauses),
                    None,
                    "the pause is over"
                );
            }
            history.record_write(one, at(now));
            assert_eq!(
                history.pause_for(other, at(now), pauses),
                None,
                "the state is new"
            );
        }
        assert!(!history.is_over(at(now + 60)));
        assert!(history.is_over(at(now + 61)));
        assert_eq!(
            history.pause_for(one, at(now + 61), pauses),
            None,
            "the history is dropped"
        );
        history.record_write(one, at(now + 61));
        let pause = history.pause_for(one, at(now + 62), pauses);
        assert_eq!(pause, Some(Duration::from_secs(1)), "the first pause again");
    }

    #[test]
    fn a_pause_is_never_longer_than_a_minute() {
        let (one, mut now) = (StateDigest(1), 0);
        let mut history = RevertHistory::default();
        for _ in 0..100 {
            history.record_write(one, at(now));
            let pause = history
                .pause_for(one, at(now), pauses)
                .expect("the state returned");
            assert!(pause <= LONGEST_PAUSE);
            now += i64::try_from(pause.as_secs()).expect("short");
            assert_eq!(
                history.pause_for(one, at(now), pauses),
                None,
                "the pause is over"
            );
        }
    }

    #[test]
    fn two_states_that_alternate_are_both_paused() {
        let (one, other) = (StateDigest(1), StateDigest(2));
        let mut history = RevertHistory::default();
        history.record_write(one, at(0));
        history.record_write(other, at(0));
        assert_eq!(history.pause_for(one, at(1), pauses), Some(pauses(0)));
        assert_eq!(history.pause_for(other, at(2), pauses), Some(pauses(1)));
        assert_eq!(history.pause_for(other, at(4), pauses), None);
    }
}
