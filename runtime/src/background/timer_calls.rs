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

use super::scheduler::Order;
use super::timer::Timer;
use crate::queue::{QueueLimits, counted};

/// A caller that has been busy for longer lets others have its thread, and asks for help.
const LONG: Duration = Duration::from_millis(1);

/// The calls that are to be made.
pub(super) struct Calls {
    due: Arc<Due>,
    /// Each caller has a share of it.
    callers: Arc<()>,
    permits: Arc<Semaphore>,
    patience: Duration,
    /// Whether one more caller is needed, as the others are slow or do not move at all.
    short_handed: bool,
    /// How many calls had been begun when somebody looked last.
    begun_before: u64,
}

/// Timers that nobody has called yet, in the order of their times.
#[derive(Default)]
struct Due {
    /// Never held across an await.
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    timers: VecDeque<Arc<Timer>>,
    begun: u64,
}

// === impl Calls ===

impl Calls {
    pub(super) fn new(limits: QueueLimits) -> Self {
        Self {
            due: Arc::default(),
            callers: Arc::default(),
            permits: Arc::new(Semaphore::new(limits.busy)),
            patience: limits.patience,
            short_handed: false,
            begun_before: 0,
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
    pub(super) fn need_a_caller(&self) -> bool {
        (Arc::strong_count(&self.callers) == 1 || self.short_handed)
            && !self.due.lock().timers.is_empty()
    }

    /// One who calls timers as long as there are any.
    pub(super) fn caller(
        &mut self,
        permit: OwnedSemaphorePermit,
    ) -> impl Future<Output = ()> + Send + use<> {
        self.short_handed = false;
        let (due, permits) = (Arc::clone(&self.due), Arc::clone(&self.permits));
        let (present, patience) = (Arc::clone(&self.callers), self.patience);
        async move {
            call_all(&due, &permits, permit, patience).await;
            drop(present);
        }
    }

    pub(super) fn help(&mut self) {
        self.short_handed = true;
    }

    /// Sees to it that timers are called even if all callers hang in blocking calls.
    pub(super) fn look_after(&mut self) {
        let begun = self.due.lock().begun;
        if begun == self.begun_before {
            self.short_handed = true;
        }
        self.begun_before = begun;
    }
}

impl Due {
    fn next(&self) -> Option<Arc<Timer>> {
        let mut line = self.lock();
        let timer = line.timers.pop_front()?;
        line.begun += 1;
        Some(timer)
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn call_all(
    due: &Due,
    permits: &Arc<Semaphore>,
    mut permit: OwnedSemaphorePermit,
    patience: Duration,
) {
    let mut since = Instant::now();
    while let Some(timer) = due.next() {
        let shared = Arc::clone(&timer.site.shared);
        let mut tick = timer.tick().boxed();
        if poll!(&mut tick).is_pending() {
            shared.order(Order::Run(counted(tick, permit, patience).boxed()));
            match Arc::clone(permits).try_acquire_owned() {
                Ok(another) => permit = another,
                Err(_) => return,
            }
        }
        if since.elapsed() > LONG {
            shared.order(Order::Help);
            yield_now().await;
            since = Instant::now();
        } else if !coop::has_budget_remaining() {
            yield_now().await;
        }
    }
}
