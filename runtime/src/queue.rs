//! Brings sightings to workers: one at a time per object, many objects at once under a bound.
//!
//! A single owner holds one slot per known object. A slot keeps the object's memory and what was
//! seen since its worker began; that is folded together as it arrives, so the queue is bounded by
//! the number of objects. A worker says when it wants to be called again without any news.
//!
//! As long as many wait, they are begun in groups. What has just been done for one object is done
//! for the next at much less cost, as the processor still knows the code.
//!
//! Nothing is begun before the gate is open: what is seen meanwhile waits, and no worker with it.
//!
//! When the operator pauses, what no worker has begun is dropped, and whatever wants to be called
//! again is not: the lists that follow a pause bring it back.

mod backlog;
mod entry;
mod workers;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::time::DelayQueue;

use backlog::Backlog;
use entry::{EntryPhase, QueueEntry};
use workers::{FinishedJob, WorkerJob, Workers};

use crate::coordination::pause::PauseGate;
use crate::health::metrics::QueueMetrics;
use crate::index::readiness::ListGate;
use crate::task::heartbeat::Heartbeat;

/// The timers' wheel is finite; whoever is woken early finds nothing to do and sleeps again.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 3600);

/// How many groups of objects fit among those that are worked on at once.
const GROUPS: usize = 4;

/// How long one of many that wait may have to wait for the rest of its group.
const GROUP_WAIT: Duration = Duration::from_millis(20);

/// How often those who distribute work show that they move.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);

/// What the queue calls with the news of an object.
pub(crate) trait Processor: Send + Sync + 'static {
    /// Which object.
    type Key: Clone + Eq + Hash + Send + Sync + 'static;
    /// One report about an object.
    type QueueItem: Send + 'static;
    /// The reports of an object that no worker has taken yet.
    type Batch: Default + Send + 'static;
    /// What is kept per object between calls.
    type Memory: Default + Send + 'static;

    /// Adds a report to those that wait.
    fn fold(&self, key: &Self::Key, batch: &mut Self::Batch, items: Self::QueueItem);

    /// Whether these reports must not be dropped at a pause, as no list would bring them again.
    fn survives_pause(&self, batch: &Self::Batch) -> bool;

    /// Forgets the plans for an object, as somebody else may have other plans during a pause.
    fn drop_plan(&self, memory: &mut Self::Memory);

    /// Whether these reports need no worker, as everything about them is known.
    fn is_redundant(&self, key: &Self::Key, memory: &Self::Memory, batch: &Self::Batch) -> bool;

    /// Handles what was seen, or a wake-up if nothing was. Must not panic.
    fn process(
        &self,
        key: &Self::Key,
        memory: &mut Self::Memory,
        batch: Self::Batch,
    ) -> impl Future<Output = NextCall> + Send;
}

/// What a worker wants to happen next with its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextCall {
    /// Nothing until there is news.
    AwaitChange,
    /// A call after this time, or sooner if there is news.
    After(Duration),
    /// A call after this time, and none before, whatever news there is.
    NotBefore(Duration),
    /// The object is gone: its memory too.
    Forget,
}

/// When the queue ends.
pub(crate) struct QueueShutdown {
    pub(crate) stop: CancellationToken,
    /// How long workers that run then may take to finish.
    pub(crate) grace: Duration,
}

/// How the queue is seen from outside.
pub(crate) struct QueueHealth {
    pub(crate) heartbeat: Heartbeat,
    pub(crate) metrics: Arc<QueueMetrics>,
}

/// How many objects are worked on at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueLimits {
    /// Workers that started recently; few, so that connections are used again.
    pub(crate) busy: usize,
    /// A worker that takes longer than this is waiting for something and no longer counts.
    pub(crate) patience: Duration,
}

struct Queue<P: Processor> {
    processor: Arc<P>,
    entries: HashMap<P::Key, QueueEntry<P>>,
    ready: Backlog<P::Key>,
    timers: DelayQueue<P::Key>,
    workers: Workers<P>,
    limits: QueueLimits,
    permits: Arc<Semaphore>,
    pause_gate: PauseGate,
    /// The epoch to which everything that waits belongs.
    epoch: u64,
    paused: bool,
}

/// Distributes news until it is to halt, then lets running workers finish.
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
        let permits = Arc::clone(&queue.permits);
        let running = !queue.paused;
        let waiting = running && !queue.ready.is_empty();
        let open = gate.is_open(queue.epoch);
        let group = queue.group(group_wait.is_elapsed());
        tokio::select! {
            biased;
            () = shutdown.stop.cancelled() => break,
            _ = heartbeat_interval.tick() => health.heartbeat.within(HEARTBEAT),
            finished = queue.workers.finished() => queue.finished(finished),
            true = pause_gate.changed() => {}
            Some(due) = queue.timers.next(), if running && !queue.timers.is_empty() => {
                queue.timer_expired(due.into_inner());
            }
            Ok(permits) = permits.acquire_many_owned(group), if waiting && open => {
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
            limits,
            permits: Arc::new(Semaphore::new(limits.busy)),
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

    /// Drops everything that has not begun.
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
        // Also when the pause is over before anybody noticed, what is left has to be taken up.
        self.paused = true;
    }

    /// Lines up what has outlasted the pause.
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

    fn push(&mut self, key: P::Key, items: P::QueueItem) {
        // The stream may have noticed a pause, and its end, before the queue did.
        self.follow_pauses();
        let entry = self.entries.entry(key.clone()).or_default();
        let batch = entry.pending.get_or_insert_default();
        self.processor.fold(&key, batch, items);
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

    /// How many are to be begun together; `impatient` if they have waited for each other.
    fn group(&self, waited: bool) -> u32 {
        let full = (self.limits.busy / GROUPS).max(1);
        let free = self.permits.available_permits();
        let group = if self.ready.len() < 2 * full {
            1
        } else if waited {
            free.clamp(1, full)
        } else {
            full
        };
        u32::try_from(group).unwrap_or(1)
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
        let known = |batch: &mut Box<P::Batch>| processor.is_redundant(&key, &entry.memory, batch);
        if entry.pending.take_if(known).is_some() {
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

/// Gives the permit back early when the work turns out to be a long wait.
pub(crate) async fn counted<T>(
    work: impl Future<Output = T>,
    permit: OwnedSemaphorePermit,
    patience: Duration,
) -> T {
    let mut work = std::pin::pin!(work);
    // Much work is done at once, and then needs no timer.
    if let Poll::Ready(done) = futures::poll!(work.as_mut()) {
        return done;
    }
    match tokio::time::timeout(patience, work.as_mut()).await {
        Ok(done) => done,
        Err(_) => {
            drop(permit);
            work.await
        }
    }
}

#[cfg(test)]
mod tests;
