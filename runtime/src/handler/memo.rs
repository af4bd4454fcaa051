//! Memos: state in memory for each object, in a type of the user.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kopf_core::table;

/// A type of state that the operator keeps in memory for each object of the kind `K`, while the
/// object exists and the operator runs.
///
/// It begins as the default when a handler of the object is called for the first time. All handlers
/// of the object share it, and daemons and timers run at the same time as others: put what changes
/// into a lock or an atomic. Put what must survive a restart into the status.
pub trait Memo<K>: Default + Send + Sync + 'static {}

/// How many memos are kept for objects that only webhooks have seen. The operator may never watch
/// these objects, and would not learn of their deletion.
const UNWATCHED_MEMOS: usize = 256;

/// A memo without its type.
pub(crate) type AnyMemo = Arc<dyn Any + Send + Sync>;

/// The memos of the objects of one kind.
pub(crate) struct Memos {
    make: fn() -> AnyMemo,
    /// Never held across an await, and never while a memo is made.
    table: Mutex<MemoTable>,
}

/// Memos by the uid of the object.
#[derive(Default)]
struct MemoTable {
    watched: HashMap<Box<str>, AnyMemo>,
    /// Memos of objects that only webhooks have seen, the oldest first.
    unwatched: VecDeque<(Box<str>, AnyMemo)>,
}

impl Memos {
    pub(crate) fn of<K, M: Memo<K>>() -> Self {
        Self {
            make: || Arc::new(M::default()),
            table: Mutex::default(),
        }
    }

    /// The memo of an object that exists.
    pub(crate) fn recall(&self, uid: &str) -> AnyMemo {
        let unwatched = {
            let mut table = self.table();
            if let Some(memo) = table.watched.get(uid) {
                return Arc::clone(memo);
            }
            table.take_unwatched(uid)
        };
        let made = unwatched.unwrap_or_else(|| self.fresh());
        Arc::clone(self.table().watched.entry(uid.into()).or_insert(made))
    }

    /// The memo of an object that may be deleted; a new one is not kept.
    pub(crate) fn find(&self, uid: &str) -> AnyMemo {
        let memo = self.table().find(uid);
        memo.unwrap_or_else(|| self.fresh())
    }

    /// The memo of an object that may not be watched yet; a new one is kept for a while.
    pub(crate) fn anticipate(&self, uid: &str) -> AnyMemo {
        if let Some(memo) = self.table().find(uid) {
            return memo;
        }
        let made = self.fresh();
        let mut table = self.table();
        if let Some(memo) = table.find(uid) {
            return memo;
        }
        if table.unwatched.len() >= UNWATCHED_MEMOS {
            table.unwatched.pop_front();
        }
        table.unwatched.push_back((uid.into(), Arc::clone(&made)));
        made
    }

    /// A new memo that is not kept.
    pub(crate) fn fresh(&self) -> AnyMemo {
        (self.make)()
    }

    /// Drops the memo of a deleted object; handlers that still run keep theirs.
    pub(crate) fn forget(&self, uid: &str) {
        let mut table = self.table();
        table::remove(&mut table.watched, uid);
        table.take_unwatched(uid);
    }

    fn table(&self) -> MutexGuard<'_, MemoTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl MemoTable ===

impl MemoTable {
    fn find(&self, uid: &str) -> Option<AnyMemo> {
        let unwatched = || self.unwatched.iter().find(|(other, _)| **other == *uid);
        let memo = self.watched.get(uid).or_else(|| Some(&unwatched()?.1));
        memo.cloned()
    }

    fn take_unwatched(&mut self, uid: &str) -> Option<AnyMemo> {
        let at = self
            .unwatched
            .iter()
            .position(|(other, _)| **other == *uid)?;
        self.unwatched.remove(at).map(|(_, memo)| memo)
    }
}

/// The memo in its type.
pub(crate) fn typed<K, M: Memo<K>>(memo: Option<&AnyMemo>) -> &M {
    memo.and_then(|memo| memo.downcast_ref())
        .expect("`memo` in kopf.yaml names the type of the memos of this kind")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    struct TestKind;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Memo<TestKind> for Count {}

    fn count(memo: &AnyMemo) -> u32 {
        let count: &Count = typed::<TestKind, Count>(Some(memo));
        count.0.fetch_add(1, Ordering::Relaxed)
    }

    #[test]
    fn all_handlers_of_an_object_share_its_memo_until_it_is_deleted() {
        let memos = Memos::of::<TestKind, Count>();
        assert_eq!(count(&memos.recall("a")), 0);
        assert_eq!(count(&memos.find("a")), 1);
        assert_eq!(count(&memos.recall("b")), 0);
        memos.forget("a");
        assert_eq!(count(&memos.recall("a")), 0);
        assert_eq!(count(&memos.recall("b")), 1);
    }

    #[test]
    fn the_memo_of_a_webhook_is_kept_when_the_object_is_watched() {
        let memos = Memos::of::<TestKind, Count>();
        assert_eq!(count(&memos.anticipate("a")), 0);
        assert_eq!(count(&memos.fresh()), 0);
        assert_eq!(count(&memos.anticipate("a")), 1);
        assert_eq!(count(&memos.recall("a")), 2);
        assert!(memos.table().unwatched.is_empty());
        memos.forget("a");
        assert_eq!(count(&memos.find("a")), 0);
        assert_eq!(count(&memos.anticipate("a")), 0);
        memos.forget("a");
        assert!(memos.table().unwatched.is_empty());
    }

    #[test]
    fn few_memos_of_unwatched_objects_are_kept() {
        let memos = Memos::of::<TestKind, Count>();
        for number in 0..=UNWATCHED_MEMOS {
            assert_eq!(count(&memos.anticipate(&number.to_string())), 0);
        }
        assert_eq!(memos.table().unwatched.len(), UNWATCHED_MEMOS);
        assert_eq!(count(&memos.anticipate(&UNWATCHED_MEMOS.to_string())), 1);
        assert_eq!(count(&memos.anticipate("0")), 0, "the oldest is forgotten");
    }
}
