//! Which objects have returned to a former state: only those may have to wait for it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use super::meta;
use crate::world::Violation;

/// The states of all objects of a history, by uid.
#[derive(Debug, Default)]
pub(super) struct ReturnedStates {
    objects: BTreeMap<String, StateSequence>,
}

#[derive(Debug, Default)]
struct StateSequence {
    /// The digests of all states.
    seen: BTreeSet<u64>,
    /// That of the newest one.
    newest: u64,
    has_returned: bool,
}

impl ReturnedStates {
    /// Anyone has written to an object.
    pub(super) fn written(&mut self, object: &Value) {
        let mut hasher = DefaultHasher::new();
        object["spec"].to_string().hash(&mut hasher);
        object["metadata"]["labels"].to_string().hash(&mut hasher);
        let digest = hasher.finish();
        let uid = meta(object, "uid").to_owned();
        let states = self.objects.entry(uid).or_default();
        if states.newest != digest {
            states.newest = digest;
            states.has_returned |= !states.seen.insert(digest);
        }
    }

    /// Another client has removed records or finalizers: the state before them is back.
    pub(super) fn stripped(&mut self, uid: &str) {
        let states = self.objects.entry(uid.to_owned()).or_default();
        states.has_returned = true;
    }

    /// An operator waits, as a former state of an object has returned.
    pub(super) fn check(&self, uid: &str) -> Result<(), Violation> {
        let states = self.objects.get(uid);
        match states.is_some_and(|it| it.has_returned) {
            true => Ok(()),
            false => Err(Violation::new("no object waits without a reason", uid)),
        }
    }
}
