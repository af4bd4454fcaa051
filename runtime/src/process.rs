//! The pipeline of one object: batch of events → cause → selection → execution → persistence.
//!
//! A worker of the queue runs it, for one object at a time. After each write, the API server's
//! answer is the newest state, so that the next handler need not wait for the watch event of that
//! write; the event is redundant when it arrives.
//!
//! A turn handles one state of an object, up to its next write.

pub(crate) mod batch;
mod event_handlers;
pub(crate) mod execute;
pub(crate) mod kind;
pub(crate) mod kinds;
mod memory;
pub(crate) mod persist;
mod reverts;
mod turn;
mod turn_write;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kopf_core::cause::detect::{EventKind, ObjectHistory};
use kopf_core::machine::read::ReadResult;
use kopf_core::machine::release::ReleaseResult;
use kopf_core::machine::write;
use kopf_core::object::ObjectView;
use kopf_core::object::resource_version::ResourceVersion;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, error};

use self::batch::{BatchMode, ByteBudget, EventBatch, QueuedEvent};
pub(crate) use self::kind::HandledKind;
use self::kinds::HandledKinds;
use self::reverts::RevertTracker;
use self::turn_write::UnwrittenTurns;
use crate::background::Background;
use crate::client::resource::StatusSubresource;
use crate::coordination::pause::PauseGate;
use crate::events::object_ref::ObjectRef;
use crate::events::posting::EventSeverity;
use crate::handler::memo::Memos;
use crate::process::execute::handler_scope::{HandlerScope, OperatorServices};
use crate::process::memory::{Memory, SleepingState};
use crate::process::persist::object_writer::ObjectWriter;
use crate::queue::{NextCall, Processor};
use crate::settings::Settings;
use crate::task::panic_message;
use crate::watch::{ObjectKey, QueueItem, WatchEventType};

/// The processor of the queue: handles the objects of all kinds.
pub(crate) struct Pipeline {
    kinds: Arc<HandledKinds>,
    background: Arc<Background>,
    services: Arc<OperatorServices>,
    settings: Arc<Settings>,
    stop: CancellationToken,
    /// The start of the operator.
    origin: Instant,
    budget: ByteBudget,
    reverts: RevertTracker,
    unwritten: UnwrittenTurns,
}

/// The handling of one object during one call of the pipeline.
struct ObjectHandling<'a> {
    kind: Arc<HandledKind>,
    key: &'a Arc<ObjectKey>,
    background: &'a Background,
    settings: &'a Settings,
    services: &'a Arc<OperatorServices>,
    pause_gate: &'a PauseGate,
    stop: &'a CancellationToken,
    origin: Instant,
    reverts: &'a RevertTracker,
    unwritten: &'a UnwrittenTurns,
    subject: ObjectRef,
}

/// A failure of the runtime itself to handle an object; errors of handlers are outcomes instead.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the API server rejects the progress of the handlers")]
    WriteRejected(#[from] write::Error),
    #[error("the object cannot be read: {0}")]
    Unreadable(String),
    #[error(
        "the API server accepted a write, and the object has not changed: does something revert it?"
    )]
    NotKept,
    #[error(
        "the API server accepts {0}, and does not keep it: does an admission webhook remove it?"
    )]
    Stripped(String),
    #[error("{0} is there again as soon as it is removed: does an admission webhook add it?")]
    Restored(String),
    #[error("the former state is back after every write: does another controller restore it?")]
    Reverted,
    #[error("the same state demands something else than a moment ago")]
    Undecided,
    #[error("the handling panicked: {0}")]
    Panicked(String),
}

/// The end of a turn, as far as it decides about the next one.
enum TurnResult {
    /// The next turn handles the state that was written.
    Written(Arc<Value>),
    /// The next turn handles this state: the former one was outdated, and nothing was written.
    Outdated(Arc<Value>),
    /// The next turn comes after this time, or with the next item.
    Sleep(Duration),
    /// The next turn comes after this time, and not before.
    Hold(Duration),
    /// Nothing is left to do.
    Done,
    /// Nothing is left to do: our last write left the object at this version.
    Settled(ResourceVersion),
    /// The object does not exist any more; its deletion event follows.
    Gone,
    /// The lease has ended; the list after the pause brings the object again.
    LeaseEnded,
}

