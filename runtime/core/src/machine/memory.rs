//! The state of an object between two calls; small, as there may be many objects.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    background::Moment,
    cause::{
        Reason,
        detect::{EventKind, ObjectHistory},
    },
    children::reasons::ReconcileReasons,
    handler::finalizer_need::FinalizerNeed,
    machine::{
        now::Now,
        reconcile::{ReconcileMemory, ReconcileRules},
        write::{OnConflict, ReadBack},
    },
    object::{ObjectView, patch::ObjectPatch, resource_version::ResourceVersion},
    reverts::{RevertHistory, StateDigest, WriteRate},
    time::ClockReading,
    turn::{Decision, TurnInput},
};

/// The state of one object; a restarted operator goes on without it.
///
/// `K` is the form in which the caller keeps the state of an object whose turn is due later.
#[derive(Debug)]
pub struct ObjectMemory<K> {
    /// How the object was first observed; none until its first event.
    pub(super) history: Option<ObjectHistory>,
    /// The version after our last write: older events are redundant.
    pub(super) written: Option<ResourceVersion>,
    /// Failures in a row of the runtime itself, not of handlers.
    pub(super) failures: u8,
    /// The rate of our writes to the object.
    pace: WriteRate,
    /// The source of the newest state.
    pub(super) news: NewestSource,
    /// What few objects have.
    aside: Option<Box<Aside<K>>>,
}

/// The part of the memory that few objects have.
#[derive(Debug)]
struct Aside<K> {
    /// The state that the planned call goes on with; none if no call is planned.
    planned: Option<K>,
    /// The states of an object to which we write very often.
    reverts: Option<RevertHistory>,
    /// The write that the API server rejected.
    unwritten: Option<UnwrittenTurn>,
    /// What is known of `reconcile`.
    reconcile: Option<ReconcileMemory>,
    /// The clocks when the waits of handlers were recorded; none if no handler waits.
    waiting_since: Option<ClockReading>,
}

/// The source of the newest state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewestSource {
    /// A watch.
    Watch,
    /// A list, among many others.
    List,
    /// The time before a pause: a list brings the object again.
    BeforePause,
    /// The answer to our last write: the object is gone, and its deletion event follows.
    Gone,
}

/// The events of an object since its last call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchSummary {
    /// The kind of the first event.
    pub first: Option<EventKind>,
    /// The newest event.
    pub newest: Option<NewestEvent>,
    /// Whether the object is to be handled without an event.
    pub requeued: bool,
    /// What happened to children and to objects that are referred to.
    pub reasons: ReconcileReasons,
}

/// The newest event of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestEvent {
    /// The kind of the event.
    pub kind: EventKind,
    /// The version of the object.
    pub version: Option<ResourceVersion>,
    /// Whether the object is at hand; otherwise it is read from the API server.
    pub has_text: bool,
}

/// The write of a turn.
#[derive(Debug)]
pub(super) struct TurnWrite {
    pub(super) patch: ObjectPatch,
    pub(super) on_conflict: OnConflict,
    pub(super) read_back: ReadBack,
    /// The change of the finalizer that is in the patch.
    pub(super) finalizer: FinalizerNeed,
    /// Whether the patch has records, notes or a base, and not only what handlers write.
    pub(super) has_facts: bool,
}

/// The write of a turn whose handlers were called, and that is not on the object yet.
#[derive(Debug)]
pub(super) struct UnwrittenTurn {
    pub(super) write: TurnWrite,
    /// The state that it was made for.
    pub(super) made_for: Arc<Value>,
    /// How often the API server rejected it.
    pub(super) failures: u32,
    /// The time of the next attempt.
    pub(super) next: Moment,
    /// The reason that was reported last.
    pub(super) reason: String,
    /// The epoch: after a pause, another operator may have handled the object.
    pub(super) epoch: u64,
    /// Whether the object was being deleted.
    pub(super) deleting: bool,
}

