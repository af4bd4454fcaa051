//! The newest entries within a limit of bytes.

use std::collections::VecDeque;

/// What an entry takes in memory, about.
pub(crate) trait EntryBytes {
    fn bytes(&self) -> usize;
}

/// Keeps the newest entries whose bytes together are within a limit.
#[derive(Debug)]
pub(crate) struct ByteRing<T> {
    entries: VecDeque<T>,
    bytes: usize,
    limit: usize,
}

// === impl ByteRing ===

impl<T: EntryBytes> ByteRing<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    /// Adds an entry, and drops the oldest ones that have no room any more.
    pub(crate) fn push(&mut self, entry: T) {
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.bytes > self.limit
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.bytes();
        }
    }

    /// The entries, the newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl EntryBytes for &str {
        fn bytes(&self) -> usize {
            self.len()
        }
    }

    fn kept(limit: usize, texts: &[&'static str]) -> Vec<&'static str> {
        let mut ring = ByteRing::new(limit);
        for text in texts {
            ring.push(*text);
        }
        ring.newest_first().copied().collect()
    }

    #[test]
    fn the_oldest_entries_make_room_for_the_newest() {
        assert_eq!(kept(6, &["one", "two", "six"]), ["six", "two"]);
        assert_eq!(kept(6, &["one", "two", "three"]), ["three"]);
        assert_eq!(kept(9, &["one", "two", "six"]), ["six", "two", "one"]);
    }

    #[test]
    fn an_entry_beyond_the_limit_is_not_kept() {
        assert!(kept(3, &["one", "three"]).is_empty());
    }
}
