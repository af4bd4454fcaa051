//! One object through the pipeline: what was seen → cause → selection → execution → persistence.
//!
//! Called by the queue, for one object at a time. After each write the answer of the server is
//! taken as the newest state, so that the next handler need not wait for the watch to bring it;
//! what the watch brings later is then no news.

pub(crate) mod batch;
pub(crate) mod execute;
pub(crate) mod kind;
pub(crate) mod kinds;
mod memory;
pub(crate) mod persist;
mod reverts;
mod turn;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kopf_core::cause::Subject as Matched;
use kopf_core::cause::detect::{EventKind, ObjectHistory};
use kopf_core::object::ObjectView;
use kopf_core::object::patch::Patch;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, error, warn};

use self::batch::{BatchMode, ByteBudget, EventBatch, QueuedEvent};
pub(crate) use self::kind::HandledKind;
use self::kinds::HandledKinds;
use self::reverts::RevertTracker;
use crate::background::Background;
use crate::client::resource_version::ResourceVersion;
use crate::coordination::pause::PauseGate;
use crate::events::object_ref::ObjectRef;
use crate::events::posting::EventSeverity;
use crate::events::span;
use crate::handler::memo::Memos;
use crate::process::execute::scope::{HandlerScope, OperatorServices};
use crate::process::memory::Memory;
use crate::process::persist::apply::{
    ObjectWriter, OnConflict, ReadBack, WriteRejected, WriteResult, apply,
};
use crate::queue::{NextCall, Processor};
use crate::settings::Settings;
use crate::task::panic_message;
use crate::watch::{ObjectKey, QueueItem, WatchEventType};

/// Everything that handling an object takes.
pub(crate) struct Pipeline {
    kinds: Arc<HandledKinds>,
    background: Arc<Background>,
    services: Arc<OperatorServices>,
    settings: Arc<Settings>,
    stop: CancellationToken,
    budget: ByteBudget,
    reverts: RevertTracker,
}

/// One object with its kind, while it is handled.
struct ObjectHandling<'a> {
    kind: Arc<HandledKind>,
    key: &'a Arc<ObjectKey>,
    background: &'a Background,
    settings: &'a Settings,
    services: &'a Arc<OperatorServices>,
    pause_gate: &'a PauseGate,
    stop: &'a CancellationToken,
    reverts: &'a RevertTracker,
    subject: ObjectRef,
}

/// Why the runtime itself could not handle an object; handlers' errors are outcomes, not this.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the server does not accept the record of the handling")]
    WriteRejected(#[from] WriteRejected),
    #[error("the object cannot be read")]
    Unreadable(#[source] serde_json::Error),
    #[error("a write that was accepted has left no trace: does something revert it?")]
    NotKept,
    #[error(
        "the server accepts {0}, and does not batch_mode it: does an admission webhook remove it?"
    )]
    Stripped(String),
    #[error("{0} is there again as soon as it is removed: does an admission webhook add it?")]
    Restored(String),
    #[error("whatever is written is undone: does somebody else bring the former state back?")]
    Reverted,
    #[error("the state demands something else than a moment ago")]
    Undecided,
    #[error("the handling panicked: {0}")]
    Panicked(String),
}

/// What is to be done after one turn of handling.
enum TurnResult {
    /// Go on with the state that was written.
    Written(Arc<Value>),
    /// Go on with this state: the former one was outdated, and nothing was written.
    Outdated(Arc<Value>),
    /// Nothing, until then.
    Sleep(Duration),
    /// Nothing until then, whatever happens.
    Hold(Duration),
    /// Nothing any more.
    Done,
    /// Nothing any more: the object is as it was left, at this version.
    Settled(ResourceVersion),
    /// The object went away; the watch will say so.
    Gone,
    /// Nothing may be done any more; the list after the pause will bring the object again.
    LeaseEnded,
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
            budget,
            reverts: RevertTracker::default(),
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
            reverts: &self.reverts,
            subject: kind.subject(key),
            kind,
        }
    }

    fn after_failure(&self, key: &Arc<ObjectKey>, memory: &mut Memory, error: &Error) -> NextCall {
        let delay = self.settings.queueing.error_delay(memory.failures.into());
        memory.failures = memory.failures.saturating_add(1);
        self.handling(key).report_error(error, delay);
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
        memory.current = None;
    }

    fn is_redundant(&self, key: &Self::Key, memory: &Memory, batch: &EventBatch) -> bool {
        is_own_write(memory, batch, self.kind(key).batch_mode())
    }

    async fn process(&self, key: &Self::Key, memory: &mut Memory, batch: EventBatch) -> NextCall {
        let handling = self.handling(key);
        let span = handling.subject.span();
        let handled = {
            // Large enough for moves to be felt: it stays where it is made.
            let handling = pin!(handling.handle(memory, batch));
            let handling = AssertUnwindSafe(handling.instrument(span));
            handling.catch_unwind().await
        };
        let handled =
            handled.unwrap_or_else(|payload| Err(Error::Panicked(panic_message(&*payload))));
        match handled {
            Ok(next) => {
                memory.failures = 0;
                next
            }
            Err(error) => self.after_failure(key, memory, &error),
        }
    }
}

