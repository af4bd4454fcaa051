//! The worker tasks: each processes one object after another, which is cheaper than a task for each.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::queue::FinishedWork;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tracing::error;

use super::Processor;
use super::worker_limit::{PermitHold, QueueLimits, run_with_permit};

/// As many workers as there are jobs; idle ones are kept up to the number of permits.
pub(super) struct Workers<P: Processor> {
    processor: Arc<P>,
    limits: QueueLimits,
    idle: Vec<WorkerHandle<P>>,
    working: usize,
    reports: mpsc::Receiver<WorkerReport<P>>,
    report_sender: mpsc::Sender<WorkerReport<P>>,
    tasks: JoinSet<()>,
}

/// An object to process.
pub(super) struct WorkerJob<P: Processor> {
    pub(super) epoch: u64,
    pub(super) key: P::Key,
    pub(super) memory: P::Memory,
    pub(super) batch: P::Batch,
    pub(super) permit: OwnedSemaphorePermit,
}

/// The channel to an idle worker, which ends when its handle is dropped.
struct WorkerHandle<P: Processor>(mpsc::Sender<JobAssignment<P>>);

struct JobAssignment<P: Processor> {
    worker: WorkerHandle<P>,
    job: WorkerJob<P>,
}

struct WorkerReport<P: Processor> {
    worker: WorkerHandle<P>,
    finished: FinishedWork<P>,
}

// === impl Workers ===

impl<P: Processor> Workers<P> {
    pub(super) fn new(processor: Arc<P>, limits: QueueLimits) -> Self {
        let (report_sender, reports) = mpsc::channel(limits.permits.max(1));
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

    /// The number of busy workers.
    pub(super) fn working(&self) -> usize {
        self.working
    }

    pub(super) fn begin(&mut self, mut job: WorkerJob<P>) {
        self.working += 1;
        loop {
            let worker = self.idle.pop().unwrap_or_else(|| self.spawn_worker());
            match worker.assign(job) {
                Ok(()) => return,
                // The worker has panicked, which `finished` logs.
                Err(unassigned) => job = unassigned,
            }
        }
    }

    /// The next processed object. Cancel safe.
    pub(super) async fn finished(&mut self) -> FinishedWork<P> {
        loop {
            tokio::select! {
                biased;
                Some(report) = self.reports.recv() => return self.reported(report),
                Some(Err(lost)) = self.tasks.join_next() => {
                    self.working -= 1;
                    error!("a worker panicked or was cancelled: {lost}");
                }
            }
        }
    }

    /// The next object whose processing has ended before now.
    pub(super) fn already_finished(&mut self) -> Option<FinishedWork<P>> {
        let report = self.reports.try_recv().ok()?;
        Some(self.reported(report))
    }

    fn reported(&mut self, report: WorkerReport<P>) -> FinishedWork<P> {
        self.working -= 1;
        if self.idle.len() < self.limits.permits {
            self.idle.push(report.worker);
        }
        report.finished
    }

    /// Lets busy workers finish within this time.
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
            .spawn(work(processor, self.limits.hold, inbox, report_sender));
        WorkerHandle(jobs)
    }
}

async fn work<P: Processor>(
    processor: Arc<P>,
    hold: PermitHold,
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
            // The future is large: pinned here, it is not moved.
            let work = pin!(processor.process(&key, &mut memory, batch));
            run_with_permit(work, permit, hold).await
        };
        let finished = FinishedWork {
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
    /// Gives a job to an idle worker; returns the job if the worker has panicked.
    fn assign(self, job: WorkerJob<P>) -> Result<(), WorkerJob<P>> {
        let jobs = self.0.clone();
        let assignment = JobAssignment { worker: self, job };
        jobs.try_send(assignment).map_err(|unsent| match unsent {
            TrySendError::Full(JobAssignment { job, .. })
            | TrySendError::Closed(JobAssignment { job, .. }) => job,
        })
    }
}
