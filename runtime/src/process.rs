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

use self::batch::{Batch, Keep, Room, Waiting};
pub(crate) use self::kind::Kind;
use self::kinds::Kinds;
use self::reverts::RevertedObjects;
use crate::background::Background;
use crate::client::resource_version::ResourceVersion;
use crate::coordination::pause::PauseGate;
use crate::events::object_ref::ObjectRef;
use crate::events::posting::EventSeverity;
use crate::events::span;
use crate::handler::memo::Memos;
use crate::process::execute::scope::{HandlerScope, OperatorServices};
use crate::process::memory::Memory;
use crate::process::persist::apply::{OnConflict, Place, Tell, WriteRejected, WriteResult, apply};
use crate::queue::{Next, Processor};
use crate::settings::Settings;
use crate::task::panic_message;
use crate::watch::{ObjectKey, QueueItem, WatchEventType};

/// Everything that handling an object takes.
pub(crate) struct Pipeline {
    kinds: Arc<Kinds>,
    background: Arc<Background>,
    services: Arc<OperatorServices>,
    settings: Arc<Settings>,
    stop: CancellationToken,
    room: Room,
    rivals: RevertedObjects,
}

/// One object with its kind, while it is handled.
struct Case<'a> {
    kind: Arc<Kind>,
    key: &'a Arc<ObjectKey>,
    background: &'a Background,
    settings: &'a Settings,
    services: &'a Arc<OperatorServices>,
    pause_gate: &'a PauseGate,
    stop: &'a CancellationToken,
    rivals: &'a RevertedObjects,
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
    #[error("the server accepts {0}, and does not keep it: does an admission webhook remove it?")]
    Stripped(String),
    #[error("{0} is there again as soon as it is removed: does an admission webhook add it?")]
    Restored(String),
    #[error("whatever is written is undone: does somebody else bring the former state back?")]
    Contested,
    #[error("the state demands something else than a moment ago")]
    Undecided,
    #[error("the handling panicked: {0}")]
    Panicked(String),
}

/// What is to be done after one turn of handling.
enum Turn {
    /// Go on with the state that was written.
    Again(Arc<Value>),
    /// Go on with this state: the former one was outdated, and nothing was written.
    Instead(Arc<Value>),
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
        kinds: Arc<Kinds>,
        background: Arc<Background>,
        services: Arc<OperatorServices>,
        settings: Arc<Settings>,
        stop: CancellationToken,
    ) -> Self {
        let room = Room::new(settings.queueing.waiting_bytes);
        Self {
            kinds,
            background,
            services,
            settings,
            stop,
            room,
            rivals: RevertedObjects::default(),
        }
    }

    fn kind(&self, key: &ObjectKey) -> Arc<Kind> {
        self.kinds.get(key.kind)
    }

    fn case<'a>(&'a self, key: &'a Arc<ObjectKey>) -> Case<'a> {
        let kind = self.kind(key);
        Case {
            key,
            background: &self.background,
            settings: &self.settings,
            services: &self.services,
            pause_gate: &self.services.pause_gate,
            stop: &self.stop,
            rivals: &self.rivals,
            subject: kind.subject(key),
            kind,
        }
    }

    fn after_failure(&self, key: &Arc<ObjectKey>, memory: &mut Memory, error: &Error) -> Next {
        let delay = self.settings.queueing.error_delay(memory.failures.into());
        memory.failures = memory.failures.saturating_add(1);
        self.case(key).complain(error, delay);
        Next::Hold(delay)
    }
}

impl Processor for Pipeline {
    type Key = Arc<ObjectKey>;
    type QueueItem = QueueItem;
    type Batch = Batch;
    type Memory = Memory;

    fn fold(&self, key: &Self::Key, batch: &mut Batch, news: QueueItem) {
        let watch_event = match news {
            QueueItem::Seen(watch_event) => watch_event,
            QueueItem::Nudge => return batch.nudge(),
        };
        let kind = self.kind(key);
        if !kind.duties().is_empty() && watch_event.event_type != WatchEventType::Deleted {
            let version = watch_event.version.clone();
            self.background.saw(key, &watch_event.text, version);
        }
        batch.push(watch_event, kind.keep(), &self.room);
    }

    fn outlasts_pause(&self, batch: &Batch) -> bool {
        let newest = batch.newest();
        newest.is_some_and(|newest| newest.event_type == WatchEventType::Deleted)
    }

    fn shelve(&self, memory: &mut Memory) {
        memory.current = None;
    }

