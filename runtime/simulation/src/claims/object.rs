//! What happened to one object, as the claims need it.

use std::sync::Arc;

use kopf_core::cause::Reason;
use kopf_core::handler::{HandlerId, Trigger};
use kopf_core::object::diff::same;
use serde_json::Value;

use super::process::{RunningPeriod, Sender};
use super::shown::{ShownEnd, ShownObject, declared, scope};

use crate::operator::{BegunCall, OperatorSetup, parent_of, sub_field};
use crate::server::version;
use crate::time::VirtualTime;
use crate::world::Violation;

#[derive(Debug, Default)]
pub(super) struct TrackedObject {
    pub(super) calls: Vec<TrackedCall>,
    /// The calls of event handlers.
    pub(super) event_calls: u32,
    /// Requests of others for the object.
    pub(super) disturbances: u32,
    pub(super) writes: u32,
    pub(super) changes: u32,
    pub(super) reads: u32,
    /// The time at which the last of the executed writes of records was sent.
    pub(super) newest_sent: VirtualTime,
    /// Whether others have ever removed facts.
    pub(super) facts_removed: bool,
    /// Whether it has ever lost the label that the operators watch.
    pub(super) has_left_watch: bool,
    /// Whether a write of a process was executed after its end.
    pub(super) written_after_end: bool,
    /// The executed writes of records: when, and of which process.
    pub(super) records: Vec<(VirtualTime, usize)>,
}

/// An attempt of a handler.
#[derive(Debug)]
pub(super) struct TrackedCall {
    pub(super) handler: HandlerId,
    pub(super) reason: Reason,
    pub(super) state: Arc<Value>,
    /// The sub-handlers that it registered.
    pub(super) registered: Vec<HandlerId>,
    /// Those of them that matched.
    pub(super) subs: Vec<HandlerId>,
    pub(super) finished: bool,
    pub(super) sender: Sender,
    /// The period of its process.
    period: RunningPeriod,
    pub(super) ended: bool,
    /// The time since which the object shows that it has finished.
    persisted: Option<VirtualTime>,
    /// Whether others have removed the facts about it, so that the operator may make it again.
    forgotten: bool,
    /// The version of the object that shows its end again after others had removed the facts:
    /// an operator that knows an older one may make it again, too.
    shown_again: Option<u64>,
    /// Whether its end was rejected, so that it counts as failed. The API server may execute a
    /// request without an answer later, and the object says that it has finished.
    pub(super) refused: bool,
}

/// The bounds on the writes to one object.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteBounds {
    /// Requests, whether they change the object or not.
    pub(super) requests: u32,
    /// Disturbances of any object.
    pub(super) disturbances: u32,
    /// Whether writes have no other reasons than those that are counted.
    pub(super) reasons_known: bool,
}

// === impl TrackedObject ===

impl TrackedObject {
    /// An attempt begins.
    pub(super) fn begun(
        &mut self,
        setup: &OperatorSetup,
        sender: Sender,
        period: RunningPeriod,
        call: &BegunCall,
        shared: bool,
    ) -> Result<(), Violation> {
        self.check_repetition(setup, sender, period, call, shared)?;
        // The operator may not know yet that the object has left the watch.
        let forgotten = self.has_left_watch;
        let call = TrackedCall::new(sender, period, call, forgotten);
        self.calls.push(call);
        Ok(())
    }

    /// An attempt has ended, or its end has changed because its patch was rejected.
    pub(super) fn ended(&mut self, sender: Sender, handler: &HandlerId, finished: bool) {
        let mut calls = self.calls.iter_mut();
        let call = calls.rfind(|it| it.handler == *handler && it.sender == sender);
        if let Some(call) = call {
            call.ended = true;
            call.refused |= call.finished && !finished;
            // A write without an answer may be on the object, and be rejected when it is repeated.
            call.finished = finished || call.is_done();
        }
    }

    /// The attempts of some processes have ended without a result.
    pub(super) fn cut(&mut self, is_cut: impl Fn(Sender) -> bool) {
        let cut = self.calls.iter_mut().filter(|it| is_cut(it.sender));
        cut.for_each(|it| it.ended = true);
    }

