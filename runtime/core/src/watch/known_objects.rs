//! The objects of a stream: a list that lacks one of them reveals a missed deletion.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::{
    object::resource_version::ResourceVersion,
    table,
    watch::{ObservedState, WatchEventType},
};

/// A watch event with the identity of its object.
pub type KeyedEvent<K> = (Arc<K>, ObservedState<<K as WatchedKey>::Text>);

/// The identity of an object: another object of the same name that is created later differs.
pub trait WatchedKey {
    /// The form in which states are kept.
    type Text: Clone;

    /// The uid of the object.
    fn uid(&self) -> &str;

    /// A state with nothing but the identity, for an object whose last state was not retained.
    fn stub(&self) -> Self::Text;
}

/// The part of an object that is retained for the event of a missed deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// Its identity.
    Identity,
    /// Event handlers of the kind get the last state of a deleted object.
    Body,
}

struct KnownObject<K: WatchedKey> {
    key: Arc<K>,
    epoch: u32,
    last: Option<K::Text>,
    /// The version that a list has sent which is not followed by a watch yet. There may be very
    /// many objects: a version that is no number is not kept, and its object is sent again.
    listed: Option<NonZeroU64>,
}

/// The objects that a stream has listed or watched, and that were not deleted since.
pub struct KnownObjects<K: WatchedKey, S = RandomState> {
    retention: Retention,
    epoch: u32,
    objects: HashMap<Box<str>, KnownObject<K>, S>,
    /// True if objects have a listed version.
    has_listed_versions: bool,
    /// Deletions that the receiver does not have yet. A pause or the end of a namespace may cancel
    /// the sending at any point, and no list names these objects again.
    unsent_deletions: VecDeque<KeyedEvent<K>>,
}

// === impl KnownObjects ===

impl<K: WatchedKey, S: BuildHasher + Default> KnownObjects<K, S> {
    /// No objects.
    #[must_use]
    pub fn new(retention: Retention) -> Self {
        Self {
            retention,
            epoch: 0,
            objects: HashMap::default(),
            has_listed_versions: false,
            unsent_deletions: VecDeque::new(),
        }
    }

    /// The uids of all known objects.
    pub fn uids(&self) -> impl Iterator<Item = &str> {
        self.objects.keys().map(|uid| &**uid)
    }

    /// Begins a new list, or an interrupted one from its first page: objects that it does not name
    /// are gone.
    ///
    /// The receiver may take longer for a list than the API server keeps its pages (five minutes by
    /// default), for example because index functions are slow. If such a list sent everything again
    /// after each interruption, it would never come to an end. So a list that is repeated sends only
    /// what the receiver does not have yet: each attempt begins where the last one ended, and what
    /// was sent before passes at the speed of the API server. To read ahead instead would need
    /// memory for all objects. To go on with the token that the API server offers in place of the
    /// expired one would not help if the watch that follows finds the list too old.
    pub fn begin_list(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Notes a state of an object, and returns it to be sent: none if an interrupted list has
    /// sent it already, and none for a deletion, which is [unsent](Self::unsent_deletion) then.
    pub fn record(&mut self, key: K, watch_event: ObservedState<K::Text>) -> Option<KeyedEvent<K>> {
        let event_type = watch_event.event_type;
        if event_type == WatchEventType::Deleted {
            let known = table::remove(&mut self.objects, key.uid());
            let key = known.map_or_else(|| Arc::new(key), |known| known.key);
            self.unsent_deletions.push_back((key, watch_event));
            return None;
        }
        if event_type == WatchEventType::Listed && self.is_sent(&key, &watch_event) {
            return None;
        }
        let key = self.insert(key, &watch_event);
        Some((key, watch_event))
    }

    /// Whether an interrupted list has sent this state already; notes that the list names it again.
    fn is_sent(&mut self, key: &K, watch_event: &ObservedState<K::Text>) -> bool {
        if planted!(InterruptedListRepeated) {
            return false;
        }
        let known = self.objects.get_mut(key.uid());
        let version = watch_event.version.as_ref().and_then(number);
        let sent = known.filter(|it| it.listed.is_some() && it.listed == version);
        sent.map(|known| known.epoch = self.epoch).is_some()
    }

    fn insert(&mut self, key: K, watch_event: &ObservedState<K::Text>) -> Arc<K> {
        let last = match self.retention {
            Retention::Identity => None,
            Retention::Body => Some(watch_event.text.clone()),
        };
        let listed = match watch_event.event_type {
            WatchEventType::Listed => watch_event.version.as_ref().and_then(number),
            WatchEventType::Added | WatchEventType::Modified | WatchEventType::Deleted => None,
        };
        self.has_listed_versions |= listed.is_some();
        match self.objects.entry(key.uid().into()) {
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                known.epoch = self.epoch;
                known.last = last;
                known.listed = listed;
                Arc::clone(&known.key)
            }
            Entry::Vacant(entry) => {
                // It is back, for example because it has the label again, before the receiver has
                // got its deletion: after this state, the deletion would be taken for its end.
                self.unsent_deletions
                    .retain(|(unsent, _)| unsent.uid() != key.uid());
                let key = Arc::new(key);
                entry.insert(KnownObject {
                    key: Arc::clone(&key),
                    epoch: self.epoch,
                    last,
                    listed,
                });
                key
            }
        }
    }

    /// Makes the next list send all objects: a watch follows the last one, or the receiver has
    /// dropped in a pause what it got.
    pub fn end_list(&mut self) {
        if std::mem::take(&mut self.has_listed_versions) && !planted!(ListedVersionsKept) {
            let known_objects = self.objects.values_mut();
            known_objects.for_each(|known| known.listed = None);
        }
    }

