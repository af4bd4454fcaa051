//! The due timers, and the caller tasks that call them.
//!
//! Most ticks never wait, so few callers run them one after another; a tick that has to wait for
//! something gets a task of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::poll;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::task::{coop, yield_now};
use tokio::time::Instant;

use super::timer::{SchedulerCommand, Timer};
use crate::queue::worker_limit::{PermitHold, QueueLimits, run_with_permit};

/// A caller that has been busy for longer yields its thread and requests another caller.
const CALLER_BUSY: Duration = Duration::from_millis(1);

/// The due timers with their callers.
pub(super) struct TimerCalls {
    due: Arc<DueTimers>,
    /// Each caller holds a clone: the count shows how many there are.
    callers: Arc<()>,
    permits: Arc<Semaphore>,
    hold: PermitHold,
    /// True if one more caller is needed, as the others are slow or blocked.
    caller_requested: bool,
    /// The number of started calls at the last check.
    started_before: u64,
}

/// Due timers that no caller has taken yet, in the order of their times.
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
            permits: Arc::new(Semaphore::new(limits.permits)),
            hold: limits.hold,
            caller_requested: false,
            started_before: 0,
        }
    }

    pub(super) fn push(&mut self, timer: Arc<Timer>) {
        self.due.lock().timers.push_back(timer);
    }

    /// Waits for the permit of one more caller.
    pub(super) fn permit(
        &self,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + use<> {
        Arc::clone(&self.permits).acquire_owned()
    }

    /// True if due timers wait for a caller.
    pub(super) fn needs_caller(&self) -> bool {
        (Arc::strong_count(&self.callers) == 1 || self.caller_requested)
            && !self.due.lock().timers.is_empty()
    }

    /// A task that calls due timers as long as there are any.
    pub(super) fn caller(
        &mut self,
        permit: OwnedSemaphorePermit,
    ) -> impl Future<Output = ()> + Send + use<> {
        self.caller_requested = false;
        let (due, permits) = (Arc::clone(&self.due), Arc::clone(&self.permits));
        let (counted_caller, hold) = (Arc::clone(&self.callers), self.hold);
        async move {
            call_all(&due, &permits, permit, hold).await;
            drop(counted_caller);
        }
    }

    pub(super) fn request_caller(&mut self) {
        self.caller_requested = true;
    }

    /// Requests a caller if no call has started since the last check: all callers may be blocked.
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
    hold: PermitHold,
) {
    let mut since = Instant::now();
    while let Some(timer) = due.next() {
        let services = Arc::clone(&timer.runner.services);
        let mut tick = timer.tick().boxed();
        if poll!(&mut tick).is_pending() {
            let tick = run_with_permit(tick, permit, hold).boxed();
            services.command(SchedulerCommand::Spawn(tick));
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
