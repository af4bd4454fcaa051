//! The task that owns all daemons and the delay queue of all timers.
//!
//! Timers are entries of a delay queue, not sleeping tasks; due timers are called under the same
//! limit as objects are processed.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use kopf_core::queue::next_sleep;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Expired;
use tracing::{error, warn};

use super::timer::{SchedulerCommand, Timer, TimerDue};
use super::timer_calls::TimerCalls;
use crate::queue::HEARTBEAT;
use crate::queue::worker_limit::QueueLimits;
use crate::task::heartbeat::Heartbeat;

/// The time for aborted tasks to be dropped.
const ABORT_GRACE: Duration = Duration::from_secs(1);

struct Scheduler {
    origin: Instant,
    delay_queue: DelayQueue<Arc<Timer>>,
    calls: TimerCalls,
    tasks: JoinSet<()>,
}

/// Runs until `quit`; all tasks that still run then are aborted.
pub(super) async fn run(
    origin: Instant,
    mut commands: mpsc::UnboundedReceiver<SchedulerCommand>,
    limits: QueueLimits,
    heartbeat: Heartbeat,
    quit: CancellationToken,
) {
    let mut scheduler = Scheduler {
        origin,
        delay_queue: DelayQueue::new(),
        calls: TimerCalls::new(limits),
        tasks: JoinSet::new(),
    };
    let mut heartbeat_interval = tokio::time::interval(HEARTBEAT);
    loop {
        let permit = scheduler.calls.permit();
        let needed = scheduler.calls.needs_caller();
        tokio::select! {
            () = quit.cancelled() => break,
            _ = heartbeat_interval.tick() => {
                heartbeat.within(HEARTBEAT);
                scheduler.calls.detect_stuck_callers();
            }
            Some(command) = commands.recv() => scheduler.execute(command),
            Some(due) = scheduler.delay_queue.next(), if !scheduler.delay_queue.is_empty() => scheduler.expired(due),
            Some(done) = scheduler.tasks.join_next() => log_lost_task(done),
            Ok(permit) = permit, if needed => scheduler.start_caller(permit),
        }
        // Many timers expire together, and one `select!` for each costs more than a tick.
        while let Ok(command) = commands.try_recv() {
            scheduler.execute(command);
        }
        while let Some(Some(due)) = scheduler.delay_queue.next().now_or_never() {
            scheduler.expired(due);
        }
        while let Some(done) = scheduler.tasks.try_join_next() {
            log_lost_task(done);
        }
        if scheduler.calls.needs_caller()
            && let Some(permit) = scheduler.calls.permit().now_or_never().and_then(Result::ok)
        {
            scheduler.start_caller(permit);
        }
    }
    heartbeat.rest();
    scheduler.abort_all().await;
}

impl Scheduler {
    fn execute(&mut self, command: SchedulerCommand) {
        match command {
            SchedulerCommand::Spawn(task) => {
                self.tasks.spawn(task);
            }
            SchedulerCommand::Arm(timer) => self.schedule(timer),
            SchedulerCommand::AddCaller => self.calls.request_caller(),
            SchedulerCommand::Disarm(timer) => {
                if let Some(key) = timer.unschedule() {
                    self.delay_queue.try_remove(&key);
                }
            }
        }
    }

    fn expired(&mut self, due: Expired<Arc<Timer>>) {
        let timer = due.into_inner();
        timer.unschedule();
        self.schedule(timer);
    }

    fn start_caller(&mut self, permit: OwnedSemaphorePermit) {
        let caller = self.calls.caller(permit);
        self.tasks.spawn(caller);
    }

    fn schedule(&mut self, timer: Arc<Timer>) {
        let now = self.origin.elapsed();
        match timer.due(now) {
            TimerDue::Now => self.calls.push(timer),
            TimerDue::Never => {}
            TimerDue::At(due) => {
                let delay = next_sleep(due.saturating_sub(now));
                let key = self.delay_queue.insert(Arc::clone(&timer), delay);
                if let Some(former) = timer.set_scheduled(key) {
                    self.delay_queue.try_remove(&former);
                }
            }
        }
    }

    async fn abort_all(mut self) {
        self.tasks.abort_all();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(ABORT_GRACE, all).await.is_err() {
            warn!(
                "{} daemons or timers block their threads and cannot be aborted",
                self.tasks.len()
            );
            self.tasks.detach_all();
        }
    }
}

fn log_lost_task(done: Result<(), JoinError>) {
    if let Err(error) = done {
        error!("a task of a daemon or timer panicked or was cancelled: {error}");
    }
}
