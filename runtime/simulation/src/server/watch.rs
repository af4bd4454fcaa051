//! Watches: they replay the log from a revision on, and know which objects they select.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::ApiServer;
use super::answer::Failure;
use super::kind::KindId;
use super::list::in_form;
use super::object_view::{text_of, with_version};
use super::request::{ObjectForm, WatchOptions};
use super::selector::{InvalidSelector, ObjectSelector};
use super::store::LogEntry;
use crate::time::VirtualTime;

/// An open watch.
#[derive(Debug)]
pub struct OpenWatch {
    kind: KindId,
    namespace: Option<Arc<str>>,
    selector: ObjectSelector,
    form: ObjectForm,
    bookmarks: bool,
    /// The objects that existed when the watch was opened without a version.
    initial: VecDeque<Arc<Value>>,
    /// The failure that the watch begins and ends with.
    failure: Option<Failure>,
    /// The last revision that was looked at.
    position: u64,
    /// The last revision that the client knows.
    sent: u64,
    ends: Option<VirtualTime>,
}

/// One event of a watch.
#[derive(Debug, Clone)]
pub struct ServerEvent {
    /// The type.
    pub event_type: ServerEventType,
    /// The object; of a bookmark only its type and version; of an error the `Status`.
    pub object: Arc<Value>,
}

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEventType {
    /// An object was created, or has become one that the watch selects.
    Added,
    /// An object was changed.
    Modified,
    /// An object was deleted, or is not selected any more.
    Deleted,
    /// Nothing happened up to this version.
    Bookmark,
    /// The watch fails, and ends.
    Error,
}

/// What a watch has to say at the moment.
#[derive(Debug)]
pub enum WatchPoll {
    /// An event.
    Event(ServerEvent),
    /// Nothing at present.
    Idle,
    /// The API server has closed the watch.
    Closed,
}

// === impl ApiServer ===

impl ApiServer {
    pub(super) fn open(
        &self,
        kind: KindId,
        namespace: Option<Arc<str>>,
        options: &WatchOptions,
    ) -> Result<OpenWatch, Failure> {
        let selector = ObjectSelector::parse(options.labels.as_deref(), options.fields.as_deref())
            .map_err(|InvalidSelector(message)| Failure::bad_request(message))?;
        let current = self.store.revision();
        let from: Option<u64> = match options.resource_version.as_deref() {
            None | Some("" | "0") => None,
            Some(text) => Some(text.parse().map_err(|_| invalid_version(text))?),
        };
        let mut initial = VecDeque::new();
        if from.is_none() {
            let objects = self.store.objects(kind);
            initial = objects
                .filter(|(path, _)| namespace.as_ref().is_none_or(|it| path.namespace == *it))
                .filter(|(_, stored)| selector.matches(&stored.object))
                .map(|(_, stored)| in_form(&stored.object, options.form))
                .collect();
        }
        let position = from.unwrap_or(current);
        let expired = position < self.store.compacted();
        Ok(OpenWatch {
            kind,
            namespace,
            selector,
            form: options.form,
            bookmarks: options.bookmarks,
            initial,
            failure: expired.then(|| {
                let message = format!(
                    "too old resource version: {position} ({})",
                    self.store.compacted() + 1
                );
                Failure::new(410, "Expired", message)
            }),
            position,
            sent: position,
            ends: options.timeout.map(|timeout| self.now.after(timeout)),
        })
    }

    /// The next event of a watch.
    pub fn poll(&self, watch: &mut OpenWatch) -> WatchPoll {
        if let Some(failure) = watch.failure.take() {
            watch.ends = Some(VirtualTime::default());
            return WatchPoll::Event(ServerEvent {
                event_type: ServerEventType::Error,
                object: Arc::new(failure.to_json()),
            });
        }
        if !self.kinds[watch.kind.0].is_served || watch.ends.is_some_and(|ends| ends <= self.now) {
            return WatchPoll::Closed;
        }
        if let Some(object) = watch.initial.pop_front() {
            return WatchPoll::Event(ServerEvent {
                event_type: ServerEventType::Added,
                object,
            });
        }
        while watch.position < self.store.revision() {
            let Some(entry) = self.store.entry(watch.position + 1) else {
                // The client was too slow: the log has forgotten what it did not read.
                return WatchPoll::Closed;
            };
            watch.position += 1;
            if let Some(event) = watch.event(entry) {
                watch.sent = watch.position;
                return WatchPoll::Event(event);
            }
        }
        WatchPoll::Idle
    }

