//! When `reconcile` is due, and what its record becomes.
//!
//! `reconcile` is called for states, not for events: however much happens, one call follows, and the
//! last one sees the last state.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    background::Moment,
    cause::Reason,
    children::reasons::{ReconcileReason, ReconcileReasons},
    handler::{HandlerId, HandlerSpec},
    machine::now::Now,
    object::essence::Essence,
    outcome::Consequence,
    progress::record::Record,
    time::{self, ClockReading},
};

/// The declaration of `reconcile` for one kind.
#[derive(Clone, Debug)]
pub struct ReconcileRules {
    /// The handler.
    pub spec: Arc<HandlerSpec>,
    /// The time without any event after which it is called again.
    pub interval: Option<Duration>,
    /// Whether changes of the status call it.
    pub status: StatusChanges,
    /// The kinds of children, each as `<apiVersion>/<kind>`, in their order.
    pub kinds: Vec<HandlerId>,
}

/// Whether changes of the status call `reconcile`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusChanges {
    /// They do.
    Count,
    /// They do not.
    Ignored,
}

/// The state of `reconcile` for one object between two calls of it.
#[derive(Debug, Default)]
pub(super) struct ReconcileMemory {
    /// The digest of the state that the last call saw; none before the first one.
    seen: Option<ReconcileDigest>,
    /// What happened since the last call.
    pending: ReconcileReasons,
    /// The time of the next call, if nothing happens before.
    next: Option<(Moment, ReconcileReason)>,
    /// Whether the last call is to be repeated. Its record says so, too, and other clients may
    /// remove that.
    has_failed: bool,
    /// The clocks when the last call failed; none if it did not.
    waiting_since: Option<ClockReading>,
    /// Whether the object needs our finalizer before its next child can be made.
    wants_finalizer: bool,
}

/// The digests of a state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReconcileDigest {
    /// Of all that counts as a change.
    whole: u64,
    /// Of what calls a failing handler at once: not of annotations and of the status, which our
    /// own record of the failure may change, if a webhook stamps each write.
    urgent: u64,
}

/// The time of the next call of `reconcile`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReconcileDue {
    /// Now, for these reasons.
    Now(ReconcileReasons),
    /// After this time.
    After(Duration),
    /// When something happens.
    Never,
}

/// The change of the record of `reconcile` on the object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecordChange {
    /// It is as it should be.
    Keep,
    /// It is written.
    Store(Record),
    /// It is removed.
    Purge,
}

// === impl ReconcileRules ===

impl ReconcileRules {
    /// The digests of what counts as a change.
    pub(super) fn digest(&self, essence: &Essence, object: &Value) -> ReconcileDigest {
        let mut hasher = DefaultHasher::new();
        let lasting = essence.without_annotations().into_value();
        lasting.to_string().hash(&mut hasher);
        let urgent = hasher.finish();
        essence.as_value()["metadata"]["annotations"]
            .to_string()
            .hash(&mut hasher);
        if self.status == StatusChanges::Count {
            object["status"].to_string().hash(&mut hasher);
        }
        ReconcileDigest {
            whole: hasher.finish(),
            urgent,
        }
    }

    /// The record to go on with: that of the failures so far, or a new one.
    pub(super) fn begin_record(stored: Option<&Record>, now: Timestamp) -> Record {
        let subrefs = stored.map(|record| record.subrefs.clone());
        match stored {
            Some(failing) if !failing.is_finished() => failing.clone(),
            _ => Record {
                subrefs: subrefs.unwrap_or_default(),
                ..Record::begin(Reason::Noop, now)
            },
        }
    }

    /// The record after a call.
    ///
    /// It says which kinds a complete call has covered: their children have our labels. A kind of
    /// which the call applied a child needs no record, as that child shows it. A failure is recorded
    /// until the next success.
    pub(super) fn record_after(
        &self,
        stored: Option<&Record>,
        before: &Record,
        consequence: &Consequence,
        applied: &[HandlerId],
        now: Timestamp,
    ) -> RecordChange {
        let covered = match consequence {
            Consequence::Retry { .. } | Consequence::Waiting { .. } => {
                return RecordChange::Store(consequence.apply(before, now));
            }
            Consequence::Succeeded(_) | Consequence::Ignored { .. } => self.kinds.clone(),
            Consequence::Failed { .. } => before.subrefs.clone(),
        };
        let recorded = stored.filter(|record| record.success);
        let recorded = recorded.map_or(&[][..], |record| &record.subrefs);
        let is_known = |kind: &HandlerId| recorded.contains(kind) || applied.contains(kind);
        if covered.iter().all(is_known) {
            return match stored {
                Some(record) if !record.success || covered.is_empty() => RecordChange::Purge,
                Some(_) | None => RecordChange::Keep,
            };
        }
        let mut subrefs = covered;
        subrefs.sort();
        RecordChange::Store(Record {
            stopped: Some(time::to_micros(now)),
            success: true,
            subrefs,
            ..Record::begin(Reason::Noop, before.started)
        })
    }
}

