//! What the queue keeps per object; small while the object rests.

use tokio_util::time::delay_queue;

use super::Processor;

pub(super) struct QueueEntry<P: Processor> {
    pub(super) phase: EntryPhase,
    pub(super) memory: P::Memory,
    pub(super) pending: Option<Box<P::Batch>>,
}

/// Where an object is between two calls of its worker.
#[derive(Debug)]
pub(super) enum EntryPhase {
    Idle,
    Queued,
    Working,
    Sleeping(delay_queue::Key),
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
