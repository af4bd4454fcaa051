//! The limit of objects that workers process at once: permits, their groups and early return.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The number of groups into which the worker limit is divided.
const GROUPS: usize = 4;

/// The limits of the objects that are processed at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueLimits {
    /// How many workers may hold a permit. A small number lets them reuse connections.
    pub(crate) permits: usize,
    /// A worker that takes longer than this waits for something and no longer counts.
    pub(crate) permit_time: Duration,
}

/// One permit for each worker that may be busy.
pub(super) struct WorkerPermits {
    limit: usize,
    semaphore: Arc<Semaphore>,
}

impl WorkerPermits {
    pub(super) fn new(limits: QueueLimits) -> Self {
        Self {
            limit: limits.permits,
            semaphore: Arc::new(Semaphore::new(limits.permits)),
        }
    }

    pub(super) fn acquire(
        &self,
        count: u32,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + use<> {
        Arc::clone(&self.semaphore).acquire_many_owned(count)
    }

    /// The number of objects to start together when this many are `ready`; `waited` if the
    /// longest wait for a full group is over.
    pub(super) fn group_size(&self, ready: usize, waited: bool) -> u32 {
        let full = (self.limit / GROUPS).max(1);
        let free = self.semaphore.available_permits();
        let group = if ready < 2 * full {
            1
        } else if waited {
            free.clamp(1, full)
        } else {
            full
        };
        u32::try_from(group).unwrap_or(1)
    }
}

/// Runs `work`, and gives its permit back early if it takes longer than `permit_time`.
pub(crate) async fn run_with_permit<T>(
    work: impl Future<Output = T>,
    permit: OwnedSemaphorePermit,
    permit_time: Duration,
) -> T {
    let mut work = std::pin::pin!(work);
    // Much work never waits, and then needs no timer.
    if let Poll::Ready(done) = futures::poll!(work.as_mut()) {
        return done;
    }
    match tokio::time::timeout(permit_time, work.as_mut()).await {
        Ok(done) => done,
        Err(_) => {
            drop(permit);
            work.await
        }
    }
}