// === impl ReconcileMemory ===

impl ReconcileMemory {
    /// Notes what happened.
    pub(super) fn note(&mut self, reasons: ReconcileReasons) {
        self.pending.absorb(reasons);
    }

    /// Drops what is known: another operator may have acted meanwhile.
    pub(super) fn drop_seen(&mut self) {
        self.seen = None;
        self.next = None;
        self.has_failed = false;
        self.waiting_since = None;
    }

    /// Notes that the last call is to be repeated, or that a limit forbids it.
    pub(super) fn set_failed(&mut self, has_failed: bool) {
        self.has_failed = has_failed;
    }

    pub(super) fn wants_finalizer(&self) -> bool {
        self.wants_finalizer
    }

    pub(super) fn set_wants_finalizer(&mut self, wants: bool) {
        self.wants_finalizer = wants;
    }

    /// Whether the last call saw this state, apart from annotations and the status.
    pub(super) fn has_seen(&self, digest: ReconcileDigest) -> bool {
        self.seen.is_some_and(|seen| seen.urgent == digest.urgent)
    }

    /// Decides whether a call is due for a state with this digest and this record.
    ///
    /// A change of the spec or of labels calls a failing handler at once; children and intervals do
    /// not.
    pub(super) fn due(
        &self,
        rules: &ReconcileRules,
        digest: ReconcileDigest,
        stored: Option<&Record>,
        now: &Now,
    ) -> ReconcileDue {
        let failing = stored.filter(|record| !record.is_finished());
        let failing = failing.map(|record| self.with_correct_clock(record, now));
        let changed = self.seen.is_some_and(|seen| seen != digest);
        let is_urgent = self.seen.is_some_and(|seen| seen.urgent != digest.urgent);
        if let Some(failing) = &failing
            && failing.is_sleeping(now.wall)
            && !is_urgent
        {
            return ReconcileDue::After(failing.delay(now.wall));
        }
        let mut reasons = ReconcileReasons::default();
        if self.seen.is_none() {
            let known = rules.kinds.is_empty() || stored.is_some_and(|it| !it.subrefs.is_empty());
            reasons.add(match known {
                true => ReconcileReason::Listed,
                false => ReconcileReason::Created,
            });
        }
        if changed {
            reasons.add(ReconcileReason::Changed);
        }
        reasons.absorb(self.pending.clone());
        if failing.is_some() || self.has_failed {
            reasons.add(ReconcileReason::Failed);
        }
        match &self.next {
            Some((time, reason)) if *time <= now.steady => reasons.add(reason.clone()),
            Some((time, _)) if reasons.is_empty() => {
                return ReconcileDue::After(time.saturating_sub(now.steady));
            }
            Some(_) | None => {}
        }
        match reasons.is_empty() {
            true => ReconcileDue::Never,
            false => ReconcileDue::Now(reasons),
        }
    }

    /// The record of a failing handler, though the clock was set back since.
    fn with_correct_clock(&self, failing: &Record, now: &Now) -> Record {
        let ahead = self
            .waiting_since
            .map(|since| since.set_back(&now.clocks()));
        let mut record = failing.clone();
        record.correct_clock(ahead.unwrap_or_default(), now.wall);
        record
    }