/// The decision about the start of a turn.
pub(super) enum TurnStart {
    /// The turn starts as usual.
    Unrestricted,
    /// The turn starts, and its state is noted if it writes.
    Tracked(StateDigest),
    /// The turn starts after this time: our write to this very state was reverted.
    Reverted(Duration),
}

// === impl ObjectMemory ===

impl<K> Default for ObjectMemory<K> {
    fn default() -> Self {
        Self {
            history: None,
            written: None,
            failures: 0,
            pace: WriteRate::default(),
            news: NewestSource::Watch,
            aside: None,
        }
    }
}

impl<K> ObjectMemory<K> {
    /// Whether a batch needs no call: it has only the event of our last write, and no turn is due.
    ///
    /// A kind with event handlers needs each event.
    #[must_use]
    pub fn is_redundant(&self, batch: &BatchSummary, needs_each_event: bool) -> bool {
        !needs_each_event
            && !batch.requeued
            && !self.is_planned()
            && batch.newest.as_ref().is_some_and(|newest| {
                newest.kind == EventKind::Changed && !self.is_new_state(newest)
            })
    }

    /// Drops the known state at a pause: another operator may change it meanwhile.
    pub fn drop_plan(&mut self) {
        self.take_plan();
        let aside = self.aside.as_mut();
        if let Some(reconcile) = aside.and_then(|aside| aside.reconcile.as_mut()) {
            reconcile.drop_seen();
        }
        self.set_waiting_since(None);
        if self.news != NewestSource::Gone && !planted!(RequeueAfterPause) {
            self.news = NewestSource::BeforePause;
        }
    }

    /// Keeps the state that the planned call goes on with.
    pub fn plan(&mut self, state: K) {
        self.aside_mut().planned = Some(state);
    }

    fn is_planned(&self) -> bool {
        let aside = self.aside.as_ref();
        aside.is_some_and(|aside| aside.planned.is_some())
    }

    pub(super) fn take_plan(&mut self) -> Option<K> {
        let planned = self.aside.as_mut()?.planned.take();
        self.tidy();
        planned
    }

    /// Whether an event has a state that is to be handled. The state of our last write is handled
    /// again if a list brings it, because daemons and timers of the object may have to start, and
    /// after a pause: what was known of it is dropped, and its event may be newer than the list.
    pub(super) fn is_new_state(&self, newest: &NewestEvent) -> bool {
        let is_wanted = newest.kind == EventKind::Listed
            || (self.news == NewestSource::BeforePause && !planted!(OwnWriteDroppedAtPause));
        let is_own = newest.version.is_some() && newest.version == self.written;
        (is_wanted && is_own) || !self.is_stale(newest.version.as_ref())
    }

    /// Whether a version is not newer than our last write.
    pub(super) fn is_stale(&self, version: Option<&ResourceVersion>) -> bool {
        match (version, &self.written) {
            _ if planted!(StaleEventHandled) => false,
            (Some(version), Some(written)) => version.is_not_newer_than(written),
            _ => false,
        }
    }

    /// Keeps a write that the API server rejected.
    pub(super) fn keep_unwritten(&mut self, unwritten: UnwrittenTurn) {
        if planted!(RejectedRecordDropped) {
            return;
        }
        self.aside_mut().unwritten = Some(unwritten);
    }

    /// Takes the write that was kept, unless it is from before a pause or before the deletion,
    /// which calls other handlers and needs no record of those that were called before.
    pub(super) fn take_unwritten(&mut self, epoch: u64, deleting: bool) -> Option<UnwrittenTurn> {
        let unwritten = self.aside.as_mut()?.unwritten.take();
        self.tidy();
        unwritten.filter(|it| it.epoch == epoch && it.deleting == deleting)
    }

