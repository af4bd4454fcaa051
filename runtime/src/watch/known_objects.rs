//! The objects of a stream: a list that lacks one of them reveals a missed deletion.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;

use kopf_core::object::resource_version::ResourceVersion;
use serde_json::value::RawValue;
use tracing::warn;

use super::{KindIndex, ObjectHeader, ObjectKey, WatchEvent, WatchEventType};

/// A watch event with the identity of its object.
pub(super) type KeyedEvent = (Arc<ObjectKey>, WatchEvent);

/// The part of an object that is retained for the event of a missed deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retention {
    Identity,
    /// Event handlers of the kind get the last state of a deleted object.
    Body,
}

struct KnownObject {
    key: Arc<ObjectKey>,
    epoch: u32,
    last: Option<Arc<RawValue>>,
    /// The version that a list has sent which is not followed by a watch yet. There may be very
    /// many objects: a version that is no number is not kept, and its object is sent again.
    listed: Option<NonZeroU64>,
}

/// The objects that a stream has listed or watched, and that were not deleted since.
pub(super) struct KnownObjects {
    kind: KindIndex,
    retention: Retention,
    epoch: u32,
    objects: HashMap<Box<str>, KnownObject>,
    /// True if objects have a listed version.
    has_listed_versions: bool,
    /// Deletions that the receiver does not have yet. A pause or the end of a namespace may cancel
    /// the sending at any point, and no list names these objects again.
    unsent_deletions: VecDeque<KeyedEvent>,
}

// === impl KnownObjects ===

