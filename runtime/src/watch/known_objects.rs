//! The objects of a stream: a list that lacks one of them reveals a missed deletion.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::value::RawValue;
use tracing::warn;

use super::{KindIndex, ObjectHeader, ObjectKey, WatchEvent, WatchEventType};
use crate::client::resource_version::ResourceVersion;

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
}

/// The objects that a stream has listed or watched, and that were not deleted since.
pub(super) struct KnownObjects {
    kind: KindIndex,
    retention: Retention,
    epoch: u32,
    objects: HashMap<Box<str>, KnownObject>,
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
            unsent_deletions: VecDeque::new(),
        }
    }

    /// Begins a new list: objects that it does not name are gone.
    pub(super) fn begin_list(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Notes a state of an object, and returns it to be sent: none if the object has no name or
    /// uid, and none for a deletion, which is [unsent](Self::unsent_deletion) then.
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
        let key = self.insert(key, &watch_event.text);
        Some((key, watch_event))
    }

    fn insert(&mut self, key: ObjectKey, text: &Arc<RawValue>) -> Arc<ObjectKey> {
        let last = match self.retention {
            Retention::Identity => None,
            Retention::Body => Some(Arc::clone(text)),
        };
        match self.objects.entry(key.uid.clone()) {
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                known.epoch = self.epoch;
                known.last = last;
                Arc::clone(&known.key)
            }
            Entry::Vacant(entry) => {
                let key = Arc::new(key);
                entry.insert(KnownObject {
                    key: Arc::clone(&key),
                    epoch: self.epoch,
                    last,
                });
                key
            }
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