    /// A handler is not called again for a state on which its end was persisted, and not by the
    /// same operator for a state on which it has finished, whether that is persisted or not.
    fn check_repetition(
        &self,
        setup: &OperatorSetup,
        sender: Sender,
        period: RunningPeriod,
        call: &BegunCall,
        shared: bool,
    ) -> Result<(), Violation> {
        let id = &call.handler;
        let last = self.calls.iter().rfind(|it| it.handler == *id);
        let Some(last) = last else {
            return Ok(());
        };
        if self.was_without(id) {
            return Ok(());
        }
        // A write may land when its process is dead or has paused, and the next one, or the same
        // one after its pause, has listed the object. Peers may even run at once for a while, as
        // their records are no locks.
        let is_undisputed = |it: &TrackedCall| {
            let is_own = it.sender == sender && it.period.number == period.number;
            let is_listed = is_own || it.persisted.is_some_and(|it| it < period.since);
            let is_seen = it.shown_again.is_none_or(|again| again <= call.version);
            is_listed && is_seen && (!shared || self.is_undisputed(it, sender, period))
        };
        let resumes = declared(setup, id).any(|it| matches!(it.trigger, Trigger::Resume { .. }));
        if call.reason == Reason::Create && !resumes {
            let mut done = self.calls.iter().filter(|it| it.handler == *id);
            let creates = |it: &TrackedCall| {
                let is_shown = !(setup.progress_in_status && it.forgotten);
                it.is_done() && !it.refused && it.reason == Reason::Create && is_shown
            };
            if done.any(|it| creates(it) && is_undisputed(it)) {
                let details = format!("{id} for {}", call.uid);
                return Err(Violation::new("creation is not repeated", details));
            }
        }
        let deletes = |reason: Reason| reason == Reason::Delete;
        // Each start of an operator resumes each object, and its deletion has another handling.
        // The end of a cycle removes the record of a resume handler. If its answer comes after a
        // pause, nothing says that the handler has finished.
        let is_same_period = last.sender == sender && last.period.number == period.number;
        let is_due = call.initial && resumes && !is_same_period;
        // An end that was rejected when an earlier request had already been executed: that request
        // has removed the record of the resume handler, and the operator does not know it.
        let mut of_sender = self.calls.iter().filter(|it| it.sender == sender);
        let is_due = is_due || resumes && of_sender.any(|it| it.refused && it.finished);
        // Progress in the status takes two requests: if the second one is rejected, or the object
        // is not written otherwise, the first one may have removed the records of others.
        // The sub-handlers of an attempt that is cut off, or cannot be written, are called again.
        let remembered = last.sender == sender
            && parent_of(id.as_str()).is_none()
            && last.period.number == period.number
            && !last.forgotten
            && !setup.progress_in_status;
        let is_shown = last.persisted.is_some() && !(setup.progress_in_status && last.forgotten);
        let known = last.finished && !last.refused && (is_shown || remembered);
        let is_other = deletes(last.reason) != deletes(call.reason);
        if !known || is_due || is_other || !is_undisputed(last) {
            return Ok(());
        }
        let path = scope(setup, id);
        let is_alike = |it: &TrackedCall| same(path.resolve(&it.state), path.resolve(&call.state));
        // A handler is called again for sub-handlers that have not handled the state, and for those
        // whose end a peer has replaced by one of its own.
        if is_alike(last) && self.subs_are_done(last, &is_alike, &is_undisputed) {
            let details = format!("{id} for {}", call.uid);
            return Err(Violation::new("nothing is repeated without need", details));
        }
        Ok(())
    }

    /// Whether the last calls of the sub-handlers of a call, of all levels, are done. One that did
    /// not match is if the last value of its field that it has handled is still there.
    fn subs_are_done(
        &self,
        call: &TrackedCall,
        is_alike: &impl Fn(&TrackedCall) -> bool,
        is_undisputed: &impl Fn(&TrackedCall) -> bool,
    ) -> bool {
        call.registered.iter().all(|sub| {
            let finished = |it: &&TrackedCall| it.handler == *sub && it.finished;
            let last = self.calls.iter().rfind(finished);
            let Some(last) = last else {
                return !call.subs.contains(sub);
            };
            let is_done = match call.subs.contains(sub) {
                true => is_alike(last) && self.subs_are_done(last, is_alike, is_undisputed),
                false => sub_field(sub).is_none_or(|field| {
                    same(field.resolve(&last.state), field.resolve(&call.state))
                }),
            };
            is_done && is_undisputed(last)
        })
    }

