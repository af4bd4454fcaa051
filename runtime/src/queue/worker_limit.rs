//! The limit of objects that workers process at once: permits and their groups.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The number of groups into which the worker limit is divided.
const GROUPS: usize = 4;

/// The number of permits if the user sets no limit. A small number lets workers reuse connections.
const DEFAULT_PERMITS: usize = 16;

/// The limits of the objects that are processed at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueLimits {
    /// How many workers may hold a permit.
    pub(crate) permits: usize,
    pub(crate) hold: PermitHold,
}

/// The time for which a worker holds its permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermitHold {
    /// As long as it works: never more workers than permits.
    WhileWorking,
    /// No longer than this. Then the permits limit how many workers begin, not how many there are:
    /// handlers that hang, or that wait for the handling of other objects, block nothing.
    AtMost(Duration),
}

/// One permit for each worker that may be busy.
pub(super) struct WorkerPermits {
    limit: usize,
    semaphore: Arc<Semaphore>,
}

// === impl QueueLimits ===

impl QueueLimits {
    /// A limit that the user sets is kept, whatever handlers do. Without one there is none.
    pub(crate) fn new(worker_limit: Option<usize>, patience: Duration) -> Self {
        match worker_limit {
            Some(limit) => Self {
                permits: limit.clamp(1, Semaphore::MAX_PERMITS),
                hold: PermitHold::WhileWorking,
            },
            None => Self {
                permits: DEFAULT_PERMITS,
                hold: PermitHold::AtMost(patience),
            },
        }
    }
}

// === impl WorkerPermits ===

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

/// Runs `work`, and gives its permit back at the end, or earlier if `hold` says so.
pub(crate) async fn run_with_permit<T>(
    work: impl Future<Output = T>,
    permit: OwnedSemaphorePermit,
    hold: PermitHold,
) -> T {
    let mut work = std::pin::pin!(work);
    // Much work never waits, and then needs no timer.
    if let Poll::Ready(done) = futures::poll!(work.as_mut()) {
        return done;
    }
    if let PermitHold::AtMost(patience) = hold
        && let Ok(done) = tokio::time::timeout(patience, work.as_mut()).await
    {
        return done;
    }
    let _held = (hold == PermitHold::WhileWorking).then_some(permit);
    work.await
}
