//! The one task that owns all daemons and the clock of all timers.
//!
//! Timers are entries of a wheel, not sleeping tasks; those that are due are called under the same
//! bound as objects are handled.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Expired;
use tracing::{error, warn};

use super::timer::{Due, Timer};
use super::timer_calls::Calls;
use crate::queue::{HEARTBEAT, QueueLimits};
use crate::task::heartbeat::Heartbeat;

/// The wheel is finite; a timer that comes early is sent back.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 3600);

/// How long tasks may take to be dropped.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the crew is asked to do.
pub(super) enum Order {
    /// Run this beside everything else.
    Run(BoxFuture<'static, ()>),
    /// Put a timer on the clock.
    Arm(Arc<Timer>),
    /// Take a timer off the clock.
    Disarm(Arc<Timer>),
    /// Let somebody else call timers, too.
    Help,
}

struct Scheduler {
    origin: Instant,
    clock: DelayQueue<Arc<Timer>>,
    calls: Calls,
    tasks: JoinSet<()>,
}

/// Serves until `quit`; whatever still runs then is dropped.
pub(super) async fn run(
    origin: Instant,
    mut orders: mpsc::UnboundedReceiver<Order>,
    limits: QueueLimits,
    heartbeat: Heartbeat,
    quit: CancellationToken,
) {
    let mut crew = Scheduler {
        origin,
        clock: DelayQueue::new(),
        calls: Calls::new(limits),
        tasks: JoinSet::new(),
    };
    let mut heartbeat_interval = tokio::time::interval(HEARTBEAT);
    loop {
        let permit = crew.calls.permit();
        let needed = crew.calls.need_a_caller();
        tokio::select! {
            () = quit.cancelled() => break,
            _ = heartbeat_interval.tick() => {
                heartbeat.within(HEARTBEAT);
                crew.calls.look_after();
            }
            Some(order) = orders.recv() => crew.obey(order),
            Some(due) = crew.clock.next(), if !crew.clock.is_empty() => crew.strike(due),
            Some(done) = crew.tasks.join_next() => see_out(done),
            Ok(permit) = permit, if needed => crew.call(permit),
        }
        // Timers come in crowds, and waiting for one event at a time costs more than a tick.
        while let Ok(order) = orders.try_recv() {
            crew.obey(order);
        }
        while let Some(Some(due)) = crew.clock.next().now_or_never() {
            crew.strike(due);
        }
        while let Some(done) = crew.tasks.try_join_next() {
            see_out(done);
        }
        if crew.calls.need_a_caller()
            && let Some(permit) = crew.calls.permit().now_or_never().and_then(Result::ok)
        {
            crew.call(permit);
        }
    }
    heartbeat.rest();
    crew.dismiss().await;
}

impl Scheduler {
    fn obey(&mut self, order: Order) {
        match order {
            Order::Run(task) => {
                self.tasks.spawn(task);
            }
            Order::Arm(timer) => self.look_at(timer),
            Order::Help => self.calls.help(),
            Order::Disarm(timer) => {
                if let Some(key) = timer.take() {
                    self.clock.try_remove(&key);
                }
            }
        }
    }

    fn strike(&mut self, due: Expired<Arc<Timer>>) {
        let timer = due.into_inner();
        timer.take();
        self.look_at(timer);
    }

    fn call(&mut self, permit: OwnedSemaphorePermit) {
        let caller = self.calls.caller(permit);
        self.tasks.spawn(caller);
    }

    fn look_at(&mut self, timer: Arc<Timer>) {
        let now = self.origin.elapsed();
        match timer.look(now) {
            Due::Now => self.calls.push(timer),
            Due::Never => {}
            Due::At(due) => {
                let delay = due.saturating_sub(now).min(LONGEST_SLEEP);
                let key = self.clock.insert(Arc::clone(&timer), delay);
                if let Some(former) = timer.put(key) {
                    self.clock.try_remove(&former);
                }
            }
        }
    }

    async fn dismiss(mut self) {
        self.tasks.abort_all();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            warn!(
                "{} daemons or timers block their threads and cannot be dropped",
                self.tasks.len()
            );
            self.tasks.detach_all();
        }
    }
}

fn see_out(done: Result<(), JoinError>) {
    if let Err(error) = done {
        error!("a daemon or timer was lost: {error}");
    }
}
