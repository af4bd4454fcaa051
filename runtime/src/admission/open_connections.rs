//! The open connections, and which of them ends when there are too many.
//!
//! Any pod that reaches the port can open connections and send nothing. Then the next connection
//! takes the place of the one that is least missed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// All open connections, by their age.
#[derive(Default)]
pub(super) struct OpenConnections {
    // Held for the length of a lookup.
    list: Mutex<ConnectionList>,
}

#[derive(Default)]
struct ConnectionList {
    open: BTreeMap<u64, ConnectionUse>,
    /// The number of connections so far.
    count: u64,
}

/// One open connection; it is closed when this is dropped.
pub(super) struct OpenConnection {
    all: Arc<OpenConnections>,
    number: u64,
    /// Cancelled when the connection has to make room for another.
    pub(super) displaced: CancellationToken,
}

/// A review that has arrived and is being answered.
pub(super) struct RunningReview<'a>(&'a OpenConnection);

#[derive(Default)]
struct ConnectionUse {
    /// True if a complete review has arrived on it before.
    proven: bool,
    /// The reviews that are being answered.
    running: usize,
    displaced: CancellationToken,
}

// === impl OpenConnections ===

impl OpenConnections {
    pub(super) fn add(self: &Arc<Self>) -> OpenConnection {
        let mut list = self.lock();
        let number = list.count;
        list.count += 1;
        let added = ConnectionUse::default();
        let displaced = added.displaced.clone();
        list.open.insert(number, added);
        OpenConnection {
            all: Arc::clone(self),
            number,
            displaced,
        }
    }

    /// Ends the oldest connection without a review, or else the oldest that waits for the next one.
    pub(super) fn displace_one(&self) {
        let mut list = self.lock();
        let idle = list.open.iter().filter(|(_, it)| it.running == 0);
        let least_missed = idle.min_by_key(|(number, it)| (it.proven, **number));
        if let Some(number) = least_missed.map(|(number, _)| *number)
            && let Some(ended) = list.open.remove(&number)
        {
            ended.displaced.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl OpenConnection ===

impl OpenConnection {
    /// Notes that a complete review has arrived.
    pub(super) fn begin_review(&self) -> RunningReview<'_> {
        if let Some(it) = self.all.lock().open.get_mut(&self.number) {
            it.proven = true;
            it.running += 1;
        }
        RunningReview(self)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.all.lock().open.remove(&self.number);
    }
}

impl Drop for RunningReview<'_> {
    fn drop(&mut self) {
        if let Some(it) = self.0.all.lock().open.get_mut(&self.0.number) {
            it.running = it.running.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_that_is_least_missed_makes_room() {
        let all = Arc::new(OpenConnections::default());
        let connections: Vec<OpenConnection> = (0..4).map(|_| all.add()).collect();
        drop(connections[0].begin_review());
        let running = connections[1].begin_review();
        let displaced = || -> Vec<bool> {
            let ended = connections.iter().map(|it| it.displaced.is_cancelled());
            ended.collect()
        };
        all.displace_one();
        assert_eq!(displaced(), [false, false, true, false], "it sent nothing");
        all.displace_one();
        assert_eq!(displaced(), [false, false, true, true]);
        all.displace_one();
        assert_eq!(displaced(), [true, false, true, true], "it waits");
        all.displace_one();
        assert_eq!(displaced(), [true, false, true, true], "it is busy");
        drop(running);
        all.displace_one();
        assert_eq!(displaced(), [true; 4]);
    }
}
