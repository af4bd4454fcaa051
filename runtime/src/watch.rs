//! Watch events and the identities of objects, as the watch streams of a kind send them.

pub(crate) mod latest;
pub(crate) mod stream;
pub(crate) mod stream_health;
pub(crate) mod unserved;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use kopf_core::children::reasons::ReconcileReasons;
use kopf_core::object::ObjectView;
use kopf_core::watch::ObservedState;
pub use kopf_core::watch::WatchEventType;
use kopf_core::watch::known_objects::WatchedKey;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::coordination::pause::PausePeriod;

/// The position of a kind among the kinds that the operator handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KindIndex(pub(crate) u16);

/// The identity of an object: another object of the same name that is created later differs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ObjectKey {
    pub(crate) kind: KindIndex,
    pub(crate) uid: Box<str>,
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) name: Box<str>,
}

/// A state of an object from a list or a watch.
pub(crate) type WatchEvent = ObservedState<Arc<RawValue>>;

/// A reason to process an object.
#[derive(Debug)]
pub(crate) enum QueueItem {
    /// A stream has received a state of it.
    Event(WatchEvent),
    /// One of its daemons or timers has ended, or may start now.
    Requeue,
    /// One of its children, or of the objects that it refers to, has changed.
    Reconcile(ReconcileReasons),
}

/// A message from a stream to the index updater.
#[derive(Debug)]
pub(crate) enum StreamMessage {
    /// A state of an object.
    Event(Arc<ObjectKey>, WatchEvent),
    /// The list of this time is complete.
    Listed(PausePeriod),
    /// There is nothing to list in this time: the API server does not serve the kind.
    Unserved(PausePeriod),
    /// The list failed with this error, and is tried again.
    ListFailed(String),
}

/// The part of an object that a stream parses.
///
/// The rest stays text, which takes a fraction of the memory. The events of our own writes are
/// never parsed, and an object that cannot be parsed does not stop the stream.
#[derive(Deserialize)]
struct ObjectHeader<'a> {
    #[serde(borrow)]
    metadata: ObjectHeaderMeta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectHeaderMeta<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uid: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource_version: Option<Cow<'a, str>>,
}

/// The receiver of a stream's events was dropped, as the operator ends.
pub(crate) struct ReceiverDropped;

// === impl ObjectKey ===

impl ObjectKey {
    /// The identity of an object; `None` if name or uid is missing, which never happens for a stored object.
    pub(crate) fn of(kind: KindIndex, object: ObjectView<'_>) -> Option<Self> {
        Some(Self {
            kind,
            uid: object.uid()?.into(),
            namespace: object.namespace().map(Box::from),
            name: object.name()?.into(),
        })
    }
}

impl WatchedKey for ObjectKey {
    type Text = Arc<RawValue>;

    fn uid(&self) -> &str {
        &self.uid
    }

    fn stub(&self) -> Arc<RawValue> {
        let mut meta = Map::new();
        meta.insert("name".to_owned(), Value::from(&*self.name));
        if let Some(namespace) = &self.namespace {
            meta.insert("namespace".to_owned(), Value::from(&**namespace));
        }
        meta.insert("uid".to_owned(), Value::from(&*self.uid));
        let stub = json!({ "metadata": meta });
        let text = to_raw_value(&stub).expect("names are text, which JSON can express");
        text.into()
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

// === impl ObjectHeader ===

impl<'a> ObjectHeader<'a> {
    fn at(text: &'a RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text.get())
    }

    /// The identity of the object; `None` if name or uid is missing, which never happens for a stored object.
    fn key(&self, kind: KindIndex) -> Option<ObjectKey> {
        let meta = &self.metadata;
        Some(ObjectKey {
            kind,
            uid: meta.uid.as_deref()?.into(),
            namespace: meta.namespace.as_deref().map(Box::from),
            name: meta.name.as_deref()?.into(),
        })
    }

    fn version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }
}
