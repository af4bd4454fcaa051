//! One patch on its way to an object: at most one request for each endpoint, if all goes well.
//!
//! Edits of the newest state become one JSON patch that tests the resource version, and are
//! computed anew after a conflict. Each endpoint takes its own part of the edits once, so an edit
//! need not be idempotent.

mod contention;
mod edits;
mod guard;
mod merge;
mod part;

pub(super) use contention::Contention;

use std::{fmt, sync::Arc};

use serde_json::Value;

use crate::{
    machine::{
        answer::Answer,
        effect::{RequestEffect, RequestMachine, RequestPause, RequestReport},
        exchange::{Exchange, Exchanged},
        now::Now,
        pruned_fields,
        request::{
            AnswerNeed, ExpectedState, ObjectRequest, OnForbidden, PatchContent, PatchEndpoint,
        },
        write::{guard::remove_guard, part::PartChange},
    },
    object::{
        ObjectView,
        patch::{ObjectPatch, PatchFn, apply_merge},
        resource_version::ResourceVersion,
    },
    persistence::Persistence,
    turn::conflict::OvertakenWrite,
};

/// The reaction to a conflict with another writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// Write the patch on top of the newer state.
    Repeat,
    /// Write nothing, and return the newer state.
    Report,
}

/// The need to know the object after the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBack {
    /// The object is decoded.
    Always,
    /// The object is decoded only if it is not the known state with the patch applied.
    IfUnexpected,
}

/// The rules for one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRules {
    /// Whether the status has an endpoint of its own.
    pub status_endpoint: bool,
    /// The reaction to a conflict.
    pub on_conflict: OnConflict,
    /// The reaction to a write that is forbidden.
    pub on_forbidden: OnForbidden,
    /// The need to know the object afterwards.
    pub read_back: ReadBack,
}

/// The result of a write that the API server did not reject.
#[derive(Debug)]
pub enum WriteResult {
    /// The object after the last request.
    Written(Arc<Value>),
    /// The same, but the API server has not kept these annotations.
    Stripped(Arc<Value>, Vec<String>),
    /// At this version, the object is the known state with the patch applied.
    AsExpected(ResourceVersion),
    /// There was nothing to change.
    Unchanged,
    /// Nothing was written: the known state is outdated, and this is the newest one.
    Outdated(Arc<Value>),
    /// The object does not exist any more.
    Gone,
    /// The lease ended first; something may have been written.
    LeaseEnded,
}

/// A write that can never succeed as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The API server rejects the patch.
    #[error("{0}")]
    Rejected(String),
    /// An edit is code of the user, and panicked.
    #[error("an edit panicked: {0}")]
    EditPanicked(String),
}

/// A patch on its way to the endpoints of an object.
pub struct ObjectWrite<'o> {
    uid: &'o str,
    rules: WriteRules,
    /// The state that was known before the first request.
    first: Arc<Value>,
    /// The newest known state.
    known: Arc<Value>,
    /// The merge patch of the status, with its precondition while it is sent.
    status: Option<Value>,
    /// The merge patch of the rest, with its precondition when it is sent.
    body: Option<Value>,
    edits: Vec<PatchFn>,
    /// The storages of the progress in the patch.
    persistence: Option<&'o Persistence>,
    /// The state with whose last handled state the notes in the patch are encoded.
    noted: Arc<Value>,
    /// The parts before they were adapted to what other writers have left.
    unadapted: Option<UnadaptedParts>,
    is_progress_dropped: bool,
    /// Both parts of the patch, if the object was as expected and not decoded between them.
    both: Option<Value>,
    status_answer: Option<WriteAnswer>,
    /// The object after the last edit.
    edited: Option<Arc<Value>>,
    part: usize,
    exchange: Exchange,
    contention: Contention,
    pause: Option<RequestPause>,
    report: Option<RequestReport>,
    phase: WritePhase,
}

/// The parts of a patch, and the state with whose last handled state their notes are encoded.
#[derive(Clone)]
struct UnadaptedParts {
    status: Option<Value>,
    body: Option<Value>,
    noted: Arc<Value>,
}

/// The object after a request.
#[derive(Debug)]
enum WriteAnswer {
    AsExpected(ResourceVersion),
    Object(Arc<Value>),
}

