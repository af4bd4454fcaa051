//! The queue's state of one object; small while the object is idle.

use tokio_util::time::delay_queue;

use super::Processor;

pub(super) struct QueueEntry<P: Processor> {
    pub(super) phase: EntryPhase,
    pub(super) memory: P::Memory,
    pub(super) pending: Option<Box<P::Batch>>,
}

/// The phase of an object in the queue.
#[derive(Debug)]
pub(super) enum EntryPhase {
    /// Waits for an item.
    Idle,
    /// In the backlog.
    Queued,
    /// A worker processes it.
    Working,
    /// Waits for an item or for its planned call.
    Sleeping(delay_queue::Key),
    /// Waits for its planned call only.
    Held,
}

impl<P: Processor> Default for QueueEntry<P> {
    fn default() -> Self {
        Self {
            phase: EntryPhase::Idle,
            memory: P::Memory::default(),
            pending: None,
        }
    }
}
