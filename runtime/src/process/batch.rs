//! The events of an object that wait for a worker, and the memory that all of them may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kopf_core::cause::detect::EventKind;
use kopf_core::machine::memory::{BatchSummary, NewestEvent};
use kopf_core::object::resource_version::ResourceVersion;
use serde_json::value::RawValue;

use crate::watch::{WatchEvent, WatchEventType};

/// Earlier events that are kept for event handlers; beyond that, modifications are merged.
const MAX_EARLIER_EVENTS: usize = 16;

/// The events since the last call: the newest, and for event handlers those before it.
#[derive(Debug, Default)]
pub(crate) struct EventBatch {
    first: Option<WatchEventType>,
    earlier: Vec<QueuedEvent>,
    newest: Option<QueuedEvent>,
    requeued: bool,
}

/// An event that waits for a worker.
#[derive(Debug)]
pub(crate) struct QueuedEvent {
    pub(crate) event_type: WatchEventType,
    pub(crate) version: Option<ResourceVersion>,
    /// None if it exceeded the budget: the worker reads the object instead.
    pub(crate) text: Option<Arc<RawValue>>,
    _reserved: Option<ReservedBytes>,
}

/// The events that a kind needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchMode {
    NewestOnly,
    /// Event handlers are called for each event.
    EveryEvent,
}

/// The memory for waiting events and sleeping objects, shared by all objects.
///
/// A list is read as fast as it comes, so that the watch can begin, and handlers may be slower.
/// An event or a sleeping object that exceeds the budget costs one more request later.
#[derive(Debug, Clone)]
pub(crate) struct ByteBudget {
    taken: Arc<AtomicUsize>,
    bytes: usize,
}

/// A part of the budget, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ReservedBytes {
    taken: Arc<AtomicUsize>,
    bytes: usize,
}

// === impl EventBatch ===

impl EventBatch {
    /// Adds an event.
    ///
    /// Change handlers need the newest state only. Event handlers get each event as long as few
    /// wait; beyond that, modifications are left out, as they are when a watch is interrupted.
    pub(crate) fn push(&mut self, watch_event: WatchEvent, mode: BatchMode, budget: &ByteBudget) {
        self.first.get_or_insert(watch_event.event_type);
        let dispensable =
            mode == BatchMode::NewestOnly && watch_event.event_type != WatchEventType::Deleted;
        let Some(previous) = self.newest.replace(budget.admit(watch_event, dispensable)) else {
            return;
        };
        if mode == BatchMode::NewestOnly {
            return;
        }
        if self.earlier.len() < MAX_EARLIER_EVENTS
            || previous.event_type != WatchEventType::Modified
        {
            self.earlier.push(previous);
        }
    }

    /// Notes that the object is to be processed without an event.
    pub(crate) fn requeue(&mut self) {
        self.requeued = true;
    }

    /// The facts that decide about the call.
    pub(crate) fn summary(&self) -> BatchSummary {
        BatchSummary {
            first: self.first.map(event_kind),
            newest: self.newest.as_ref().map(|newest| NewestEvent {
                kind: event_kind(newest.event_type),
                version: newest.version.clone(),
                has_text: newest.text.is_some(),
            }),
            requeued: self.requeued,
        }
    }

    pub(crate) fn newest(&self) -> Option<&QueuedEvent> {
        self.newest.as_ref()
    }

    /// All events that were kept, in their order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &QueuedEvent> {
        self.earlier.iter().chain(&self.newest)
    }
}

// === impl ByteBudget ===