/// The request that is under way.
#[derive(Debug)]
enum WritePhase {
    Begin,
    /// Sends the status to its endpoint.
    Status,
    /// Reads the object, as another writer was faster than the status.
    NewerForStatus,
    /// Reads the object, as its status was not found.
    IsStatusServed,
    /// Sends the merge patch.
    Body,
    /// Reads the object, as a merge patch was rejected: another object may have the name now.
    Rejected(String),
    /// Reads the object, as another writer was faster than the merge patch.
    Conflict,
    /// Sends the edits of one part.
    Edit(PartChange),
    /// Reads the object, as the edits of one part were not accepted.
    NewerForEdit {
        change: PartChange,
        rejected: Option<String>,
        unanswered: bool,
    },
    /// Reads the first state after the one for which the edits were made.
    IsEdited {
        change: PartChange,
        newer: Arc<Value>,
    },
    Done(Option<Result<WriteResult, Error>>),
}

// === impl Error ===

impl Error {
    /// The failure of the handler whose patch this is.
    #[must_use]
    pub fn of_handler(&self) -> String {
        match self {
            Self::Rejected(reason) => format!("the API server rejects its patch: {reason}"),
            Self::EditPanicked(message) => format!("its patch panicked: {message}"),
        }
    }
}

// === impl ObjectWrite ===

impl<'o> ObjectWrite<'o> {
    /// Writes a patch to the object with this uid; `known` is its newest known state.
    #[must_use]
    pub fn new(
        uid: &'o str,
        known: &Arc<Value>,
        patch: ObjectPatch,
        rules: WriteRules,
        now: &Now,
    ) -> Self {
        let requests = patch.into_requests(rules.status_endpoint);
        let read_back = match requests.edits.is_empty() {
            true => rules.read_back,
            // Edits are made on the object itself.
            false => ReadBack::Always,
        };
        Self {
            uid,
            rules: WriteRules { read_back, ..rules },
            first: Arc::clone(known),
            known: Arc::clone(known),
            status: requests.status,
            body: requests.body,
            edits: requests.edits,
            persistence: None,
            noted: Arc::clone(known),
            unadapted: None,
            is_progress_dropped: false,
            both: None,
            status_answer: None,
            edited: None,
            part: 0,
            exchange: Exchange::begin(now),
            contention: Contention::default(),
            pause: None,
            report: None,
            phase: WritePhase::Begin,
        }
    }

    /// The patch has the progress of a cycle: notes of other operators stay.
    #[must_use]
    pub fn with_progress(mut self, persistence: &'o Persistence) -> Self {
        self.persistence = Some(persistence);
        self
    }

    /// The conflicts of the writes before it, which were not made.
    pub(super) fn contending(mut self, contention: Contention) -> Self {
        self.contention = contention;
        self
    }

    /// The conflicts so far.
    pub(super) fn contention(&self) -> &Contention {
        &self.contention
    }

    /// The patch was made for an earlier state, and was not accepted then: it is adapted to what
    /// others, or a late request of the same patch, have written since.
    #[must_use]
    pub fn made_for(mut self, earlier: &Arc<Value>) -> Self {
        if version(earlier) != version(&self.known) {
            let known = Arc::clone(&self.known);
            self.first = Arc::clone(earlier);
            self.noted = Arc::clone(earlier);
            self.adapt_progress(&known);
            self.unadapted = None;
            self.first = known;
        }
        self
    }

    /// Another writer was faster, and has left this state.
    fn adapt_progress(&mut self, newer: &Arc<Value>) {
        let Some(persistence) = self.persistence else {
            return;
        };
        if self.status_answer.is_some() && self.overtaken(persistence, newer).has_lost_notes() {
            return self.drop_progress(persistence, newer);
        }
        self.undo_adaptation();
        self.keep(persistence, newer, |write, part| {
            write.records_to_keep(part)
        });
        if self.keep(persistence, newer, |write, part| write.notes_to_keep(part)) {
            self.noted = Arc::clone(newer);
        }
    }