// === impl ObjectHandling ===

impl ObjectHandling<'_> {
    async fn handle(&self, memory: &mut Memory, batch: EventBatch) -> Result<NextCall, Error> {
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
                self.call_event_handlers(memory, &batch).await?;
                return Ok(self.forget());
            }
            if is_new_state(memory, newest) {
                self.take_event(memory, newest).await?;
            } else if newest.event_type == WatchEventType::Listed {
                self.check_restored(memory).await;
            }
            self.call_event_handlers(memory, &batch).await?;
        }
        if batch.is_requeued() && memory.current.is_none() {
            if memory.history.is_none() {
                // The object is gone, and what was beside it is, too.
                self.background.object_gone(self.key);
                return Ok(self.forget());
            }
            memory.current = self.background.latest(self.key).map(Arc::new);
        }
        // Handlers may take long, and others need the room.
        drop(batch);
        if !self.kind.registry().handles_changes() && self.kind.background_handlers().is_empty() {
            memory.current = None;
        }
        while let Some(current) = memory.current.clone() {
            if !self.pause_gate.is_running() {
                memory.current = None;
                break;
            }
            match self.turn(memory, &current).await? {
                TurnResult::Written(newer) | TurnResult::Outdated(newer)
                    if !self.stop.is_cancelled() =>
                {
                    self.wrote(memory, newer);
                }
                // What is left to do is on the object; the next start will find it.
                TurnResult::Written(_) | TurnResult::Outdated(_) => break,
                TurnResult::Sleep(delay) => return Ok(NextCall::After(delay)),
                TurnResult::Hold(delay) => return Ok(NextCall::NotBefore(delay)),
                TurnResult::Settled(version) => {
                    memory.written = Some(version);
                    memory.current = None;
                }
                TurnResult::Done | TurnResult::Gone | TurnResult::LeaseEnded => {
                    memory.current = None
                }
            }
        }
        Ok(NextCall::AwaitChange)
    }

    /// The object is gone, and so is what was remembered of it.
    fn forget(&self) -> NextCall {
        for memos in self.kind.memos() {
            memos.forget(&self.key.uid);
        }
        self.reverts.forget(&self.key.uid);
        NextCall::Forget
    }

    /// Makes a sighting the newest state, asking for what found no room to wait.
    async fn take_event(&self, memory: &mut Memory, newest: &QueuedEvent) -> Result<(), Error> {
        if newest.text.is_some() {
            memory.current = self.read(newest)?;
        } else if let Some(newer) = persist::apply::newest(&self.writer()).await {
            self.wrote(memory, newer);
        }
        Ok(())
    }

    /// To a watch with selectors, an object that stops matching looks like a deleted one.
    async fn still_exists(&self) -> bool {
        self.kind.api().is_selective() && persist::apply::newest(&self.writer()).await.is_some()
    }

    /// A list is rarely older than our last write. If the server itself is, it was restored from
    /// a backup, and its versions grow from there.
    async fn check_restored(&self, memory: &mut Memory) {
        if let Some(newest) = persist::apply::newest(&self.writer()).await {
            let version = ObjectView::new(&newest).resource_version();
            if is_stale(memory, version.map(ResourceVersion::new).as_ref()) {
                memory.written = None;
                self.background.replace_latest(self.key, &newest);
            }
            memory.current = Some(newest);
        }
    }

    /// Calls event handlers for each event; what they want written is written once.
    async fn call_event_handlers(
        &self,
        memory: &mut Memory,
        batch: &EventBatch,
    ) -> Result<(), Error> {
        if self.kind.batch_mode() == BatchMode::NewestOnly {
            return Ok(());
        }
        let mut patch = Patch::new();
        'events: for watch_event in batch.all() {
            let Some(object) = self.read(watch_event)? else {
                continue;
            };
            let matched = Matched::object(ObjectView::new(&object));
            for spec in self.kind.registry().event_handlers(&matched) {
                let Some(handler) = self.kind.event_function(&spec) else {
                    continue;
                };
                if !self.pause_gate.is_running() {
                    break 'events;
                }
                let scope = self.handler_scope(handler.memos);
                let raw = Arc::clone(&object);
                let span = span::handler(spec.id.as_str(), 0);
                let call = handler
                    .function
                    .call(scope, raw, watch_event.event_type, spec.policy.timeout)
                    .instrument(span);
                let measured = handler.metrics.begin(0);
                let Ok(mut attempt) = self.pause_gate.while_leading(call).await else {
                    return Ok(());
                };
                measured.end(attempt.verdict.counted());
                let result = attempt.effects.result.take();
                patch.absorb(attempt.effects.patch.into_writes());
                match (attempt.verdict.ignored_failure(), result) {
                    (Some(failure), _) => {
                        error!("Handler '{}' {failure}", spec.id);
                    }
                    (None, Some(result)) => patch.deliver(spec.id.as_str(), &result),
                    (None, None) => {}
                }
            }
        }
        let Some(newest) = batch.newest() else {
            return Ok(());
        };
        if patch.is_empty() || newest.event_type == WatchEventType::Deleted {
            return Ok(());
        }
        let known = match &memory.current {
            Some(current) => Some(Arc::clone(current)),
            None => self.read(newest)?,
        };
        let Some(known) = known else {
            return Ok(());
        };
        match apply(
            &self.writer(),
            &known,
            patch,
            OnConflict::Repeat,
            ReadBack::Always,
        )
        .await
        {
            Ok(WriteResult::Written(newer) | WriteResult::Stripped(newer, _)) => {
                self.wrote(memory, newer);
            }
            Ok(
                WriteResult::Unchanged
                | WriteResult::AsExpected(_)
                | WriteResult::Outdated(_)
                | WriteResult::Gone
                | WriteResult::LeaseEnded,
            ) => {}
            Err(rejected) => {
                warn!("what an event handler wants written is not accepted: {rejected}");
                self.post_error("Patching", &rejected.to_string());
            }
        }
        Ok(())
    }

    fn read(&self, watch_event: &QueuedEvent) -> Result<Option<Arc<Value>>, Error> {
        let Some(text) = &watch_event.text else {
            return Ok(None);
        };
        let object = self.kind.api().read(text).map_err(Error::Unreadable)?;
        Ok(Some(Arc::new(object)))
    }

    /// Goes on with a state that came from the server itself: all that is older is known.
    fn wrote(&self, memory: &mut Memory, newer: Arc<Value>) {
        if let Some(version) = ObjectView::new(&newer).resource_version() {
            memory.written = Some(ResourceVersion::new(version));
        }
        if !self.kind.background_handlers().is_empty() {
            self.background.update_written(self.key, &newer);
        }
        memory.current = Some(newer);
    }

    fn writer(&self) -> ObjectWriter<'_> {
        ObjectWriter {
            api: self.kind.api(),
            key: self.key,
            status: self.kind.spec().status,
            pause_gate: self.pause_gate,
        }
    }

    fn handler_scope(&self, memos: Option<&Memos>) -> HandlerScope {
        HandlerScope {
            services: Arc::clone(self.services),
            subject: self.subject.clone(),
            memo: memos.map(|memos| memos.recall(&self.key.uid)),
            resource: self.kind.api().description().get(),
        }
    }

    /// Tells that the runtime itself cannot go on with the object for now.
    fn report_error(&self, error: &Error, delay: Duration) {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
        let message = format!("{error}{}", cause.unwrap_or_default());
        self.subject
            .span()
            .in_scope(|| error!("{message}; trying again in {delay:?}"));
        self.post_error("Handling", &message);
    }

    fn post_error(&self, reason: &str, message: &str) {
        if let Some(poster) = &self.services.poster {
            poster.post(&self.subject, &EventSeverity::Error, reason, message);
        }
    }
}