    fn is_known(&self, key: &Self::Key, memory: &Memory, batch: &Batch) -> bool {
        is_echo(memory, batch, self.kind(key).keep())
    }

    async fn process(&self, key: &Self::Key, memory: &mut Memory, batch: Batch) -> Next {
        let case = self.case(key);
        let span = case.subject.span();
        let handled = {
            // Large enough for moves to be felt: it stays where it is made.
            let handling = pin!(case.handle(memory, batch));
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

// === impl Case ===

impl Case<'_> {
    async fn handle(&self, memory: &mut Memory, batch: Batch) -> Result<Next, Error> {
        if let Some(first) = batch.first() {
            let first = event_kind(first);
            memory
                .history
                .get_or_insert_with(|| ObjectHistory::begin(first));
        }
        if let Some(newest) = batch.newest() {
            memory.listed = newest.event_type == WatchEventType::Listed;
            if newest.event_type == WatchEventType::Deleted {
                if self.has_only_left_the_view().await {
                    return Ok(self.forget());
                }
                self.background.gone(self.key);
                self.tell_event_handlers(memory, &batch).await?;
                return Ok(self.forget());
            }
            if is_news(memory, newest) {
                self.take_in(memory, newest).await?;
            } else if newest.event_type == WatchEventType::Listed {
                self.check_versions(memory).await;
            }
            self.tell_event_handlers(memory, &batch).await?;
        }
        if batch.is_nudged() && memory.current.is_none() {
            if memory.history.is_none() {
                // The object is gone, and what was beside it is, too.
                self.background.gone(self.key);
                return Ok(self.forget());
            }
            memory.current = self.background.newest(self.key).map(Arc::new);
        }
        // Handlers may take long, and others need the room.
        drop(batch);
        if !self.kind.registry().handles_changes() && self.kind.duties().is_empty() {
            memory.current = None;
        }
        while let Some(current) = memory.current.clone() {
            if !self.pause_gate.is_running() {
                memory.current = None;
                break;
            }
            match self.turn(memory, &current).await? {
                Turn::Again(newer) | Turn::Instead(newer) if !self.stop.is_cancelled() => {
                    self.wrote(memory, newer);
                }
                // What is left to do is on the object; the next start will find it.
                Turn::Again(_) | Turn::Instead(_) => break,
                Turn::Sleep(delay) => return Ok(Next::Wake(delay)),
                Turn::Hold(delay) => return Ok(Next::Hold(delay)),
                Turn::Settled(version) => {
                    memory.written = Some(version);
                    memory.current = None;
                }
                Turn::Done | Turn::Gone | Turn::LeaseEnded => memory.current = None,
            }
        }
        Ok(Next::Rest)
    }

    /// The object is gone, and so is what was remembered of it.
    fn forget(&self) -> Next {
        for memos in self.kind.memos() {
            memos.forget(&self.key.uid);
        }
        self.rivals.forget(&self.key.uid);
        Next::Forget
    }

    /// Makes a sighting the newest state, asking for what found no room to wait.
    async fn take_in(&self, memory: &mut Memory, newest: &Waiting) -> Result<(), Error> {
        if newest.text.is_some() {
            memory.current = self.read(newest)?;
        } else if let Some(newer) = persist::apply::newest(&self.place()).await {
            self.wrote(memory, newer);
        }
        Ok(())
    }

    /// To a watch with selectors, an object that stops matching looks like a deleted one.
    async fn has_only_left_the_view(&self) -> bool {
        self.kind.api().is_selective() && persist::apply::newest(&self.place()).await.is_some()
    }

    /// A list is rarely older than our last write. If the server itself is, it was restored from
    /// a backup, and its versions grow from there.
    async fn check_versions(&self, memory: &mut Memory) {
        if let Some(newest) = persist::apply::newest(&self.place()).await {
            let version = ObjectView::new(&newest).resource_version();
            if is_stale(memory, version.map(ResourceVersion::new).as_ref()) {
                memory.written = None;
                self.background.restored(self.key, &newest);
            }
            memory.current = Some(newest);
        }
    }

    /// Calls event handlers for each event; what they want written is written once.
    async fn tell_event_handlers(&self, memory: &mut Memory, batch: &Batch) -> Result<(), Error> {
        if self.kind.keep() == Keep::Newest {
            return Ok(());
        }
        let mut patch = Patch::new();
        'events: for watch_event in batch.all() {
            let Some(object) = self.read(watch_event)? else {
                continue;
            };
            let matched = Matched::object(ObjectView::new(&object));
            for spec in self.kind.registry().event_handlers(&matched) {
                let Some(callee) = self.kind.event_function(&spec) else {
                    continue;
                };
                if !self.pause_gate.is_running() {
                    break 'events;
                }
                let scope = self.surroundings(callee.memos);
                let raw = Arc::clone(&object);
                let span = span::handler(spec.id.as_str(), 0);
                let call = callee
                    .function
                    .call(scope, raw, watch_event.event_type, spec.policy.timeout)
                    .instrument(span);
                let measured = callee.metrics.begin(0);
                let Ok(mut attempt) = self.pause_gate.while_leading(call).await else {
                    return Ok(());
                };
                measured.end(attempt.end.counted());
                let result = attempt.effects.result.take();
                patch.absorb(attempt.effects.patch.into_writes());
                match (attempt.end.complaint(), result) {
                    (Some(complaint), _) => {
                        error!("Handler '{}' {complaint}", spec.id);
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
        match apply(&self.place(), &known, patch, OnConflict::Repeat, Tell::All).await {
            Ok(WriteResult::Written(newer) | WriteResult::Stripped(newer, _)) => {
                self.wrote(memory, newer);
            }
            Ok(
                WriteResult::Unchanged
                | WriteResult::Foreseen(_)
                | WriteResult::Outdated(_)
                | WriteResult::Gone
                | WriteResult::LeaseEnded,
            ) => {}
            Err(rejected) => {
                warn!("what an event handler wants written is not accepted: {rejected}");
                self.complain_in_event("Patching", &rejected.to_string());
            }
        }
        Ok(())
    }

    fn read(&self, watch_event: &Waiting) -> Result<Option<Arc<Value>>, Error> {
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
        if !self.kind.duties().is_empty() {
            self.background.wrote(self.key, &newer);
        }
        memory.current = Some(newer);
    }

    fn place(&self) -> Place<'_> {
        Place {
            api: self.kind.api(),
            key: self.key,
            status: self.kind.spec().status,
            pause_gate: self.pause_gate,
        }
    }

    fn surroundings(&self, memos: Option<&Memos>) -> HandlerScope {
        HandlerScope {
            services: Arc::clone(self.services),
            subject: self.subject.clone(),
            memo: memos.map(|memos| memos.recall(&self.key.uid)),
            resource: self.kind.api().description().get(),
        }
    }

    /// Tells that the runtime itself cannot go on with the object for now.
    fn complain(&self, error: &Error, delay: Duration) {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
        let story = format!("{error}{}", cause.unwrap_or_default());
        self.subject
            .span()
            .in_scope(|| error!("{story}; trying again in {delay:?}"));
        self.complain_in_event("Handling", &story);
    }

    fn complain_in_event(&self, reason: &str, message: &str) {
        if let Some(poster) = &self.services.poster {
            poster.post(&self.subject, &EventSeverity::Error, reason, message);
        }
    }
}

/// Whether nothing was seen but the effect of our own last write, to an object without plans.
fn is_echo(memory: &Memory, batch: &Batch, keep: Keep) -> bool {
    keep == Keep::Newest
        && !batch.is_nudged()
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
fn is_news(memory: &Memory, newest: &Waiting) -> bool {
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

    fn seen(event_type: WatchEventType, version: &str) -> Batch {
        let mut batch = Batch::default();
        let watch_event = WatchEvent {
            event_type,
            version: Some(ResourceVersion::new(version)),
            text: to_raw_value("").unwrap().into(),
        };
        batch.push(watch_event, Keep::Newest, &Room::new(1024));
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
        assert!(is_echo(&memory, &batch, Keep::Newest));
        assert!(!is_echo(&memory, &batch, Keep::Events));
        assert!(!is_echo(
            &memory,
            &seen(WatchEventType::Modified, "6"),
            Keep::Newest
        ));
        batch.nudge();
        assert!(!is_echo(&memory, &batch, Keep::Newest));
    }

    #[test]
    fn a_list_that_shows_the_state_after_our_last_write_is_taken_in() {
        let memory = memory();
        let news = |batch: &Batch| batch.newest().is_some_and(|it| is_news(&memory, it));
        assert!(news(&seen(WatchEventType::Listed, "5")));
        assert!(news(&seen(WatchEventType::Listed, "6")));
        assert!(!news(&seen(WatchEventType::Listed, "4")));
        assert!(!news(&seen(WatchEventType::Modified, "5")));
    }
}
