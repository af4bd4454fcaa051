//! The journal: what the operator has done lately, in bounded memory, for its page.
//!
//! The parts of the runtime report here what happens. Without a page there is no journal: each report
//! is one branch then, and allocates nothing.

mod byte_ring;
pub(crate) mod entry;
pub(crate) mod log_lines;
pub(crate) mod objects;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use kopf_core::cause::Reason;
use kopf_core::handler::{HandlerSpec, Trigger};
use kopf_core::machine::object::NextCall;
use kopf_core::outcome::Consequence;
use kopf_core::progress::record::Record;
use kopf_core::time;
use kopf_core::turn::{Turn, TurnOutcome};

use self::byte_ring::ByteRing;
use self::entry::{
    CallEntry, ChangeEntry, HandlerProgress, JournalHandlerType, JournalSubject, LineEntry, Millis,
    PostedEntry, cut,
};
use self::objects::{ObjectDetail, ObjectPage, ObjectQuery, ObjectTable, StateCounts};
use crate::client::shown_change::ShownChange;

/// The bytes of the last calls, of all objects together.
const CALL_BYTES: usize = 2 << 20;

/// The bytes of the last changes.
const CHANGE_BYTES: usize = 2 << 20;

/// The bytes of the last posted events.
const POSTED_BYTES: usize = 1 << 20;

/// The bytes of the last log lines.
const LINE_BYTES: usize = 4 << 20;

/// The most entries of each sort that are shown for one object.
const SHOWN_OF_OBJECT: usize = 100;

/// The journal of an operator, or none; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageJournal(Option<Arc<JournalState>>);

#[derive(Debug)]
struct JournalState {
    /// Counts the reports.
    revision: AtomicU64,
    /// Never held across an await.
    contents: Mutex<JournalContents>,
}

#[derive(Debug)]
struct JournalContents {
    objects: ObjectTable,
    calls: ByteRing<CallEntry>,
    changes: ByteRing<ChangeEntry>,
    posted: ByteRing<PostedEntry>,
    lines: ByteRing<LineEntry>,
}

/// A call of a handler that has begun; dropping it says that it was interrupted.
#[derive(Debug)]
#[must_use]
pub(crate) struct JournaledCall(Option<OngoingCall>);

#[derive(Debug)]
struct OngoingCall {
    state: Arc<JournalState>,
    at: Timestamp,
    begun: Instant,
    uid: Box<str>,
    object: Box<str>,
    handler: Box<str>,
    attempt: u32,
}

/// The end of an attempt, as its report says it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReportedCall<'a> {
    pub(crate) spec: &'a HandlerSpec,
    pub(crate) consequence: &'a Consequence,
    /// The record after the call.
    pub(crate) record: Option<&'a Record>,
    pub(crate) at: Timestamp,
}

/// What the journal knows of one object.
#[derive(Debug, serde::Serialize)]
pub(crate) struct ObjectHistoryView {
    #[serde(flatten)]
    pub(crate) object: ObjectDetail,
    pub(crate) calls: Vec<CallEntry>,
    pub(crate) changes: Vec<ChangeEntry>,
    pub(crate) events: Vec<PostedEntry>,
    pub(crate) lines: Vec<LineEntry>,
}

// === impl PageJournal ===

impl PageJournal {
    /// A journal that keeps what is reported.
    pub(crate) fn keeping() -> Self {
        let contents = JournalContents {
            objects: ObjectTable::default(),
            calls: ByteRing::new(CALL_BYTES),
            changes: ByteRing::new(CHANGE_BYTES),
            posted: ByteRing::new(POSTED_BYTES),
            lines: ByteRing::new(LINE_BYTES),
        };
        let state = Arc::new(JournalState {
            revision: AtomicU64::new(1),
            contents: Mutex::new(contents),
        });
        log_lines::listen(&state);
        Self(Some(state))
    }

    /// Whether reports are kept, so that it is worth to prepare them.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// A call of the pipeline begins.
    pub(crate) fn handling_begun(&self, subject: &JournalSubject<'_>) {
        self.update(|contents, at| {
            if let Some(entry) = contents.objects.entry(subject, at) {
                entry.problem = None;
                entry.until = None;
            }
        });
    }

