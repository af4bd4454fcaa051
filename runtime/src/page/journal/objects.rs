//! The objects that the journal knows, with the state of their handling.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use kopf_core::table;
use serde::Serialize;

use super::entry::{HandlerEntry, HandlerProgress, JournalHandlerType, JournalSubject, Millis};

/// The most objects that the journal knows.
const MOST_OBJECTS: usize = 100_000;

/// The most handlers of one object that are shown, with their sub-handlers.
const MOST_HANDLERS: usize = 64;

/// The place of an object in the table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ObjectSortKey {
    kind: Arc<str>,
    namespace: Option<Box<str>>,
    name: Box<str>,
    uid: Box<str>,
}

/// An object with the state of its handling.
#[derive(Debug, Clone)]
pub(crate) struct ObjectEntry {
    pub(crate) api_version: Arc<str>,
    pub(crate) since: Millis,
    /// The time of the next call.
    pub(crate) until: Option<Millis>,
    /// The reason of the last cycle.
    pub(crate) reason: Option<&'static str>,
    /// Why the runtime itself cannot handle the object.
    pub(crate) problem: Option<Box<str>>,
    pub(crate) handlers: Vec<HandlerEntry>,
    /// Whether a handler failed in the cycle that has ended last.
    pub(crate) failed: bool,
}

/// The state of the handling of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ShownState {
    /// The runtime itself cannot go on with it.
    Problem,
    /// A handler has failed for good.
    Failed,
    /// A handler waits for its next attempt.
    Waiting,
    /// A handler is called.
    Running,
    /// All handlers are done.
    Handled,
    /// No handler was called for it.
    Idle,
}

/// All objects, in the order of kind, namespace and name.
#[derive(Debug, Default)]
pub(crate) struct ObjectTable {
    entries: BTreeMap<Arc<ObjectSortKey>, ObjectEntry>,
    by_uid: HashMap<Box<str>, Arc<ObjectSortKey>>,
    /// Names of kinds and versions, which all objects of a kind share.
    names: Vec<Arc<str>>,
    /// How often an object was left out.
    left_out: u64,
}

/// Which objects to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObjectQuery {
    pub(crate) kind: Option<String>,
    pub(crate) state: Option<ShownState>,
    /// A part of the namespace and name, in lower case.
    pub(crate) search: String,
    /// From zero.
    pub(crate) page: usize,
    pub(crate) size: usize,
}

/// One page of the objects that a query finds.
#[derive(Debug, Serialize)]
pub(crate) struct ObjectPage {
    pub(crate) total: usize,
    pub(crate) page: usize,
    pub(crate) size: usize,
    pub(crate) objects: Vec<ObjectSummary>,
}

/// An object in a list.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ObjectSummary {
    pub(crate) uid: Box<str>,
    pub(crate) kind: Box<str>,
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) name: Box<str>,
    pub(crate) state: ShownState,
    pub(crate) since: Millis,
    pub(crate) until: Option<Millis>,
    pub(crate) reason: Option<&'static str>,
    pub(crate) attempts: u32,
    pub(crate) message: Option<Box<str>>,
}

/// An object with its handlers.
#[derive(Debug, Serialize)]
pub(crate) struct ObjectDetail {
    #[serde(flatten)]
    pub(crate) summary: ObjectSummary,
    pub(crate) api_version: Box<str>,
    pub(crate) handlers: Vec<HandlerEntry>,
}

/// How many objects of a kind are in a state.
pub(crate) type StateCounts = BTreeMap<Box<str>, BTreeMap<ShownState, usize>>;

// === impl ShownState ===

impl ShownState {
    pub(crate) const ALL: [(Self, &'static str); 6] = [
        (Self::Problem, "problem"),
        (Self::Failed, "failed"),
        (Self::Waiting, "waiting"),
        (Self::Running, "running"),
        (Self::Handled, "handled"),
        (Self::Idle, "idle"),
    ];

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find_map(|(state, text)| (text == word).then_some(state))
    }
}

// === impl ObjectTable ===

impl ObjectTable {
    /// The entry of an object, which is made if there is none; none if there are too many.
    pub(crate) fn entry(
        &mut self,
        subject: &JournalSubject<'_>,
        at: Timestamp,
    ) -> Option<&mut ObjectEntry> {
        if !self.by_uid.contains_key(subject.uid) {
            if self.entries.len() >= MOST_OBJECTS {
                self.left_out += 1;
                return None;
            }
            let place = Arc::new(ObjectSortKey {
                kind: self.shared(&full_kind(subject)),
                namespace: subject.namespace.map(Box::from),
                name: subject.name.into(),
                uid: subject.uid.into(),
            });
            let entry = ObjectEntry::new(self.shared(subject.api_version), at);
            self.by_uid.insert(subject.uid.into(), Arc::clone(&place));
            self.entries.insert(place, entry);
        }
        let place = self.by_uid.get(subject.uid)?;
        self.entries.get_mut(place)
    }

