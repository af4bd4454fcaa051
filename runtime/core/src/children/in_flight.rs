//! A child on its way to the API server: the watch may know more of it than the answer.

use crate::object::resource_version::ResourceVersion;

/// What the watch says about a child while it is being applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildInFlight {
    /// The newest version that came.
    seen: Option<ResourceVersion>,
    /// The uids of the objects of its name that are gone.
    gone: Vec<Box<str>>,
    /// Whether a complete list came without it.
    unlisted: bool,
}

// === impl ChildInFlight ===

impl ChildInFlight {
    /// The watch brings a state of the child.
    pub fn observe(&mut self, uid: &str, version: Option<ResourceVersion>) {
        self.seen = version;
        self.gone.retain(|gone| **gone != *uid);
        self.unlisted = false;
    }

    /// The watch says that the object with this uid is gone.
    ///
    /// The version does not count: a deletion that a list reveals has that of an earlier state.
    pub fn remove(&mut self, uid: &str) {
        self.gone.push(uid.into());
    }

    /// A complete list does not have the child: the watch will not say that it is gone.
    pub fn miss(&mut self) {
        self.unlisted = true;
    }

    /// The newest version that came.
    #[must_use]
    pub fn newest_version(&self) -> Option<&ResourceVersion> {
        self.seen.as_ref()
    }

    /// Whether anything came: if the application fails, the owner has to look at it.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.seen.is_some() || !self.gone.is_empty()
    }

    /// Whether the answer to the application is the newest state. Otherwise the child has changed
    /// since, or may be gone, and the owner has to look at it.
    #[must_use]
    pub fn is_newest(&self, uid: &str, version: Option<&ResourceVersion>) -> bool {
        let is_older = match (&self.seen, version) {
            (Some(seen), Some(applied)) => !seen.is_not_newer_than(applied),
            _ => false,
        };
        let is_gone = self.gone.iter().any(|gone| **gone == *uid);
        !is_older && !is_gone && !self.unlisted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64) -> Option<ResourceVersion> {
        Some(ResourceVersion::Number(number))
    }

    fn is_newest(child: &ChildInFlight, number: u64) -> bool {
        child.is_newest("u", version(number).as_ref())
    }

    #[test]
    fn an_answer_is_the_newest_state_unless_the_watch_was_faster() {
        let mut child = ChildInFlight::default();
        assert!(is_newest(&child, 5));
        assert!(!child.has_news());
        child.observe("u", version(5));
        assert!(is_newest(&child, 5), "the event of the application itself");
        assert!(child.has_news());
        child.observe("u", version(6));
        assert!(!is_newest(&child, 5));
    }

    #[test]
    fn a_child_that_is_deleted_before_its_answer_comes_is_gone() {
        let mut child = ChildInFlight::default();
        child.observe("u", version(5));
        child.remove("u");
        assert!(!is_newest(&child, 5));
    }

    #[test]
    fn the_end_of_an_earlier_child_of_the_name_does_not_count() {
        let mut child = ChildInFlight::default();
        child.remove("earlier");
        assert!(is_newest(&child, 5));
        assert!(child.has_news(), "a failed application is to be repeated");
    }

    #[test]
    fn a_child_that_has_left_the_watch_and_come_back_is_not_gone() {
        let mut child = ChildInFlight::default();
        child.remove("u");
        child.observe("u", version(5));
        assert!(is_newest(&child, 5));
    }

    #[test]
    fn a_child_that_a_list_lacks_may_be_gone() {
        let mut child = ChildInFlight::default();
        child.miss();
        assert!(!is_newest(&child, 5));
        child.observe("u", version(5));
        assert!(is_newest(&child, 5));
    }
}
