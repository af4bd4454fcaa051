//! The suite's own log of what really happened: each version of each widget, as the API server
//! sends it to a watch that no trouble touches but that of the API server itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use serde::Serialize;
use serde_json::Value;
use tokio::time::sleep;

use crate::clock;
use crate::state::{DigestedState, FINALIZER, LAST_HANDLED, PREFIX};

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
    /// The annotations of handlers, and whether each says that the handler has ended.
    pub(crate) records: BTreeMap<String, bool>,
    pub(crate) held: bool,
    pub(crate) deleting: bool,
}

/// All versions so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchLog {
    content: Arc<Mutex<WatchLogContent>>,
}

/// The content of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchLogContent {
    pub(crate) versions: Vec<ObjectVersion>,
    /// The number of times at which versions may be missing.
    pub(crate) gaps: usize,
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
                let record: Option<Value> = value
                    .as_str()
                    .and_then(|text| serde_json::from_str(text).ok());
                let ended = record
                    .is_some_and(|record| record["success"] == true || record["failure"] == true);
                (key[PREFIX.len()..].to_owned(), ended)
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

    /// Whether the operator has nothing left to do for the object.
    pub(crate) fn is_settled(&self) -> bool {
        !self.deleting
            && self.held
            && self.records.is_empty()
            && self.base.as_ref() == Some(&self.state)
    }
}

// === impl WatchLog ===

impl WatchLog {
    /// The content so far.
    pub(crate) fn content(&self) -> WatchLogContent {
        self.lock().clone()
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
        for object in list.items {
            self.push(&object);
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
                WatchEvent::Added(object)
                | WatchEvent::Modified(object)
                | WatchEvent::Deleted(object) => {
                    from.clone_from(&object.metadata.resource_version);
                    self.push(&object);
                }
                WatchEvent::Bookmark(bookmark) => {
                    *from = Some(bookmark.metadata.resource_version);
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            }
        }
        Ok(())
    }

    fn push(&self, object: &DynamicObject) {
        if let Ok(object) = serde_json::to_value(object) {
            self.lock().versions.push(ObjectVersion::of(&object));
        }
    }

    fn lock(&self) -> MutexGuard<'_, WatchLogContent> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
