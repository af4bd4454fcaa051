//! Distributes queue items to workers: one worker per object, many objects at once up to a limit.
//!
//! A single task owns one entry per known object. An entry holds the object's memory and the items
//! that arrived since its worker started, folded into one batch: the queue is bounded by the number
//! of objects. The result of a worker says when the queue calls it again if no new item arrives. The limit of
//! busy workers is in [`worker_limit`].
//!
//! As long as many objects are ready, they start in groups: the second call of the same code is
//! much cheaper, as its instructions are still in the CPU's caches.
//!
//! No object starts before the list gate is open; items that arrive meanwhile wait in the entries.
//!
//! At a pause the queue drops all batches that no worker has taken, and all planned calls: the
//! lists that follow the pause bring the objects back.

mod backlog;
mod entry;
pub(crate) mod worker_limit;
mod workers;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kopf_core::machine::object::NextCall;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::time::DelayQueue;

use backlog::Backlog;
use entry::{EntryPhase, QueueEntry};
use worker_limit::{QueueLimits, WorkerPermits};
use workers::{FinishedJob, WorkerJob, Workers};

use crate::coordination::pause::PauseGate;
use crate::health::metrics::QueueMetrics;
use crate::index::list_gate::ListGate;
use crate::task::heartbeat::Heartbeat;

/// The delay queue has a maximum; a worker that is called early plans its next call again.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 3600);

/// The longest wait of a ready object for the rest of its group.
const GROUP_WAIT: Duration = Duration::from_millis(20);

/// The interval of the heartbeats of the queue and of the scheduler of timers.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);

/// The code that processes the items of an object.
pub(crate) trait Processor: Send + Sync + 'static {
    /// The identity of an object.
    type Key: Clone + Eq + Hash + Send + Sync + 'static;
    /// A reason to process an object, such as a watch event.
    type QueueItem: Send + 'static;
    /// The items of an object that no worker has taken yet.
    type Batch: Default + Send + 'static;
    /// The state of an object between calls.
    type Memory: Default + Send + 'static;

    /// Adds an item to those that wait.
    fn fold(&self, key: &Self::Key, batch: &mut Self::Batch, item: Self::QueueItem);

    /// True if a pause must not drop this batch, as no list would bring its items again.
    fn survives_pause(&self, batch: &Self::Batch) -> bool;

    /// Drops the state that was being handled: another operator may change it during a pause.
    fn drop_plan(&self, memory: &mut Self::Memory);

    /// True if this batch needs no worker, as it holds nothing new.
    fn is_redundant(&self, key: &Self::Key, memory: &Self::Memory, batch: &Self::Batch) -> bool;

    /// Processes a batch; an empty one if this call was planned. Must not panic.
    fn process(
        &self,
        key: &Self::Key,
        memory: &mut Self::Memory,
        batch: Self::Batch,
    ) -> impl Future<Output = NextCall> + Send;
}

/// The signal that ends the queue.
pub(crate) struct QueueShutdown {
    pub(crate) stop: CancellationToken,
    /// The time for running workers to finish.
    pub(crate) grace: Duration,
}

/// The heartbeat and the metrics of the queue.
pub(crate) struct QueueHealth {
    pub(crate) heartbeat: Heartbeat,
    pub(crate) metrics: Arc<QueueMetrics>,
}

struct Queue<P: Processor> {
    processor: Arc<P>,
    entries: HashMap<P::Key, QueueEntry<P>>,
    ready: Backlog<P::Key>,
    timers: DelayQueue<P::Key>,
    workers: Workers<P>,
    permits: WorkerPermits,
    pause_gate: PauseGate,
    /// The epoch of all waiting batches and planned calls; a pause begins a new one.
    epoch: u64,
    paused: bool,
}

/// Distributes items until the shutdown, then lets running workers finish.
pub(crate) async fn run<P: Processor>(
    processor: Arc<P>,
    mut items: mpsc::Receiver<(P::Key, P::QueueItem)>,
    limits: QueueLimits,
    mut pause_gate: PauseGate,
    gate: ListGate,
    health: QueueHealth,
    shutdown: QueueShutdown,
) {
    let mut queue = Queue::new(processor, limits, pause_gate.clone(), health.metrics);
    let mut heartbeat_interval = tokio::time::interval(HEARTBEAT);
    let mut group_wait = std::pin::pin!(tokio::time::sleep(GROUP_WAIT));
    loop {
        queue.follow_pauses();
        let running = !queue.paused;
        let waiting = running && !queue.ready.is_empty();
        let open = gate.is_open(queue.epoch);
        let group = queue
            .permits
            .group_size(queue.ready.len(), group_wait.is_elapsed());
        let permits = queue.permits.acquire(group);
        tokio::select! {
            biased;
            () = shutdown.stop.cancelled() => break,
            _ = heartbeat_interval.tick() => health.heartbeat.within(HEARTBEAT),
            finished = queue.workers.finished() => queue.finished(finished),
            true = pause_gate.changed() => {}
            Some(due) = queue.timers.next(), if running && !queue.timers.is_empty() => {
                queue.timer_expired(due.into_inner());
            }
            Ok(permits) = permits, if waiting && open => {
                queue.start(permits);
                if !queue.ready.is_empty() {
                    group_wait.as_mut().reset(Instant::now() + GROUP_WAIT);
                }
            }
            () = &mut group_wait, if waiting && open && group > 1 => {}
            () = gate.opened(queue.epoch), if waiting && !open => {}
            Some((key, item)) = items.recv() => queue.push(key, item),
            else => break,
        }
    }
    health.heartbeat.rest();
    queue.workers.drain(shutdown.grace).await;
}