// === impl Error ===

impl Error {
    fn with_source(&self) -> String {
        match std::error::Error::source(self) {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}

// === impl Pipeline ===

impl Pipeline {
    pub(crate) fn new(
        kinds: Arc<HandledKinds>,
        background: Arc<Background>,
        services: Arc<OperatorServices>,
        settings: Arc<Settings>,
        stop: CancellationToken,
    ) -> Self {
        let budget = ByteBudget::new(settings.queueing.waiting_bytes);
        Self {
            kinds,
            background,
            services,
            settings,
            stop,
            origin: Instant::now(),
            budget,
            reverts: RevertTracker::default(),
            unwritten: UnwrittenTurns::default(),
        }
    }

    fn kind(&self, key: &ObjectKey) -> Arc<HandledKind> {
        self.kinds.get(key.kind)
    }

    fn handling<'a>(&'a self, key: &'a Arc<ObjectKey>) -> ObjectHandling<'a> {
        let kind = self.kind(key);
        ObjectHandling {
            key,
            background: &self.background,
            settings: &self.settings,
            services: &self.services,
            pause_gate: &self.services.pause_gate,
            stop: &self.stop,
            origin: self.origin,
            reverts: &self.reverts,
            unwritten: &self.unwritten,
            subject: kind.subject(key),
            kind,
        }
    }

    fn after_failure(&self, key: &Arc<ObjectKey>, memory: &mut Memory, error: &Error) -> NextCall {
        let delay = self.settings.queueing.error_delay(memory.failures.into());
        memory.failures = memory.failures.saturating_add(1);
        let handling = self.handling(key);
        let span = handling.subject.span();
        span.in_scope(|| handling.report_error(error, delay));
        NextCall::NotBefore(delay)
    }
}

impl Processor for Pipeline {
    type Key = Arc<ObjectKey>;
    type QueueItem = QueueItem;
    type Batch = EventBatch;
    type Memory = Memory;

    fn fold(&self, key: &Self::Key, batch: &mut EventBatch, item: QueueItem) {
        let watch_event = match item {
            QueueItem::Event(watch_event) => watch_event,
            QueueItem::Requeue => return batch.requeue(),
        };
        let kind = self.kind(key);
        if !kind.background_handlers().is_empty()
            && watch_event.event_type != WatchEventType::Deleted
        {
            let version = watch_event.version.clone();
            self.background
                .update_latest(key, &watch_event.text, version);
        }
        batch.push(watch_event, kind.batch_mode(), &self.budget);
    }

    fn survives_pause(&self, batch: &EventBatch) -> bool {
        let newest = batch.newest();
        newest.is_some_and(|newest| newest.event_type == WatchEventType::Deleted)
    }

    fn drop_plan(&self, memory: &mut Memory) {
        memory.sleeping = None;
    }

    fn is_redundant(&self, key: &Self::Key, memory: &Memory, batch: &EventBatch) -> bool {
        is_own_write(memory, batch, self.kind(key).batch_mode())
    }

    async fn process(&self, key: &Self::Key, memory: &mut Memory, batch: EventBatch) -> NextCall {
        let handling = self.handling(key);
        let span = handling.subject.span();
        let newest = batch.newest();
        let deleted = newest.is_some_and(|it| it.event_type == WatchEventType::Deleted);
        // It outlives the call, for a call that panics is repeated with the same state.
        let mut current = None;
        let handled = {
            // The future is large: pinned here, it is not moved.
            let handling = pin!(handling.handle(memory, &mut current, batch));
            let handling = AssertUnwindSafe(handling.instrument(span));
            handling.catch_unwind().await
        };
        let handled =
            handled.unwrap_or_else(|payload| Err(Error::Panicked(panic_message(&*payload))));
        let next = match handled {
            Ok(next) => {
                memory.failures = 0;
                next
            }
            // No event of the object follows: this one is not tried again.
            Err(error) if deleted => {
                let handling = self.handling(key);
                let span = handling.subject.span();
                span.in_scope(|| error!("the deletion is not handled: {}", error.with_source()));
                handling.background.object_gone(key);
                handling.forget()
            }
            Err(Error::Unreadable(reason)) => {
                let handling = self.handling(key);
                let span = handling.subject.span();
                handling
                    .leave_unread(memory, &reason)
                    .instrument(span)
                    .await
            }
            Err(error) => self.after_failure(key, memory, &error),
        };
        if let (NextCall::After(_) | NextCall::NotBefore(_), Some(current)) = (next, current) {
            let sleeping = SleepingState::new(&current, &self.budget);
            memory.sleeping = Some(Box::new(sleeping));
        }
        next
    }
}

// === impl ObjectHandling ===

impl ObjectHandling<'_> {
    async fn handle(
        &self,
        memory: &mut Memory,
        current: &mut Option<Arc<Value>>,
        batch: EventBatch,
    ) -> Result<NextCall, Error> {
        if let Some(first) = batch.first() {
            let first = event_kind(first);
            memory
                .history
                .get_or_insert_with(|| ObjectHistory::begin(first));
        }
        if let Some(newest) = batch.newest() {
            memory.listed = newest.event_type == WatchEventType::Listed;
            if newest.event_type == WatchEventType::Deleted {
                if self.still_exists().await {
                    return Ok(self.forget());
                }
                self.background.object_gone(self.key);
                self.call_event_handlers(memory, current, &batch).await?;
                return Ok(self.forget());
            }
            if is_new_state(memory, newest) {
                self.take_event(memory, current, newest).await?;
            } else if newest.event_type == WatchEventType::Listed {
                self.check_restored(memory, current).await;
            }
        }
        let planned = memory.sleeping.take().filter(|_| current.is_none());
        let is_planned = planned.is_some();
        if let Some(sleeping) = planned {
            self.wake(memory, current, *sleeping, batch.newest())
                .await?;
        }
        self.call_event_handlers(memory, current, &batch).await?;
        if batch.is_requeued() && current.is_none() {
            if memory.history.is_none() {
                // The object was forgotten, and its last daemon or timer has ended.
                self.background.object_gone(self.key);
                return Ok(self.forget());
            }
            *current = self.background.latest(self.key).map(Arc::new);
        }
        if is_planned && current.is_none() {
            // The object is gone, and its deletion event follows; or the API server forbids to read it.
            memory.sleeping = Some(Box::new(SleepingState::Unread));
            return Ok(NextCall::After(self.settings.queueing.error_delay(0)));
        }
        // Handlers may take long, and other objects need the byte budget.
        drop(batch);
        if !self.kind.registry().handles_changes() && self.kind.background_handlers().is_empty() {
            *current = None;
        }
        while let Some(state) = current.clone() {
            if !self.pause_gate.is_running() {
                *current = None;
                break;
            }
            match self.turn(memory, &state).await? {
                TurnResult::Written(newer) | TurnResult::Outdated(newer)
                    if !self.stop.is_cancelled() =>
                {
                    self.wrote(memory, current, newer);
                }
                // The operator stops. The progress is on the object: the next start goes on.
                TurnResult::Written(_) | TurnResult::Outdated(_) => break,
                TurnResult::Sleep(delay) => return Ok(NextCall::After(delay)),
                TurnResult::Hold(delay) => return Ok(NextCall::NotBefore(delay)),
                TurnResult::Settled(version) => {
                    memory.written = Some(version);
                    *current = None;
                }
                TurnResult::Done | TurnResult::Gone | TurnResult::LeaseEnded => *current = None,
            }
        }
        Ok(NextCall::AwaitChange)
    }

    /// Forgets the memos and reverts of an object that is gone.
    fn forget(&self) -> NextCall {
        for memos in self.kind.memos() {
            memos.forget(&self.key.uid);
        }
        self.reverts.forget(&self.key.uid);
        self.unwritten.forget(&self.key.uid);
        NextCall::Forget
    }

    /// Makes an event the newest state; reads the object if the event has no text.
    async fn take_event(
        &self,
        memory: &mut Memory,
        current: &mut Option<Arc<Value>>,
        newest: &QueuedEvent,
    ) -> Result<(), Error> {
        if newest.text.is_some() {
            *current = self.read(newest)?;
        } else {
            self.fetch(memory, current).await?;
        }
        Ok(())
    }

    /// Goes on with the state of a planned call.
    ///
    /// A state that was not kept is in the event of our last write, if that has just arrived;
    /// otherwise the API server is asked for the newest one.
    async fn wake(
        &self,
        memory: &mut Memory,
        current: &mut Option<Arc<Value>>,
        sleeping: SleepingState,
        newest: Option<&QueuedEvent>,
    ) -> Result<(), Error> {
        *current = sleeping.parse().map(Arc::new);
        if let Some(newest) = newest
            && current.is_none()
            && newest.version.is_some()
            && newest.version == memory.written
        {
            *current = self.read(newest).ok().flatten();
        }
        if current.is_none() {
            self.fetch(memory, current).await?;
        }
        Ok(())
    }

    /// Reads the object; older events are redundant then.
    async fn fetch(
        &self,
        memory: &mut Memory,
        current: &mut Option<Arc<Value>>,
    ) -> Result<(), Error> {
        match self.writer().newest().await {
            ReadResult::Object(newer) => self.wrote(memory, current, newer),
            ReadResult::Gone | ReadResult::LeaseEnded => {}
            ReadResult::Unreadable(reason) => return Err(Error::Unreadable(reason)),
        }
        Ok(())
    }

    /// Waits for another state of an object that cannot be read; no handler can be called for it.
    /// If it is being deleted, our finalizer must not keep it for ever.
    async fn leave_unread(&self, memory: &mut Memory, reason: &str) -> NextCall {
        memory.sleeping = None;
        if !self.pause_gate.is_running() {
            return NextCall::AwaitChange;
        }
        let finalizer = &self.kind.persistence().finalizer;
        let consequence = match self.writer().release(finalizer).await {
            ReleaseResult::Released => "it is deleted without its handlers".to_owned(),
            ReleaseResult::Left => "its handlers are not called until it changes".to_owned(),
            ReleaseResult::Rejected(reason) => {
                format!("the finalizer cannot be removed: {reason}")
            }
        };
        let message = format!("the object cannot be read: {reason}; {consequence}");
        error!("{message}");
        self.post_error("Handling", &message);
        NextCall::AwaitChange
    }

    /// True if a deletion event means that the object does not match the selectors any more.
    async fn still_exists(&self) -> bool {
        self.kind.api().is_selective()
            && !matches!(
                self.writer().newest().await,
                ReadResult::Gone | ReadResult::LeaseEnded
            )
    }

    /// Reads an object that a list shows older than our last write. If the API server has that
    /// older state too, it was restored from a backup, and its versions grow from there.
    async fn check_restored(&self, memory: &mut Memory, current: &mut Option<Arc<Value>>) {
        if let ReadResult::Object(newest) = self.writer().newest().await {
            let version = ObjectView::new(&newest).resource_version();
            if is_stale(memory, version.map(ResourceVersion::new).as_ref()) {
                memory.written = None;
                self.background.replace_latest(self.key, &newest);
            }
            *current = Some(newest);
        }
    }

    fn read(&self, watch_event: &QueuedEvent) -> Result<Option<Arc<Value>>, Error> {
        let Some(text) = &watch_event.text else {
            return Ok(None);
        };
        let object = self.kind.api().read(text);
        let object = object.map_err(|error| Error::Unreadable(error.to_string()))?;
        Ok(Some(Arc::new(object)))
    }

    /// Goes on with an answer of the API server: all older events are redundant.
    fn wrote(&self, memory: &mut Memory, current: &mut Option<Arc<Value>>, newer: Arc<Value>) {
        if let Some(version) = ObjectView::new(&newer).resource_version() {
            memory.written = Some(ResourceVersion::new(version));
        }
        if !self.kind.background_handlers().is_empty() {
            self.background.update_written(self.key, &newer);
        }
        *current = Some(newer);
    }

    fn writer(&self) -> ObjectWriter<'_> {
        ObjectWriter {
            api: self.kind.api(),
            key: self.key,
            pause_gate: self.pause_gate,
            stop: Some(self.stop),
            origin: self.origin,
        }
    }

