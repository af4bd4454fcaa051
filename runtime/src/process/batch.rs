//! The texts of events that wait for a worker, and the memory that all of them may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kopf_core::watch::batch::{self, BatchMode};
use serde_json::value::RawValue;

use crate::watch::WatchEvent;

/// The events of an object since its last call.
pub(crate) type WaitingEvents = batch::EventBatch<WaitingText>;

/// An event that waits for a worker.
pub(crate) type WaitingEvent = batch::QueuedEvent<WaitingText>;

/// The text of an object in an event that waits for a worker.
#[derive(Debug)]
pub(crate) struct WaitingText {
    pub(crate) text: Arc<RawValue>,
    _reserved: ReservedBytes,
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

// === impl ByteBudget ===

impl ByteBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            taken: Arc::default(),
            bytes,
        }
    }

    /// Admits an event, without its text if that exceeds the budget and can be read instead.
    pub(crate) fn admit(&self, watch_event: WatchEvent, mode: BatchMode) -> WaitingEvent {
        let bytes = watch_event.text.get().len();
        let reserved = match self.reserve(bytes, self.bytes) {
            Err(_) if mode.can_read_instead(watch_event.event_type) => None,
            Ok(reserved) | Err(reserved) => Some(reserved),
        };
        WaitingEvent {
            event_type: watch_event.event_type,
            version: watch_event.version,
            text: reserved.map(|_reserved| WaitingText {
                text: watch_event.text,
                _reserved,
            }),
        }
    }

    /// Reserves bytes for a sleeping object, unless they exceed half of the budget: the rest is for
    /// events, so that many sleeping objects do not make each event of others cost a request.
    pub(crate) fn reserve_for_sleep(&self, bytes: usize) -> Option<ReservedBytes> {
        self.reserve(bytes, self.bytes / 2).ok()
    }

    /// Reserves bytes for a text that cannot be read again, even if they exceed the budget.
    pub(crate) fn reserve_beyond(&self, bytes: usize) -> ReservedBytes {
        match self.reserve(bytes, self.bytes) {
            Ok(reserved) | Err(reserved) => reserved,
        }
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
    use crate::watch::WatchEventType;

    #[test]
    fn an_event_that_exceeds_the_budget_waits_without_its_text() {
        let budget = ByteBudget::new(4);
        let waiting = |number: u32| {
            let mut batch = WaitingEvents::default();
            let watch_event = WatchEvent {
                event_type: WatchEventType::Listed,
                version: None,
                text: to_raw_value(&number).unwrap().into(),
            };
            batch.push(
                budget.admit(watch_event, BatchMode::NewestOnly),
                BatchMode::NewestOnly,
            );
            batch
        };
        let has_text = |batch: &WaitingEvents| batch.newest().is_some_and(|it| it.text.is_some());
        let first = waiting(1000);
        assert!(has_text(&first));
        assert!(!has_text(&waiting(1001)));
        drop(first);
        assert!(has_text(&waiting(1002)));
    }
}