// === impl Queue ===

impl<P: Processor> Queue<P> {
    fn new(
        processor: Arc<P>,
        limits: QueueLimits,
        pause_gate: PauseGate,
        metrics: Arc<QueueMetrics>,
    ) -> Self {
        let epoch = pause_gate.epoch();
        Self {
            workers: Workers::new(Arc::clone(&processor), limits),
            processor,
            entries: HashMap::new(),
            ready: Backlog::new(metrics),
            timers: DelayQueue::new(),
            permits: WorkerPermits::new(limits),
            pause_gate,
            epoch,
            paused: false,
        }
    }

    /// Follows the operator into a pause and out of it.
    fn follow_pauses(&mut self) {
        let epoch = self.pause_gate.epoch();
        if self.epoch != epoch {
            self.epoch = epoch;
            self.drop_pending();
        }
        let paused = !self.pause_gate.is_running();
        if self.paused && !paused {
            self.requeue_survivors();
        }
        self.paused = paused;
    }

    /// Drops all batches and planned calls that no worker has started.
    fn drop_pending(&mut self) {
        self.ready.clear();
        self.timers.clear();
        let processor = &self.processor;
        self.entries.values_mut().for_each(|entry| {
            entry
                .pending
                .take_if(|batch| !processor.survives_pause(batch));
            if !matches!(entry.phase, EntryPhase::Working) {
                processor.drop_plan(&mut entry.memory);
                entry.phase = EntryPhase::Idle;
            }
        });
        // A pause may be over before the queue notices it: what survived is to be requeued too.
        self.paused = true;
    }

    /// Requeues the objects whose batches survived the pause.
    fn requeue_survivors(&mut self) {
        let waiting = self.entries.iter_mut().filter_map(|(key, entry)| {
            let waits = entry.pending.is_some() && matches!(entry.phase, EntryPhase::Idle);
            waits.then(|| {
                entry.phase = EntryPhase::Queued;
                key.clone()
            })
        });
        self.ready.extend(waiting);
    }

    fn push(&mut self, key: P::Key, item: P::QueueItem) {
        // The stream may have noticed a pause, and its end, before the queue.
        self.follow_pauses();
        let entry = self.entries.entry(key.clone()).or_default();
        let batch = entry.pending.get_or_insert_default();
        self.processor.fold(&key, batch, item);
        if self.paused {
            let processor = &self.processor;
            entry
                .pending
                .take_if(|batch| !processor.survives_pause(batch));
            return;
        }
        match entry.phase {
            EntryPhase::Idle => {}
            EntryPhase::Sleeping(timer) => {
                self.timers.remove(&timer);
            }
            EntryPhase::Queued | EntryPhase::Working | EntryPhase::Held => return,
        }
        entry.phase = EntryPhase::Queued;
        self.ready.push(key);
    }

    fn timer_expired(&mut self, key: P::Key) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.phase = EntryPhase::Queued;
            self.ready.push(key);
        }
    }

    fn start(&mut self, mut permits: OwnedSemaphorePermit) {
        while let Some(permit) = permits.split(1) {
            self.start_next(permit);
        }
    }

    fn start_next(&mut self, permit: OwnedSemaphorePermit) {
        let Some(key) = self.ready.pop() else {
            return;
        };
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        let processor = &self.processor;
        let redundant =
            |batch: &mut Box<P::Batch>| processor.is_redundant(&key, &entry.memory, batch);
        if entry.pending.take_if(redundant).is_some() {
            entry.phase = EntryPhase::Idle;
            return;
        }
        entry.phase = EntryPhase::Working;
        let batch = entry.pending.take().map(|batch| *batch).unwrap_or_default();
        let memory = std::mem::take(&mut entry.memory);
        self.workers.begin(WorkerJob {
            epoch: self.epoch,
            key,
            memory,
            batch,
            permit,
        });
        self.ready.working(self.workers.working());
    }

    fn finished(&mut self, finished: FinishedJob<P>) {
        self.ready.working(self.workers.working());
        self.follow_pauses();
        let FinishedJob {
            epoch,
            key,
            memory,
            next,
        } = finished;
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        entry.memory = memory;
        if next != NextCall::Forget && (self.paused || epoch != self.epoch) {
            self.processor.drop_plan(&mut entry.memory);
            entry.phase = EntryPhase::Idle;
            if entry.pending.is_some() && !self.paused {
                entry.phase = EntryPhase::Queued;
                self.ready.push(key);
            }
            return;
        }
        entry.phase = match next {
            NextCall::NotBefore(delay) => {
                self.timers.insert(key, delay.min(LONGEST_SLEEP));
                EntryPhase::Held
            }
            NextCall::AwaitChange | NextCall::After(_) | NextCall::Forget
                if entry.pending.is_some() =>
            {
                self.ready.push(key);
                EntryPhase::Queued
            }
            NextCall::After(delay) => {
                EntryPhase::Sleeping(self.timers.insert(key, delay.min(LONGEST_SLEEP)))
            }
            NextCall::AwaitChange => EntryPhase::Idle,
            NextCall::Forget => {
                self.entries.remove(&key);
                return;
            }
        };
    }
}

#[cfg(test)]
mod tests;
