//! The uids of the children that handlers have applied.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many uids are kept. A child beyond that costs one more request when it is applied again.
const CAPACITY: usize = 16_384;

/// The uids of applied children, by hashes of their identities: so the next application knows that
/// the child belongs to its owner, and needs not ask. Two children with one hash only forget each
/// other, because the API server compares the uid.
#[derive(Debug, Default)]
pub(crate) struct AppliedUids {
    hasher: RandomState,
    /// Never held across an await.
    uids: Mutex<HashMap<u64, Box<str>>>,
}

impl AppliedUids {
    pub(crate) fn get(&self, child: &impl Hash) -> Option<Box<str>> {
        self.uids().get(&self.hasher.hash_one(child)).cloned()
    }

    pub(crate) fn remember(&self, child: &impl Hash, uid: &str) {
        let hash = self.hasher.hash_one(child);
        let mut uids = self.uids();
        if uids.len() >= CAPACITY && !uids.contains_key(&hash) {
            uids.clear();
        }
        uids.insert(hash, uid.into());
    }

    pub(crate) fn forget(&self, child: &impl Hash) {
        self.uids().remove(&self.hasher.hash_one(child));
    }

    fn uids(&self) -> MutexGuard<'_, HashMap<u64, Box<str>>> {
        self.uids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_known_until_it_is_forgotten() {
        let applied = AppliedUids::default();
        assert_eq!(applied.get(&("ConfigMap", "one")), None);
        applied.remember(&("ConfigMap", "one"), "uid-1");
        assert_eq!(applied.get(&("ConfigMap", "one")).as_deref(), Some("uid-1"));
        applied.forget(&("ConfigMap", "one"));
        assert_eq!(applied.get(&("ConfigMap", "one")), None);
    }

    #[test]
    fn the_number_of_uids_is_bounded() {
        let applied = AppliedUids::default();
        for child in 0..=CAPACITY {
            applied.remember(&child, "uid");
        }
        assert!(applied.uids().len() <= CAPACITY);
        assert!(applied.get(&CAPACITY).is_some());
    }
}
