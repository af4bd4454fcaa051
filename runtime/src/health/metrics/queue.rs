//! The metrics of the queue: waiting objects, the longest wait, and busy workers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::instrument::Gauge;
use super::summary::QueueSummary;
use super::text_format::{MetricType, MetricsText};

/// The metrics of the queue.
#[derive(Debug)]
pub(crate) struct QueueMetrics {
    begun: Instant,
    depth: Gauge,
    /// Since when the first object waits, in milliseconds; `NONE_WAITS` if the queue is empty.
    oldest: AtomicU64,
    working: Gauge,
}

/// The queue is empty.
const NONE_WAITS: u64 = u64::MAX;

// === impl QueueMetrics ===

impl Default for QueueMetrics {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            depth: Gauge::default(),
            oldest: AtomicU64::new(NONE_WAITS),
            working: Gauge::default(),
        }
    }
}

impl QueueMetrics {
    /// The current time for [`waiting`](Self::waiting).
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(NONE_WAITS)
    }

    /// Sets how many objects wait, and since when the first of them does.
    pub(crate) fn waiting(&self, count: usize, since: Option<u64>) {
        self.depth.set(i64::try_from(count).unwrap_or(i64::MAX));
        self.oldest
            .store(since.unwrap_or(NONE_WAITS), Ordering::Relaxed);
    }

    /// Sets how many objects are being handled.
    pub(crate) fn working(&self, count: usize) {
        self.working.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(super) fn summary(&self) -> QueueSummary {
        QueueSummary {
            waiting: self.depth.get(),
            oldest: self.oldest_age(),
            working: self.working.get(),
        }
    }

    /// How long the first object has been waiting, in milliseconds.
    fn oldest_age(&self) -> u64 {
        match self.oldest.load(Ordering::Relaxed) {
            NONE_WAITS => 0,
            oldest => self.now().saturating_sub(oldest),
        }
    }

    pub(super) fn encode(&self, text: &mut MetricsText) {
        text.family(
            "kopf_queue_depth",
            MetricType::Gauge,
            "Objects that wait for a worker.",
        )
        .sample(&[], self.depth.get());
        let age = self.oldest_age();
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
