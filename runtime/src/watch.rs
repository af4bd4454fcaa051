//! Sightings of objects, as the streams of a kind report them.

pub(crate) mod known_objects;
pub(crate) mod latest;
pub(crate) mod stream;
pub(crate) mod stream_health;
pub(crate) mod unserved;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use kopf_core::object::ObjectView;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::client::resource_version::ResourceVersion;

/// Which kind of the operator an object belongs to: the position of its declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KindIndex(pub(crate) u16);

/// One object over its whole life: a namesake that is created later is another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ObjectKey {
    pub(crate) kind: KindIndex,
    pub(crate) uid: Box<str>,
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) name: Box<str>,
}

/// What the stream said about the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchEventType {
    /// The object was there when the operator began to look.
    Listed,
    /// The object appeared.
    Added,
    /// The object changed.
    Modified,
    /// The object is gone.
    Deleted,
}

/// One report of a stream about one object.
#[derive(Debug, Clone)]
pub(crate) struct WatchEvent {
    pub(crate) event_type: WatchEventType,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) text: Arc<RawValue>,
}

/// What makes an object be looked at.
#[derive(Debug)]
pub(crate) enum QueueItem {
    /// A stream has brought a state of it.
    Event(WatchEvent),
    /// A daemon or timer beside it has ended.
    Requeue,
}

/// What a stream says to those who keep indices, in its order.
#[derive(Debug)]
pub(crate) enum StreamMessage {
    /// It has seen an object.
    Event(Arc<ObjectKey>, WatchEvent),
    /// It has listed everything, in this epoch.
    Listed(u64),
    /// There is nothing to be listed in this epoch: the server does not serve the kind.
    Unserved(u64),
    /// It cannot list, for this reason, and will try again.
    ListFailed(String),
}

/// What is read of an object before anybody needs the rest of it.
///
/// The rest stays text: that is a fraction of the memory, our own writes come back without ever
/// being needed, and an object that cannot be read concerns nobody but itself.
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

// === impl ObjectKey ===

impl ObjectKey {
    /// The identity of an object; `None` if it has none, as no stored object does.
    pub(crate) fn of(kind: KindIndex, object: ObjectView<'_>) -> Option<Self> {
        Some(Self {
            kind,
            uid: object.uid()?.into(),
            namespace: object.namespace().map(Box::from),
            name: object.name()?.into(),
        })
    }

    /// All that is left of an object whose body was not kept.
    pub(crate) fn stub(&self) -> Arc<RawValue> {
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

    /// The identity of the object; `None` if it has none, as no stored object does.
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

// === impl WatchEventType ===

impl fmt::Display for WatchEventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listed => "LISTED",
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        })
    }
}