    /// The next deletion to be sent; it stays until [`deletion_sent`](Self::deletion_sent).
    #[must_use]
    pub fn unsent_deletion(&self) -> Option<KeyedEvent<K>> {
        self.unsent_deletions.front().cloned()
    }

    /// The receiver has the deletion.
    pub fn deletion_sent(&mut self) {
        self.unsent_deletions.pop_front();
    }

    /// Removes all objects: their namespace or kind is gone.
    pub fn remove_all(&mut self) {
        self.begin_list();
        self.remove_missing();
    }

    /// Removes the objects that the list did not name.
    pub fn remove_missing(&mut self) {
        if planted!(MissingNotNoticed) {
            return;
        }
        let epoch = self.epoch;
        let missing = self.objects.extract_if(|_, known| known.epoch != epoch);
        self.unsent_deletions.extend(missing.map(|(_, known)| {
            let watch_event = ObservedState {
                event_type: WatchEventType::Deleted,
                version: None,
                text: known.last.unwrap_or_else(|| known.key.stub()),
            };
            (known.key, watch_event)
        }));
    }
}

fn number(version: &ResourceVersion) -> Option<NonZeroU64> {
    match version {
        ResourceVersion::Number(number) => NonZeroU64::new(*number),
        ResourceVersion::Opaque(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct TestKey(String);

    impl WatchedKey for TestKey {
        type Text = u32;

        fn uid(&self) -> &str {
            &self.0
        }

        fn stub(&self) -> u32 {
            0
        }
    }

    fn known_objects(retention: Retention) -> KnownObjects<TestKey> {
        KnownObjects::new(retention)
    }

    /// Records a state; returns whether it is to be sent.
    fn record(
        known_objects: &mut KnownObjects<TestKey>,
        event_type: WatchEventType,
        name: &str,
        size: u32,
        version: Option<&str>,
    ) -> bool {
        let state = ObservedState {
            event_type,
            version: version.map(ResourceVersion::new),
            text: size,
        };
        let recorded = known_objects.record(TestKey(name.to_owned()), state);
        recorded.is_some()
    }

    /// The deletions after a list, with the retained states.
    fn deletions(known_objects: &mut KnownObjects<TestKey>) -> Vec<(String, u32)> {
        known_objects.remove_missing();
        let mut deletions = Vec::new();
        while let Some((key, watch_event)) = known_objects.unsent_deletion() {
            assert_eq!(watch_event.event_type, WatchEventType::Deleted);
            deletions.push((key.0.clone(), watch_event.text));
            known_objects.deletion_sent();
        }
        deletions
    }

    #[test]
    fn an_object_that_a_later_list_does_not_name_is_deleted() {
        let mut known = known_objects(Retention::Body);
        known.begin_list();
        assert!(record(&mut known, WatchEventType::Listed, "stays", 1, None));
        assert!(record(&mut known, WatchEventType::Listed, "goes", 1, None));
        assert_eq!(deletions(&mut known), []);
        assert!(record(
            &mut known,
            WatchEventType::Modified,
            "goes",
            2,
            None
        ));
        assert!(record(
            &mut known,
            WatchEventType::Added,
            "deleted",
            1,
            None
        ));
        assert!(!record(
            &mut known,
            WatchEventType::Deleted,
            "deleted",
            1,
            None
        ));
        known.begin_list();
        assert!(record(&mut known, WatchEventType::Listed, "stays", 1, None));
        let expected = [("deleted".to_owned(), 1), ("goes".to_owned(), 2)];
        assert_eq!(deletions(&mut known), expected);
        assert_eq!(deletions(&mut known), []);
    }

    #[test]
    fn an_interrupted_list_sends_what_is_new_when_it_is_repeated() {
        let mut known = known_objects(Retention::Identity);
        let list = |known: &mut KnownObjects<TestKey>, name: &str, version: &str| {
            record(known, WatchEventType::Listed, name, 1, Some(version))
        };
        known.begin_list();
        assert!(list(&mut known, "stays", "1"));
        assert!(list(&mut known, "changes", "2"));
        assert!(list(&mut known, "goes", "3"));

        known.begin_list();
        assert!(!list(&mut known, "stays", "1"));
        assert!(list(&mut known, "changes", "4"));
        assert!(list(&mut known, "comes", "5"));
        assert_eq!(deletions(&mut known), [("goes".to_owned(), 0)]);

        known.end_list();
        known.begin_list();
        assert!(list(&mut known, "stays", "1"));
    }

    #[test]
    fn an_object_that_is_back_before_its_deletion_was_sent_is_not_deleted() {
        let mut known = known_objects(Retention::Identity);
        known.begin_list();
        for name in ["back", "gone"] {
            assert!(record(&mut known, WatchEventType::Listed, name, 1, None));
        }
        for name in ["back", "gone"] {
            assert!(!record(&mut known, WatchEventType::Deleted, name, 1, None));
        }
        // A pause cancels the sending, and a list follows.
        known.begin_list();
        assert!(record(&mut known, WatchEventType::Listed, "back", 2, None));
        assert_eq!(deletions(&mut known), [("gone".to_owned(), 1)]);
    }

    #[test]
    fn only_the_identity_is_retained_without_event_handlers() {
        let mut known = known_objects(Retention::Identity);
        known.begin_list();
        assert!(record(&mut known, WatchEventType::Listed, "goes", 1, None));
        known.begin_list();
        assert_eq!(deletions(&mut known), [("goes".to_owned(), 0)]);
    }
}
