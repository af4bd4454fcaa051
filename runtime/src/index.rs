//! Indices as handlers see them: values of objects found by a key, kept in memory.
//!
//! A writer waits until there is no reader, without blocking new readers: a reader never waits
//! for a waiting writer, so a thread that reads an index may read it again. A reader that ends
//! wakes the writers.

pub(crate) mod list_gate;
pub(crate) mod update;

use std::any::{Any, TypeId};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, TryLockError};

use kopf_core::index::IndexTable as ObjectEntries;
use tokio::sync::Notify;

use crate::handler::error::HandlerError;
use crate::watch::ObjectKey;

/// The key and value types of an index: kopf-gen generates a type with this trait for each index
/// in `kopf.yaml`, and you pass it to [`index`](crate::ChangeContext::index) of any context.
pub trait Index: Send + Sync + 'static {
    /// The key that values are found by.
    type Key: Eq + Hash + Send + Sync + 'static;
    /// The value of one object under the key.
    type Value: Send + Sync + 'static;
    /// The name in `kopf.yaml`.
    const NAME: &'static str;
}

/// The result of an index function: all entries of the object; without entries, the object is
/// removed from the index.
pub type IndexResult<I> = Result<Vec<(<I as Index>::Key, <I as Index>::Value)>, HandlerError>;

/// All indices of an operator; cheap to clone.
///
/// An operator creates its own. To use them elsewhere, such as in the predicates of the operator's
/// struct, create them first and pass them to
/// [`Operator::indices`](crate::Operator::indices).
#[derive(Clone, Default)]
pub struct Indices {
    /// The lock is held for lookups only.
    by_type: Arc<Mutex<HashMap<TypeId, StoredIndex>>>,
}

/// One index of any type.
struct StoredIndex {
    name: &'static str,
    /// An `Arc<IndexStorage<I>>`.
    storage: Arc<dyn Any + Send + Sync>,
    /// The number of keys.
    size: Box<dyn Fn() -> usize + Send + Sync>,
}

/// One index with its current entries; cheap to clone, and free to be kept.
pub struct IndexView<I: Index> {
    storage: Arc<IndexStorage<I>>,
}

/// One index, locked for reading: the index is not updated while you hold this, so drop it soon.
/// It cannot be held across an `await`.
pub struct IndexSnapshot<'a, I: Index> {
    entries: RwLockReadGuard<'a, ObjectEntries<Arc<ObjectKey>, I::Key, I::Value>>,
    /// Dropped after the entries are unlocked, because fields are dropped in their order.
    _wakes_writers: WakesWriters<'a>,
}

/// Wakes the writers of an index that wait, when it is dropped.
struct WakesWriters<'a>(&'a Notify);

/// The entries of one index.
struct IndexStorage<I: Index> {
    entries: RwLock<ObjectEntries<Arc<ObjectKey>, I::Key, I::Value>>,
    /// Notified when a reader or a writer has unlocked the entries. Each watch has a writer of its
    /// own, so that writers wait for each other, too.
    unlocked: Arc<Notify>,
}

/// The new entries of an object for an index.
pub(crate) trait IndexUpdate: Send {
    /// Puts them into the index; false if another writer or readers have locked it.
    fn try_apply(&mut self, object: &Arc<ObjectKey>) -> bool;

    /// Notified when the index is unlocked.
    fn unlocked(&self) -> Arc<Notify>;
}

struct NewEntries<I: Index> {
    view: IndexView<I>,
    entries: Vec<(I::Key, I::Value)>,
}

// === impl Indices ===

impl Indices {
    /// One of the indices, which is empty if the operator does not have it.
    pub fn get<I: Index>(&self, _: I) -> IndexView<I> {
        self.view()
    }

    pub(crate) fn view<I: Index>(&self) -> IndexView<I> {
        let mut by_type = self.by_type.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = by_type
            .entry(TypeId::of::<I>())
            .or_insert_with(StoredIndex::new::<I>);
        let storage = Arc::clone(&stored.storage)
            .downcast::<IndexStorage<I>>()
            .expect("each index is stored under its own type");
        IndexView { storage }
    }

    /// The number of keys of each index, in the order of their names.
    pub(crate) fn sizes(&self) -> Vec<(&'static str, usize)> {
        let by_type = self.by_type.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sizes: Vec<_> = by_type
            .values()
            .map(|stored| (stored.name, (stored.size)()))
            .collect();
        sizes.sort_unstable();
        sizes
    }

    /// An update that replaces all entries of an object in an index.
    pub(crate) fn update<I: Index>(
        &self,
        entries: Vec<(I::Key, I::Value)>,
    ) -> Box<dyn IndexUpdate> {
        let view = self.view::<I>();
        Box::new(NewEntries { view, entries })
    }
}

impl fmt::Debug for Indices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Indices").finish_non_exhaustive()
    }
}

// === impl StoredIndex ===

impl StoredIndex {
    fn new<I: Index>() -> Self {
        let storage = Arc::<IndexStorage<I>>::default();
        let view = IndexView {
            storage: Arc::clone(&storage),
        };
        Self {
            name: I::NAME,
            storage,
            size: Box::new(move || view.len()),
        }
    }
}

// === impl IndexView ===

