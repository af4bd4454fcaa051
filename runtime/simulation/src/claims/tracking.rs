//! What happened to each object, as the claims need it.

use std::collections::{BTreeMap, BTreeSet};

use kopf_core::cause::{Reason, Subject};
use kopf_core::handler::{HandlerId, HandlerSpec, Trigger};
use kopf_core::object::ObjectView;
use kopf_core::object::diff::same;
use kopf_core::object::path::FieldPath;
use serde_json::Value;

use crate::operator::{BegunCall, OperatorSetup};
use crate::server::{ApiAnswer, ApiRequest, Endpoint};
use crate::time::VirtualTime;
use crate::world::Violation;

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
    pub(super) request: &'a ApiRequest,
    pub(super) answer: &'a ApiAnswer,
    pub(super) changed: bool,
}

/// All objects of a history, by uid.
#[derive(Debug, Default)]
pub(super) struct TrackedObjects {
    objects: BTreeMap<String, TrackedObject>,
    /// The writes that were sent, with the number of calls that had ended for their objects.
    sent: BTreeMap<(Sender, u64), SentWrite>,
    /// Whether others have removed what operators had written.
    pub(super) facts_removed: bool,
    /// Whether the API server has forgotten former states.
    pub(super) states_forgotten: bool,
    /// The daemons and timers that run.
    background: BTreeSet<(Sender, String, usize)>,
    /// The uids of objects that have our finalizer.
    held: std::cell::RefCell<BTreeSet<String>>,
}

#[derive(Debug)]
struct SentWrite {
    uid: String,
    calls: usize,
    has_records: bool,
}

#[derive(Debug, Default)]
pub(super) struct TrackedObject {
    pub(super) calls: Vec<TrackedCall>,
    writes: u32,
    reads: u32,
    /// The time at which the last of the executed writes of records was sent.
    newest_sent: VirtualTime,
}

/// An attempt of a handler.
#[derive(Debug)]
pub(super) struct TrackedCall {
    pub(super) handler: HandlerId,
    pub(super) reason: Reason,
    pub(super) state: Value,
    pub(super) finished: bool,
    sender: Sender,
    ended: bool,
    persisted: bool,
    /// Whether the operator makes the attempt again, as it has no record of it.
    lost: bool,
}

// === impl TrackedObjects ===

impl TrackedObjects {
    pub(super) fn get(&self, uid: &str) -> Option<&TrackedObject> {
        self.objects.get(uid)
    }