    /// Decides whether a turn may start on this state; `pauses` gives the pause after so many
    /// reverts.
    pub(super) fn turn_start(
        &mut self,
        input: &TurnInput,
        reconcile: Option<&ReconcileRules>,
        now: &Now,
        pauses: impl Fn(u32) -> Duration,
    ) -> TurnStart {
        if !self.pace.is_suspicious(now.wall) {
            return TurnStart::Unrestricted;
        }
        let digest = StateDigest::of(
            &input.change,
            input.view(),
            &input.registry,
            &input.persistence,
        );
        let is_own = reconcile.is_some_and(|rules| self.is_own_return(rules, input));
        let aside = self.aside.as_mut();
        let Some(history) = aside.and_then(|aside| aside.reverts.as_mut()) else {
            return TurnStart::Tracked(digest);
        };
        if history.is_over(now.wall) {
            self.aside_mut().reverts = None;
            self.tidy();
            self.pace.set_has_history(false);
            return TurnStart::Tracked(digest);
        }
        if is_own {
            history.forget(digest);
            return TurnStart::Tracked(digest);
        }
        match history.pause_for(digest, now.wall, pauses) {
            Some(pause) => TurnStart::Reverted(pause),
            None => TurnStart::Tracked(digest),
        }
    }

    /// Whether the state is that of our last write, which changed nothing but the record of
    /// `reconcile`. A change of the rest counts: a handler may change its own object to and fro.
    fn is_own_return(&self, rules: &ReconcileRules, input: &TurnInput) -> bool {
        let version = input.view().resource_version().map(ResourceVersion::new);
        let is_own = version.is_some() && version == self.written;
        if !is_own || planted!(OwnRecordTakenForReturn) {
            return false;
        }
        // The last handled state of an object that change handlers ignore is not renewed.
        let is_handled = input.change.reason == Reason::Noop
            || input.with_subject(|subject| input.registry.ignores(subject));
        let aside = self.aside.as_ref();
        let known = aside.and_then(|aside| aside.reconcile.as_ref());
        let has_seen =
            |known: &ReconcileMemory| known.has_seen(rules.digest(&input.change.new, &input.body));
        is_handled && known.is_some_and(has_seen)
    }

    /// Counts a write, to the state with this digest.
    pub(super) fn count_write(&mut self, digest: Option<StateDigest>, now: &Now) {
        self.pace.count(now.wall);
        if let Some(digest) = digest {
            self.pace.set_has_history(true);
            let reverts = &mut self.aside_mut().reverts;
            reverts
                .get_or_insert_default()
                .record_write(digest, now.wall);
        }
    }

    /// What is known of `reconcile`; from now on, there is something to know.
    pub(super) fn reconcile(&mut self) -> &mut ReconcileMemory {
        self.aside_mut().reconcile.get_or_insert_default()
    }

    /// Whether a child needs our finalizer on the object.
    pub(super) fn wants_finalizer(&self) -> bool {
        let aside = self.aside.as_ref();
        let reconcile = aside.and_then(|aside| aside.reconcile.as_ref());
        reconcile.is_some_and(ReconcileMemory::wants_finalizer)
    }

    /// How far the clock was set back since the waits of handlers were recorded.
    pub(super) fn clock_set_back(&self, now: &Now) -> Duration {
        let since = self.aside.as_ref().and_then(|aside| aside.waiting_since);
        since.map_or(Duration::ZERO, |since| since.set_back(&now.clocks()))
    }

    /// Notes the clocks by which the waits of handlers were recorded.
    pub(super) fn set_waiting_since(&mut self, clocks: Option<ClockReading>) {
        if clocks.is_some() || self.aside.is_some() {
            self.aside_mut().waiting_since = clocks;
            self.tidy();
        }
    }

    fn aside_mut(&mut self) -> &mut Aside<K> {
        self.aside.get_or_insert_with(|| {
            Box::new(Aside {
                planned: None,
                reverts: None,
                unwritten: None,
                reconcile: None,
                waiting_since: None,
            })
        })
    }

    fn tidy(&mut self) {
        self.aside.take_if(|aside| {
            aside.planned.is_none()
                && aside.reverts.is_none()
                && aside.unwritten.is_none()
                && aside.reconcile.is_none()
                && aside.waiting_since.is_none()
        });
    }
}

// === impl TurnWrite ===