    /// Whether a handler above a sub-handler has finished without the next one below since its last
    /// attempt, so that nothing is known of that attempt any more.
    pub(super) fn was_without(&self, id: &HandlerId) -> bool {
        let of_id = |it: &&TrackedCall| it.handler != *id;
        let since: Vec<_> = self.calls.iter().rev().take_while(of_id).collect();
        has_finished_without(id, &since)
    }

    /// Whether another process than that of its last attempt has finished a handler above a
    /// sub-handler for some state without the next one below: its write may come after that attempt.
    pub(super) fn peer_was_without(
        &self,
        id: &HandlerId,
        is_for_state: impl Fn(&TrackedCall) -> bool,
    ) -> bool {
        let last = self.calls.iter().rfind(|it| it.handler == *id);
        let is_of_peer = |it: &&TrackedCall| {
            let of_last = last.map(|last| last.sender.process);
            of_last != Some(it.sender.process) && is_for_state(it)
        };
        let of_peers: Vec<_> = self.calls.iter().filter(is_of_peer).collect();
        has_finished_without(id, &of_peers)
    }

    /// Whether no other process can have acted on what was there before an attempt ended: all
    /// records since are of its own process, or of the one that has listed the object afterwards.
    fn is_undisputed(&self, last: &TrackedCall, sender: Sender, period: RunningPeriod) -> bool {
        // A write of a process that has ended may have replaced what a peer has recorded since.
        if self.written_after_end {
            return false;
        }
        // After its pause, a process may still write the ends of attempts from before.
        let is_late = |it: &TrackedCall| it.sender == sender && it.period.number != period.number;
        if last.sender != sender && self.calls.iter().any(is_late) {
            return false;
        }
        let since = last.period.since;
        let since = self.records.iter().filter(|(at, _)| *at >= since);
        if last.sender.process == sender.process {
            return since.clone().all(|(_, by)| *by == sender.process);
        }
        since.clone().all(|(at, by)| match *at > period.since {
            true => *by == sender.process,
            false => *by == last.sender.process,
        })
    }

    /// Compares the attempts with what the object says about them.
    pub(super) fn compare(
        &mut self,
        setup: &OperatorSetup,
        object: &Value,
        removes: bool,
        shared: bool,
        now: VirtualTime,
    ) {
        let shown = ShownObject::new(setup, object);
        let since = (now, version(object));
        if !setup.watches(object) {
            self.left_watch();
        }
        self.facts_removed |= removes;
        let facts_removed = self.facts_removed;
        for call in self.calls.iter_mut().filter(|it| it.refused) {
            let by_record = shown.by_record(&call.handler);
            let is_shown = match by_record {
                Some(end) => end == ShownEnd::Finished,
                None => call.is_shown_by_base(&shown),
            };
            call.finished |= is_shown;
        }
        for at in (0..self.calls.len()).rev() {
            let (earlier, later) = self.calls.split_at_mut(at + 1);
            let Some((call, earlier)) = earlier.split_last_mut() else {
                return;
            };
            let is_end = |it: &TrackedCall| it.ended && it.finished;
            // Only the last end of a handler is shown.
            let is_outdated = |it: &TrackedCall| is_end(it) && it.handler == call.handler;
            if !is_end(call) || later.iter().any(is_outdated) {
                continue;
            }
            let of_handler = earlier.iter_mut().filter(|it| it.handler == call.handler);
            match shown.by_record(&call.handler) {
                Some(ShownEnd::Finished) => call.shown_finished(since),
                Some(_) => {
                    // The second request of a write may have been rejected after the first one.
                    // Or others have removed the last handled state that its note names.
                    call.forgotten |= setup.progress_in_status || facts_removed;
                    // What others remove is the base, which showed the end of earlier cycles.
                    of_handler.for_each(|it| it.forgotten |= removes);
                }
                None if call.is_shown_by_base(&shown) => {
                    // Any base shows that a creation is handled. Each peer writes that of its own
                    // attempt, and one that stood still does it late.
                    let process = call.sender.process;
                    let is_of_peer = |it: &TrackedCall| it.sender.process != process && is_end(it);
                    for it in of_handler.filter(|it| shared && is_of_peer(it)) {
                        if shown.base_has(&it.handler, &it.state) {
                            it.shown_finished(since);
                        }
                    }
                    call.shown_finished(since);
                }
                None => {
                    call.forgotten |= removes;
                    call.persisted = None;
                    let process = call.sender.process;
                    for it in of_handler {
                        // A peer that stood still may write an end that is older than this one.
                        let is_of_peer = shared && it.sender.process != process && is_end(it);
                        match it.is_shown_by_base(&shown) {
                            true if is_of_peer => it.shown_finished(since),
                            true => {}
                            false => it.persisted = None,
                        }
                    }
                }
            }
        }
    }

