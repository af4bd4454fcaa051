//! What happened to each object, as the claims need it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kopf_core::cause::{Reason, Subject};
use kopf_core::handler::{HandlerId, Trigger};
use kopf_core::object::ObjectView;
use kopf_core::object::diff::same;
use kopf_core::object::finalizer::is_present;
use serde_json::Value;

use super::shown::{ShownEnd, ShownObject, declared, scope};
use crate::operator::{BegunCall, OperatorSetup, parent_of, sub_field};
use crate::server::{ApiAnswer, ApiRequest, SimulatedPatch, Verb, version};
use crate::time::VirtualTime;
use crate::world::Violation;

/// The conflicts after which a merge patch tests no version any more.
const MOST_CONFLICTS: u32 = 5;

/// One start of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sender {
    pub(super) process: usize,
    pub(super) run: u32,
}

/// A request of an operator that the API server has executed.
#[derive(Debug)]
pub(super) struct Landed<'a> {
    pub(super) sender: Sender,
    pub(super) call: u64,
    pub(super) sent: VirtualTime,
    pub(super) now: VirtualTime,
    pub(super) request: &'a ApiRequest,
    pub(super) answer: &'a ApiAnswer,
    pub(super) is_answered: bool,
    pub(super) changed: bool,
}

/// All objects of a history, by uid.
#[derive(Debug, Default)]
pub(super) struct TrackedObjects {
    objects: BTreeMap<String, TrackedObject>,
    /// The writes that were sent, with their objects.
    sent: BTreeMap<(Sender, u64), SentWrite>,
    /// The periods in which processes run.
    periods: BTreeMap<usize, RunningPeriod>,
    /// Whether states do not show edits: the API server has forgotten former ones, or a webhook
    /// has removed a part of what was written with an edit.
    pub(super) edits_unknown: bool,
    /// Whether several processes may run at once.
    pub(super) shared: bool,
    /// The objects that processes have written to since they were asked to stop.
    stopping: BTreeMap<Sender, BTreeSet<String>>,
    /// The daemons and timers that run.
    background: BTreeSet<(Sender, String, usize)>,
    /// The names of objects that processes were forbidden to read.
    unreadable: BTreeSet<(Sender, String)>,
    /// The uids of objects that have our finalizer.
    held: std::cell::RefCell<BTreeSet<String>>,
    /// The times at which the last removals of our finalizer were sent and executed, by uid.
    removals: BTreeMap<String, (VirtualTime, VirtualTime)>,
}

#[derive(Debug)]
struct SentWrite {
    uid: String,
    has_records: bool,
    /// Whether it follows so many conflicts that it tests no version.
    is_forced: bool,
}

/// The last period in which a process ran, or the pause after it.
#[derive(Debug, Clone, Copy, Default)]
struct RunningPeriod {
    /// Different for each period of a process.
    number: u32,
    since: VirtualTime,
    /// The start of the process.
    run: u32,
}

#[derive(Debug, Default)]
pub(super) struct TrackedObject {
    pub(super) calls: Vec<TrackedCall>,
    /// The calls of event handlers.
    event_calls: u32,
    /// Requests of others for the object.
    disturbances: u32,
    writes: u32,
    changes: u32,
    reads: u32,
    /// The time at which the last of the executed writes of records was sent.
    newest_sent: VirtualTime,
    /// Whether others have ever removed facts.
    pub(super) facts_removed: bool,
    /// Whether it has ever lost the label that the operators watch.
    has_left_watch: bool,
    /// Whether a late write has replaced newer facts, as its process may not read the object.
    overwritten: bool,
    /// Whether a write of a process was executed after its end.
    pub(super) written_after_end: bool,
    /// The writes that each process has sent since the last one whose acceptance was sent to it: not
    /// more than these were conflicts for it, some of which no API server has seen.
    unaccepted: BTreeMap<Sender, u32>,
    /// The executed writes of records: when, and of which process.
    records: Vec<(VirtualTime, usize)>,
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
    ended: bool,
    /// The time since which the object shows that it has finished.
    persisted: Option<VirtualTime>,
    /// Whether others have removed the facts about it, so that the operator may make it again.
    forgotten: bool,
    /// The version of the object that shows its end again after others had removed the facts:
    /// an operator that knows an older one may make it again, too.
    shown_again: Option<u64>,
    /// Whether its end was rejected, so that it counts as failed. The API server may execute a
    /// request without an answer later, and the object says that it has finished.
    refused: bool,
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

// === impl TrackedObjects ===

impl TrackedObjects {
    pub(super) fn get(&self, uid: &str) -> Option<&TrackedObject> {
        self.objects.get(uid)
    }