impl<I: Index> IndexView<I> {
    /// The values of all objects that have this key, in no particular order.
    pub fn get<Q>(&self, key: &Q) -> Vec<I::Value>
    where
        I::Key: Borrow<Q>,
        I::Value: Clone,
        Q: Eq + Hash + ?Sized,
    {
        self.read().get(key).cloned().collect()
    }

    /// The value of some object that has this key.
    pub fn first<Q>(&self, key: &Q) -> Option<I::Value>
    where
        I::Key: Borrow<Q>,
        I::Value: Clone,
        Q: Eq + Hash + ?Sized,
    {
        self.read().get(key).next().cloned()
    }

    /// True if any object has this key.
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        I::Key: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.read().contains_key(key)
    }

    /// All keys, in no particular order.
    pub fn keys(&self) -> Vec<I::Key>
    where
        I::Key: Clone,
    {
        self.read().keys().cloned().collect()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// True if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// Locks the index for reading, for several lookups that have to be consistent, and for values
    /// that are not to be cloned.
    pub fn read(&self) -> IndexSnapshot<'_, I> {
        let entries = self.storage.entries.read();
        IndexSnapshot {
            entries: entries.unwrap_or_else(PoisonError::into_inner),
            _wakes_writers: WakesWriters(&self.storage.unlocked),
        }
    }
}

impl<I: Index> Clone for IndexView<I> {
    fn clone(&self) -> Self {
        Self {
            storage: Arc::clone(&self.storage),
        }
    }
}

impl<I: Index> fmt::Debug for IndexView<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = I::NAME;
        f.debug_struct("IndexView")
            .field("name", &name)
            .finish_non_exhaustive()
    }
}

// === impl IndexSnapshot ===

impl<I: Index> IndexSnapshot<'_, I> {
    /// The values of all objects that have this key, in no particular order.
    pub fn get<Q>(&self, key: &Q) -> impl ExactSizeIterator<Item = &I::Value>
    where
        I::Key: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.entries.get(key)
    }

    /// True if any object has this key.
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        I::Key: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.entries.contains_key(key)
    }

    /// All keys, in no particular order.
    pub fn keys(&self) -> impl Iterator<Item = &I::Key> {
        self.entries.keys()
    }

    /// All keys with their values, in no particular order.
    pub fn iter(
        &self,
    ) -> impl Iterator<Item = (&I::Key, impl ExactSizeIterator<Item = &I::Value>)> {
        self.entries.iter()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<I: Index> fmt::Debug for IndexSnapshot<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexSnapshot")
            .field("name", &I::NAME)
            .field("keys", &self.len())
            .finish_non_exhaustive()
    }
}

// === impl IndexStorage ===

impl<I: Index> Default for IndexStorage<I> {
    fn default() -> Self {
        Self {
            entries: RwLock::default(),
            unlocked: Arc::default(),
        }
    }
}

// === impl WakesWriters ===

impl Drop for WakesWriters<'_> {
    fn drop(&mut self) {
        self.0.notify_waiters();
    }
}

// === impl IndexUpdate ===

impl<I: Index> IndexUpdate for NewEntries<I> {
    fn try_apply(&mut self, object: &Arc<ObjectKey>) -> bool {
        let storage = &self.view.storage;
        let entries = match storage.entries.try_write() {
            Ok(entries) => entries,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        // Dropped in their order: writers are woken after the entries are unlocked.
        let mut locked = (entries, WakesWriters(&storage.unlocked));
        locked.0.replace(object, self.entries.drain(..));
        true
    }

    fn unlocked(&self) -> Arc<Notify> {
        Arc::clone(&self.view.storage.unlocked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::KindIndex;

    struct NamesIndex;

    impl Index for NamesIndex {
        type Key = String;
        type Value = u32;
        const NAME: &'static str = "names";
    }

    fn object(name: &str) -> Arc<ObjectKey> {
        Arc::new(ObjectKey {
            kind: KindIndex(0),
            uid: name.into(),
            namespace: None,
            name: name.into(),
        })
    }

    fn put(indices: &Indices, name: &str, entries: &[(&str, u32)]) -> bool {
        let entries = entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), *value));
        let mut update = indices.update::<NamesIndex>(entries.collect());
        update.try_apply(&object(name))
    }

    #[test]
    fn all_views_of_an_index_show_the_same_entries() {
        let indices = Indices::default();
        let early = indices.get(NamesIndex);
        assert!(early.is_empty());
        assert!(put(&indices, "a", &[("x", 1), ("y", 2)]));
        assert!(put(&indices, "b", &[("x", 3)]));
        let mut found = early.get("x");
        found.sort_unstable();
        assert_eq!(found, [1, 3]);
        assert_eq!(early.first("y"), Some(2));
        assert!(put(&indices, "a", &[]));
        assert_eq!(early.keys(), ["x"]);
    }

    #[test]
    fn an_index_does_not_change_while_it_is_read_and_can_be_read_again_meanwhile() {
        let indices = Indices::default();
        assert!(put(&indices, "a", &[("x", 1)]));
        let view = indices.get(NamesIndex);
        let snapshot = view.read();
        assert!(!put(&indices, "a", &[("y", 1)]));
        assert_eq!(view.get("x"), [1]);
        assert_eq!(snapshot.get("x").copied().collect::<Vec<_>>(), [1]);
        drop(snapshot);
        assert!(put(&indices, "a", &[("y", 1)]));
        assert!(!view.contains_key("x"));
    }
}