    /// What an earlier state of the object needed, a newer one may not need: a record that another
    /// operator had written there may be gone.
    fn undo_adaptation(&mut self) {
        let Some(parts) = self.unadapted.clone() else {
            self.unadapted = Some(UnadaptedParts {
                status: self.status.clone(),
                body: self.body.clone(),
                noted: Arc::clone(&self.noted),
            });
            return;
        };
        // A status that is written already stays as it was sent.
        if self.status_answer.is_none() {
            self.status = parts.status;
        }
        self.body = parts.body;
        self.noted = parts.noted;
    }

    /// Adds what the parts need besides; returns whether they need anything.
    fn keep(
        &mut self,
        persistence: &Persistence,
        newer: &Value,
        needed: impl Fn(&OvertakenWrite<'_>, &Value) -> Option<ObjectPatch>,
    ) -> bool {
        let overtaken = self.overtaken(persistence, newer);
        let kept = [&self.status, &self.body].map(|part| needed(&overtaken, part.as_ref()?));
        let mut is_needed = false;
        for (part, kept) in [&mut self.status, &mut self.body].into_iter().zip(kept) {
            if let (Some(part), Some(kept)) = (part, kept) {
                apply_merge(part, &Value::Object(kept.merge_patch().clone()));
                is_needed = true;
            }
        }
        is_needed
    }

    fn overtaken<'a>(
        &'a self,
        persistence: &'a Persistence,
        newer: &'a Value,
    ) -> OvertakenWrite<'a> {
        OvertakenWrite {
            persistence,
            known: &self.first,
            noted: &self.noted,
            newer,
            status: self.status.as_ref(),
            body: self.body.as_ref(),
        }
    }

    /// Another operator has replaced the first part of this progress: the next turn decides from
    /// what that operator has written. What handlers have changed is written all the same.
    fn drop_progress(&mut self, persistence: &Persistence, newer: &Value) {
        self.is_progress_dropped = true;
        self.unadapted = None;
        self.status = None;
        // The state after that request is not the last one.
        self.status_answer = None;
        self.body = self.body.take().and_then(|mut body| {
            remove_guard(&mut body);
            persistence.remove_from_patch(ObjectView::new(newer), &mut body);
            let is_empty = body.as_object().is_some_and(serde_json::Map::is_empty);
            (!is_empty).then_some(body)
        });
    }

    fn send(&mut self, phase: WritePhase, now: &Now) {
        self.exchange = self.exchange.next(now);
        self.phase = phase;
    }

    fn end(&mut self, result: Result<WriteResult, Error>) {
        self.phase = WritePhase::Done(Some(result));
    }

    /// Waits before the newer state is read, from the second conflict on.
    fn pause_after_conflict(&mut self, now: &Now) {
        self.pause = self.contention.count(now);
        self.report = self.contention.report();
    }

    fn answered(&mut self, answer: Answer, now: &Now) {
        let on_forbidden = match self.phase {
            // The write cannot go on without the answer: an edit might be made twice.
            WritePhase::NewerForStatus
            | WritePhase::NewerForEdit { .. }
            | WritePhase::IsEdited { .. } => OnForbidden::RetryForEver,
            WritePhase::IsStatusServed | WritePhase::Rejected(_) | WritePhase::Conflict => {
                OnForbidden::Reject
            }
            _ => self.rules.on_forbidden,
        };
        if planted!(SuccessBeforeAnswer)
            && matches!(self.phase, WritePhase::Body)
            && matches!(&answer, Answer::Failed(failure) if failure.may_be_executed())
        {
            return self.end(Ok(WriteResult::Unchanged));
        }
        let is_read = matches!(self.request(), ObjectRequest::Read(_));
        let exchanged = match is_read {
            true => self
                .exchange
                .read_answered(answer, self.uid, on_forbidden, now),
            false => self.exchange.answered(answer, self.uid, on_forbidden, now),
        };
        let answer = match exchanged {
            Exchanged::Again(pause) => {
                self.pause = Some(pause);
                return;
            }
            Exchanged::ListInstead(reason) => {
                self.report = Some(RequestReport::ListedInstead(reason));
                return;
            }
            Exchanged::LeaseEnded => return self.end(Ok(WriteResult::LeaseEnded)),
            answer => answer,
        };
        match std::mem::replace(&mut self.phase, WritePhase::Done(None)) {
            WritePhase::Status => self.status_answered(answer, now),
            WritePhase::NewerForStatus => self.newer_for_status(answer, now),
            WritePhase::IsStatusServed => self.status_endpoint_checked(&answer, now),
            WritePhase::Body => self.body_answered(answer, now),
            WritePhase::Rejected(reason) => self.end(match answer {
                Exchanged::Gone => Ok(WriteResult::Gone),
                _ => Err(Error::Rejected(reason)),
            }),
            WritePhase::Conflict => self.newer_for_body(answer, now),
            WritePhase::Edit(change) => self.edit_answered(change, answer, now),
            WritePhase::NewerForEdit {
                change,
                rejected,
                unanswered,
            } => self.newer_for_edit(change, rejected, unanswered, answer, now),
            WritePhase::IsEdited { change, newer } => {
                self.edit_checked(&change, newer, answer, now)
            }
            phase @ (WritePhase::Begin | WritePhase::Done(_)) => self.phase = phase,
        }
    }

    /// A merge patch was not accepted.
    fn not_accepted(&mut self, failure: Exchanged, now: &Now) {
        match failure {
            Exchanged::Rejected(reason) => self.send(WritePhase::Rejected(reason), now),
            failure => self.not_read(failure),
        }
    }

    /// Another writer was faster, so this write is not made.
    fn outdated(&mut self, newer: Arc<Value>) {
        match version(&newer) == version(&self.known) {
            true => self.reject_conflict(),
            false => self.end(Ok(WriteResult::Outdated(newer))),
        }
    }

    /// Not the API server has found this conflict, but a webhook, which may do so forever.
    fn reject_conflict(&mut self) {
        let reason = "a conflict is reported, but there is no newer state".to_owned();
        self.end(Err(Error::Rejected(reason)));
    }

    /// Whether a write that is repeated after conflicts meets another one though it has tested the
    /// version of the newest state.
    fn is_conflict_unfounded(&self, tested: Option<&str>, newer: &Value) -> bool {
        self.contention.is_long() && tested == version(newer)
    }

    /// There is no newer state of the object.
    fn not_read(&mut self, failure: Exchanged) {
        self.end(match failure {
            Exchanged::Gone => Ok(WriteResult::Gone),
            Exchanged::Rejected(reason) => Err(Error::Rejected(reason)),
            _ => Err(Error::Rejected("no answer to this request".to_owned())),
        });
    }

    fn finish(&mut self, answer: Option<WriteAnswer>) {
        let result = self.result(answer);
        self.end(Ok(result));
    }

    /// The result of a write whose annotations are not kept.
    fn kept(&self, object: &Arc<Value>) -> Option<WriteResult> {
        let stripped = pruned_fields::stripped(self.body.as_ref()?, object);
        let is_stripped = !stripped.is_empty();
        is_stripped.then(|| WriteResult::Stripped(Arc::clone(object), stripped))
    }

    fn result(&mut self, answer: Option<WriteAnswer>) -> WriteResult {
        if let Some(WriteAnswer::Object(object)) = &answer
            && let Some(stripped) = self.kept(object)
        {
            return stripped;
        }
        let merge = self.body.as_ref();
        let read_status = match &self.status_answer {
            Some(WriteAnswer::Object(_)) => self.status.as_ref(),
            Some(WriteAnswer::AsExpected(_)) | None => None,
        };
        let wanted = [read_status, merge];
        let is_so = |object: &Value| {
            let mut wanted = wanted.into_iter().flatten();
            wanted.all(|it| pruned_fields::is_so(it, object))
        };
        match answer.or(self.status_answer.take()) {
            // The API server gives no new version to a write that changes nothing, nor to one after
            // which it removes the object.
            Some(WriteAnswer::Object(object))
                if version(&object) == version(&self.first)
                    && is_so(&object)
                    && !is_released(&object)
                    && !planted!(NoOpTakenForUndone) =>
            {
                WriteResult::Unchanged
            }
            Some(WriteAnswer::Object(object)) => WriteResult::Written(object),
            Some(WriteAnswer::AsExpected(version)) => WriteResult::AsExpected(version),
            // Another client has made the change: its state is to be handled, not the known one.
            None if version(&self.known) != version(&self.first) => {
                WriteResult::Outdated(Arc::clone(&self.known))
            }
            None => WriteResult::Unchanged,
        }
    }

    fn read(&self) -> ObjectRequest<'_> {
        ObjectRequest::Read(self.exchange.read_verb())
    }

    fn need<'a>(&'a self, patch: &'a Value) -> AnswerNeed<'a> {
        match self.rules.read_back {
            ReadBack::Always => AnswerNeed::Object,
            ReadBack::IfUnexpected => AnswerNeed::ObjectIfUnexpected(ExpectedState {
                known: &self.first,
                patch,
            }),
        }
    }

    /// Whether another operator has replaced a part of the progress, so that the rest of it was not
    /// written.
    #[must_use]
    pub fn is_progress_dropped(&self) -> bool {
        self.is_progress_dropped
    }

    /// The patch, to be written later, and the state that it was made for.
    #[must_use]
    pub fn into_patch(self) -> (ObjectPatch, Arc<Value>) {
        let mut patch = ObjectPatch::new();
        for mut part in [self.body, self.status].into_iter().flatten() {
            remove_guard(&mut part);
            patch.merge(part);
        }
        for edit in self.edits {
            patch.edit(move |body| edit(body));
        }
        (patch, self.noted)
    }
}