    /// Notes that a call saw the state with this digest, and asked for another one.
    pub(super) fn called(
        &mut self,
        rules: &ReconcileRules,
        digest: ReconcileDigest,
        consequence: &Consequence,
        again: Option<Duration>,
        now: &Now,
    ) {
        self.seen = Some(digest);
        self.next = None;
        self.has_failed = !consequence.is_final();
        self.waiting_since = self.has_failed.then(|| now.clocks());
        if self.has_failed {
            return;
        }
        self.pending = ReconcileReasons::default();
        let interval = rules
            .interval
            .map(|interval| (interval, ReconcileReason::Interval));
        let asked = again.map(|delay| (delay, ReconcileReason::Asked));
        let planned = [asked, interval].into_iter().flatten();
        let soonest = planned.min_by_key(|(delay, _)| *delay);
        self.next = soonest.map(|(delay, reason)| (now.steady.saturating_add(delay), reason));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::handler::Trigger;

    fn now(second: u64) -> Now {
        Now {
            wall: Timestamp::UNIX_EPOCH + Duration::from_secs(second),
            steady: Duration::from_secs(second),
            seed: 0,
            stopping: false,
            running: true,
            epoch: 0,
        }
    }

    fn rules() -> ReconcileRules {
        ReconcileRules {
            spec: Arc::new(HandlerSpec::new("reconcile", Trigger::Reconcile)),
            interval: Some(Duration::from_secs(600)),
            status: StatusChanges::Ignored,
            kinds: vec![HandlerId::new("v1/ConfigMap")],
        }
    }

    /// The digest of a state whose spec has this number.
    fn spec(number: u64) -> ReconcileDigest {
        let essence = Essence::from_value(json!({"spec": number}));
        rules().digest(&essence, &Value::Null)
    }

    fn reasons(due: ReconcileDue) -> Vec<ReconcileReason> {
        match due {
            ReconcileDue::Now(reasons) => reasons.iter().cloned().collect(),
            other => panic!("it is not due: {other:?}"),
        }
    }

    fn success() -> Consequence {
        Consequence::Succeeded(Value::Null)
    }

    fn retry(delay: u64) -> Consequence {
        Consequence::Retry {
            message: "no".to_owned(),
            delay: Some(Duration::from_secs(delay)),
        }
    }

    fn covered() -> Record {
        let before = ReconcileRules::begin_record(None, now(0).wall);
        match rules().record_after(None, &before, &success(), &[], now(0).wall) {
            RecordChange::Store(record) => record,
            other => panic!("a record is stored: {other:?}"),
        }
    }

    #[test]
    fn the_first_call_is_for_a_new_object_or_for_one_that_was_found() {
        let memory = ReconcileMemory::default();
        let due = memory.due(&rules(), spec(1), None, &now(0));
        assert_eq!(reasons(due), [ReconcileReason::Created]);
        let due = memory.due(&rules(), spec(1), Some(&covered()), &now(0));
        assert_eq!(reasons(due), [ReconcileReason::Listed]);
    }

    #[test]
    fn after_a_call_it_rests_until_something_happens_or_the_interval_is_over() {
        let (rules, mut memory) = (rules(), ReconcileMemory::default());
        let record = covered();
        memory.called(&rules, spec(1), &success(), None, &now(0));
        let due = |memory: &ReconcileMemory, digest, second| {
            memory.due(&rules, spec(digest), Some(&record), &now(second))
        };
        assert_eq!(
            due(&memory, 1, 100),
            ReconcileDue::After(Duration::from_secs(500))
        );
        assert_eq!(reasons(due(&memory, 2, 1)), [ReconcileReason::Changed]);
        assert_eq!(reasons(due(&memory, 1, 600)), [ReconcileReason::Interval]);
        memory.called(
            &rules,
            spec(1),
            &success(),
            Some(Duration::from_secs(5)),
            &now(0),
        );
        assert_eq!(reasons(due(&memory, 1, 5)), [ReconcileReason::Asked]);
        memory.drop_seen();
        assert_eq!(reasons(due(&memory, 1, 5)), [ReconcileReason::Listed]);
        let without = ReconcileRules {
            interval: None,
            ..rules.clone()
        };
        memory.called(&without, spec(1), &success(), None, &now(0));
        assert_eq!(due(&memory, 1, 10_000), ReconcileDue::Never);
    }

    #[test]
    fn many_events_are_one_call() {
        let (rules, mut memory) = (rules(), ReconcileMemory::default());
        memory.called(&rules, spec(1), &success(), None, &now(0));
        for _ in 0..5 {
            let mut happened = ReconcileReasons::default();
            happened.add(ReconcileReason::Asked);
            memory.note(happened);
        }
        let due = memory.due(&rules, spec(2), Some(&covered()), &now(1));
        assert_eq!(
            reasons(due),
            [ReconcileReason::Changed, ReconcileReason::Asked]
        );
        memory.called(&rules, spec(2), &success(), None, &now(1));
        let due = memory.due(&rules, spec(2), Some(&covered()), &now(1));
        assert!(matches!(due, ReconcileDue::After(_)));
    }

    #[test]
    fn a_failure_is_repeated_after_its_delay_or_at_a_change() {
        let (rules, mut memory) = (rules(), ReconcileMemory::default());
        let stored = covered();
        let before = ReconcileRules::begin_record(Some(&stored), now(10).wall);
        let change = rules.record_after(Some(&stored), &before, &retry(60), &[], now(10).wall);
        let RecordChange::Store(failing) = change else {
            panic!("the failure is recorded")
        };
        assert_eq!(failing.retries, 1);
        memory.called(&rules, spec(1), &retry(60), None, &now(10));
        let mut happened = ReconcileReasons::default();
        happened.add(ReconcileReason::Asked);
        memory.note(happened);
        let due = |digest, second| memory.due(&rules, spec(digest), Some(&failing), &now(second));
        assert_eq!(due(1, 20), ReconcileDue::After(Duration::from_secs(50)));
        let expected = [ReconcileReason::Asked, ReconcileReason::Failed];
        assert_eq!(reasons(due(1, 70)), expected);
        assert!(reasons(due(2, 20)).contains(&ReconcileReason::Changed));

        let before = ReconcileRules::begin_record(Some(&failing), now(70).wall);
        assert_eq!(before.retries, 1, "it goes on");
        let change = rules.record_after(Some(&failing), &before, &success(), &[], now(70).wall);
        let RecordChange::Store(record) = change else {
            panic!("the record of the failure is replaced")
        };
        assert!(record.success && record.retries == 0);
    }

    #[test]
    fn a_failure_is_repeated_in_time_though_the_clock_is_set_back() {
        let (rules, mut memory) = (rules(), ReconcileMemory::default());
        let hour_ahead = |second: u64| Now {
            wall: now(second + 3600).wall,
            ..now(second)
        };
        let stored = covered();
        let wall = hour_ahead(10).wall;
        let before = ReconcileRules::begin_record(Some(&stored), wall);
        let change = rules.record_after(Some(&stored), &before, &retry(60), &[], wall);
        let RecordChange::Store(failing) = change else {
            panic!("the failure is recorded")
        };
        memory.called(&rules, spec(1), &retry(60), None, &hour_ahead(10));
        let due = |second| memory.due(&rules, spec(1), Some(&failing), &now(second));
        assert_eq!(due(20), ReconcileDue::After(Duration::from_secs(50)));
        assert_eq!(reasons(due(70)), [ReconcileReason::Failed]);
    }

    #[test]
    fn at_rest_nothing_is_written() {
        let (rules, stored) = (rules(), covered());
        let before = ReconcileRules::begin_record(Some(&stored), now(10).wall);
        let change = rules.record_after(Some(&stored), &before, &success(), &[], now(10).wall);
        assert_eq!(change, RecordChange::Keep);
        let more = ReconcileRules {
            kinds: vec![HandlerId::new("v1/ConfigMap"), HandlerId::new("v1/Secret")],
            ..rules.clone()
        };
        let change = more.record_after(Some(&stored), &before, &success(), &[], now(10).wall);
        assert!(matches!(change, RecordChange::Store(_)), "a kind is new");
        let childless = ReconcileRules {
            kinds: Vec::new(),
            ..rules
        };
        let before = ReconcileRules::begin_record(None, now(10).wall);
        let change = childless.record_after(None, &before, &success(), &[], now(10).wall);
        assert_eq!(change, RecordChange::Keep);
    }

    #[test]
    fn an_applied_child_makes_the_record_of_its_kind_superfluous() {
        let rules = ReconcileRules {
            kinds: vec![HandlerId::new("v1/ConfigMap"), HandlerId::new("v1/Secret")],
            ..rules()
        };
        let after = |stored: Option<&Record>, applied: &[HandlerId]| {
            let before = ReconcileRules::begin_record(stored, now(10).wall);
            rules.record_after(stored, &before, &success(), applied, now(10).wall)
        };
        assert_eq!(after(None, &rules.kinds), RecordChange::Keep);
        let secret = &rules.kinds[1..];
        assert!(matches!(after(None, secret), RecordChange::Store(_)));
        let config_maps = covered();
        assert_eq!(after(Some(&config_maps), secret), RecordChange::Keep);
        let begun = ReconcileRules::begin_record(Some(&config_maps), now(0).wall);
        let failing = retry(60).apply(&begun, now(0).wall);
        assert!(matches!(
            after(Some(&failing), secret),
            RecordChange::Store(_)
        ));
        assert_eq!(after(Some(&failing), &rules.kinds), RecordChange::Purge);
    }

    #[test]
    fn a_failure_for_good_leaves_no_record_of_its_own() {
        let rules = rules();
        let failed = Consequence::Failed {
            message: "no".to_owned(),
        };
        let before = ReconcileRules::begin_record(None, now(1).wall);
        let change = rules.record_after(Some(&before), &before, &failed, &[], now(1).wall);
        assert_eq!(change, RecordChange::Purge);
        let stored = covered();
        let before = ReconcileRules::begin_record(Some(&stored), now(1).wall);
        let change = rules.record_after(Some(&stored), &before, &failed, &[], now(1).wall);
        assert_eq!(change, RecordChange::Keep);
    }

    #[test]
    fn the_status_counts_if_it_is_asked_for() {
        let mut rules = rules();
        let digest = |rules: &ReconcileRules, phase: &str| {
            let essence = Essence::from_value(json!({"spec": 1}));
            rules.digest(&essence, &json!({"status": {"phase": phase}}))
        };
        assert_eq!(digest(&rules, "a"), digest(&rules, "b"));
        rules.status = StatusChanges::Count;
        assert_ne!(digest(&rules, "a"), digest(&rules, "b"));
    }
}
