//! The objects that exist as far as a stream knows, so that unseen deletions are noticed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use serde_json::value::RawValue;
use tracing::warn;

use super::{KindIndex, ObjectHeader, ObjectKey, WatchEvent, WatchEventType};
use crate::client::resource_version::ResourceVersion;

/// Which object was seen, and how.
pub(super) type Report = (Arc<ObjectKey>, WatchEvent);

/// What is remembered of an object, to be told when it turns out to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retain {
    Identity,
    /// Event handlers of the kind are shown the last state of what is gone.
    Body,
}

struct Known {
    key: Arc<ObjectKey>,
    epoch: u32,
    last: Option<Arc<RawValue>>,
}

/// The objects that exist as far as the stream knows.
pub(super) struct KnownObjects {
    kind: KindIndex,
    retain: Retain,
    epoch: u32,
    objects: HashMap<Box<str>, Known>,
}

// === impl KnownObjects ===

impl KnownObjects {
    pub(super) fn new(kind: KindIndex, retain: Retain) -> Self {
        Self {
            kind,
            retain,
            epoch: 0,
            objects: HashMap::new(),
        }
    }

    /// A new list begins: what it does not name is gone.
    pub(super) fn begin(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    pub(super) fn saw(
        &mut self,
        event_type: WatchEventType,
        glance: &ObjectHeader<'_>,
        text: Arc<RawValue>,
    ) -> Option<Report> {
        let Some(key) = glance.key(self.kind) else {
            warn!("ignoring an object without a name or a uid");
            return None;
        };
        let key = if event_type == WatchEventType::Deleted {
            let known = self.objects.remove(&key.uid);
            known.map_or_else(|| Arc::new(key), |known| known.key)
        } else {
            let last = match self.retain {
                Retain::Identity => None,
                Retain::Body => Some(Arc::clone(&text)),
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
                    entry.insert(Known {
                        key: Arc::clone(&key),
                        epoch: self.epoch,
                        last,
                    });
                    key
                }
            }
        };
        let sighting = WatchEvent {
            event_type,
            version: glance.version().map(ResourceVersion::new),
            text,
        };
        Some((key, sighting))
    }

    /// Everything, as if it was deleted: what it lived in is gone.
    pub(super) fn dissolve(&mut self) -> Vec<Report> {
        self.begin();
        self.vanished()
    }

    /// The deletions that happened unseen before the list that has just ended.
    pub(super) fn vanished(&mut self) -> Vec<Report> {
        let epoch = self.epoch;
        self.objects
            .extract_if(|_, known| known.epoch != epoch)
            .map(|(_, known)| {
                let sighting = WatchEvent {
                    event_type: WatchEventType::Deleted,
                    version: None,
                    text: known.last.unwrap_or_else(|| known.key.stub()),
                };
                (known.key, sighting)
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

    fn saw(census: &mut KnownObjects, event_type: WatchEventType, text: &Arc<RawValue>) {
        let glance = ObjectHeader::at(text).unwrap();
        assert!(census.saw(event_type, &glance, Arc::clone(text)).is_some());
    }

    /// What a census reports as gone, with the states that it reports.
    fn vanished(census: &mut KnownObjects) -> Vec<(String, Value)> {
        census
            .vanished()
            .into_iter()
            .map(|(key, sighting)| {
                assert_eq!(sighting.event_type, WatchEventType::Deleted);
                let object: Value = serde_json::from_str(sighting.text.get()).unwrap();
                (key.to_string(), object["spec"].clone())
            })
            .collect()
    }

    #[test]
    fn what_a_later_list_does_not_name_is_gone() {
        let mut census = KnownObjects::new(KindIndex(0), Retain::Body);
        census.begin();
        saw(&mut census, WatchEventType::Listed, &object("stays", 1));
        saw(&mut census, WatchEventType::Listed, &object("goes", 1));
        assert_eq!(vanished(&mut census), []);
        saw(&mut census, WatchEventType::Modified, &object("goes", 2));
        saw(&mut census, WatchEventType::Added, &object("deleted", 1));
        saw(&mut census, WatchEventType::Deleted, &object("deleted", 1));
        census.begin();
        saw(&mut census, WatchEventType::Listed, &object("stays", 1));
        assert_eq!(
            vanished(&mut census),
            [("ns/goes".to_owned(), json!({"size": 2}))]
        );
        assert_eq!(vanished(&mut census), []);
    }

    #[test]
    fn only_the_identity_is_kept_where_nobody_needs_the_rest() {
        let mut census = KnownObjects::new(KindIndex(0), Retain::Identity);
        census.begin();
        saw(&mut census, WatchEventType::Listed, &object("goes", 1));
        census.begin();
        assert_eq!(vanished(&mut census), [("ns/goes".to_owned(), Value::Null)]);
    }
}
