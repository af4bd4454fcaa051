//! Notices that objects wait for a worker, and none begins.

use std::time::Duration;

use tokio::time::Instant;

/// The time without a beginning after which the wait is reported, and the interval of reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// How long objects have waited while none began.
#[derive(Debug, Default)]
pub(super) struct QueueStall {
    since: Option<Instant>,
    reports: u32,
}

impl QueueStall {
    /// Notes that an object begins.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Notes whether objects wait; returns for how long, if that is to be reported now.
    pub(super) fn observe(&mut self, waiting: bool, now: Instant) -> Option<Duration> {
        if !waiting {
            self.end();
            return None;
        }
        let waited = now - *self.since.get_or_insert(now);
        if waited < REPORT_INTERVAL * (self.reports + 1) {
            return None;
        }
        self.reports += 1;
        Some(waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds at which a wait is reported that lasts from 0 to 200, if an object begins at
    /// this second.
    fn reports(begins: u64) -> Vec<u64> {
        let start = Instant::now();
        let mut stall = QueueStall::default();
        let reported = (0..200).filter(|second| {
            if *second == begins {
                stall.end();
            }
            let now = start + Duration::from_secs(*second);
            stall.observe(true, now).is_some()
        });
        reported.collect()
    }

    #[test]
    fn a_wait_in_which_no_object_begins_is_reported_once_a_minute() {
        assert_eq!(reports(999), [60, 120, 180]);
        assert_eq!(reports(70), [60, 130, 190]);
    }

    #[test]
    fn an_empty_queue_ends_the_wait() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut stall = QueueStall::default();
        assert_eq!(stall.observe(true, after(0)), None);
        assert_eq!(stall.observe(false, after(59)), None);
        assert_eq!(stall.observe(true, after(61)), None);
        let minute = Duration::from_secs(60);
        assert_eq!(stall.observe(true, after(121)), Some(minute));
    }
}
