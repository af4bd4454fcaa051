//! What the operator remembers of each object while it runs, in a type of the user's.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A type that is remembered of each object of the kind `K`, as long as the object is there and the
/// operator runs.
///
/// It begins as the default when a handler of the object is called for the first time. All handlers
/// of the object share it, and daemons and timers run at the same time as others: what changes
/// belongs into a lock or an atomic. What has to survive a restart belongs into the status.
pub trait Memo<K>: Default + Send + Sync + 'static {}

/// How many objects that nobody has noticed yet are remembered for webhooks; others may never be
/// noticed, and nobody would tell that they are gone.
const EARLY: usize = 256;

/// A memo without its type.
pub(crate) type AnyMemo = Arc<dyn Any + Send + Sync>;

/// The memos of the objects of one kind.
pub(crate) struct Memos {
    make: fn() -> AnyMemo,
    /// Never held across an await, and never while one is made.
    known: Mutex<MemoTable>,
}

/// Memos by the uid of the object.
#[derive(Default)]
struct MemoTable {
    noticed: HashMap<Box<str>, AnyMemo>,
    /// Those of objects that only webhooks have seen, the oldest first.
    early: VecDeque<(Box<str>, AnyMemo)>,
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
        let early = {
            let mut known = self.known();
            if let Some(memo) = known.noticed.get(uid) {
                return Arc::clone(memo);
            }
            known.take_early(uid)
        };
        let made = early.unwrap_or_else(|| self.fresh());
        Arc::clone(self.known().noticed.entry(uid.into()).or_insert(made))
    }

    /// The memo of an object that may be gone; then it is not kept.
    pub(crate) fn find(&self, uid: &str) -> AnyMemo {
        let known = self.known().find(uid);
        known.unwrap_or_else(|| self.fresh())
    }

    /// The memo of an object that may not have been noticed yet; then it is kept for a while.
    pub(crate) fn anticipate(&self, uid: &str) -> AnyMemo {
        if let Some(memo) = self.known().find(uid) {
            return memo;
        }
        let made = self.fresh();
        let mut known = self.known();
        if let Some(memo) = known.find(uid) {
            return memo;
        }
        if known.early.len() >= EARLY {
            known.early.pop_front();
        }
        known.early.push_back((uid.into(), Arc::clone(&made)));
        made
    }

    /// A memo that nobody keeps.
    pub(crate) fn fresh(&self) -> AnyMemo {
        (self.make)()
    }

    /// The object is gone; whoever has its memo may keep it.
    pub(crate) fn forget(&self, uid: &str) {
        let mut known = self.known();
        known.noticed.remove(uid);
        known.take_early(uid);
    }

    fn known(&self) -> MutexGuard<'_, MemoTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl MemoTable ===

impl MemoTable {
    fn find(&self, uid: &str) -> Option<AnyMemo> {
        let early = || self.early.iter().find(|(other, _)| **other == *uid);
        let memo = self.noticed.get(uid).or_else(|| Some(&early()?.1));
        memo.cloned()
    }

    fn take_early(&mut self, uid: &str) -> Option<AnyMemo> {
        let at = self.early.iter().position(|(other, _)| **other == *uid)?;
        self.early.remove(at).map(|(_, memo)| memo)
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

    struct Widget;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Memo<Widget> for Count {}

    fn count(memo: &AnyMemo) -> u32 {
        let count: &Count = typed::<Widget, Count>(Some(memo));
        count.0.fetch_add(1, Ordering::Relaxed)
    }

    #[test]
    fn a_memo_is_shared_by_all_who_know_the_object_until_it_is_gone() {
        let memos = Memos::of::<Widget, Count>();
        assert_eq!(count(&memos.recall("a")), 0);
        assert_eq!(count(&memos.find("a")), 1);
        assert_eq!(count(&memos.recall("b")), 0);
        memos.forget("a");
        assert_eq!(count(&memos.recall("a")), 0);
        assert_eq!(count(&memos.recall("b")), 1);
    }

    #[test]
    fn what_webhooks_leave_for_an_object_is_there_when_it_is_noticed() {
        let memos = Memos::of::<Widget, Count>();
        assert_eq!(count(&memos.anticipate("a")), 0);
        assert_eq!(count(&memos.fresh()), 0);
        assert_eq!(count(&memos.anticipate("a")), 1);
        assert_eq!(count(&memos.recall("a")), 2);
        assert!(memos.known().early.is_empty());
        memos.forget("a");
        assert_eq!(count(&memos.find("a")), 0);
        assert_eq!(count(&memos.anticipate("a")), 0);
        memos.forget("a");
        assert!(memos.known().early.is_empty());
    }

    #[test]
    fn few_objects_that_nobody_notices_are_remembered() {
        let memos = Memos::of::<Widget, Count>();
        for number in 0..=EARLY {
            assert_eq!(count(&memos.anticipate(&number.to_string())), 0);
        }
        assert_eq!(memos.known().early.len(), EARLY);
        assert_eq!(count(&memos.anticipate(&EARLY.to_string())), 1);
        assert_eq!(count(&memos.anticipate("0")), 0, "the oldest is forgotten");
    }
}
