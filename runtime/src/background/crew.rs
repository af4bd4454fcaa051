//! The one task that owns all daemons and the clock of all timers.
//!
//! Timers are entries of a wheel, not sleeping tasks; those that are due are called under the same
//! bound as objects are handled.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::time::DelayQueue;
use tracing::{error, warn};

use super::timer::{Due, Timer};
use crate::queue::{Limits, counted};

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
}

struct Crew {
    origin: Instant,
    clock: DelayQueue<Arc<Timer>>,
    ready: VecDeque<Arc<Timer>>,
    tasks: JoinSet<()>,
}

/// Serves until `quit`; whatever still runs then is dropped.
pub(super) async fn run(
    origin: Instant,
    mut orders: mpsc::UnboundedReceiver<Order>,
    limits: Limits,
    quit: CancellationToken,
) {
    let permits = Arc::new(Semaphore::new(limits.busy));
    let mut crew = Crew {
        origin,
        clock: DelayQueue::new(),
        ready: VecDeque::new(),
        tasks: JoinSet::new(),
    };
    loop {
        let permit = Arc::clone(&permits).acquire_owned();
        tokio::select! {
            () = quit.cancelled() => break,
            Some(order) = orders.recv() => crew.obey(order),
            Some(due) = crew.clock.next(), if !crew.clock.is_empty() => {
                let timer = due.into_inner();
                timer.take();
                crew.look_at(timer);
            }
            Some(done) = crew.tasks.join_next() => {
                if let Err(error) = done {
                    error!("a daemon or timer was lost: {error}");
                }
            }
            Ok(permit) = permit, if !crew.ready.is_empty() => {
                if let Some(timer) = crew.ready.pop_front() {
                    crew.tasks.spawn(counted(timer.tick(), permit, limits.patience));
                }
            }
        }
    }
    crew.dismiss().await;
}

impl Crew {
    fn obey(&mut self, order: Order) {
        match order {
            Order::Run(task) => {
                self.tasks.spawn(task);
            }
            Order::Arm(timer) => self.look_at(timer),
            Order::Disarm(timer) => {
                if let Some(key) = timer.take() {
                    self.clock.try_remove(&key);
                }
            }
        }
    }

    fn look_at(&mut self, timer: Arc<Timer>) {
        let now = self.origin.elapsed();
        match timer.look(now) {
            Due::Now => self.ready.push_back(timer),
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
