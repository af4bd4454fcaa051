//! The stop signal of daemons and timers, with the reasons.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kopf_core::background::stopping::{StopReason, StopReasons};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// One wait of a sleeping thread; it then looks at the time again.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The signal that a daemon or timer should stop, with the reasons; cheap to clone.
///
/// Tasks and threads can poll it, wait for it, and sleep until it is set.
#[derive(Clone)]
pub struct StopSignal {
    source: Arc<dyn Stoppable>,
}

/// An owner of a signal. Owners are shared anyway, so that the signal needs no `Arc` of its own.
pub(crate) trait Stoppable: Send + Sync {
    fn signal(&self) -> &Signal;
}

/// The side of the signal that sets it.
///
/// The lock is held for the length of a bit operation; the condition variable is for threads,
/// which cannot await.
#[derive(Default)]
pub(crate) struct Signal {
    reasons: Mutex<StopReasons>,
    raised: Condvar,
    changed: Notify,
}

// === impl StopSignal ===

impl StopSignal {
    pub(crate) fn new(source: Arc<dyn Stoppable>) -> Self {
        Self { source }
    }

    /// Returns true if the daemon or timer should stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !self.reasons().is_empty()
    }

    /// The reasons to stop; empty if there is none yet. More may be added later.
    #[must_use]
    pub fn reasons(&self) -> StopReasons {
        self.source.signal().reasons()
    }

    /// Waits until the signal is set.
    pub async fn wait(&self) {
        self.source
            .signal()
            .until(|reasons| !reasons.is_empty())
            .await;
    }

    /// Sleeps until the time has passed or the signal is set. Returns true if it was not set.
    #[must_use = "false means that the handler should return"]
    pub async fn sleep(&self, duration: Duration) -> bool {
        tokio::time::timeout(duration, self.wait()).await.is_err()
    }

    /// As [`sleep`](Self::sleep), for a thread, as in
    /// [`DaemonContext::blocking`](crate::DaemonContext::blocking).
    #[must_use = "false means that the handler should return"]
    pub fn sleep_blocking(&self, duration: Duration) -> bool {
        // No deadline if the clock cannot express it.
        let deadline = Instant::now().checked_add(duration);
        let signal = self.source.signal();
        let mut reasons = signal.lock();
        while reasons.is_empty() {
            let left = deadline.map_or(LONGEST_WAIT, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return true;
            }
            let woken = signal.raised.wait_timeout(reasons, left.min(LONGEST_WAIT));
            (reasons, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        false
    }
}

impl fmt::Debug for StopSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StopSignal").field(&self.reasons()).finish()
    }
}

// === impl Signal ===

impl Stoppable for Signal {
    fn signal(&self) -> &Signal {
        self
    }
}

impl Signal {
    /// Adds a reason; returns whether it is the first.
    pub(crate) fn raise(&self, reason: StopReason) -> bool {
        let mut reasons = self.lock();
        let first = reasons.is_empty();
        reasons.insert(reason);
        drop(reasons);
        self.raised.notify_all();
        self.wake();
        first
    }

    pub(crate) fn reasons(&self) -> StopReasons {
        *self.lock()
    }

    /// Wakes all waiting tasks, for any change of the daemon or timer.
    pub(crate) fn wake(&self) {
        self.changed.notify_waiters();
    }

    /// Completes with the first [`wake`](Self::wake) after this call.
    pub(crate) fn woken(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Waits until `wanted` holds for the reasons.
    pub(crate) async fn until(&self, wanted: impl Fn(StopReasons) -> bool) {
        loop {
            let woken = self.woken();
            if wanted(self.reasons()) {
                return;
            }
            woken.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, StopReasons> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal() -> (Arc<Signal>, StopSignal) {
        let signal = Arc::new(Signal::default());
        (Arc::clone(&signal), StopSignal::new(signal))
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_ends_early_when_the_signal_is_set() {
        let (signal, stop) = signal();
        assert!(stop.sleep(Duration::from_secs(5)).await);
        let begin = tokio::time::Instant::now();
        let raising = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            assert!(signal.raise(StopReason::ResourceDeleted));
        };
        let (go_on, ()) = tokio::join!(stop.sleep(Duration::from_secs(60)), raising);
        assert!(!go_on);
        assert_eq!(begin.elapsed(), Duration::from_secs(3));
        assert!(!stop.sleep(Duration::from_secs(60)).await);
        assert_eq!(begin.elapsed(), Duration::from_secs(3));
    }

    #[tokio::test]
    async fn reasons_accumulate_and_only_one_is_the_first() {
        let (signal, stop) = signal();
        assert!(!stop.is_set());
        assert!(signal.raise(StopReason::OperatorPausing));
        assert!(!signal.raise(StopReason::OperatorExiting));
        stop.wait().await;
        let reasons = stop.reasons();
        assert!(reasons.contains(StopReason::OperatorPausing));
        assert!(reasons.contains(StopReason::OperatorExiting));
    }

    #[test]
    fn a_thread_may_sleep_longer_than_the_clock_can_express() {
        let (signal, stop) = signal();
        let sleeper = std::thread::spawn(move || stop.sleep_blocking(Duration::MAX));
        assert!(signal.raise(StopReason::OperatorExiting));
        assert!(!sleeper.join().expect("the thread does not panic"));
    }

    #[test]
    fn the_signal_wakes_a_sleeping_thread() {
        let (signal, stop) = signal();
        assert!(stop.sleep_blocking(Duration::from_millis(1)));
        let thread = std::thread::spawn(move || stop.sleep_blocking(Duration::from_secs(600)));
        signal.raise(StopReason::FiltersMismatch);
        assert!(!thread.join().unwrap());
    }
}