    /// A process runs or pauses.
    pub(super) fn period_begun(&mut self, sender: Sender, now: VirtualTime) {
        let period = self.periods.entry(sender.process).or_default();
        period.number += 1;
        period.since = now;
        period.run = sender.run;
    }

    /// A process was asked to stop.
    pub(super) fn stopping(&mut self, sender: Sender) {
        self.stopping.entry(sender).or_default();
    }

    /// An attempt begins.
    pub(super) fn begun(
        &mut self,
        setup: &OperatorSetup,
        sender: Sender,
        call: &BegunCall,
        concurs: impl Fn(Sender) -> bool,
    ) -> Result<(), Violation> {
        let period = self
            .periods
            .get(&sender.process)
            .copied()
            .unwrap_or_default();
        let object = self.objects.entry(call.uid.to_owned()).or_default();
        let handler = &call.handler;
        let mut same_handler = object.calls.iter().filter(|it| it.handler == *handler);
        if same_handler.any(|it| !it.ended && concurs(it.sender)) {
            let details = format!("{handler} for {}", call.uid);
            return Err(Violation::new("no handler runs twice at once", details));
        }
        // Patches of event handlers are written before the turn.
        let written = self.stopping.get(&sender);
        let has_ended = written.is_some_and(|it| it.contains(call.uid));
        if has_ended && !setup.needs_each_event {
            let details = format!("{handler} for {}", call.uid);
            return Err(Violation::new("no turn begins after the stop", details));
        }
        object.check_repetition(setup, sender, period, call, self.shared)?;
        object.calls.push(TrackedCall {
            handler: handler.clone(),
            reason: call.reason,
            state: Arc::clone(&call.state),
            registered: call.registered.clone(),
            subs: call.subs.clone(),
            finished: false,
            sender,
            period,
            ended: false,
            persisted: None,
            // The operator may not know yet that the object has left the watch.
            forgotten: object.has_left_watch,
            shown_again: None,
            refused: false,
        });
        Ok(())
    }

    /// No more objects are handled at once than the operator's limit allows.
    pub(super) fn check_worker_limit(&self, sender: Sender, limit: usize) -> Result<(), Violation> {
        let is_open = |call: &TrackedCall| !call.ended && call.sender == sender;
        let objects = self.objects.values();
        let handled = objects.filter(|it| it.calls.iter().rev().any(is_open));
        let count = handled.count();
        match count > limit {
            true => {
                let details = format!("{count} objects at once, with a limit of {limit}");
                Err(Violation::new("the worker limit is kept", details))
            }
            false => Ok(()),
        }
    }

    /// An event handler was called.
    pub(super) fn event_called(&mut self, uid: &str) {
        self.objects.entry(uid.to_owned()).or_default().event_calls += 1;
    }

    /// An attempt has ended, or its end has changed because its patch was rejected.
    pub(super) fn ended(&mut self, sender: Sender, uid: &str, handler: &HandlerId, finished: bool) {
        let Some(object) = self.objects.get_mut(uid) else {
            return;
        };
        let mut calls = object.calls.iter_mut();
        let call = calls.rfind(|it| it.handler == *handler && it.sender == sender);
        if let Some(call) = call {
            call.ended = true;
            call.refused |= call.finished && !finished;
            // A write without an answer may be on the object, and be rejected when it is repeated.
            call.finished = finished || call.is_done();
        }
    }

    pub(super) fn cut(&mut self, sender: Sender, uid: &str) {
        if let Some(object) = self.objects.get_mut(uid) {
            let open = object.calls.iter_mut().filter(|it| it.sender == sender);
            open.for_each(|it| it.ended = true);
        }
    }

    pub(super) fn process_ended(&mut self, process: usize) {
        for object in self.objects.values_mut() {
            let of_process = object.calls.iter_mut();
            let of_process = of_process.filter(|it| it.sender.process == process);
            of_process.for_each(|it| it.ended = true);
        }
        self.background
            .retain(|(sender, _, _)| sender.process != process);
    }