    fn has_status_endpoint(&self) -> bool {
        self.kind.spec().status == StatusSubresource::Present
    }

    fn handler_scope(&self, memos: Option<&Memos>) -> HandlerScope {
        HandlerScope {
            services: Arc::clone(self.services),
            subject: self.subject.clone(),
            memo: memos.map(|memos| memos.recall(&self.key.uid)),
            resource: self.kind.api().description().get(),
        }
    }

    /// Logs and posts that the runtime itself cannot go on with the object for now; the caller is
    /// in the span of the object.
    fn report_error(&self, error: &Error, delay: Duration) {
        let message = error.with_source();
        error!("{message}; trying again in {delay:?}");
        self.post_error("Handling", &message);
    }

    fn post_error(&self, reason: &str, message: &str) {
        if let Some(poster) = &self.services.poster {
            poster.post(&self.subject, &EventSeverity::Error, reason, message);
        }
    }
}

/// True if a batch holds only the event of our last write, and no turn is due.
fn is_own_write(memory: &Memory, batch: &EventBatch, batch_mode: BatchMode) -> bool {
    batch_mode == BatchMode::NewestOnly
        && !batch.is_requeued()
        && memory.sleeping.is_none()
        && batch.newest().is_some_and(|newest| {
            matches!(
                newest.event_type,
                WatchEventType::Added | WatchEventType::Modified
            ) && is_stale(memory, newest.version.as_ref())
        })
}