impl From<ObjectPatch> for TurnWrite {
    fn from(patch: ObjectPatch) -> Self {
        Self {
            patch,
            on_conflict: OnConflict::Repeat,
            read_back: ReadBack::Always,
            finalizer: FinalizerNeed::Settled,
            has_facts: true,
        }
    }
}

// === impl UnwrittenTurn ===

impl UnwrittenTurn {
    pub(super) fn new(write: TurnWrite, made_for: &Arc<Value>, now: &Now) -> Self {
        Self {
            write,
            made_for: Arc::clone(made_for),
            failures: 0,
            next: now.steady,
            reason: String::new(),
            epoch: now.epoch,
            deleting: ObjectView::new(made_for).is_being_deleted(),
        }
    }

    /// Whether it was decided from the state alone, without any call.
    pub(super) fn is_of_decision(&self) -> bool {
        self.write.on_conflict == OnConflict::Report
    }

    /// The write that the present state needs, if it needs one of this sort: a daemon may have
    /// started meanwhile, or another operator may have handled the object.
    pub(super) fn renewed(mut self, decision: Decision, input: &TurnInput) -> Option<Self> {
        match (decision, self.write.finalizer) {
            (Decision::CloseReverted(patch), FinalizerNeed::Settled) => {
                self.write.patch = patch;
                self.made_for = Arc::clone(&input.body);
                Some(self)
            }
            (Decision::Finalizer(need), finalizer) if need == finalizer => Some(self),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(kind: EventKind, version: &str) -> BatchSummary {
        BatchSummary {
            first: Some(kind),
            newest: Some(NewestEvent {
                kind,
                version: Some(ResourceVersion::new(version)),
                has_text: true,
            }),
            ..BatchSummary::default()
        }
    }

    fn memory() -> ObjectMemory<()> {
        ObjectMemory {
            written: Some(ResourceVersion::new("5")),
            ..ObjectMemory::default()
        }
    }

    #[test]
    fn the_memory_of_an_object_takes_forty_bytes() {
        assert_eq!(size_of::<ObjectMemory<[u64; 9]>>(), 40);
    }

    #[test]
    fn the_event_of_our_own_write_is_redundant_unless_the_object_was_requeued() {
        let memory = memory();
        let own = batch(EventKind::Changed, "5");
        assert!(memory.is_redundant(&own, false));
        assert!(!memory.is_redundant(&own, true));
        assert!(!memory.is_redundant(&batch(EventKind::Changed, "6"), false));
        let requeued = BatchSummary {
            requeued: true,
            ..own
        };
        assert!(!memory.is_redundant(&requeued, false));
    }

    #[test]
    fn the_event_of_our_own_write_wakes_an_object_with_a_planned_call() {
        let mut memory = memory();
        memory.plan(());
        let own = batch(EventKind::Changed, "5");
        assert!(!memory.is_redundant(&own, false));
        memory.take_plan();
        assert!(memory.is_redundant(&own, false));
        assert!(memory.aside.is_none());
    }

    #[test]
    fn after_a_pause_the_event_of_our_own_write_is_handled() {
        let mut memory = memory();
        let own = batch(EventKind::Changed, "5");
        assert!(memory.is_redundant(&own, false));
        memory.drop_plan();
        assert!(!memory.is_redundant(&own, false));
        assert!(memory.is_redundant(&batch(EventKind::Changed, "4"), false));
        memory.news = NewestSource::List;
        assert!(memory.is_redundant(&own, false));
    }

    #[test]
    fn a_list_that_shows_the_state_of_our_last_write_is_handled() {
        let memory = memory();
        let is_new = |kind, version| {
            let newest = batch(kind, version).newest;
            newest.is_some_and(|it| memory.is_new_state(&it))
        };
        assert!(is_new(EventKind::Listed, "5"));
        assert!(is_new(EventKind::Listed, "6"));
        assert!(!is_new(EventKind::Listed, "4"));
        assert!(!is_new(EventKind::Changed, "5"));
    }
}