    /// The entry of an object that the journal knows.
    pub(crate) fn known(&mut self, uid: &str) -> Option<&mut ObjectEntry> {
        let place = self.by_uid.get(uid)?;
        self.entries.get_mut(place)
    }

    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.by_uid.contains_key(uid)
    }

    pub(crate) fn remove(&mut self, uid: &str) {
        if let Some(place) = table::remove(&mut self.by_uid, uid) {
            self.entries.remove(&place);
        }
    }

    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    pub(crate) fn counts(&self) -> StateCounts {
        let mut counts = StateCounts::new();
        for (place, entry) in &self.entries {
            if !counts.contains_key(&*place.kind) {
                counts.insert((&*place.kind).into(), BTreeMap::new());
            }
            if let Some(of_kind) = counts.get_mut(&*place.kind) {
                *of_kind.entry(entry.state()).or_default() += 1;
            }
        }
        counts
    }

    pub(crate) fn page(&self, query: &ObjectQuery) -> ObjectPage {
        let found = || {
            let entries = self.entries.iter();
            entries.filter(|(place, entry)| query.matches(place, entry))
        };
        let total = found().count();
        let last = total.saturating_sub(1) / query.size.max(1);
        let page = query.page.min(last);
        let objects = found()
            .skip(page * query.size)
            .take(query.size)
            .map(|(place, entry)| entry.summary(place));
        ObjectPage {
            total,
            page,
            size: query.size,
            objects: objects.collect(),
        }
    }

    pub(crate) fn detail(&self, uid: &str) -> Option<ObjectDetail> {
        let place = self.by_uid.get(uid)?;
        let entry = self.entries.get(place)?;
        Some(ObjectDetail {
            summary: entry.summary(place),
            api_version: (&*entry.api_version).into(),
            handlers: entry.handlers.clone(),
        })
    }

    fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.iter().find(|known| &***known == name) {
            return Arc::clone(known);
        }
        let made: Arc<str> = name.into();
        self.names.push(Arc::clone(&made));
        made
    }
}

/// The kind with its group, as in the metrics.
fn full_kind(subject: &JournalSubject<'_>) -> String {
    match subject.api_version.split_once('/') {
        Some((group, _)) => format!("{}.{group}", subject.kind),
        None => subject.kind.to_owned(),
    }
}

// === impl ObjectQuery ===

impl ObjectQuery {
    fn matches(&self, place: &ObjectSortKey, entry: &ObjectEntry) -> bool {
        let kind = self.kind.as_ref();
        kind.is_none_or(|kind| **kind == *place.kind)
            && self.state.is_none_or(|state| state == entry.state())
            && (self.search.is_empty() || place.has(&self.search))
    }
}

// === impl ObjectSortKey ===

impl ObjectSortKey {
    fn has(&self, search: &str) -> bool {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        // Names of objects are in lower case, with very few exceptions.
        self.name.contains(search)
            || namespace.contains(search)
            || format!("{namespace}/{}", self.name)
                .to_lowercase()
                .contains(search)
            || *self.uid == *search
    }
}

// === impl ObjectEntry ===

impl ObjectEntry {
    fn new(api_version: Arc<str>, at: Timestamp) -> Self {
        Self {
            api_version,
            since: at.into(),
            until: None,
            reason: None,
            problem: None,
            handlers: Vec::new(),
            failed: false,
        }
    }

    /// The entry of a handler; none if there are too many.
    pub(crate) fn handler(
        &mut self,
        id: &str,
        handler_type: JournalHandlerType,
        at: Timestamp,
    ) -> Option<&mut HandlerEntry> {
        let known = self.handlers.iter().position(|it| &*it.id == id);
        if known.is_none() {
            if self.handlers.len() >= MOST_HANDLERS {
                return None;
            }
            self.handlers.push(HandlerEntry::new(id, handler_type, at));
        }
        let position = known.unwrap_or(self.handlers.len() - 1);
        self.handlers.get_mut(position)
    }

    /// The state; daemons and timers accompany the object, and do not count.
    pub(crate) fn state(&self) -> ShownState {
        let any = |progress| {
            let mut handlers = self.handlers.iter();
            handlers.any(|it| it.progress == progress && !it.handler_type.is_background())
        };
        if self.problem.is_some() {
            ShownState::Problem
        } else if any(HandlerProgress::Running) {
            ShownState::Running
        } else if self.until.is_some() || any(HandlerProgress::Waiting) {
            ShownState::Waiting
        } else if self.failed || any(HandlerProgress::Failed) {
            ShownState::Failed
        } else if self.reason.is_some() {
            ShownState::Handled
        } else {
            ShownState::Idle
        }
    }

    fn summary(&self, place: &ObjectSortKey) -> ObjectSummary {
        let mut handlers = self.handlers.iter();
        let message = self.problem.clone().or_else(|| {
            let failed = handlers.find(|it| it.message.is_some());
            failed.and_then(|it| it.message.clone())
        });
        let attempts = self
            .handlers
            .iter()
            .filter(|it| !it.handler_type.is_background());
        ObjectSummary {
            uid: place.uid.clone(),
            kind: (&*place.kind).into(),
            namespace: place.namespace.clone(),
            name: place.name.clone(),
            state: self.state(),
            since: self.since,
            until: self.until,
            reason: self.reason,
            attempts: attempts.map(|it| it.attempts).max().unwrap_or(0),
            message,
        }
    }
}

#[cfg(test)]
mod tests;
