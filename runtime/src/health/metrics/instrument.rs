//! Counters, gauges and histograms that many threads change at once, without locks.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets of durations, in microseconds.
const BOUNDS: [u64; 15] = [
    1_000,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
];

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

/// A number that grows and shrinks.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicI64);

/// The distribution of durations.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// Each duration counts in one bucket; the last is for those beyond all bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// The state of a histogram at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Distribution {
    /// Upper bounds, with the number of durations up to each.
    pub(super) cumulative: Vec<(Duration, u64)>,
    pub(super) count: u64,
    pub(super) sum: Duration,
}

// === impl Counter ===

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl Gauge ===

impl Gauge {
    pub(crate) fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, difference: i64) {
        self.0.fetch_add(difference, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl Histogram ===

impl Histogram {
    pub(crate) fn observe(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < micros);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// The count is the sum of the buckets, so that they always agree.
    pub(super) fn distribution(&self) -> Distribution {
        let mut count = 0;
        let mut counts = self.buckets.iter().map(|bucket| {
            count += bucket.load(Ordering::Relaxed);
            count
        });
        let cumulative = BOUNDS
            .iter()
            .zip(&mut counts)
            .map(|(bound, count)| (Duration::from_micros(*bound), count))
            .collect();
        let _beyond = counts.next();
        Distribution {
            cumulative,
            count,
            sum: Duration::from_micros(self.micros.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::default();
        for millis in [0, 1, 2, 5, 400_000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let distribution = histogram.distribution();
        assert_eq!(distribution.cumulative[0], (Duration::from_millis(1), 2));
        assert_eq!(distribution.cumulative[1], (Duration::from_millis(5), 4));
        assert_eq!(distribution.cumulative.last().map(|it| it.1), Some(4));
        assert_eq!(
            (distribution.count, distribution.sum),
            (5, Duration::from_millis(400_008))
        );
    }
}
