//! The children that an operator knows: what the runtime does in `children::store`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kopf_core::background::Moment;
use kopf_core::children::desired::DesiredChild;
use kopf_core::children::in_flight::ChildInFlight;
use kopf_core::children::options::Pruning;
use kopf_core::children::prune::{KnownChild, abandoned};
use kopf_core::children::takebacks::{self, Takebacks};
use kopf_core::children::{APPLIED_ANNOTATION, OWNER_LABEL};
use kopf_core::object::ObjectView;
use kopf_core::object::resource_version::ResourceVersion;
use serde_json::Value;

use super::SimulatedKey;

/// The children of all objects, as the stream and the answers have shown them.
#[derive(Default)]
pub(crate) struct SimulatedChildren {
    owners: BTreeMap<&'static str, SimulatedOwner>,
    known: BTreeMap<Arc<str>, SimulatedChild>,
    /// The children that are being applied.
    in_flight: BTreeMap<Arc<str>, ChildInFlight>,
}

/// An object that is handled.
struct SimulatedOwner {
    key: Arc<SimulatedKey>,
    latest: Arc<Value>,
    /// The names of the children that its last call has applied.
    applied: Vec<Arc<str>>,
    takebacks: BTreeMap<Arc<str>, Takebacks>,
}

/// A child that exists.
#[derive(Clone)]
pub(super) struct SimulatedChild {
    pub(super) uid: &'static str,
    pub(super) object: Arc<Value>,
    /// Whether its deletion is under way.
    is_pruned: bool,
    /// The digest that we applied, and that another operator has replaced.
    replaced: Option<Arc<str>>,
    /// Whether this operator has applied it, or found it as it should be.
    was_as_desired: bool,
}

// === impl SimulatedChildren ===

impl SimulatedChildren {
    /// The owners that are known.
    pub(super) fn owners(&self) -> impl Iterator<Item = &Arc<SimulatedKey>> {
        self.owners.values().map(|it| &it.key)
    }

    /// The newest state of an owner.
    pub(super) fn latest(&self, key: &SimulatedKey) -> Option<&Arc<Value>> {
        self.owners.get(key.uid).map(|it| &it.latest)
    }

    /// An owner is handled, or has another state.
    pub(super) fn show_owner(&mut self, key: &Arc<SimulatedKey>, state: &Arc<Value>) {
        let owner = self
            .owners
            .entry(key.uid)
            .or_insert_with(|| SimulatedOwner {
                key: Arc::clone(key),
                latest: Arc::clone(state),
                applied: Vec::new(),
                takebacks: BTreeMap::new(),
            });
        let is_older = match (version(state), version(&owner.latest)) {
            (Some(new), Some(known)) => new.is_not_newer_than(&known),
            _ => false,
        };
        if !is_older {
            owner.latest = Arc::clone(state);
        }
    }

    /// An owner that is handled has another state.
    pub(super) fn update_owner(&mut self, key: &Arc<SimulatedKey>, state: &Arc<Value>) {
        if self.owners.contains_key(key.uid) {
            self.show_owner(key, state);
        }
    }

    /// The last state of an owner replaces a newer one.
    pub(super) fn replace_owner(&mut self, key: &SimulatedKey, state: &Arc<Value>) {
        if let Some(owner) = self.owners.get_mut(key.uid) {
            owner.latest = Arc::clone(state);
        }
    }

    pub(super) fn owner_gone(&mut self, key: &SimulatedKey) {
        self.owners.remove(key.uid);
    }

    /// A call has ended that has applied these children.
    pub(super) fn called(&mut self, owner: &SimulatedKey, applied: Vec<Arc<str>>) {
        if let Some(owner) = self.owners.get_mut(owner.uid) {
            owner.applied = applied;
        }
    }

    /// A child of an owner.
    pub(super) fn child(&self, owner: &SimulatedKey, name: &str) -> Option<&SimulatedChild> {
        let known = self.known.get(name)?;
        (owner_of(&known.object) == Some(owner.uid)).then_some(known)
    }