impl ByteBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            taken: Arc::default(),
            bytes,
        }
    }

    /// Admits an event, without its text if that is dispensable and exceeds the budget.
    fn admit(&self, watch_event: WatchEvent, dispensable: bool) -> QueuedEvent {
        let bytes = watch_event.text.get().len();
        let (text, reserved) = match self.reserve(bytes, self.bytes) {
            Err(reserved) if dispensable => {
                drop(reserved);
                (None, None)
            }
            Ok(reserved) | Err(reserved) => (Some(watch_event.text), Some(reserved)),
        };
        QueuedEvent {
            event_type: watch_event.event_type,
            version: watch_event.version,
            text,
            _reserved: reserved,
        }
    }

    /// Reserves bytes for a sleeping object, unless they exceed half of the budget: the rest is for
    /// events, so that many sleeping objects do not make each event of others cost a request.
    pub(crate) fn reserve_for_sleep(&self, bytes: usize) -> Option<ReservedBytes> {
        self.reserve(bytes, self.bytes / 2).ok()
    }

    /// Reserves bytes; the reservation is an error if more than the limit is taken then.
    fn reserve(&self, bytes: usize, limit: usize) -> Result<ReservedBytes, ReservedBytes> {
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let reserved = ReservedBytes {
            taken: Arc::clone(&self.taken),
            bytes,
        };
        if taken.saturating_add(bytes) > limit {
            Err(reserved)
        } else {
            Ok(reserved)
        }
    }

    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

fn event_kind(event_type: WatchEventType) -> EventKind {
    match event_type {
        WatchEventType::Listed => EventKind::Listed,
        WatchEventType::Added | WatchEventType::Modified => EventKind::Changed,
        WatchEventType::Deleted => EventKind::Deleted,
    }
}

// === impl ReservedBytes ===

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    const PLENTY: usize = 1024 * 1024;

    fn batch(
        mode: BatchMode,
        events: impl IntoIterator<Item = (WatchEventType, usize)>,
    ) -> EventBatch {
        let budget = ByteBudget::new(PLENTY);
        let mut batch = EventBatch::default();
        for (event_type, state) in events {
            let watch_event = WatchEvent {
                event_type,
                version: None,
                text: to_raw_value(&state).unwrap().into(),
            };
            batch.push(watch_event, mode, &budget);
        }
        batch
    }

    fn states(batch: &EventBatch) -> Vec<usize> {
        let states = batch
            .all()
            .filter_map(|watch_event| watch_event.text.as_ref()?.get().parse().ok());
        states.collect()
    }

    #[test]
    fn only_the_newest_state_is_kept_without_event_handlers() {
        let events = [(WatchEventType::Listed, 1), (WatchEventType::Modified, 2)];
        let batch = batch(BatchMode::NewestOnly, events);
        assert_eq!(states(&batch), [2]);
        assert_eq!(batch.summary().first, Some(EventKind::Listed));
    }

    #[test]
    fn event_handlers_get_each_event_up_to_a_limit() {
        let modified = (2..1000).map(|state| (WatchEventType::Modified, state));
        let events = [(WatchEventType::Added, 1)]
            .into_iter()
            .chain(modified)
            .chain([(WatchEventType::Deleted, 1000)]);
        let states = states(&batch(BatchMode::EveryEvent, events));
        assert_eq!(states.len(), MAX_EARLIER_EVENTS + 1);
        assert_eq!(states[..3], [1, 2, 3]);
        assert_eq!(states.last(), Some(&1000));
    }

    #[test]
    fn an_event_that_exceeds_the_budget_waits_without_its_text() {
        let budget = ByteBudget::new(4);
        let waiting = |number: u32| {
            let mut batch = EventBatch::default();
            let watch_event = WatchEvent {
                event_type: WatchEventType::Listed,
                version: None,
                text: to_raw_value(&number).unwrap().into(),
            };
            batch.push(watch_event, BatchMode::NewestOnly, &budget);
            batch
        };
        let has_text = |batch: &EventBatch| batch.newest().is_some_and(|it| it.text.is_some());
        let first = waiting(1000);
        assert!(has_text(&first));
        assert!(!has_text(&waiting(1001)));
        drop(first);
        assert!(has_text(&waiting(1002)));
    }
}
