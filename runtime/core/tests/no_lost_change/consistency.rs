//! Decides whether an event shows the effect of the model's own last write, or an older state.
//!
//! The runtime takes this decision in its queue.

use jiff::Timestamp;

/// The last write to an object, until its event arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedWrite {
    /// The resource version that the write returned.
    pub(crate) version: String,
    /// The end of the wait for it, if resource versions cannot be compared.
    pub(crate) deadline: Timestamp,
}

/// The relation of an event to the last write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// It shows the write, or something later.
    Fresh,
    /// It is older than the write.
    Stale,
    /// The resource versions cannot be compared: it may be either until the deadline.
    Unclear,
}

// === impl ExpectedWrite ===

impl ExpectedWrite {
    /// Relates an event to the write.
    ///
    /// Resource versions of etcd are growing numbers, so an older event stays stale however late
    /// it comes. Other versions are only equal or not, and the deadline decides.
    pub(crate) fn freshness(&self, event_version: Option<&str>, now: Timestamp) -> Freshness {
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

#[test]
fn events_before_the_write_are_stale_and_unclear_ones_wait_for_the_deadline() {
    let now = Timestamp::UNIX_EPOCH;
    let later = kopf_core::time::after(now, std::time::Duration::from_secs(5));
    let expected = ExpectedWrite {
        version: "100".to_owned(),
        deadline: later,
    };
    assert_eq!(expected.freshness(Some("99"), now), Freshness::Stale);
    assert_eq!(expected.freshness(Some("100"), now), Freshness::Fresh);
    assert_eq!(expected.freshness(Some("101"), now), Freshness::Fresh);
    assert_eq!(expected.freshness(Some("9"), now), Freshness::Stale);
    assert_eq!(expected.freshness(Some("abc"), now), Freshness::Unclear);
    assert_eq!(expected.freshness(None, now), Freshness::Unclear);
    assert_eq!(expected.freshness(Some("99"), later), Freshness::Stale);
    assert_eq!(expected.freshness(Some("abc"), later), Freshness::Fresh);
}
