//! The objects that wait for a worker, in the order of their arrival.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::health::metrics::QueueMetrics;

/// A queue of keys that reports its length and age as metrics.
pub(super) struct Backlog<K> {
    waiting: VecDeque<(K, u64)>,
    metrics: Arc<QueueMetrics>,
}

impl<K> Backlog<K> {
    pub(super) fn new(metrics: Arc<QueueMetrics>) -> Self {
        Self {
            waiting: VecDeque::new(),
            metrics,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn push(&mut self, key: K) {
        self.waiting.push_back((key, self.metrics.now()));
        self.update_metrics();
    }

    pub(super) fn pop(&mut self) -> Option<K> {
        let (key, _) = self.waiting.pop_front()?;
        self.update_metrics();
        Some(key)
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.update_metrics();
    }

    /// Reports the number of busy workers.
    pub(super) fn working(&self, count: usize) {
        self.metrics.working(count);
    }

    fn update_metrics(&self) {
        let oldest = self.waiting.front().map(|(_, since)| *since);
        self.metrics.waiting(self.waiting.len(), oldest);
    }
}
