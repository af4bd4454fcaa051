//! How often a child was taken from us: a fight with another client is not fought at full speed.

use std::time::Duration;

use crate::background::Moment;

/// The number of times that a child is taken back within the window.
const MAX_TAKEBACKS: usize = 3;

/// The time in which they are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// The last times at which one child was taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Takebacks {
    times: Vec<Moment>,
}

// === impl Takebacks ===

impl Takebacks {
    /// Counts one, unless there were too many within the window.
    ///
    /// # Errors
    /// The time until the child may be taken back again. Until then it is left as it is.
    pub fn take_back(&mut self, now: Moment) -> Result<(), Duration> {
        self.times.retain(|time| now.saturating_sub(*time) < WINDOW);
        if self.times.len() >= MAX_TAKEBACKS
            && let Some(first) = self.times.first()
        {
            return Err(WINDOW.saturating_sub(now.saturating_sub(*first)));
        }
        self.times.push(now);
        Ok(())
    }

    /// Whether all of them are too long ago to count.
    #[must_use]
    pub fn is_over(&self, now: Moment) -> bool {
        let mut times = self.times.iter();
        times.all(|time| now.saturating_sub(*time) >= WINDOW)
    }
}

/// Whether an application restores what this process has seen in a child before: without other
/// clients there would be nothing to do.
///
/// `in_annotation` is the digest in the annotation of the child, `replaced` that of [`replaced`].
#[must_use]
pub fn is_takeback(desired: &str, in_annotation: Option<&str>, replaced: Option<&str>) -> bool {
    in_annotation == Some(desired) || replaced == Some(desired)
}

/// The digest that another process of this operator has replaced, once the watch brings a child
/// with the digest `seen`. Before, it had the digest `known`, and had replaced `known_replaced`.
///
/// Such a process has other code, or knows another state of the owner. It has our field manager, so
/// the API server sees no conflict.
#[must_use]
pub fn replaced<'a>(
    known: Option<&'a str>,
    known_replaced: Option<&'a str>,
    seen: Option<&str>,
) -> Option<&'a str> {
    known_replaced.or_else(|| known.filter(|_| known != seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_taken_back_three_times_within_a_minute() {
        let mut takebacks = Takebacks::default();
        let mut at = |second| takebacks.take_back(Duration::from_secs(second));
        assert_eq!([at(0), at(10), at(20)], [Ok(()); 3]);
        assert_eq!(at(30), Err(Duration::from_secs(30)));
        assert_eq!(at(59), Err(Duration::from_secs(1)));
        assert_eq!(at(60), Ok(()), "the first one is over");
        assert_eq!(at(61), Err(Duration::from_secs(9)));
        assert!(!takebacks.is_over(Duration::from_secs(119)));
        assert!(takebacks.is_over(Duration::from_secs(120)));
    }

    #[test]
    fn what_other_clients_change_is_taken_back() {
        assert!(is_takeback("a", Some("a"), None));
        assert!(!is_takeback("a", Some("b"), None), "a change of our own");
        assert!(!is_takeback("a", None, None));
    }

    #[test]
    fn what_another_process_of_the_operator_replaces_is_taken_back() {
        let replaced_by_b = replaced(Some("a"), None, Some("b"));
        assert_eq!(replaced_by_b, Some("a"));
        assert!(is_takeback("a", Some("b"), replaced_by_b));
        assert!(
            !is_takeback("c", Some("b"), replaced_by_b),
            "we want another one"
        );
        let replaced_by_c = replaced(Some("b"), replaced_by_b, Some("c"));
        assert!(is_takeback("a", Some("c"), replaced_by_c));
        assert_eq!(replaced(Some("a"), None, Some("a")), None);
        assert_eq!(replaced(None, None, Some("a")), None);
    }
}