impl RequestMachine for ObjectWrite<'_> {
    type Outcome = Result<WriteResult, Error>;

    fn step(&mut self, answer: Option<Answer>, now: &Now) -> RequestEffect<Self::Outcome> {
        match answer {
            Some(answer) => self.answered(answer, now),
            None if matches!(self.phase, WritePhase::Begin) => self.begin(now),
            None => {}
        }
        if let Some(report) = self.report.take() {
            return RequestEffect::Report(report);
        }
        if let Some(pause) = self.pause.take() {
            return RequestEffect::Wait(pause);
        }
        match &mut self.phase {
            WritePhase::Done(result) => {
                RequestEffect::Done(result.take().unwrap_or(Ok(WriteResult::Unchanged)))
            }
            _ => RequestEffect::Send,
        }
    }

    fn request(&self) -> ObjectRequest<'_> {
        let (endpoint, patch, expected) = match &self.phase {
            WritePhase::Status => (PatchEndpoint::Status, self.status.as_ref(), None),
            WritePhase::Body => (
                PatchEndpoint::Object,
                self.body.as_ref(),
                self.both.as_ref(),
            ),
            WritePhase::Edit(change) => {
                return ObjectRequest::Patch {
                    endpoint: change.endpoint,
                    content: PatchContent::Json(&change.patch),
                    need: AnswerNeed::Object,
                };
            }
            WritePhase::IsEdited { .. } => {
                return ObjectRequest::NextState {
                    after: version(&self.known).unwrap_or_default(),
                };
            }
            WritePhase::NewerForStatus
            | WritePhase::IsStatusServed
            | WritePhase::Rejected(_)
            | WritePhase::Conflict
            | WritePhase::NewerForEdit { .. }
            | WritePhase::Begin
            | WritePhase::Done(_) => return self.read(),
        };
        match patch {
            Some(patch) => ObjectRequest::Patch {
                endpoint,
                content: PatchContent::Merge(patch),
                need: self.need(expected.unwrap_or(patch)),
            },
            None => self.read(),
        }
    }
}

impl fmt::Debug for ObjectWrite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectWrite")
            .field("phase", &self.phase)
            .field("status", &self.status)
            .field("body", &self.body)
            .field("edits", &self.edits.len())
            .finish_non_exhaustive()
    }
}

fn version(object: &Value) -> Option<&str> {
    ObjectView::new(object).resource_version()
}

/// Whether nothing holds an object that is being deleted, so that it is gone.
fn is_released(object: &Value) -> bool {
    if planted!(ReleaseTakenForNoOp) {
        return false;
    }
    let view = ObjectView::new(object);
    view.is_being_deleted() && view.finalizers().next().is_none()
}

/// The fields of a patch that the API server did not keep.
fn dropped(patch: Option<&Value>, object: &Value) -> Option<RequestReport> {
    let dropped = pruned_fields::dropped(patch?, object);
    (!dropped.is_empty()).then_some(RequestReport::NotKept(dropped))
}

#[cfg(test)]
mod tests;
