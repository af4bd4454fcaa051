//! The workers: each takes one object after another, as a new task for each would cost more.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tracing::error;

use super::{NextCall, Processor, QueueLimits, counted};

/// As many workers as there is work; the idle ones stay up to the limit of busy ones.
pub(super) struct Workers<P: Processor> {
    processor: Arc<P>,
    limits: QueueLimits,
    idle: Vec<WorkerHandle<P>>,
    working: usize,
    reports: mpsc::Receiver<WorkerReport<P>>,
    report_sender: mpsc::Sender<WorkerReport<P>>,
    tasks: JoinSet<()>,
}

/// An object to be worked on.
pub(super) struct WorkerJob<P: Processor> {
    pub(super) epoch: u64,
    pub(super) key: P::Key,
    pub(super) memory: P::Memory,
    pub(super) batch: P::Batch,
    pub(super) permit: OwnedSemaphorePermit,
}

/// An object that was worked on.
pub(super) struct FinishedJob<P: Processor> {
    pub(super) epoch: u64,
    pub(super) key: P::Key,
    pub(super) memory: P::Memory,
    pub(super) next: NextCall,
}

/// Where a worker takes its next job from; it ends when nobody has this any more.
struct WorkerHandle<P: Processor>(mpsc::Sender<JobAssignment<P>>);

struct JobAssignment<P: Processor> {
    worker: WorkerHandle<P>,
    job: WorkerJob<P>,
}

struct WorkerReport<P: Processor> {
    worker: WorkerHandle<P>,
    finished: FinishedJob<P>,
}

// === impl Workers ===

impl<P: Processor> Workers<P> {
    pub(super) fn new(processor: Arc<P>, limits: QueueLimits) -> Self {
        let (report_sender, reports) = mpsc::channel(limits.busy.max(1));
        Self {
            processor,
            limits,
            idle: Vec::new(),
            working: 0,
            reports,
            report_sender,
            tasks: JoinSet::new(),
        }
    }

    /// How many are at work.
    pub(super) fn working(&self) -> usize {
        self.working
    }

    pub(super) fn begin(&mut self, mut job: WorkerJob<P>) {
        self.working += 1;
        loop {
            let worker = self.idle.pop().unwrap_or_else(|| self.spawn_worker());
            match worker.assign(job) {
                Ok(()) => return,
                // It was lost, and that was told.
                Err(unassigned) => job = unassigned,
            }
        }
    }

    /// The next object whose worker is done with it. Nothing is lost if this is not awaited.
    pub(super) async fn finished(&mut self) -> FinishedJob<P> {
        loop {
            tokio::select! {
                biased;
                Some(WorkerReport { worker, finished }) = self.reports.recv() => {
                    self.working -= 1;
                    if self.idle.len() < self.limits.busy {
                        self.idle.push(worker);
                    }
                    return finished;
                }
                Some(Err(lost)) = self.tasks.join_next() => {
                    self.working -= 1;
                    error!("a worker was lost: {lost}");
                }
            }
        }
    }

    /// Lets those at work finish, for a while.
    pub(super) async fn drain(mut self, grace: Duration) {
        let all = async {
            while self.working > 0 {
                self.finished().await;
            }
        };
        if tokio::time::timeout(grace, all).await.is_err() {
            self.tasks.shutdown().await;
        }
    }

    fn spawn_worker(&mut self) -> WorkerHandle<P> {
        let (jobs, inbox) = mpsc::channel(1);
        let processor = Arc::clone(&self.processor);
        let report_sender = self.report_sender.clone();
        self.tasks
            .spawn(work(processor, self.limits.patience, inbox, report_sender));
        WorkerHandle(jobs)
    }
}

async fn work<P: Processor>(
    processor: Arc<P>,
    patience: Duration,
    mut inbox: mpsc::Receiver<JobAssignment<P>>,
    report_sender: mpsc::Sender<WorkerReport<P>>,
) {
    while let Some(JobAssignment { worker, job }) = inbox.recv().await {
        let WorkerJob {
            epoch,
            key,
            mut memory,
            batch,
            permit,
        } = job;
        let next = {
            // Large enough for moves to be felt: it stays where it is made.
            let work = pin!(processor.process(&key, &mut memory, batch));
            counted(work, permit, patience).await
        };
        let finished = FinishedJob {
            epoch,
            key,
            memory,
            next,
        };
        let report = WorkerReport { worker, finished };
        if report_sender.send(report).await.is_err() {
            return;
        }
    }
}

// === impl WorkerHandle ===

impl<P: Processor> WorkerHandle<P> {
    /// Gives a job to a worker that is idle; gives it back if the worker is lost.
    fn assign(self, job: WorkerJob<P>) -> Result<(), WorkerJob<P>> {
        let jobs = self.0.clone();
        let assignment = JobAssignment { worker: self, job };
        jobs.try_send(assignment).map_err(|unsent| match unsent {
            TrySendError::Full(JobAssignment { job, .. })
            | TrySendError::Closed(JobAssignment { job, .. }) => job,
        })
    }
}
