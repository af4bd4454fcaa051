//! Whether an event shows the effect of our own last write, or an older state.

use jiff::Timestamp;

/// Our last write to an object, whose event has not come yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The version that the write returned.
    pub version: String,
    /// When to give up waiting for it, if versions cannot be compared.
    pub deadline: Timestamp,
}

/// How an event relates to our last write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It shows our write, or something later.
    Fresh,
    /// It is older than our write: not news.
    Stale,
    /// The versions cannot be compared: it may be either until the deadline.
    Unclear,
}

// === impl Expectation ===

impl Expectation {
    /// Relates an event to the write.
    ///
    /// Versions of etcd are numbers that grow, so that an older event is never news, however
    /// late it comes; other versions are only equal or not, and the deadline decides. A list
    /// that was requested after the write shows it whatever its versions say: forget the
    /// expectation then.
    #[must_use]
    pub fn freshness(&self, event_version: Option<&str>, now: Timestamp) -> Freshness {
        let event_version = event_version.unwrap_or_default();
        if event_version == self.version {
            return Freshness::Fresh;
        }
        let number = |version: &str| version.parse::<u128>().ok();
        match (number(event_version), number(&self.version)) {
            (Some(event), Some(written)) if event >= written => Freshness::Fresh,
            (Some(_), Some(_)) => Freshness::Stale,
            _ if now >= self.deadline => Freshness::Fresh,
            _ => Freshness::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_before_our_write_are_stale_and_unclear_ones_wait_for_the_deadline() {
        let now = Timestamp::UNIX_EPOCH;
        let later = crate::time::after(now, std::time::Duration::from_secs(5));
        let expectation = Expectation {
            version: "100".to_owned(),
            deadline: later,
        };
        assert_eq!(expectation.freshness(Some("99"), now), Freshness::Stale);
        assert_eq!(expectation.freshness(Some("100"), now), Freshness::Fresh);
        assert_eq!(expectation.freshness(Some("101"), now), Freshness::Fresh);
        assert_eq!(expectation.freshness(Some("9"), now), Freshness::Stale);
        assert_eq!(expectation.freshness(Some("abc"), now), Freshness::Unclear);
        assert_eq!(expectation.freshness(None, now), Freshness::Unclear);
        assert_eq!(expectation.freshness(Some("99"), later), Freshness::Stale);
        assert_eq!(expectation.freshness(Some("abc"), later), Freshness::Fresh);
    }
}
