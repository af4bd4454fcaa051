//! What happened to all objects, as the claims need it.

use std::collections::{BTreeMap, BTreeSet};

use kopf_core::cause::Subject;
use kopf_core::handler::{HandlerId, Trigger};
use kopf_core::object::ObjectView;
use kopf_core::object::finalizer::is_present;
use serde_json::Value;

use super::object::{TrackedCall, TrackedObject, WriteBounds};
use super::process::{RunningPeriod, Sender};
use crate::operator::{BegunCall, OperatorSetup};
use crate::server::{ApiAnswer, ApiRequest};
use crate::time::VirtualTime;
use crate::world::Violation;

/// A request of an operator that the API server has executed.
#[derive(Debug)]
pub(super) struct Landed<'a> {
    pub(super) sender: Sender,
    pub(super) call: u64,
    pub(super) sent: VirtualTime,
    pub(super) now: VirtualTime,
    pub(super) request: &'a ApiRequest,
    pub(super) answer: &'a ApiAnswer,
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
    /// The uids of objects that have our finalizer.
    held: std::cell::RefCell<BTreeSet<String>>,
    /// The times at which the last removals of our finalizer were sent and executed, by uid.
    removals: BTreeMap<String, (VirtualTime, VirtualTime)>,
}

#[derive(Debug)]
struct SentWrite {
    uid: String,
    has_records: bool,
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
        object.begun(setup, sender, period, call, self.shared)
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
        if let Some(object) = self.objects.get_mut(uid) {
            object.ended(sender, handler, finished);
        }
    }

    pub(super) fn cut(&mut self, sender: Sender, uid: &str) {
        if let Some(object) = self.objects.get_mut(uid) {
            object.cut(|of| of == sender);
        }
    }

    pub(super) fn process_ended(&mut self, process: usize) {
        for object in self.objects.values_mut() {
            object.cut(|of| of.process == process);
        }
        self.background
            .retain(|(sender, _, _)| sender.process != process);
    }

    pub(super) fn sent(&mut self, sender: Sender, uid: &str, call: u64, has_records: bool) {
        if let Some(written) = self.stopping.get_mut(&sender).filter(|_| has_records) {
            written.insert(uid.to_owned());
        }
        let write = SentWrite {
            uid: uid.to_owned(),
            has_records,
        };
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
            if landed.sent < object.newest_sent {
                let details = format!(
                    "a write to {} that was sent at {}, before one that was executed",
                    write.uid, landed.sent
                );
                return Err(Violation::new("a late write changes nothing", details));
            }
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
        let Some(name) = landed.request.verb.read_name().filter(|_| bounded) else {
            return Ok(());
        };
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
