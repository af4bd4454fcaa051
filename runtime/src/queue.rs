//! Distributes queue items to workers: one worker per object, many objects at once up to a limit.
//!
//! A single task owns the [`ObjectQueue`] of the core, which decides which object is handled when,
//! with its backlog and its timers. The limit of busy workers is in [`worker_limit`].
//!
//! As long as many objects are ready, they start in groups: the second call of the same code is
//! much cheaper, as its instructions are still in the CPU's caches.
//!
//! No object starts before the list gate is open; items that arrive meanwhile wait in the entries.

mod backlog;
mod stall;
pub(crate) mod worker_limit;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kopf_core::machine::object::NextCall;
use kopf_core::queue::{
    FinishedWork, ObjectQueue, PauseReading, QueueEffects, QueueRules, StartedWork,
};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::time::{DelayQueue, delay_queue};
use tracing::warn;

use backlog::Backlog;
use stall::QueueStall;
use worker_limit::{QueueLimits, WorkerPermits};
use workers::{WorkerJob, Workers};

use crate::coordination::pause::PauseGate;
use crate::health::metrics::QueueMetrics;
use crate::index::list_gate::ListGate;
use crate::task::heartbeat::Heartbeat;

/// The longest wait of a ready object for the rest of its group.
const GROUP_WAIT: Duration = Duration::from_millis(20);

/// The most items and finished objects that are taken before the queue looks at all the rest again.
const TAKEN_AT_ONCE: usize = 64;

/// The interval of the heartbeats of the queue and of the scheduler of timers.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);

/// The code that processes the items of an object.
pub(crate) trait Processor:
    QueueRules<Key: Send + Sync + 'static, Batch: Send + 'static, Memory: Send + 'static>
    + Send
    + Sync
    + 'static
{
    /// A reason to process an object, such as a watch event.
    type QueueItem: Send + 'static;

    /// Adds an item to those that wait.
    fn fold(&self, key: &Self::Key, batch: &mut Self::Batch, item: Self::QueueItem);

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
    objects: ObjectQueue<P, delay_queue::Key>,
    waiting: WaitingObjects<P::Key>,
    workers: Workers<P>,
    permits: WorkerPermits,
    stall: QueueStall,
    pause_gate: PauseGate,
}

/// The objects that wait for a worker, or for the time of a planned call.
struct WaitingObjects<K> {
    ready: Backlog<K>,
    timers: DelayQueue<K>,
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
    let mut stopped = std::pin::pin!(shutdown.stop.cancelled());
    loop {
        queue.follow_pauses();
        queue.take_present(&mut items);
        let running = !queue.objects.is_paused();
        let epoch = queue.objects.epoch();
        let waiting = running && !queue.waiting.ready.is_empty();
        let open = gate.is_open(epoch);
        let group = queue
            .permits
            .group_size(queue.waiting.ready.len(), group_wait.is_elapsed());
        let permits = queue.permits.acquire(group);
        tokio::select! {
            biased;
            () = &mut stopped => break,
            _ = heartbeat_interval.tick() => {
                health.heartbeat.within(HEARTBEAT);
                // Incomplete lists have a warning of their own.
                queue.report_stall(waiting && open);
            }
            finished = queue.workers.finished() => queue.finished(finished),
            true = pause_gate.changed() => {}
            Some(due) = queue.waiting.timers.next(), if running && !queue.waiting.timers.is_empty() => {
                queue.timer_expired(due.into_inner());
            }
            Ok(permits) = permits, if waiting && open => {
                queue.start(permits);
                if !queue.waiting.ready.is_empty() {
                    group_wait.as_mut().reset(Instant::now() + GROUP_WAIT);
                }
            }
            () = &mut group_wait, if waiting && open && group > 1 => {}
            () = gate.opened(epoch), if waiting && !open => {}
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
        Self {
            workers: Workers::new(Arc::clone(&processor), limits),
            processor,
            objects: ObjectQueue::new(pause_gate.epoch()),
            waiting: WaitingObjects {
                ready: Backlog::new(metrics),
                timers: DelayQueue::new(),
            },
            permits: WorkerPermits::new(limits),
            stall: QueueStall::default(),
            pause_gate,
        }
    }

    fn reading(&self) -> PauseReading {
        PauseReading {
            epoch: self.pause_gate.epoch(),
            running: self.pause_gate.is_running(),
        }
    }

    /// Follows the operator into a pause and out of it.
    fn follow_pauses(&mut self) {
        let now = self.reading();
        self.objects
            .follow_pauses(&self.processor, &mut self.waiting, now);
    }

    /// Takes what is there already. To wait for each item alone would register with all other
    /// sources first, which costs more than the item.
    fn take_present(&mut self, items: &mut mpsc::Receiver<(P::Key, P::QueueItem)>) {
        for _ in 0..TAKEN_AT_ONCE {
            if let Some(finished) = self.workers.already_finished() {
                self.finished(finished);
            } else if let Ok((key, item)) = items.try_recv() {
                self.push(key, item);
            } else {
                break;
            }
        }
    }

    fn push(&mut self, key: P::Key, item: P::QueueItem) {
        let now = self.reading();
        let processor = &self.processor;
        let fold = |key: &P::Key, batch: &mut P::Batch| processor.fold(key, batch, item);
        self.objects
            .push(processor, &mut self.waiting, key, now, fold);
    }

    fn timer_expired(&mut self, key: P::Key) {
        self.objects.timer_expired(&mut self.waiting, key);
    }

    /// Warns if objects have waited for long while none began.
    fn report_stall(&mut self, waiting: bool) {
        if let Some(waited) = self.stall.observe(waiting, Instant::now()) {
            warn!(
                "for {waited:.0?}, no handling of any object has begun; objects that wait: {}, \
                 objects that are handled: {}",
                self.waiting.ready.len(),
                self.workers.working()
            );
        }
    }

    fn start(&mut self, mut permits: OwnedSemaphorePermit) {
        self.stall.end();
        while let Some(permit) = permits.split(1) {
            self.start_next(permit);
        }
    }

    fn start_next(&mut self, permit: OwnedSemaphorePermit) {
        let Some(key) = self.waiting.ready.pop() else {
            return;
        };
        let Some(StartedWork {
            epoch,
            memory,
            batch,
        }) = self.objects.start(&self.processor, &key)
        else {
            return;
        };
        self.workers.begin(WorkerJob {
            epoch,
            key,
            memory,
            batch,
            permit,
        });
        self.waiting.ready.working(self.workers.working());
    }

    fn finished(&mut self, finished: FinishedWork<P>) {
        self.waiting.ready.working(self.workers.working());
        let now = self.reading();
        self.objects
            .finished(&self.processor, &mut self.waiting, finished, now);
    }
}

// === impl WaitingObjects ===

impl<K: Clone> QueueEffects<K> for WaitingObjects<K> {
    type Timer = delay_queue::Key;

    fn ready(&mut self, key: K) {
        self.ready.push(key);
    }

    fn clear_ready(&mut self) {
        self.ready.clear();
    }

    fn plan(&mut self, key: K, delay: Duration) -> delay_queue::Key {
        self.timers.insert(key, delay)
    }

    fn cancel(&mut self, timer: &delay_queue::Key) {
        self.timers.remove(timer);
    }

    fn cancel_all(&mut self) {
        self.timers.clear();
    }
}

#[cfg(test)]
mod tests;
