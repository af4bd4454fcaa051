//! The workers: each takes one object after another, as a new task for each would cost more.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tracing::error;

use super::{Next, Processor, QueueLimits, counted};

/// As many workers as there is work; the idle ones stay up to the limit of busy ones.
pub(super) struct Workers<P: Processor> {
    processor: Arc<P>,
    limits: QueueLimits,
    idle: Vec<Worker<P>>,
    working: usize,
    reports: mpsc::Receiver<Report<P>>,
    reporting: mpsc::Sender<Report<P>>,
    tasks: JoinSet<()>,
}

/// An object to be worked on.
pub(super) struct Job<P: Processor> {
    pub(super) epoch: u64,
    pub(super) key: P::Key,
    pub(super) memory: P::Memory,
    pub(super) batch: P::Batch,
    pub(super) permit: OwnedSemaphorePermit,
}

/// An object that was worked on.
pub(super) struct Finished<P: Processor> {
    pub(super) epoch: u64,
    pub(super) key: P::Key,
    pub(super) memory: P::Memory,
    pub(super) next: Next,
}

/// Where a worker takes its next job from; it ends when nobody has this any more.
struct Worker<P: Processor>(mpsc::Sender<Assignment<P>>);

struct Assignment<P: Processor> {
    worker: Worker<P>,
    job: Job<P>,
}

struct Report<P: Processor> {
    worker: Worker<P>,
    finished: Finished<P>,
}

// === impl Workers ===

impl<P: Processor> Workers<P> {
    pub(super) fn new(processor: Arc<P>, limits: QueueLimits) -> Self {
        let (reporting, reports) = mpsc::channel(limits.busy.max(1));
        Self {
            processor,
            limits,
            idle: Vec::new(),
            working: 0,
            reports,
            reporting,
            tasks: JoinSet::new(),
        }
    }

    /// How many are at work.
    pub(super) fn working(&self) -> usize {
        self.working
    }

    pub(super) fn begin(&mut self, mut job: Job<P>) {
        self.working += 1;
        loop {
            let worker = self.idle.pop().unwrap_or_else(|| self.hire());
            match worker.assign(job) {
                Ok(()) => return,
                // It was lost, and that was told.
                Err(unassigned) => job = unassigned,
            }
        }
    }

    /// The next object whose worker is done with it. Nothing is lost if this is not awaited.
    pub(super) async fn finished(&mut self) -> Finished<P> {
        loop {
            tokio::select! {
                biased;
                Some(Report { worker, finished }) = self.reports.recv() => {
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

    fn hire(&mut self) -> Worker<P> {
        let (jobs, inbox) = mpsc::channel(1);
        let processor = Arc::clone(&self.processor);
        let reporting = self.reporting.clone();
        self.tasks
            .spawn(work(processor, self.limits.patience, inbox, reporting));
        Worker(jobs)
    }
}

async fn work<P: Processor>(
    processor: Arc<P>,
    patience: Duration,
    mut inbox: mpsc::Receiver<Assignment<P>>,
    reporting: mpsc::Sender<Report<P>>,
) {
    while let Some(Assignment { worker, job }) = inbox.recv().await {
        let Job {
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
        let finished = Finished {
            epoch,
            key,
            memory,
            next,
        };
        let report = Report { worker, finished };
        if reporting.send(report).await.is_err() {
            return;
        }
    }
}

// === impl Worker ===

impl<P: Processor> Worker<P> {
    /// Gives a job to a worker that is idle; gives it back if the worker is lost.
    fn assign(self, job: Job<P>) -> Result<(), Job<P>> {
        let jobs = self.0.clone();
        let assignment = Assignment { worker: self, job };
        jobs.try_send(assignment).map_err(|unsent| match unsent {
            TrySendError::Full(Assignment { job, .. })
            | TrySendError::Closed(Assignment { job, .. }) => job,
        })
    }
}
