//! The stored objects, and the log of all changes with one revision each.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::kind::KindId;
use super::object_view::with_version;
use super::ownership::UnownedFields;

/// The place of an object in its kind; objects are listed in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectPath {
    /// Empty for cluster-scoped kinds.
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

/// An object with the revision of its last write.
#[derive(Debug, Clone)]
pub(crate) struct StoredObject {
    pub(crate) object: Arc<Value>,
    pub(crate) revision: u64,
    /// The fields that no client has written last.
    pub(crate) unowned: Arc<UnownedFields>,
}

/// One write.
#[derive(Debug)]
pub(crate) struct LogEntry {
    pub(crate) kind: KindId,
    pub(crate) path: ObjectPath,
    pub(crate) before: Option<StoredObject>,
    pub(crate) after: Option<StoredObject>,
    /// The last state of a deleted object, with the revision of the deletion.
    pub(crate) deleted: Option<Arc<Value>>,
}

/// All objects of all kinds.
#[derive(Debug, Default)]
pub(crate) struct ObjectStore {
    kinds: Vec<BTreeMap<ObjectPath, StoredObject>>,
    /// The writes after `compacted`, one revision each.
    log: VecDeque<LogEntry>,
    /// The last revision that the log has forgotten.
    compacted: u64,
    revision: u64,
}

// === impl ObjectStore ===

impl ObjectStore {
    pub(crate) fn new(first_revision: u64) -> Self {
        Self {
            compacted: first_revision,
            revision: first_revision,
            ..Self::default()
        }
    }

    pub(crate) fn add_kind(&mut self) -> KindId {
        self.kinds.push(BTreeMap::new());
        KindId(self.kinds.len() - 1)
    }

    /// The revision of the last write.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The last revision that is forgotten.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    pub(crate) fn get(&self, kind: KindId, path: &ObjectPath) -> Option<&StoredObject> {
        self.kinds[kind.0].get(path)
    }

    pub(crate) fn objects(
        &self,
        kind: KindId,
    ) -> impl Iterator<Item = (&ObjectPath, &StoredObject)> {
        self.kinds[kind.0].iter()
    }

    /// The write of a revision, if the log has it.
    pub(crate) fn entry(&self, revision: u64) -> Option<&LogEntry> {
        let index = revision.checked_sub(self.compacted + 1)?;
        self.log.get(usize::try_from(index).ok()?)
    }

    /// Stores an object, and returns it with its new version.
    pub(crate) fn put(
        &mut self,
        kind: KindId,
        path: ObjectPath,
        object: Value,
        unowned: Arc<UnownedFields>,
    ) -> Arc<Value> {
        self.revision += 1;
        let stored = StoredObject {
            object: Arc::new(with_version(object, self.revision)),
            revision: self.revision,
            unowned,
        };
        let object = Arc::clone(&stored.object);
        let before = self.kinds[kind.0].insert(path.clone(), stored.clone());
        self.log.push_back(LogEntry {
            kind,
            path,
            before,
            after: Some(stored),
            deleted: None,
        });
        object
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, kind: KindId, path: &ObjectPath) {
        let Some(before) = self.kinds[kind.0].remove(path) else {
            return;
        };
        self.revision += 1;
        let deleted = with_version(Value::clone(&before.object), self.revision);
        self.log.push_back(LogEntry {
            kind,
            path: path.clone(),
            before: Some(before),
            after: None,
            deleted: Some(Arc::new(deleted)),
        });
    }

    /// Forgets all but the last writes.
    pub(crate) fn compact(&mut self, keep: usize) {
        while self.log.len() > keep {
            self.log.pop_front();
            self.compacted += 1;
        }
    }

    /// The objects of a kind as they were at a revision that the log still knows.
    pub(crate) fn snapshot(
        &self,
        kind: KindId,
        revision: u64,
    ) -> BTreeMap<ObjectPath, StoredObject> {
        let mut objects = self.kinds[kind.0].clone();
        for entry in self
            .log
            .iter()
            .rev()
            .take(usize::try_from(self.revision.saturating_sub(revision)).unwrap_or(usize::MAX))
        {
            if entry.kind != kind {
                continue;
            }
            match &entry.before {
                Some(before) => objects.insert(entry.path.clone(), before.clone()),
                None => objects.remove(&entry.path),
            };
        }
        objects
    }
}