    /// Handlers are about to be called; `changes` are those of an update.
    pub(crate) fn turn_begun(
        &self,
        subject: &JournalSubject<'_>,
        turn: &Turn,
        changes: Vec<ShownChange>,
    ) {
        self.update(|contents, at| {
            let reason = turn.reason();
            if let Some(entry) = contents.objects.entry(subject, at) {
                entry.reason = Some(reason.as_str());
                entry.since = at.into();
                entry.failed = false;
                entry.handlers.retain(|it| it.handler_type.is_background());
                for spec in turn.selected() {
                    let handler = entry.handler(spec.id.as_str(), spec.trigger.into(), at);
                    if let (Some(handler), Some(record)) = (handler, turn.record(&spec.id)) {
                        handler.follow(record, at);
                    }
                }
            }
            if reason == Reason::Update && !changes.is_empty() {
                contents.changes.push(ChangeEntry {
                    at: at.into(),
                    uid: subject.uid.into(),
                    reason: reason.as_str(),
                    changes,
                });
            }
        });
    }

    /// A handler is about to be called, after so many other attempts.
    pub(crate) fn call_begun(
        &self,
        subject: &JournalSubject<'_>,
        spec: &HandlerSpec,
        retry: u32,
    ) -> JournaledCall {
        let Some(state) = &self.0 else {
            return JournaledCall(None);
        };
        let attempt = retry.saturating_add(1);
        self.update(|contents, at| {
            let Some(entry) = contents.objects.entry(subject, at) else {
                return;
            };
            if let Some(handler) = entry.handler(spec.id.as_str(), spec.trigger.into(), at) {
                handler.progress = HandlerProgress::Running;
                handler.attempts = attempt;
                handler.since = at.into();
                handler.until = None;
            }
        });
        let object = match subject.namespace {
            Some(namespace) => format!("{} {namespace}/{}", subject.kind, subject.name),
            None => format!("{} {}", subject.kind, subject.name),
        };
        JournaledCall(Some(OngoingCall {
            state: Arc::clone(state),
            at: Timestamp::now(),
            begun: Instant::now(),
            uid: subject.uid.into(),
            object: object.into(),
            handler: spec.id.as_str().into(),
            attempt,
        }))
    }

    /// The end of a call is reported, with its consequence.
    pub(crate) fn call_reported(&self, subject: &JournalSubject<'_>, call: &ReportedCall<'_>) {
        if call.spec.trigger == Trigger::Index {
            return;
        }
        self.update(|contents, at| {
            let entry = contents.objects.known(subject.uid);
            let handler_type = JournalHandlerType::from(call.spec.trigger);
            let handler = entry.and_then(|it| it.handler(call.spec.id.as_str(), handler_type, at));
            let Some(handler) = handler else { return };
            if let Some(record) = call.record {
                handler.follow(record, at);
            }
            handler.since = call.at.into();
            let (progress, delay, message) = match call.consequence {
                Consequence::Succeeded(_) => (HandlerProgress::Succeeded, None, None),
                Consequence::Ignored { message } => {
                    (HandlerProgress::Succeeded, None, Some(message))
                }
                Consequence::Failed { message } => (HandlerProgress::Failed, None, Some(message)),
                Consequence::Retry { message, delay } => {
                    (HandlerProgress::Waiting, Some(*delay), Some(message))
                }
                Consequence::Waiting { delay } => (HandlerProgress::Waiting, Some(*delay), None),
            };
            handler.progress = progress;
            let until = |delay| time::after(call.at, delay);
            handler.until = delay.map(|delay| until(delay.unwrap_or_default()).into());
            handler.message = message.map(|it| cut(it));
        });
    }

    /// All handlers of a change are done for now.
    pub(crate) fn cycle_ended(
        &self,
        subject: &JournalSubject<'_>,
        reason: Reason,
        outcome: &TurnOutcome,
    ) {
        self.update(|contents, at| {
            if let Some(entry) = contents.objects.known(subject.uid) {
                entry.reason = Some(reason.as_str());
                entry.since = at.into();
                entry.failed = outcome.failed > 0;
            }
        });
    }

    /// A call of the pipeline is over.
    pub(crate) fn rested(&self, subject: &JournalSubject<'_>, next: NextCall) {
        self.update(|contents, at| match next {
            NextCall::Forget => contents.objects.remove(subject.uid),
            NextCall::AwaitChange => {
                if let Some(entry) = contents.objects.known(subject.uid) {
                    entry.until = None;
                }
            }
            NextCall::After(delay) | NextCall::NotBefore(delay) => {
                if let Some(entry) = contents.objects.known(subject.uid) {
                    entry.until = Some(time::after(at, delay).into());
                }
            }
        });
    }

    /// The runtime itself cannot go on with an object.
    pub(crate) fn problem(&self, subject: &JournalSubject<'_>, problem: &str) {
        self.update(|contents, at| {
            if let Some(entry) = contents.objects.entry(subject, at) {
                entry.problem = Some(cut(problem));
                entry.since = at.into();
            }
        });
    }

