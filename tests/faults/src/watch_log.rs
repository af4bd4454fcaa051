//! The suite's own log of what really happened: each version of each widget and of each child, as
//! the API server sends it to a watch that no trouble touches but that of the API server itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use kopf_runtime::OWNER_LABEL;
use kube::Api;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use serde::Serialize;
use serde_json::Value;
use tokio::time::sleep;

use crate::clock;
use crate::state::{DigestedState, FINALIZER, LAST_HANDLED, PREFIX};
use crate::tested_operator::TestedOperator;
use crate::workload::RECONCILED;
use crate::workload::children::EDIT;

/// The pause before a broken watch is opened again.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Expired: the API server does not know the resource version any more.
const GONE: u16 = 410;

/// One version of one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ObjectVersion {
    /// The time at which the suite got it.
    pub(crate) at: u64,
    pub(crate) uid: String,
    pub(crate) name: String,
    pub(crate) version: u64,
    pub(crate) state: DigestedState,
    /// The last handled state on the object.
    pub(crate) base: Option<DigestedState>,
    /// The annotations of handlers.
    pub(crate) records: BTreeMap<String, HandlerRecord>,
    pub(crate) held: bool,
    pub(crate) deleting: bool,
}

/// The annotation of one handler. The times are texts of one form, and can be compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct HandlerRecord {
    pub(crate) started: String,
    /// The time at which the handler has ended, if it has.
    pub(crate) ended: Option<String>,
    /// The number of attempts. An operator may also note that there is nothing to do, without any.
    pub(crate) attempts: u64,
}

/// One version of one child.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ChildVersion {
    /// The time at which the suite got it.
    pub(crate) at: u64,
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) version: u64,
    /// The uid of the owner, as its label says.
    pub(crate) owner: String,
    /// The number at the end of its name.
    pub(crate) number: u64,
    /// The number of the edit in its data.
    pub(crate) edit: Option<u64>,
    /// Whether this was its last version.
    pub(crate) gone: bool,
}

/// What the log keeps of each version.
pub(crate) trait LoggedVersion {
    /// What is kept; `gone` says that this was the last version.
    fn logged(object: &Value, gone: bool) -> Self;
}

/// All versions so far.
#[derive(Clone, Debug)]
pub(crate) struct WatchLog<V> {
    content: Arc<Mutex<WatchLogContent<V>>>,
}

/// The content of the log.
#[derive(Clone, Debug)]
pub(crate) struct WatchLogContent<V> {
    pub(crate) versions: Vec<V>,
    /// The number of times at which versions may be missing.
    pub(crate) gaps: usize,
    /// The uids in the last list; its versions begin at this number.
    pub(crate) last_list: (usize, BTreeSet<String>),
}

// === impl ObjectVersion ===

impl ObjectVersion {
    pub(crate) fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
        let annotations = metadata["annotations"].as_object();
        let records = annotations
            .into_iter()
            .flatten()
            .filter(|(key, _)| key.starts_with(PREFIX) && *key != LAST_HANDLED)
            .map(|(key, value)| {
                let record = value
                    .as_str()
                    .and_then(|text| serde_json::from_str(text).ok());
                let record = record
                    .as_ref()
                    .map_or_else(Default::default, HandlerRecord::of);
                (key[PREFIX.len()..].to_owned(), record)
            });
        let finalizers = metadata["finalizers"].as_array();
        Self {
            at: clock::now(),
            uid: text("uid"),
            name: text("name"),
            version: text("resourceVersion").parse().unwrap_or_default(),
            state: DigestedState::of(object),
            base: DigestedState::of_base(object),
            records: records.collect(),
            held: finalizers.is_some_and(|it| it.iter().any(|it| it == FINALIZER)),
            deleting: !metadata["deletionTimestamp"].is_null(),
        }
    }

    /// Whether the operator has nothing left to do for the object, as far as the object shows it.
    pub(crate) fn is_settled(&self, tested: TestedOperator) -> bool {
        let is_recorded = !self.has_open_records() && self.base.as_ref() == Some(&self.state);
        !self.deleting && self.held && (is_recorded || !tested.has_records())
    }

    /// Whether there is a record that does not stay. That of the children stays: it names the kinds
    /// of those that there may be.
    pub(crate) fn has_open_records(&self) -> bool {
        let mut records = self.records.iter();
        records.any(|(handler, record)| handler != RECONCILED || record.ended.is_none())
    }

    /// The record of a handler.
    pub(crate) fn record_of(&self, handler: &str) -> Option<&HandlerRecord> {
        self.records.get(&handler.replace('/', "."))
    }

    /// The time at which a call of a handler has ended, as its record says.
    pub(crate) fn end_of(&self, handler: &str) -> Option<&str> {
        let record = self.record_of(handler).filter(|it| it.attempts > 0);
        record?.ended.as_deref()
    }

    /// Whether the object has the children that it asks for, and no others.
    pub(crate) fn has_children(&self, children: &BTreeMap<String, ChildVersion>) -> bool {
        let own = children.values().filter(|child| child.owner == self.uid);
        let own: Vec<bool> = own
            .map(|child| {
                child.number < self.state.children() && child.edit == Some(self.state.edit)
            })
            .collect();
        own.len() as u64 == self.state.children() && own.into_iter().all(|fits| fits)
    }
}