impl KnownObjects {
    pub(super) fn new(kind: KindIndex, retention: Retention) -> Self {
        Self {
            kind,
            retention,
            epoch: 0,
            objects: HashMap::new(),
            has_listed_versions: false,
            unsent_deletions: VecDeque::new(),
        }
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
    pub(super) fn begin_list(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Notes a state of an object, and returns it to be sent: none if the object has no name or
    /// uid, none if an interrupted list has sent it already, and none for a deletion, which is
    /// [unsent](Self::unsent_deletion) then.
    pub(super) fn record(
        &mut self,
        event_type: WatchEventType,
        header: &ObjectHeader<'_>,
        text: Arc<RawValue>,
    ) -> Option<KeyedEvent> {
        let Some(key) = header.key(self.kind) else {
            warn!("ignoring an object without a name or a uid");
            return None;
        };
        let watch_event = WatchEvent {
            event_type,
            version: header.version().map(ResourceVersion::new),
            text,
        };
        if event_type == WatchEventType::Deleted {
            let known = self.objects.remove(&key.uid);
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
    fn is_sent(&mut self, key: &ObjectKey, watch_event: &WatchEvent) -> bool {
        let known = self.objects.get_mut(&key.uid);
        let version = watch_event.version.as_ref().and_then(number);
        let sent = known.filter(|it| it.listed.is_some() && it.listed == version);
        sent.map(|known| known.epoch = self.epoch).is_some()
    }

    fn insert(&mut self, key: ObjectKey, watch_event: &WatchEvent) -> Arc<ObjectKey> {
        let last = match self.retention {
            Retention::Identity => None,
            Retention::Body => Some(Arc::clone(&watch_event.text)),
        };
        let listed = match watch_event.event_type {
            WatchEventType::Listed => watch_event.version.as_ref().and_then(number),
            WatchEventType::Added | WatchEventType::Modified | WatchEventType::Deleted => None,
        };
        self.has_listed_versions |= listed.is_some();
        match self.objects.entry(key.uid.clone()) {
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                known.epoch = self.epoch;
                known.last = last;
                known.listed = listed;
                Arc::clone(&known.key)
            }
            Entry::Vacant(entry) => {
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
    pub(super) fn end_list(&mut self) {
        if std::mem::take(&mut self.has_listed_versions) {
            let known_objects = self.objects.values_mut();
            known_objects.for_each(|known| known.listed = None);
        }
    }

    /// The next deletion to be sent; it stays until [`deletion_sent`](Self::deletion_sent).
    pub(super) fn unsent_deletion(&self) -> Option<KeyedEvent> {
        self.unsent_deletions.front().cloned()
    }

    pub(super) fn deletion_sent(&mut self) {
        self.unsent_deletions.pop_front();
    }

    /// Removes all objects: their namespace or kind is gone.
    pub(super) fn remove_all(&mut self) {
        self.begin_list();
        self.remove_missing();
    }

    /// Removes the objects that the list did not name.
    pub(super) fn remove_missing(&mut self) {
        let epoch = self.epoch;
        let missing = self.objects.extract_if(|_, known| known.epoch != epoch);
        self.unsent_deletions.extend(missing.map(|(_, known)| {
            let watch_event = WatchEvent {
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
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str, size: u32) -> Arc<RawValue> {
        let meta = json!({"name": name, "namespace": "ns", "uid": format!("uid-of-{name}")});
        let object = json!({"metadata": meta, "spec": {"size": size}});
        to_raw_value(&object).unwrap().into()
    }

    fn record(known_objects: &mut KnownObjects, event_type: WatchEventType, text: &Arc<RawValue>) {
        let header = ObjectHeader::at(text).unwrap();
        let recorded = known_objects.record(event_type, &header, Arc::clone(text));
        assert_eq!(recorded.is_none(), event_type == WatchEventType::Deleted);
    }

    /// The deletions after a list, with the retained states.
    fn deletions(known_objects: &mut KnownObjects) -> Vec<(String, Value)> {
        known_objects.remove_missing();
        let mut deletions = Vec::new();
        while let Some((key, watch_event)) = known_objects.unsent_deletion() {
            assert_eq!(watch_event.event_type, WatchEventType::Deleted);
            let object: Value = serde_json::from_str(watch_event.text.get()).unwrap();
            deletions.push((key.to_string(), object["spec"].clone()));
            known_objects.deletion_sent();
        }
        deletions
    }

    #[test]
    fn an_object_that_a_later_list_does_not_name_is_deleted() {
        let mut known_objects = KnownObjects::new(KindIndex(0), Retention::Body);
        known_objects.begin_list();
        record(
            &mut known_objects,
            WatchEventType::Listed,
            &object("stays", 1),
        );
        record(
            &mut known_objects,
            WatchEventType::Listed,
            &object("goes", 1),
        );
        assert_eq!(deletions(&mut known_objects), []);
        record(
            &mut known_objects,
            WatchEventType::Modified,
            &object("goes", 2),
        );
        record(
            &mut known_objects,
            WatchEventType::Added,
            &object("deleted", 1),
        );
        record(
            &mut known_objects,
            WatchEventType::Deleted,
            &object("deleted", 1),
        );
        known_objects.begin_list();
        record(
            &mut known_objects,
            WatchEventType::Listed,
            &object("stays", 1),
        );
        assert_eq!(
            deletions(&mut known_objects),
            [
                ("ns/deleted".to_owned(), json!({"size": 1})),
                ("ns/goes".to_owned(), json!({"size": 2})),
            ]
        );
        assert_eq!(deletions(&mut known_objects), []);
    }

    #[test]
    fn an_interrupted_list_sends_what_is_new_when_it_is_repeated() {
        let state = |name: &str, version: &str| -> Arc<RawValue> {
            let meta = json!({"name": name, "uid": name, "resourceVersion": version});
            to_raw_value(&json!({"metadata": meta})).unwrap().into()
        };
        let mut known_objects = KnownObjects::new(KindIndex(0), Retention::Identity);
        let is_sent = |known_objects: &mut KnownObjects, text: Arc<RawValue>| {
            let header = ObjectHeader::at(&text).unwrap();
            let event = known_objects.record(WatchEventType::Listed, &header, Arc::clone(&text));
            event.is_some()
        };
        known_objects.begin_list();
        assert!(is_sent(&mut known_objects, state("stays", "1")));
        assert!(is_sent(&mut known_objects, state("changes", "2")));
        assert!(is_sent(&mut known_objects, state("goes", "3")));

        known_objects.begin_list();
        assert!(!is_sent(&mut known_objects, state("stays", "1")));
        assert!(is_sent(&mut known_objects, state("changes", "4")));
        assert!(is_sent(&mut known_objects, state("comes", "5")));
        let deletions: Vec<String> = deletions(&mut known_objects)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(deletions, ["goes"]);

        known_objects.end_list();
        known_objects.begin_list();
        assert!(is_sent(&mut known_objects, state("stays", "1")));
    }

    #[test]
    fn only_the_identity_is_retained_without_event_handlers() {
        let mut known_objects = KnownObjects::new(KindIndex(0), Retention::Identity);
        known_objects.begin_list();
        record(
            &mut known_objects,
            WatchEventType::Listed,
            &object("goes", 1),
        );
        known_objects.begin_list();
        assert_eq!(
            deletions(&mut known_objects),
            [("ns/goes".to_owned(), Value::Null)]
        );
    }
}