    /// An event is posted on an object.
    pub(crate) fn posted(&self, uid: &str, event_type: &str, reason: &str, message: &str) {
        self.update(|contents, at| {
            contents.posted.push(PostedEntry {
                at: at.into(),
                uid: uid.into(),
                event_type: event_type.into(),
                reason: reason.into(),
                message: cut(message),
            });
        });
    }

    /// Rises with each report.
    pub(crate) fn revision(&self) -> u64 {
        let state = self.0.as_ref();
        state.map_or(0, |state| state.revision.load(Ordering::Relaxed))
    }

    pub(crate) fn counts(&self) -> StateCounts {
        let counts = self.read(|contents| contents.objects.counts());
        counts.unwrap_or_default()
    }

    /// How often an object was left out, as there are too many.
    pub(crate) fn left_out(&self) -> u64 {
        let left_out = self.read(|contents| contents.objects.left_out());
        left_out.unwrap_or_default()
    }

    pub(crate) fn page(&self, query: &ObjectQuery) -> Option<ObjectPage> {
        self.read(|contents| contents.objects.page(query))
    }

    /// The last calls of all objects, the newest first.
    pub(crate) fn calls(&self, most: usize) -> Vec<CallEntry> {
        let calls = self.read(|contents| {
            let calls = contents.calls.newest_first();
            calls.take(most).cloned().collect()
        });
        calls.unwrap_or_default()
    }

    pub(crate) fn detail(&self, uid: &str) -> Option<ObjectDetail> {
        self.read(|contents| contents.objects.detail(uid)).flatten()
    }

    pub(crate) fn history(&self, uid: &str) -> Option<ObjectHistoryView> {
        self.read(|contents| {
            Some(ObjectHistoryView {
                object: contents.objects.detail(uid)?,
                calls: shown(&contents.calls, |it| *it.uid == *uid),
                changes: shown(&contents.changes, |it| *it.uid == *uid),
                events: shown(&contents.posted, |it| *it.uid == *uid),
                lines: shown(&contents.lines, |it| *it.uid == *uid),
            })
        })
        .flatten()
    }

    fn read<T>(&self, read: impl FnOnce(&JournalContents) -> T) -> Option<T> {
        self.0.as_ref().map(|state| read(&state.lock()))
    }

    fn update(&self, update: impl FnOnce(&mut JournalContents, Timestamp)) {
        if let Some(state) = &self.0 {
            state.update(update);
        }
    }
}

/// The newest entries of one object.
fn shown<T: byte_ring::EntryBytes + Clone>(
    ring: &ByteRing<T>,
    is_of_object: impl Fn(&T) -> bool,
) -> Vec<T> {
    let entries = ring.newest_first().filter(|it| is_of_object(it));
    entries.take(SHOWN_OF_OBJECT).cloned().collect()
}

// === impl JournalState ===

impl JournalState {
    fn lock(&self) -> MutexGuard<'_, JournalContents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, update: impl FnOnce(&mut JournalContents, Timestamp)) {
        update(&mut self.lock(), Timestamp::now());
        self.revision.fetch_add(1, Ordering::Relaxed);
    }
}

// === impl JournaledCall ===

impl JournaledCall {
    /// The call has ended with this outcome, in the words of the metrics.
    pub(crate) fn end(mut self, outcome: &'static str) {
        if let Some(call) = self.0.take() {
            call.end(outcome);
        }
    }
}

impl Drop for JournaledCall {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call.end("interrupted");
        }
    }
}

impl OngoingCall {
    fn end(self, outcome: &'static str) {
        let Self {
            state,
            at,
            begun,
            uid,
            object,
            handler,
            attempt,
        } = self;
        let duration = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        state.update(|contents, now| {
            let entry = contents.objects.known(&uid);
            let known = entry.and_then(|it| it.handlers.iter_mut().find(|it| it.id == handler));
            if let Some(known) = known {
                // The report that follows says what comes next.
                known.progress = match outcome {
                    "succeeded" => HandlerProgress::Succeeded,
                    "permanent" | "exhausted" => HandlerProgress::Failed,
                    _ => HandlerProgress::Pending,
                };
                known.since = now.into();
            }
            contents.calls.push(CallEntry {
                at: Millis::from(at),
                duration,
                uid,
                object,
                handler,
                attempt,
                outcome,
            });
        });
    }
}

#[cfg(test)]
mod tests;
