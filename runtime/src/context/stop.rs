//! The signal that tells a daemon or timer to stop, and why.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kopf_core::background::stopping::{StopReason, StopReasons};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Tells whether and why a daemon or a timer is to stop; cheap to clone.
///
/// It can be polled, awaited, and slept on, by tasks and by threads.
#[derive(Clone)]
pub struct StopSignal {
    source: Arc<dyn Stoppable>,
}

/// Whatever has a signal: most of them are parts of something that is shared anyway.
pub(crate) trait Stoppable: Send + Sync {
    fn signal(&self) -> &Signal;
}

/// The side of the signal that raises it.
///
/// The lock is held for the length of a bit operation; the condition variable is for threads,
/// which cannot await.
#[derive(Default)]
pub(crate) struct Signal {
    reasons: Mutex<StopReasons>,
    raised: Condvar,
    news: Notify,
}

// === impl StopSignal ===

impl StopSignal {
    pub(crate) fn new(source: Arc<dyn Stoppable>) -> Self {
        Self { source }
    }

    /// Whether it is time to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !self.reasons().is_empty()
    }

    /// Why it is time to stop; empty if it is not. Reasons may be added later.
    #[must_use]
    pub fn reasons(&self) -> StopReasons {
        self.source.signal().reasons()
    }

    /// Waits until it is time to stop.
    pub async fn wait(&self) {
        self.source
            .signal()
            .until(|reasons| !reasons.is_empty())
            .await;
    }

    /// Sleeps, but not beyond the time to stop. Tells whether to go on.
    #[must_use = "it tells whether to go on"]
    pub async fn sleep(&self, duration: Duration) -> bool {
        tokio::time::timeout(duration, self.wait()).await.is_err()
    }

    /// The same for a thread, as in [`DaemonContext::blocking`](crate::DaemonContext::blocking).
    #[must_use = "it tells whether to go on"]
    pub fn sleep_blocking(&self, duration: Duration) -> bool {
        let deadline = Instant::now() + duration;
        let signal = self.source.signal();
        let mut reasons = signal.lock();
        while reasons.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let woken = signal.raised.wait_timeout(reasons, left);
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

impl Signal {
    /// Adds a reason; tells whether it is the first.
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

    /// Wakes whoever waits, for whatever has changed about the daemon or timer.
    pub(crate) fn wake(&self) {
        self.news.notify_waiters();
    }

    /// Is ready with the next wake-up after this call.
    pub(crate) fn woken(&self) -> Notified<'_> {
        self.news.notified()
    }

    /// Waits until the reasons are as wanted.
    pub(crate) async fn until(&self, wanted: impl Fn(StopReasons) -> bool) {
        loop {
            let news = self.woken();
            if wanted(self.reasons()) {
                return;
            }
            news.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, StopReasons> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Stoppable for Signal {
        fn signal(&self) -> &Signal {
            self
        }
    }

    fn signal() -> (Arc<Signal>, StopSignal) {
        let signal = Arc::new(Signal::default());
        (Arc::clone(&signal), StopSignal::new(signal))
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_ends_early_when_it_is_time_to_stop() {
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
    fn a_thread_is_woken_too() {
        let (signal, stop) = signal();
        assert!(stop.sleep_blocking(Duration::from_millis(1)));
        let thread = std::thread::spawn(move || stop.sleep_blocking(Duration::from_secs(600)));
        signal.raise(StopReason::FiltersMismatch);
        assert!(!thread.join().unwrap());
    }
}