/// True if an event has a state that is to be handled. The state of our last write is handled again
/// if a list brings it, because daemons and timers of the object may have to start.
fn is_new_state(memory: &Memory, newest: &QueuedEvent) -> bool {
    let relisted = newest.event_type == WatchEventType::Listed && newest.version == memory.written;
    relisted || !is_stale(memory, newest.version.as_ref())
}

/// True if a version is not newer than our last write.
fn is_stale(memory: &Memory, version: Option<&ResourceVersion>) -> bool {
    match (version, &memory.written) {
        (Some(version), Some(written)) => version.is_not_newer_than(written),
        _ => false,
    }
}

fn event_kind(event_type: WatchEventType) -> EventKind {
    match event_type {
        WatchEventType::Listed => EventKind::Listed,
        WatchEventType::Added | WatchEventType::Modified => EventKind::Changed,
        WatchEventType::Deleted => EventKind::Deleted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::watch::WatchEvent;

    fn batch_of(event_type: WatchEventType, version: &str) -> EventBatch {
        let mut batch = EventBatch::default();
        let watch_event = WatchEvent {
            event_type,
            version: Some(ResourceVersion::new(version)),
            text: to_raw_value("").unwrap().into(),
        };
        batch.push(watch_event, BatchMode::NewestOnly, &ByteBudget::new(1024));
        batch
    }

    fn memory() -> Memory {
        Memory {
            written: Some(ResourceVersion::new("5")),
            ..Memory::default()
        }
    }

    #[test]
    fn the_event_of_our_own_write_is_redundant_unless_the_object_was_requeued() {
        let memory = memory();
        let mut batch = batch_of(WatchEventType::Modified, "5");
        assert!(is_own_write(&memory, &batch, BatchMode::NewestOnly));
        assert!(!is_own_write(&memory, &batch, BatchMode::EveryEvent));
        assert!(!is_own_write(
            &memory,
            &batch_of(WatchEventType::Modified, "6"),
            BatchMode::NewestOnly
        ));
        batch.requeue();
        assert!(!is_own_write(&memory, &batch, BatchMode::NewestOnly));
    }

    #[test]
    fn the_event_of_our_own_write_wakes_an_object_with_a_planned_call() {
        let memory = Memory {
            sleeping: Some(Box::new(SleepingState::Unread)),
            ..memory()
        };
        let batch = batch_of(WatchEventType::Modified, "5");
        assert!(!is_own_write(&memory, &batch, BatchMode::NewestOnly));
    }

    #[test]
    fn a_list_that_shows_the_state_of_our_last_write_is_handled() {
        let memory = memory();
        let is_new =
            |batch: &EventBatch| batch.newest().is_some_and(|it| is_new_state(&memory, it));
        assert!(is_new(&batch_of(WatchEventType::Listed, "5")));
        assert!(is_new(&batch_of(WatchEventType::Listed, "6")));
        assert!(!is_new(&batch_of(WatchEventType::Listed, "4")));
        assert!(!is_new(&batch_of(WatchEventType::Modified, "5")));
    }
}