/// Whether nothing was seen but the effect of our own last write, to an object without plans.
fn is_own_write(memory: &Memory, batch: &EventBatch, batch_mode: BatchMode) -> bool {
    batch_mode == BatchMode::NewestOnly
        && !batch.is_requeued()
        && memory.current.is_none()
        && batch.newest().is_some_and(|newest| {
            matches!(
                newest.event_type,
                WatchEventType::Added | WatchEventType::Modified
            ) && is_stale(memory, newest.version.as_ref())
        })
}

/// Whether a sighting shows a state that has not been taken in. A list may show the state after
/// our last write: that is no news to handlers, but maybe nobody accompanies the object yet.
fn is_new_state(memory: &Memory, newest: &QueuedEvent) -> bool {
    let relisted = newest.event_type == WatchEventType::Listed && newest.version == memory.written;
    relisted || !is_stale(memory, newest.version.as_ref())
}

/// An event that is older than our last write tells nothing new.
fn is_stale(memory: &Memory, seen: Option<&ResourceVersion>) -> bool {
    match (seen, &memory.written) {
        (Some(seen), Some(written)) => seen.is_known_after(written),
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

    fn seen(event_type: WatchEventType, version: &str) -> EventBatch {
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
    fn the_echo_of_our_own_write_is_no_news_unless_something_else_has_happened() {
        let memory = memory();
        let mut batch = seen(WatchEventType::Modified, "5");
        assert!(is_own_write(&memory, &batch, BatchMode::NewestOnly));
        assert!(!is_own_write(&memory, &batch, BatchMode::EveryEvent));
        assert!(!is_own_write(
            &memory,
            &seen(WatchEventType::Modified, "6"),
            BatchMode::NewestOnly
        ));
        batch.requeue();
        assert!(!is_own_write(&memory, &batch, BatchMode::NewestOnly));
    }

    #[test]
    fn a_list_that_shows_the_state_after_our_last_write_is_taken_in() {
        let memory = memory();
        let item = |batch: &EventBatch| batch.newest().is_some_and(|it| is_new_state(&memory, it));
        assert!(item(&seen(WatchEventType::Listed, "5")));
        assert!(item(&seen(WatchEventType::Listed, "6")));
        assert!(!item(&seen(WatchEventType::Listed, "4")));
        assert!(!item(&seen(WatchEventType::Modified, "5")));
    }
}