    pub(super) fn sent(&mut self, sender: Sender, uid: &str, call: u64, has_records: bool) {
        if let Some(written) = self.stopping.get_mut(&sender).filter(|_| has_records) {
            written.insert(uid.to_owned());
        }
        let object = self.objects.entry(uid.to_owned()).or_default();
        let unaccepted = object.unaccepted.entry(sender).or_default();
        let write = SentWrite {
            uid: uid.to_owned(),
            has_records,
            is_forced: *unaccepted >= MOST_CONFLICTS,
        };
        *unaccepted += 1;
        self.sent.insert((sender, call), write);
    }

    /// Another client has changed an object; `removes` says that it has removed facts.
    pub(super) fn disturbed(
        &mut self,
        setup: &OperatorSetup,
        object: &Value,
        removes: bool,
        now: VirtualTime,
    ) {
        let tracked = self
            .objects
            .entry(super::meta(object, "uid").to_owned())
            .or_default();
        tracked.disturbances += 1;
        // If others release an object, it does not say what has finished.
        let view = ObjectView::new(object);
        let is_released =
            view.is_being_deleted() && !is_present(view, &setup.persistence.finalizer);
        if !is_released {
            tracked.compare(setup, object, removes, self.shared, now);
        }
    }

    /// A write was executed; `removes` says that a webhook may have removed facts from it.
    pub(super) fn landed(
        &mut self,
        setup: &OperatorSetup,
        landed: &Landed<'_>,
        bounds: WriteBounds,
        removes: bool,
    ) -> Result<(), Violation> {
        let Some(write) = self.sent.get(&(landed.sender, landed.call)) else {
            return Ok(());
        };
        let object = self.objects.entry(write.uid.clone()).or_default();
        object.writes += 1;
        object.changes += u32::from(landed.changed && write.has_records);
        object.check_bounds(setup, &write.uid, bounds)?;
        // A daemon may write while a turn counts its conflicts.
        if write.has_records && landed.answer.is_success() && landed.is_answered {
            object.unaccepted.remove(&landed.sender);
        }
        let Some(answer) = landed
            .answer
            .as_object()
            .filter(|_| landed.answer.is_success())
        else {
            return Ok(());
        };
        if landed.changed && super::meta(answer, "uid") != write.uid {
            let details = format!("a write to {} changed {}", write.uid, answer["metadata"]);
            return Err(Violation::new(
                "nothing of an object reaches its namesake",
                details,
            ));
        }
        // A webhook may remove facts from the write of a daemon, too.
        object.disturbances += u32::from(removes && landed.changed);
        object.compare(setup, answer, removes, self.shared, landed.now);
        if !write.has_records {
            return Ok(());
        }
        if landed.changed {
            // After a conflict, the version is that of the object as it is read.
            let name = landed.request.verb.object_name().unwrap_or_default();
            let unread = (landed.sender, name.to_owned());
            let is_forced = (write.is_forced || self.unreadable.contains(&unread))
                && !tests_version(landed.request);
            let is_late = landed.sent < object.newest_sent;
            if is_late && !is_forced {
                let details = format!(
                    "a write to {} that was sent at {}, before one that was executed",
                    write.uid, landed.sent
                );
                return Err(Violation::new("a late write changes nothing", details));
            }
            object.overwritten |= is_late && !write.is_forced;
            object.newest_sent = object.newest_sent.max(landed.sent);
            let period = self.periods.get(&landed.sender.process);
            object.written_after_end |= period.is_some_and(|it| it.run != landed.sender.run);
            object.records.push((landed.now, landed.sender.process));
        }
        match self.edits_unknown {
            true => Ok(()),
            false => check_entries(answer),
        }
    }

    /// An object was read.
    pub(super) fn read(&mut self, landed: &Landed<'_>, bounded: bool) -> Result<(), Violation> {
        let Some(name) = landed.request.verb.object_name() else {
            return Ok(());
        };
        if landed.answer.code == 403 {
            self.unreadable.insert((landed.sender, name.to_owned()));
        }
        if !bounded {
            return Ok(());
        }
        let object = self.objects.entry(format!("name {name}")).or_default();
        object.reads += 1;
        match object.reads > 60 {
            true => {
                let details = format!("{} of {name}", object.reads);
                Err(Violation::new("reads of an object are bounded", details))
            }
            false => Ok(()),
        }
    }