    /// Whether nothing has to be sent for a child of an owner.
    pub(super) fn is_in_sync(&mut self, owner: &SimulatedKey, desired: &DesiredChild) -> bool {
        let known = self.known.get_mut(&*desired.name);
        let Some(known) = known.filter(|it| owner_of(&it.object) == Some(owner.uid)) else {
            return false;
        };
        let is_in_sync = !known.is_pruned && has_all(&known.object, &desired.body);
        if is_in_sync {
            known.was_as_desired = true;
            known.replaced = None;
        }
        is_in_sync
    }

    /// Takes a child back from another client; fails with the time until that is possible.
    pub(super) fn take_back(
        &mut self,
        owner: &SimulatedKey,
        name: &Arc<str>,
        now: Moment,
    ) -> Result<(), Duration> {
        let Some(owner) = self.owners.get_mut(owner.uid) else {
            return Ok(());
        };
        let takebacks = owner.takebacks.entry(Arc::clone(name)).or_default();
        takebacks.take_back(now)
    }

    /// Whether this operator has applied a child, or found it as it should be.
    pub(super) fn was_as_desired(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(|it| it.was_as_desired)
    }

    /// The child with this uid does not exist any more; another one may have its name.
    pub(super) fn forget(&mut self, name: &str, uid: &str) {
        if self.known.get(name).is_some_and(|it| it.uid == uid) {
            self.known.remove(name);
        }
    }

    /// The children of an owner that its last call has not applied.
    pub(super) fn abandoned(&self, owner: &SimulatedKey) -> Vec<(Arc<str>, &'static str)> {
        let of_owner = self.known.iter().filter(|(_, child)| {
            let label = owner_of(&child.object);
            label == Some(owner.uid)
        });
        let known = of_owner.map(|(name, child)| KnownChild {
            identity: Arc::clone(name),
            pruning: Pruning::Prune,
            applied: true,
            deleting: child.is_pruned || ObjectView::new(&child.object).is_being_deleted(),
            reachable: true,
        });
        let applied = self.owners.get(owner.uid).map(|it| &it.applied[..]);
        let names = abandoned(known, applied.unwrap_or_default()).into_iter();
        names
            .filter_map(|name| Some((Arc::clone(&name), self.known.get(&name)?.uid)))
            .collect()
    }

    /// The children that a list of this version does not have.
    pub(super) fn missing(
        &self,
        listed: &BTreeSet<&str>,
        list_version: &ResourceVersion,
    ) -> Vec<SimulatedKey> {
        let is_missing = |child: &SimulatedChild| {
            let version = version(&child.object);
            let is_older = version.is_some_and(|it| it.is_not_newer_than(list_version));
            is_older && !listed.contains(child.uid)
        };
        let known = self.known.values().filter(|child| is_missing(child));
        known
            .filter_map(|it| SimulatedKey::of(&it.object))
            .collect()
    }

    /// A deletion of ours begins, or has failed.
    pub(super) fn set_pruned(&mut self, name: &str, uid: &str, is_pruned: bool) {
        if let Some(child) = self.known.get_mut(name).filter(|it| it.uid == uid) {
            child.is_pruned = is_pruned;
        }
    }

    /// A child appears or changes; returns the owner that is to be called for it.
    pub(super) fn observe(
        &mut self,
        key: &SimulatedKey,
        object: &Arc<Value>,
    ) -> Option<Arc<SimulatedKey>> {
        if owner_of(object).is_none() {
            return self.remove(key);
        }
        let is_in_flight = self.in_flight.contains_key(&key.name);
        if planted!(ChildEventDropped) && is_in_flight {
            return None;
        }
        let mut child = SimulatedChild {
            uid: key.uid,
            object: Arc::clone(object),
            is_pruned: false,
            replaced: None,
            was_as_desired: false,
        };
        if let Some(known) = self.known.get(&key.name).filter(|it| it.uid == key.uid) {
            if let (Some(seen), Some(known)) = (version(object), version(&known.object))
                && seen.is_not_newer_than(&known)
            {
                return None;
            }
            child.is_pruned = known.is_pruned;
            child.was_as_desired = known.was_as_desired;
            let replaced = takebacks::replaced(
                digest(&known.object),
                known.replaced.as_deref(),
                digest(object),
            );
            child.replaced = replaced.map(Arc::from);
        }
        self.known.insert(Arc::clone(&key.name), child);
        if let Some(in_flight) = self.in_flight.get_mut(&key.name) {
            in_flight.observe(key.uid, version(object));
            return None;
        }
        self.owner(object)
    }

