//! What the operator remembers of each object while it runs, in a type of the user's.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A type that is remembered of each object of the kind `K`, as long as the object is there and the
/// operator runs.
///
/// It begins as the default when a handler of the object is called for the first time. All handlers
/// of the object share it, and daemons and timers run at the same time as others: what changes
/// belongs into a lock or an atomic. What has to survive a restart belongs into the status.
pub trait Memo<K>: Default + Send + Sync + 'static {}

/// A memo without its type.
pub(crate) type AnyMemo = Arc<dyn Any + Send + Sync>;

/// The memos of the objects of one kind.
pub(crate) struct Memos {
    make: fn() -> AnyMemo,
    /// By the uid of the object; never held across an await, and never while one is made.
    known: Mutex<HashMap<Box<str>, AnyMemo>>,
}

impl Memos {
    pub(crate) fn of<K, M: Memo<K>>() -> Self {
        Self {
            make: || Arc::new(M::default()),
            known: Mutex::default(),
        }
    }

    /// The memo of an object that is known to be there.
    pub(crate) fn recall(&self, uid: &str) -> AnyMemo {
        if let Some(memo) = self.known().get(uid) {
            return Arc::clone(memo);
        }
        let made = self.fresh();
        Arc::clone(self.known().entry(uid.into()).or_insert(made))
    }

    /// The memo of an object that may be gone, or not have been noticed; then it is not kept.
    pub(crate) fn find(&self, uid: &str) -> AnyMemo {
        let known = self.known().get(uid).cloned();
        known.unwrap_or_else(|| self.fresh())
    }

    /// A memo that nobody keeps.
    pub(crate) fn fresh(&self) -> AnyMemo {
        (self.make)()
    }

    /// The object is gone; whoever has its memo may keep it.
    pub(crate) fn forget(&self, uid: &str) {
        self.known().remove(uid);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Box<str>, AnyMemo>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The memo as what it is.
pub(crate) fn typed<K, M: Memo<K>>(memo: Option<&AnyMemo>) -> &M {
    memo.and_then(|memo| memo.downcast_ref())
        .expect("`memo` in kopf.yaml names the one type that is remembered of this kind")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    struct Kind;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Memo<Kind> for Count {}

    fn count(memo: &AnyMemo) -> u32 {
        let count: &Count = typed::<Kind, Count>(Some(memo));
        count.0.fetch_add(1, Ordering::Relaxed)
    }

    #[test]
    fn a_memo_is_shared_by_all_who_know_the_object_until_it_is_gone() {
        let memos = Memos::of::<Kind, Count>();
        assert_eq!(count(&memos.recall("a")), 0);
        assert_eq!(count(&memos.find("a")), 1);
        assert_eq!(count(&memos.recall("b")), 0);
        memos.forget("a");
        assert_eq!(count(&memos.recall("a")), 0);
        assert_eq!(count(&memos.recall("b")), 1);
    }

    #[test]
    fn nothing_is_kept_for_objects_that_were_not_noticed() {
        let memos = Memos::of::<Kind, Count>();
        for _ in 0..2 {
            assert_eq!(count(&memos.find("a")), 0);
            assert_eq!(count(&memos.fresh()), 0);
        }
        assert!(memos.known().is_empty());
    }
}