    /// The object has lost the label that the operators watch: for them it is gone, and they forget
    /// what they could not write.
    fn left_watch(&mut self) {
        self.has_left_watch = true;
        let unwritten = self.calls.iter_mut().filter(|it| it.persisted.is_none());
        unwritten.for_each(|it| it.forgotten = true);
    }

    /// Writes have a reason: an attempt, a change of the finalizer, or the end of a cycle whose
    /// handlers need not be called. With progress in the status, each takes two requests.
    pub(super) fn check_bounds(
        &self,
        setup: &OperatorSetup,
        uid: &str,
        bounds: WriteBounds,
    ) -> Result<(), Violation> {
        if self.writes > bounds.requests {
            let details = format!("{} writes to {uid}", self.writes);
            return Err(Violation::new("writes to an object are bounded", details));
        }
        let attempts = u32::try_from(self.calls.len()).unwrap_or(u32::MAX) + self.event_calls;
        let parts = 1 + u32::from(setup.status_endpoint);
        let reasons = attempts + 3 + 2 * self.disturbances + bounds.disturbances;
        if self.changes > reasons * parts && bounds.reasons_known {
            let details = format!("{} changes of {uid} for {reasons} reasons", self.changes);
            return Err(Violation::new("each write has a reason", details));
        }
        Ok(())
    }
}

// === impl TrackedCall ===

impl TrackedCall {
    /// An attempt that begins.
    fn new(sender: Sender, period: RunningPeriod, call: &BegunCall, forgotten: bool) -> Self {
        Self {
            handler: call.handler.clone(),
            reason: call.reason,
            state: Arc::clone(&call.state),
            registered: call.registered.clone(),
            subs: call.subs.clone(),
            finished: false,
            sender,
            period,
            ended: false,
            persisted: None,
            forgotten,
            shown_again: None,
            refused: false,
        }
    }

    /// Whether no other attempt follows, and the API server knows it.
    pub(super) fn is_done(&self) -> bool {
        self.finished && self.persisted.is_some()
    }

    /// Whether others have removed the facts about its end at some time.
    pub(super) fn was_forgotten(&self) -> bool {
        self.forgotten || self.shown_again.is_some()
    }

    /// The object shows its end, since this time and version.
    fn shown_finished(&mut self, (now, version): (VirtualTime, u64)) {
        self.persisted = self.persisted.or(Some(now));
        if self.forgotten {
            self.forgotten = false;
            self.shown_again = Some(version);
        }
    }

    /// Whether an object that has no record of the handler says that the attempt has finished.
    fn is_shown_by_base(&self, shown: &ShownObject<'_>) -> bool {
        let end = shown.without_record(&self.handler, self.reason, &self.state);
        end == ShownEnd::Finished
    }
}

/// Whether one of these attempts is a finished one of a handler above a sub-handler that has not
/// registered the next one below.
fn has_finished_without(id: &HandlerId, calls: &[&TrackedCall]) -> bool {
    let mut below = id.as_str();
    while let Some(parent) = parent_of(below) {
        let has_registered = |it: &TrackedCall| {
            let mut registered = it.registered.iter();
            registered.any(|sub| sub.as_str() == below)
        };
        let mut of_parent = calls.iter().filter(|it| it.handler.as_str() == parent);
        if of_parent.any(|it| it.finished && !has_registered(it)) {
            return true;
        }
        below = parent;
    }
    false
}
