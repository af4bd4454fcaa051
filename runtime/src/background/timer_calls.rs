//! Timers whose time has come, and those who call them.
//!
//! Most ticks are over at once, so few callers take them one after another; a tick that has to
//! wait for something gets a task of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::poll;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::task::{coop, yield_now};
use tokio::time::Instant;

use super::scheduler::SchedulerCommand;
use super::timer::Timer;
use crate::queue::{QueueLimits, counted};

/// A caller that has been busy for longer lets others have its thread, and asks for help.
const CALLER_BUSY: Duration = Duration::from_millis(1);

/// The calls that are to be made.
pub(super) struct TimerCalls {
    due: Arc<DueTimers>,
    /// Each caller has a share of it.
    callers: Arc<()>,
    permits: Arc<Semaphore>,
    patience: Duration,
    /// Whether one more caller is needed, as the others are slow or do not move at all.
    caller_requested: bool,
    /// How many calls had been begun when somebody looked last.
    started_before: u64,
}

/// Timers that nobody has called yet, in the order of their times.
#[derive(Default)]
struct DueTimers {
    /// Never held across an await.
    queue: Mutex<DueTimerQueue>,
}

#[derive(Default)]
struct DueTimerQueue {
    timers: VecDeque<Arc<Timer>>,
    started: u64,
}

// === impl TimerCalls ===

impl TimerCalls {
    pub(super) fn new(limits: QueueLimits) -> Self {
        Self {
            due: Arc::default(),
            callers: Arc::default(),
            permits: Arc::new(Semaphore::new(limits.busy)),
            patience: limits.patience,
            caller_requested: false,
            started_before: 0,
        }
    }

    pub(super) fn push(&mut self, timer: Arc<Timer>) {
        self.due.lock().timers.push_back(timer);
    }

    /// The leave for one more caller; it may be a while until somebody gives one back.
    pub(super) fn permit(
        &self,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + use<> {
        Arc::clone(&self.permits).acquire_owned()
    }

    /// Whether there are calls that nobody makes.
    pub(super) fn needs_caller(&self) -> bool {
        (Arc::strong_count(&self.callers) == 1 || self.caller_requested)
            && !self.due.lock().timers.is_empty()
    }

    /// One who calls timers as long as there are any.
    pub(super) fn caller(
        &mut self,
        permit: OwnedSemaphorePermit,
    ) -> impl Future<Output = ()> + Send + use<> {
        self.caller_requested = false;
        let (due, permits) = (Arc::clone(&self.due), Arc::clone(&self.permits));
        let (present, patience) = (Arc::clone(&self.callers), self.patience);
        async move {
            call_all(&due, &permits, permit, patience).await;
            drop(present);
        }
    }

    pub(super) fn request_caller(&mut self) {
        self.caller_requested = true;
    }

    /// Sees to it that timers are called even if all callers hang in blocking calls.
    pub(super) fn detect_stuck_callers(&mut self) {
        let started = self.due.lock().started;
        if started == self.started_before {
            self.caller_requested = true;
        }
        self.started_before = started;
    }
}

impl DueTimers {
    fn next(&self) -> Option<Arc<Timer>> {
        let mut queue = self.lock();
        let timer = queue.timers.pop_front()?;
        queue.started += 1;
        Some(timer)
    }

    fn lock(&self) -> MutexGuard<'_, DueTimerQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn call_all(
    due: &DueTimers,
    permits: &Arc<Semaphore>,
    mut permit: OwnedSemaphorePermit,
    patience: Duration,
) {
    let mut since = Instant::now();
    while let Some(timer) = due.next() {
        let services = Arc::clone(&timer.runner.services);
        let mut tick = timer.tick().boxed();
        if poll!(&mut tick).is_pending() {
            services.command(SchedulerCommand::Spawn(
                counted(tick, permit, patience).boxed(),
            ));
            match Arc::clone(permits).try_acquire_owned() {
                Ok(another) => permit = another,
                Err(_) => return,
            }
        }
        if since.elapsed() > CALLER_BUSY {
            services.command(SchedulerCommand::AddCaller);
            yield_now().await;
            since = Instant::now();
        } else if !coop::has_budget_remaining() {
            yield_now().await;
        }
    }
}