    /// A child is gone, or is not ours any more; returns the owner that is to be called for it.
    pub(super) fn remove(&mut self, key: &SimulatedKey) -> Option<Arc<SimulatedKey>> {
        if let Some(in_flight) = self.in_flight.get_mut(&key.name) {
            in_flight.remove(key.uid);
        }
        self.known
            .get(&key.name)
            .filter(|known| known.uid == key.uid)?;
        let child = self.known.remove(&key.name)?;
        match child.is_pruned {
            true => None,
            false => self.owner(&child.object),
        }
    }

    /// An application begins: the event that it causes does not call for the owner.
    pub(super) fn begin_apply(&mut self, name: &Arc<str>) {
        let in_flight = ChildInFlight::default();
        self.in_flight.insert(Arc::clone(name), in_flight);
    }

    /// A list is complete: children that are being applied, and that nothing has brought, may be
    /// gone before their answers come.
    pub(super) fn miss_in_flight(&mut self) {
        for (name, in_flight) in &mut self.in_flight {
            if !self.known.contains_key(name) {
                in_flight.miss();
            }
        }
    }

    /// An application has ended, with this state of the child unless it has failed; returns the
    /// owner if another client has changed the child since.
    pub(super) fn end_apply(
        &mut self,
        owner: &SimulatedKey,
        name: &Arc<str>,
        applied: Option<&Arc<Value>>,
    ) -> Option<Arc<SimulatedKey>> {
        let in_flight = self.in_flight.remove(name)?;
        let owner = || self.owners.get(owner.uid).map(|it| Arc::clone(&it.key));
        let Some((applied, key)) = applied.and_then(|it| Some((it, SimulatedKey::of(it)?))) else {
            return owner().filter(|_| in_flight.has_news());
        };
        if !in_flight.is_newest(key.uid, version(applied).as_ref()) {
            let digest_of_ours = digest(applied);
            let newer = self.known.get_mut(name);
            if let Some(newer) = newer.filter(|it| digest(&it.object) != digest_of_ours) {
                newer.replaced = digest_of_ours.map(Arc::from);
            }
            return owner();
        }
        let child = SimulatedChild {
            uid: key.uid,
            object: Arc::clone(applied),
            is_pruned: false,
            replaced: None,
            was_as_desired: true,
        };
        self.known.insert(Arc::clone(name), child);
        None
    }

    fn owner(&self, child: &Value) -> Option<Arc<SimulatedKey>> {
        let owner = self.owners.get(owner_of(child)?)?;
        Some(Arc::clone(&owner.key))
    }
}

// === impl SimulatedChild ===

impl SimulatedChild {
    /// Whether its application restores what another client has changed.
    pub(super) fn is_taken(&self, desired: &DesiredChild) -> bool {
        let replaced = self.replaced.as_deref();
        takebacks::is_takeback(&desired.digest, digest(&self.object), replaced)
    }
}

/// Whether an object that is not in the store is a child of an owner.
pub(super) fn is_own(object: &Value, owner: &SimulatedKey, desired: &DesiredChild) -> bool {
    let metadata = &object["metadata"];
    let references = metadata["ownerReferences"].as_array();
    let mut references = references.into_iter().flatten();
    owner_of(object) == Some(owner.uid)
        || references.any(|it| it["uid"] == owner.uid)
        || digest(object) == Some(&*desired.digest)
}

/// The digest in the annotation of a child.
pub(super) fn digest(child: &Value) -> Option<&str> {
    child["metadata"]["annotations"][APPLIED_ANNOTATION].as_str()
}

/// The uid of the owner of a child.
pub(crate) fn owner_of(child: &Value) -> Option<&str> {
    child["metadata"]["labels"][OWNER_LABEL].as_str()
}

/// Whether an object has everything that a body sets.
fn has_all(object: &Value, body: &Value) -> bool {
    match body {
        Value::Object(fields) => fields
            .iter()
            .all(|(name, field)| object.get(name).is_some_and(|it| has_all(it, field))),
        body => object == body,
    }
}

fn version(object: &Value) -> Option<ResourceVersion> {
    ObjectView::new(object)
        .resource_version()
        .map(ResourceVersion::new)
}