    /// An attempt begins.
    pub(super) fn begun(
        &mut self,
        setup: &OperatorSetup,
        sender: Sender,
        call: &BegunCall,
        checks_repetition: bool,
        concurs: impl Fn(Sender) -> bool,
    ) -> Result<(), Violation> {
        let checks_repetition = checks_repetition && !self.facts_removed;
        let object = self.objects.entry(call.uid.to_owned()).or_default();
        let handler = &call.handler;
        let mut same_handler = object.calls.iter().filter(|it| it.handler == *handler);
        if same_handler.any(|it| !it.ended && concurs(it.sender)) {
            let details = format!("{handler} for {}", call.uid);
            return Err(Violation::new("no handler runs twice at once", details));
        }
        if checks_repetition && !setup.keeps_progress_in_status() {
            object.check_repetition(setup, call)?;
        }
        for former in &mut object.calls {
            let is_same = former.handler == *handler && former.sender == sender;
            former.lost |= is_same && !former.persisted;
        }
        object.calls.push(TrackedCall {
            handler: handler.clone(),
            reason: call.reason,
            state: Value::clone(&call.state),
            finished: false,
            sender,
            ended: false,
            persisted: false,
            lost: false,
        });
        Ok(())
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

    pub(super) fn crashed(&mut self, process: usize) {
        for object in self.objects.values_mut() {
            let of_process = object.calls.iter_mut();
            let of_process = of_process.filter(|it| it.sender.process == process);
            of_process.for_each(|it| it.ended = true);
        }
        self.background
            .retain(|(sender, _, _)| sender.process != process);
    }

    pub(super) fn sent(&mut self, sender: Sender, uid: &str, call: u64, has_records: bool) {
        let calls = self.objects.get(uid).map_or(0, |it| it.calls.len());
        let write = SentWrite {
            uid: uid.to_owned(),
            calls,
            has_records,
        };
        self.sent.insert((sender, call), write);
    }

    /// A write was executed.
    pub(super) fn landed(
        &mut self,
        setup: &OperatorSetup,
        landed: &Landed<'_>,
        most_writes: u32,
    ) -> Result<(), Violation> {
        let Some(write) = self.sent.get(&(landed.sender, landed.call)) else {
            return Ok(());
        };
        let object = self.objects.entry(write.uid.clone()).or_default();
        object.writes += 1;
        if object.writes > most_writes {
            let details = format!("{} writes to {}", object.writes, write.uid);
            return Err(Violation::new("writes to an object are bounded", details));
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
            object.newest_sent = landed.sent;
        }
        let is_body = landed.request.verb.endpoint() == Endpoint::Object;
        let in_status = setup.keeps_progress_in_status();
        let shows = |call: &TrackedCall| {
            let record = setup
                .persistence
                .progress
                .fetch(&call.handler, ObjectView::new(answer));
            in_status && record.is_some_and(|it| it.is_finished())
        };
        let calls = object.calls.iter_mut().take(write.calls);
        let own = calls.filter(|it| it.sender == landed.sender && it.ended && !it.lost);
        own.filter(|it| is_body || shows(it))
            .for_each(|it| it.persisted = true);
        match self.states_forgotten {
            // Then the newest state decides whether an edit was made.
            true => Ok(()),
            false => check_entries(answer),
        }
    }

    /// An object was read.
    pub(super) fn read(&mut self, landed: &Landed<'_>, bounded: bool) -> Result<(), Violation> {
        let Some(name) = landed.request.verb.object_name().filter(|_| bounded) else {
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
        if let Some((_, _, at)) = self.background.iter().find(runs) {
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
    /// A handler is not called again for a state on which its end was persisted.
    fn check_repetition(&self, setup: &OperatorSetup, call: &BegunCall) -> Result<(), Violation> {
        let id = &call.handler;
        let specs: Vec<&HandlerSpec> = declared(setup, id).collect();
        let mut done = self
            .calls
            .iter()
            .filter(|it| it.handler == *id && it.is_done());
        let creation = call.reason == Reason::Create;
        let resumes = specs
            .iter()
            .any(|it| matches!(it.trigger, Trigger::Resume { .. }));
        let filtered = specs.iter().any(|it| !it.filters.labels.is_empty());
        if creation && !resumes && done.clone().any(|it| it.reason == Reason::Create) {
            let details = format!("{id} for {}", call.uid);
            return Err(Violation::new("creation is not repeated", details));
        }
        let last = self.calls.iter().rfind(|it| it.handler == *id);
        let Some(last) = last.filter(|it| it.is_done()) else {
            return Ok(());
        };
        let deletes = |reason: Reason| reason == Reason::Delete;
        if (call.initial && resumes) || filtered || deletes(last.reason) != deletes(call.reason) {
            return Ok(());
        }
        let path = scope(setup, id);
        if same(path.resolve(&last.state), path.resolve(&call.state)) && done.next().is_some() {
            let details = format!("{id} for {}", call.uid);
            return Err(Violation::new("nothing is repeated without need", details));
        }
        Ok(())
    }
}

// === impl TrackedCall ===

impl TrackedCall {
    /// Whether no other attempt follows, and the API server knows it.
    pub(super) fn is_done(&self) -> bool {
        self.finished && self.persisted
    }
}

/// The declarations of a handler.
pub(super) fn declared<'a>(
    setup: &'a OperatorSetup,
    id: &'a HandlerId,
) -> impl Iterator<Item = &'a HandlerSpec> {
    let handlers = setup.registry.handlers().iter();
    handlers.map(|it| &**it).filter(move |it| it.id == *id)
}

/// The part of the state that a handler is about.
pub(super) fn scope(setup: &OperatorSetup, id: &HandlerId) -> FieldPath {
    let field = declared(setup, id).find_map(|it| it.field().cloned());
    field.unwrap_or_default()
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
