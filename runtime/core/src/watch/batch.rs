//! The events of an object that wait for a worker.

use crate::{
    children::reasons::ReconcileReasons,
    machine::memory::{BatchSummary, NewestEvent},
    object::resource_version::ResourceVersion,
    watch::WatchEventType,
};

/// Earlier events that are kept for event handlers; beyond that, modifications are merged.
pub const MAX_EARLIER_EVENTS: usize = 16;

/// The events since the last call: the newest, and for event handlers those before it.
#[derive(Debug)]
pub struct EventBatch<T> {
    first: Option<WatchEventType>,
    earlier: Vec<QueuedEvent<T>>,
    newest: Option<QueuedEvent<T>>,
    requeued: bool,
    reasons: ReconcileReasons,
}

/// An event that waits for a worker.
#[derive(Debug)]
pub struct QueuedEvent<T> {
    /// The type of the event.
    pub event_type: WatchEventType,
    /// The version of the object.
    pub version: Option<ResourceVersion>,
    /// None if it exceeded the budget: the worker reads the object instead.
    pub text: Option<T>,
}

/// The events that a kind needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchMode {
    /// The newest one.
    NewestOnly,
    /// Event handlers are called for each event.
    EveryEvent,
}

// === impl BatchMode ===

impl BatchMode {
    /// Whether the worker can read the object instead of the text of this event.
    #[must_use]
    pub fn can_read_instead(self, event_type: WatchEventType) -> bool {
        self == Self::NewestOnly && event_type != WatchEventType::Deleted
    }
}

// === impl EventBatch ===

impl<T> Default for EventBatch<T> {
    fn default() -> Self {
        Self {
            first: None,
            earlier: Vec::new(),
            newest: None,
            requeued: false,
            reasons: ReconcileReasons::default(),
        }
    }
}

impl<T> EventBatch<T> {
    /// Adds an event.
    ///
    /// Change handlers need the newest state only. Event handlers get each event as long as few
    /// wait; beyond that, modifications are left out, as they are when a watch is interrupted.
    pub fn push(&mut self, queued: QueuedEvent<T>, mode: BatchMode) {
        self.first.get_or_insert(queued.event_type);
        let Some(previous) = self.newest.replace(queued) else {
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
    pub fn requeue(&mut self) {
        self.requeued = true;
    }

    /// Notes that `reconcile` is to be called for these reasons.
    pub fn requeue_for(&mut self, reasons: ReconcileReasons) {
        self.requeued = true;
        self.reasons.absorb(reasons);
    }

    /// The facts that decide about the call.
    #[must_use]
    pub fn summary(&self) -> BatchSummary {
        BatchSummary {
            first: self.first.map(WatchEventType::kind),
            newest: self.newest.as_ref().map(|newest| NewestEvent {
                kind: newest.event_type.kind(),
                version: newest.version.clone(),
                has_text: newest.text.is_some(),
            }),
            requeued: self.requeued,
            reasons: self.reasons.clone(),
        }
    }

    /// The newest event.
    #[must_use]
    pub fn newest(&self) -> Option<&QueuedEvent<T>> {
        self.newest.as_ref()
    }

    /// All events that were kept, in their order.
    pub fn all(&self) -> impl Iterator<Item = &QueuedEvent<T>> {
        self.earlier.iter().chain(&self.newest)
    }

    /// True if a pause must not drop the batch: no list names an object again that is gone, and a
    /// requeue may say that its last daemon has ended.
    #[must_use]
    pub fn survives_pause(&self) -> bool {
        match self.newest() {
            Some(newest) => {
                newest.event_type == WatchEventType::Deleted && !planted!(DeletionDroppedAtPause)
            }
            None => self.requeued,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::detect::EventKind;

    fn batch(
        mode: BatchMode,
        events: impl IntoIterator<Item = (WatchEventType, usize)>,
    ) -> EventBatch<usize> {
        let mut batch = EventBatch::default();
        for (event_type, state) in events {
            let queued = QueuedEvent {
                event_type,
                version: None,
                text: Some(state),
            };
            batch.push(queued, mode);
        }
        batch
    }

    fn states(batch: &EventBatch<usize>) -> Vec<usize> {
        batch.all().filter_map(|queued| queued.text).collect()
    }

    #[test]
    fn only_the_newest_state_is_kept_without_event_handlers() {
        let events = [(WatchEventType::Listed, 1), (WatchEventType::Modified, 2)];
        let batch = batch(BatchMode::NewestOnly, events);
        assert_eq!(states(&batch), [2]);
        assert_eq!(batch.summary().first, Some(EventKind::Listed));
    }

    #[test]
    fn a_pause_drops_only_what_a_list_brings_again() {
        let survives = |events: &[WatchEventType], requeued: bool| {
            let events = events.iter().map(|event_type| (*event_type, 1));
            let mut batch = batch(BatchMode::NewestOnly, events);
            if requeued {
                batch.requeue();
            }
            batch.survives_pause()
        };
        assert!(!survives(&[WatchEventType::Modified], false));
        assert!(!survives(&[WatchEventType::Modified], true));
        assert!(survives(&[WatchEventType::Deleted], false));
        assert!(
            survives(&[], true),
            "the last daemon of a gone object has ended"
        );
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
}