impl LoggedVersion for ObjectVersion {
    fn logged(object: &Value, gone: bool) -> Self {
        let version = Self::of(object);
        Self {
            // An object without finalizers is gone at once, and never had a time of deletion.
            deleting: version.deleting || gone,
            ..version
        }
    }
}

// === impl HandlerRecord ===

impl HandlerRecord {
    fn of(record: &Value) -> Self {
        let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
        let has_ended = record["success"] == true || record["failure"] == true;
        Self {
            started: text("started"),
            ended: has_ended.then(|| text("stopped")),
            attempts: record["retries"].as_u64().unwrap_or_default(),
        }
    }
}

// === impl ChildVersion ===

impl LoggedVersion for ChildVersion {
    fn logged(object: &Value, gone: bool) -> Self {
        let metadata = &object["metadata"];
        let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
        let name = text("name");
        let number = name.rsplit('-').next().and_then(|it| it.parse().ok());
        let edit = object["data"][EDIT].as_str();
        Self {
            at: clock::now(),
            uid: text("uid"),
            namespace: text("namespace"),
            number: number.unwrap_or_default(),
            name,
            version: text("resourceVersion").parse().unwrap_or_default(),
            owner: metadata["labels"][OWNER_LABEL]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            edit: edit.and_then(|it| it.parse().ok()),
            gone,
        }
    }
}

// === impl WatchLog ===

impl<V> Default for WatchLog<V> {
    fn default() -> Self {
        Self {
            content: Arc::default(),
        }
    }
}

impl<V> Default for WatchLogContent<V> {
    fn default() -> Self {
        Self {
            versions: Vec::new(),
            gaps: 0,
            last_list: (0, BTreeSet::new()),
        }
    }
}

impl<V: LoggedVersion + Clone> WatchLog<V> {
    /// The content so far.
    pub(crate) fn content(&self) -> WatchLogContent<V> {
        self.lock().clone()
    }

    /// The versions from this number on.
    pub(crate) fn since(&self, number: usize) -> Vec<V> {
        let content = self.lock();
        content.versions.get(number..).unwrap_or_default().to_vec()
    }

    /// The uids of the objects that a list brought after this number of versions. Others were
    /// deleted unseen.
    pub(crate) fn listed_since(&self, number: usize) -> Option<BTreeSet<String>> {
        let content = self.lock();
        let (begin, uids) = &content.last_list;
        (*begin >= number).then(|| uids.clone())
    }

    /// Follows the objects for as long as this is polled.
    pub(crate) async fn follow(&self, objects: &Api<DynamicObject>) {
        let mut from: Option<String> = None;
        loop {
            let followed = match from.take() {
                Some(version) => self.watch(objects, version, &mut from).await,
                None => self.list(objects, &mut from).await,
            };
            if let Err(error) = followed {
                if matches!(&error, kube::Error::Api(status) if status.code == GONE) {
                    from = None;
                    self.lock().gaps += 1;
                }
                sleep(RETRY_PAUSE).await;
            }
        }
    }

    async fn list(
        &self,
        objects: &Api<DynamicObject>,
        from: &mut Option<String>,
    ) -> kube::Result<()> {
        let list = objects.list(&ListParams::default()).await?;
        *from = list.metadata.resource_version;
        let uids = list.items.iter().filter_map(|it| it.metadata.uid.clone());
        let mut content = self.lock();
        content.last_list = (content.versions.len(), uids.collect());
        drop(content);
        for object in list.items {
            self.push(&object, false);
        }
        Ok(())
    }

    async fn watch(
        &self,
        objects: &Api<DynamicObject>,
        version: String,
        from: &mut Option<String>,
    ) -> kube::Result<()> {
        *from = Some(version.clone());
        let params = WatchParams::default();
        let mut events = objects.watch(&params, &version).await?.boxed();
        while let Some(event) = events.try_next().await? {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    from.clone_from(&object.metadata.resource_version);
                    self.push(&object, false);
                }
                WatchEvent::Deleted(object) => {
                    from.clone_from(&object.metadata.resource_version);
                    self.push(&object, true);
                }
                WatchEvent::Bookmark(bookmark) => {
                    *from = Some(bookmark.metadata.resource_version);
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            }
        }
        Ok(())
    }

    fn push(&self, object: &DynamicObject, gone: bool) {
        if let Ok(object) = serde_json::to_value(object) {
            self.lock().versions.push(V::logged(&object, gone));
        }
    }

    fn lock(&self) -> MutexGuard<'_, WatchLogContent<V>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
