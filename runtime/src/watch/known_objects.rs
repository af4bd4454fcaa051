//! The objects of a stream: a list that lacks one of them reveals a missed deletion.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
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
}

// === impl KnownObjects ===

impl KnownObjects {
    pub(super) fn new(kind: KindIndex, retention: Retention) -> Self {
        Self {
            kind,
            retention,
            epoch: 0,
            objects: HashMap::new(),
        }
    }

    /// Begins a new list: objects that it does not name are gone.
    pub(super) fn begin_list(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Notes a state of an object; none if the object has no name or uid.
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
        let key = if event_type == WatchEventType::Deleted {
            let known = self.objects.remove(&key.uid);
            known.map_or_else(|| Arc::new(key), |known| known.key)
        } else {
            let last = match self.retention {
                Retention::Identity => None,
                Retention::Body => Some(Arc::clone(&text)),
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
        };
        let watch_event = WatchEvent {
            event_type,
            version: header.version().map(ResourceVersion::new),
            text,
        };
        Some((key, watch_event))
    }

    /// Deletion events for all objects: their namespace or kind is gone.
    pub(super) fn remove_all(&mut self) -> Vec<KeyedEvent> {
        self.begin_list();
        self.take_missing()
    }

    /// Deletion events for the objects that the list did not name.
    pub(super) fn take_missing(&mut self) -> Vec<KeyedEvent> {
        let epoch = self.epoch;
        self.objects
            .extract_if(|_, known| known.epoch != epoch)
            .map(|(_, known)| {
                let watch_event = WatchEvent {
                    event_type: WatchEventType::Deleted,
                    version: None,
                    text: known.last.unwrap_or_else(|| known.key.stub()),
                };
                (known.key, watch_event)
            })
            .collect()
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
        assert!(
            known_objects
                .record(event_type, &header, Arc::clone(text))
                .is_some()
        );
    }

    /// The missing objects with their retained states.
    fn take_missing(known_objects: &mut KnownObjects) -> Vec<(String, Value)> {
        known_objects
            .take_missing()
            .into_iter()
            .map(|(key, watch_event)| {
                assert_eq!(watch_event.event_type, WatchEventType::Deleted);
                let object: Value = serde_json::from_str(watch_event.text.get()).unwrap();
                (key.to_string(), object["spec"].clone())
            })
            .collect()
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
        assert_eq!(take_missing(&mut known_objects), []);
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
            take_missing(&mut known_objects),
            [("ns/goes".to_owned(), json!({"size": 2}))]
        );
        assert_eq!(take_missing(&mut known_objects), []);
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
            take_missing(&mut known_objects),
            [("ns/goes".to_owned(), Value::Null)]
        );
    }
}