    /// Notes whether an object has our finalizer; returns whether it has just lost it.
    pub(super) fn note_finalizer(&self, uid: &str, held: bool) -> bool {
        let mut known = self.held.borrow_mut();
        match held {
            true => {
                known.insert(uid.to_owned());
                false
            }
            false => known.remove(uid),
        }
    }

    /// Whether an object had our finalizer when it was last written.
    pub(super) fn is_held(&self, uid: &str) -> bool {
        self.held.borrow().contains(uid)
    }

    /// Notes when the removal of our finalizer was sent and executed.
    pub(super) fn note_removal(&mut self, uid: &str, landed: &Landed<'_>) {
        let times = (landed.sent, landed.now);
        self.removals.insert(uid.to_owned(), times);
    }

    /// Whether a removal of our finalizer was sent before the present period of a process, and
    /// executed within it: the process has listed the object with the finalizer.
    pub(super) fn is_removed_late(&self, sender: Sender, uid: &str) -> bool {
        let removal = self.removals.get(uid);
        let period = self.periods.get(&sender.process);
        removal
            .zip(period)
            .is_some_and(|((sent, executed), period)| {
                *sent < period.since && period.since <= *executed
            })
    }

    /// An operator has removed our finalizer.
    pub(super) fn released(
        &self,
        setup: &OperatorSetup,
        sender: Sender,
        object: &Value,
    ) -> Result<(), Violation> {
        let view = ObjectView::new(object);
        let uid = view.uid().unwrap_or_default();
        let runs = |(by, of, _): &&(Sender, String, usize)| *by == sender && of == uid;
        let running = self.background.iter().find(runs);
        // The operator cannot take back a request from before its pause.
        if let Some((_, _, at)) = running.filter(|_| !self.is_removed_late(sender, uid)) {
            let details = format!("daemon or timer {at} of {uid}");
            let claim = "an object is not released before its daemons have stopped";
            return Err(Violation::new(claim, details));
        }
        if !view.is_being_deleted() {
            return Ok(());
        }
        let subject = Subject::object(view);
        for spec in setup.registry.handlers() {
            let needed = spec.trigger == Trigger::Delete { optional: false };
            if !needed || !spec.prematches(&subject) {
                continue;
            }
            let calls = self.objects.get(uid).map(|it| it.calls.iter());
            let mut calls = calls.into_iter().flatten();
            if !calls.any(|it| it.handler == spec.id && it.finished) {
                let details = format!("{} of {uid}", spec.id);
                let claim = "an object is not released before its deletion is handled";
                return Err(Violation::new(claim, details));
            }
        }
        Ok(())
    }

    pub(super) fn background_started(
        &mut self,
        sender: Sender,
        uid: &str,
        at: usize,
    ) -> Result<(), Violation> {
        match self.background.insert((sender, uid.to_owned(), at)) {
            true => Ok(()),
            false => {
                let details = format!("{at} of {uid}");
                Err(Violation::new("a daemon runs once for an object", details))
            }
        }
    }

    pub(super) fn background_ended(&mut self, sender: Sender, uid: &str, at: usize) {
        self.background.remove(&(sender, uid.to_owned(), at));
    }
}

// === impl TrackedObject ===

impl TrackedObject {
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
        let Some(last) = last.filter(|_| !self.overwritten) else {
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
    fn compare(
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
    fn check_bounds(
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

/// Whether a merge patch is refused if the object has another version.
fn tests_version(request: &ApiRequest) -> bool {
    match &request.verb {
        Verb::Patch {
            patch: SimulatedPatch::Merge(patch),
            ..
        } => patch.pointer("/metadata/resourceVersion").is_some(),
        _ => true,
    }
}

/// No edit is made twice.
fn check_entries(object: &Value) -> Result<(), Violation> {
    let entries = object["status"]["log"].as_array();
    let mut seen = BTreeSet::new();
    for entry in entries.into_iter().flatten() {
        if !seen.insert(entry.as_str()) {
            let details = format!("{entry} in {}", object["status"]["log"]);
            return Err(Violation::new("an edit is made once", details));
        }
    }
    Ok(())
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
