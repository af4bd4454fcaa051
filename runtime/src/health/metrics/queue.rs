//! What is counted of the queue: who waits, for how long, and who is worked on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::instrument::Gauge;
use super::text_format::{MetricType, MetricsText};

/// How many objects wait.
#[derive(Debug)]
pub(crate) struct QueueMetrics {
    begun: Instant,
    depth: Gauge,
    /// When the one that waits longest came, in milliseconds; `NOBODY` if none waits.
    oldest: AtomicU64,
    working: Gauge,
}

/// Nobody waits in the queue.
const NOBODY: u64 = u64::MAX;

// === impl QueueMetrics ===

impl Default for QueueMetrics {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            depth: Gauge::default(),
            oldest: AtomicU64::new(NOBODY),
            working: Gauge::default(),
        }
    }
}

impl QueueMetrics {
    /// The time, to remember when somebody came.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(NOBODY)
    }

    /// So many wait, and the first of them since then.
    pub(crate) fn waiting(&self, count: usize, since: Option<u64>) {
        self.depth.set(i64::try_from(count).unwrap_or(i64::MAX));
        self.oldest
            .store(since.unwrap_or(NOBODY), Ordering::Relaxed);
    }

    /// So many are worked on.
    pub(crate) fn working(&self, count: usize) {
        self.working.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(super) fn tell(&self, text: &mut MetricsText) {
        text.family(
            "kopf_queue_depth",
            MetricType::Gauge,
            "Objects that wait for a worker.",
        )
        .sample(&[], self.depth.get());
        let oldest = self.oldest.load(Ordering::Relaxed);
        let age = match oldest {
            NOBODY => 0,
            oldest => self.now().saturating_sub(oldest),
        };
        text.family(
            "kopf_queue_oldest_seconds",
            MetricType::Gauge,
            "For how long the first of them has been waiting.",
        )
        .seconds(&[], Duration::from_millis(age));
        text.family(
            "kopf_workers",
            MetricType::Gauge,
            "Objects that are being handled.",
        )
        .sample(&[], self.working.get());
    }
}