    /// Whether [`ApiServer::poll`] would return something else than `Idle`.
    pub fn has_event(&self, watch: &mut OpenWatch) -> bool {
        if watch.failure.is_some()
            || !watch.initial.is_empty()
            || !self.kinds[watch.kind.0].is_served
            || watch.ends.is_some_and(|ends| ends <= self.now)
        {
            return true;
        }
        while watch.position < self.store.revision() {
            let entry = self.store.entry(watch.position + 1);
            if entry.is_none_or(|entry| watch.event(entry).is_some()) {
                return true;
            }
            watch.position += 1;
        }
        false
    }

    /// The bookmark that is due about once a minute; none if the client knows its version.
    pub fn bookmark(&self, watch: &mut OpenWatch) -> Option<ServerEvent> {
        let current = self.store.revision();
        if !watch.bookmarks || watch.position < current || watch.sent == current {
            return None;
        }
        watch.sent = current;
        let definition = self.definition_arc(watch.kind);
        let (kind, api_version) = match watch.form {
            ObjectForm::Whole => (definition.kind.clone(), definition.api_version()),
            ObjectForm::Metadata => (
                "PartialObjectMetadata".to_owned(),
                "meta.k8s.io/v1".to_owned(),
            ),
        };
        Some(ServerEvent {
            event_type: ServerEventType::Bookmark,
            object: Arc::new(json!({
                "kind": kind,
                "apiVersion": api_version,
                "metadata": {"resourceVersion": current.to_string()},
            })),
        })
    }
}

// === impl OpenWatch ===

impl OpenWatch {
    /// The end that the client asked for.
    #[must_use]
    pub fn ends(&self) -> Option<VirtualTime> {
        self.ends
    }

    fn event(&self, entry: &LogEntry) -> Option<ServerEvent> {
        let here = entry.kind == self.kind
            && self
                .namespace
                .as_ref()
                .is_none_or(|it| entry.path.namespace == *it);
        if !here {
            return None;
        }
        let selected = |object: &Value| self.selector.matches(object);
        let before = entry.before.as_ref().map(|it| &it.object);
        let before = before.filter(|it| selected(it));
        let after = entry.after.as_ref();
        let after_selected = after.filter(|it| selected(&it.object));
        let (event_type, object) = match (before, after_selected) {
            (None, None) => return None,
            (None, Some(after)) => (ServerEventType::Added, Arc::clone(&after.object)),
            (Some(_), Some(after)) => (ServerEventType::Modified, Arc::clone(&after.object)),
            (Some(before), None) => {
                let object = match (after, &entry.deleted) {
                    (Some(after), _) => {
                        Arc::new(with_version(Value::clone(before), after.revision))
                    }
                    (None, Some(deleted)) => Arc::clone(deleted),
                    (None, None) => Arc::clone(before),
                };
                (ServerEventType::Deleted, object)
            }
        };
        Some(ServerEvent {
            event_type,
            object: in_form(&object, self.form),
        })
    }
}

// === impl ServerEvent ===

impl ServerEvent {
    /// The resource version of the object.
    #[must_use]
    pub fn version(&self) -> &str {
        text_of(&self.object, "resourceVersion")
    }

    /// The line as it travels.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({"type": self.event_type.name(), "object": *self.object})
    }
}

// === impl ServerEventType ===

impl ServerEventType {
    /// The name as it travels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

fn invalid_version(text: &str) -> Failure {
    Failure::new(
        500,
        "",
        format!(
            "resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
        ),
    )
}
