//! The children that the watches have brought, by their owners.

pub(crate) mod child;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kopf_core::background::Moment;
use kopf_core::children::in_flight::ChildInFlight;
use kopf_core::children::options::Pruning;
use kopf_core::children::prune::KnownChild;
use kopf_core::children::reasons::{ReconcileReason, RelatedObject};
use kopf_core::children::takebacks::{self, Takebacks};
use kopf_core::object::resource_version::ResourceVersion;
use kopf_core::table;
use serde_json::Value;
use serde_json::value::RawValue;

use self::child::{ChildEnding, StoredChild, fields_digest};
use super::requeues::OwnerRequeue;
use super::used::UsedObjects;
use super::{ChildIdentity, WatchedKind};
use crate::watch::{KindIndex, ObjectKey, WatchEvent, WatchEventType};

/// Events of children that wait for their handlers, for one owner; beyond that, older ones go.
const MAX_NEWS: usize = 256;

/// All known children.
#[derive(Default)]
pub(super) struct ChildStore {
    /// By the uid of the owner.
    owners: HashMap<Box<str>, OwnerEntry>,
    /// The uid of the owner by that of the child.
    owner_of: HashMap<Box<str>, Box<str>>,
    used: UsedObjects,
    /// The kinds with the namespaces in which they are watched; none is the whole cluster.
    watched: BTreeSet<(KindIndex, Option<Box<str>>)>,
}

#[derive(Default)]
struct OwnerEntry {
    /// None until an event of the owner itself has come.
    key: Option<Arc<ObjectKey>>,
    /// Whether the owner was handled. Before that it waits for that with its own event, and what
    /// happens to its children is no reason to handle it once more.
    handling_begun: bool,
    latest: Option<(Arc<RawValue>, Option<ResourceVersion>)>,
    children: BTreeMap<ChildIdentity, StoredChild>,
    /// Children that are being applied.
    in_flight: BTreeMap<ChildIdentity, ChildInFlight>,
    takebacks: BTreeMap<ChildIdentity, Takebacks>,
    conflicts: BTreeMap<ChildIdentity, ConflictNote>,
    /// The kinds of children with handlers; none until an event of the owner itself has come.
    handled: Arc<[KindIndex]>,
    news: VecDeque<ChildEvent>,
}

/// An application that other clients oppose; it is not repeated before something changes.
#[derive(Clone)]
pub(super) struct ConflictNote {
    pub(super) digest: String,
    pub(super) version: Option<ResourceVersion>,
    pub(super) message: String,
}

/// What happened to a child.
#[derive(Debug, Clone)]
pub(crate) struct ChildEvent {
    pub(crate) uid: Box<str>,
    pub(crate) text: Arc<str>,
    pub(crate) deleted: bool,
}

// === impl ChildStore ===

impl ChildStore {
    /// Notes a watch event of a child; returns the owners to be handled.
    pub(super) fn observe_child(
        &mut self,
        kind: &WatchedKind,
        key: &ObjectKey,
        watch_event: &WatchEvent,
        manager: &str,
    ) -> Vec<OwnerRequeue> {
        let identity = ChildIdentity {
            kind: kind.index,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        };
        if watch_event.event_type == WatchEventType::Deleted {
            return self
                .remove_child(kind, &identity, &key.uid)
                .into_iter()
                .collect();
        }
        if self.is_echo(kind, key, &identity, watch_event) {
            return Vec::new();
        }
        let read = StoredChild::read(kind, watch_event.text.get(), manager);
        let Some((child, owner)) = read else {
            return Vec::new();
        };
        let mut requeues = Vec::new();
        if let Some(former) = self.owner_of.get(&key.uid)
            && Some(&**former) != owner.as_deref()
        {
            requeues.extend(self.remove_child(kind, &identity, &key.uid));
        }
        if let Some(owner) = owner {
            requeues.extend(self.put_child(kind, owner, &identity, child));
        }
        requeues
    }

    /// Whether an event brings what the answer to our application has brought already, which no
    /// handler of children wants to know: most events do, and need not be parsed.
    fn is_echo(
        &mut self,
        kind: &WatchedKind,
        key: &ObjectKey,
        identity: &ChildIdentity,
        watch_event: &WatchEvent,
    ) -> bool {
        let owner = self.owner_of.get(&key.uid);
        let entry = owner.and_then(|owner| self.owners.get_mut(owner));
        let Some(entry) = entry.filter(|it| !it.handled.contains(&kind.index)) else {
            return false;
        };
        let Some(known) = entry.children.get_mut(identity) else {
            return false;
        };
        let is_known = match (&watch_event.version, &known.version) {
            (Some(seen), Some(version)) => seen.is_not_newer_than(version),
            _ => false,
        };
        let is_echo = is_known && known.uid == key.uid && known.labelled;
        known.watched |= is_echo;
        is_echo
    }

    fn put_child(
        &mut self,
        kind: &WatchedKind,
        owner: Box<str>,
        identity: &ChildIdentity,
        mut child: StoredChild,
    ) -> Option<OwnerRequeue> {
        let uid = child.uid.clone();
        let entry = self.owners.entry(owner.clone()).or_default();
        let keeps_news = entry.handled.contains(&kind.index);
        if let Some(known) = entry.children.get_mut(identity)
            && known.uid == uid
        {
            known.watched = true;
            let known_version = known.version.as_ref().filter(|_| known.labelled);
            if let (Some(seen), Some(known_version)) = (&child.version, known_version)
                && seen.is_not_newer_than(known_version)
            {
                // The event of our own application: only handlers of children want to know.
                let is_news = keeps_news && !known.announced && seen == known_version;
                known.announced |= is_news;
                if !is_news {
                    return None;
                }
                entry.push_news(&child, false);
                return Some((Arc::clone(entry.begun_key()?), None));
            }
            let (digest, replaced) = (known.applied.as_deref(), known.replaced.as_deref());
            let replaced = takebacks::replaced(digest, replaced, child.applied.as_deref());
            child.replaced = replaced.map(Box::from);
            child.fields_after_apply = known.fields_after_apply;
            child.ending = known.ending;
        }
        if keeps_news {
            entry.push_news(&child, false);
        }
        let version = child.version.clone();
        entry.children.insert(identity.clone(), child);
        let in_flight = entry.in_flight.get_mut(identity);
        let is_in_flight = in_flight.is_some();
        if let Some(in_flight) = in_flight {
            in_flight.observe(&uid, version);
        }
        self.owner_of.insert(uid, owner);
        if is_in_flight {
            return None;
        }
        entry.requeue(kind, identity)
    }

    fn remove_child(
        &mut self,
        kind: &WatchedKind,
        identity: &ChildIdentity,
        uid: &str,
    ) -> Option<OwnerRequeue> {
        let owner = table::remove(&mut self.owner_of, uid)?;
        let entry = self.owners.get_mut(&owner)?;
        if let Some(in_flight) = entry.in_flight.get_mut(identity) {
            in_flight.remove(uid);
        }
        let known = entry.children.get(identity).filter(|it| *it.uid == *uid)?;
        let ending = known.ending;
        let known = known.clone();
        entry.children.remove(identity);
        let keeps_news = entry.handled.contains(&kind.index);
        if keeps_news {
            entry.push_news(&known, true);
        }
        let requeue = entry.requeue(kind, identity);
        if entry.is_unused() {
            table::remove(&mut self.owners, &owner);
        }
        match requeue {
            Some((key, _)) if ending == Some(ChildEnding::Pruned) => {
                keeps_news.then_some((key, None))
            }
            requeue => requeue,
        }
    }

    /// Forgets the children of a kind that a complete list has not brought: other clients may have
    /// deleted them before the watch knew them. Returns the owners to be handled.
    #[expect(
        clippy::iter_over_hash_type,
        reason = "the queue takes owners in any order"
    )]
    pub(super) fn drop_unlisted(
        &mut self,
        kind: &WatchedKind,
        namespace: Option<&str>,
    ) -> Vec<OwnerRequeue> {
        let mut requeues = Vec::new();
        let is_of_list = |identity: &ChildIdentity| {
            identity.kind == kind.index
                && (namespace.is_none() || identity.namespace.as_deref() == namespace)
        };
        for entry in self.owners.values_mut() {
            for (identity, in_flight) in &mut entry.in_flight {
                let known = entry.children.get(identity);
                if is_of_list(identity) && !known.is_some_and(|it| it.watched) {
                    in_flight.miss();
                }
            }
            let unlisted = entry.children.iter().filter(|(identity, child)| {
                is_of_list(identity) && !child.watched && !entry.in_flight.contains_key(*identity)
            });
            let unlisted: Vec<ChildIdentity> = unlisted.map(|(it, _)| it.clone()).collect();
            for identity in unlisted {
                if let Some(child) = entry.children.remove(&identity) {
                    self.owner_of.remove(&child.uid);
                }
                requeues.extend(entry.requeue(kind, &identity));
            }
        }
        requeues
    }

    /// Notes children that have no label of ours, found by their owner references.
    pub(super) fn add_adopted(&mut self, owner: &str, found: Vec<(ChildIdentity, StoredChild)>) {
        let entry = self.owners.entry(owner.into()).or_default();
        for (identity, child) in found {
            entry.children.entry(identity).or_insert_with(|| {
                self.owner_of.insert(child.uid.clone(), owner.into());
                child
            });
        }
    }

    /// Begins an application: the event that it causes does not call for the owner.
    pub(super) fn begin_apply(&mut self, owner: &str, identity: &ChildIdentity) {
        let entry = self.owners.entry(owner.into()).or_default();
        let in_flight = ChildInFlight::default();
        entry.in_flight.insert(identity.clone(), in_flight);
    }

    /// Ends an application, with the child as the API server has it then.
    pub(super) fn end_apply(
        &mut self,
        owner: &str,
        kind: &WatchedKind,
        identity: &ChildIdentity,
        applied: Option<(StoredChild, &str)>,
    ) -> Option<OwnerRequeue> {
        let entry = self.owners.get_mut(owner)?;
        let in_flight = entry.in_flight.remove(identity)?;
        let Some((mut child, digest)) = applied else {
            return entry
                .requeue(kind, identity)
                .filter(|_| in_flight.has_news());
        };
        entry.conflicts.remove(identity);
        if !in_flight.is_newest(&child.uid, child.version.as_ref()) {
            let newer = entry.children.get_mut(identity);
            if let Some(newer) = newer.filter(|it| it.applied.as_deref() != Some(digest)) {
                newer.replaced = Some(digest.into());
            }
            return entry.requeue(kind, identity);
        }
        let seen = in_flight.newest_version();
        child.fields_after_apply = child.fields.as_ref().map(|fields| fields_digest(fields));
        child.fields = None;
        child.in_sync = Some(digest.into());
        // The event may have come before the answer; its handlers want to know of it.
        child.announced = seen.is_some() && seen == child.version.as_ref();
        let former = entry.children.get(identity);
        let was_watched = former.is_some_and(|it| it.uid == child.uid && it.watched);
        child.watched = was_watched || seen.is_some();
        if let Some(former) = former.filter(|it| it.uid != child.uid) {
            self.owner_of.remove(&former.uid);
        }
        self.owner_of.insert(child.uid.clone(), owner.into());
        entry.children.insert(identity.clone(), child);
        let has_news = !entry.news.is_empty();
        let key = entry.begun_key().filter(|_| has_news)?;
        Some((Arc::clone(key), None))
    }

    /// A child of an owner.
    pub(super) fn child(&self, owner: &str, identity: &ChildIdentity) -> Option<&StoredChild> {
        self.owners.get(owner)?.children.get(identity)
    }

    /// Whether a child is as it should be; then its fields need not be kept.
    pub(super) fn is_in_sync(
        &mut self,
        owner: &str,
        identity: &ChildIdentity,
        digest: &str,
        body: &Value,
    ) -> bool {
        let entry = self.owners.get_mut(owner);
        let Some(child) = entry.and_then(|entry| entry.children.get_mut(identity)) else {
            return false;
        };
        if child.ending.is_some() {
            // It is wanted again: it is made anew once the watch says that it is gone.
            child.ending = Some(ChildEnding::Awaited);
            return false;
        }
        if child.in_sync.as_deref() == Some(digest) {
            return true;
        }
        let Some(fields) = child.fields.as_ref().filter(|_| child.labelled) else {
            return false;
        };
        if child.applied.as_deref() != Some(digest) {
            return false;
        }
        let unchanged = child.fields_after_apply == Some(fields_digest(fields));
        if !unchanged && !fields.covers(body) {
            return false;
        }
        child.fields_after_apply = Some(fields_digest(fields));
        child.fields = None;
        child.in_sync = Some(digest.into());
        child.replaced = None;
        true
    }

    /// The children of an owner, for the decision about deletions.
    pub(super) fn known_children(
        &self,
        owner: &ObjectKey,
        pruning: impl Fn(KindIndex) -> Pruning,
    ) -> Vec<KnownChild<(ChildIdentity, Box<str>)>> {
        let entry = self.owners.get(&owner.uid);
        let children = entry.into_iter().flat_map(|entry| &entry.children);
        let known = children.map(|(identity, child)| KnownChild {
            identity: (identity.clone(), child.uid.clone()),
            pruning: pruning(identity.kind),
            applied: child.labelled,
            deleting: child.is_ending(),
            // Not whether it has an owner reference, which other clients can remove.
            reachable: owner.namespace.is_none() || owner.namespace == identity.namespace,
        });
        known.collect()
    }

    /// Whether an owner has a child of a kind that `reconcile` has applied.
    pub(super) fn has_applied(&self, owner: &str, kind: KindIndex) -> bool {
        let entry = self.owners.get(owner);
        let mut children = entry.into_iter().flat_map(|entry| &entry.children);
        children.any(|(identity, child)| identity.kind == kind && child.shows_application())
    }

    /// Whether this process has applied a child, or found it as it should be.
    pub(super) fn was_as_desired(&self, owner: &str, identity: &ChildIdentity) -> bool {
        let child = self.child(owner, identity);
        child.is_some_and(StoredChild::was_as_desired)
    }

    /// Whether a child of an owner is one that `reconcile` has applied.
    pub(super) fn is_applied(&self, owner: &str, identity: &ChildIdentity) -> bool {
        let child = self.child(owner, identity);
        child.is_some_and(StoredChild::shows_application)
    }

    /// The JSON of the children of one kind.
    pub(super) fn texts(&self, owner: &str, kind: KindIndex) -> Vec<Arc<str>> {
        let entry = self.owners.get(owner);
        let children = entry.into_iter().flat_map(|entry| &entry.children);
        let children = children.filter(|(identity, _)| identity.kind == kind);
        children.map(|(_, child)| Arc::clone(&child.text)).collect()
    }

    /// Notes that the objects of a kind are watched in a namespace, or everywhere.
    pub(super) fn set_watched(&mut self, kind: KindIndex, namespace: Option<&str>, watched: bool) {
        let key = (kind, namespace.map(Box::from));
        if watched {
            self.watched.insert(key);
        } else {
            self.watched.remove(&key);
        }
    }

    pub(super) fn is_watched(&self, kind: KindIndex, namespace: Option<&str>) -> bool {
        let everywhere = self.watched.contains(&(kind, None));
        everywhere || self.watched.contains(&(kind, namespace.map(Box::from)))
    }

    /// Notes that our deletion of a child has failed.
    pub(super) fn forget_ending(&mut self, owner: &str, identity: &ChildIdentity, uid: &str) {
        let entry = self.owners.get_mut(owner);
        let child = entry.and_then(|entry| entry.children.get_mut(identity));
        if let Some(child) = child.filter(|child| *child.uid == *uid) {
            child.ending = None;
        }
    }

    /// Notes our own deletion of a child.
    pub(super) fn note_ending(
        &mut self,
        owner: &str,
        identity: &ChildIdentity,
        uid: &str,
        ending: ChildEnding,
    ) {
        let entry = self.owners.get_mut(owner);
        let child = entry.and_then(|entry| entry.children.get_mut(identity));
        if let Some(child) = child.filter(|child| *child.uid == *uid) {
            child.ending = Some(ending);
        }
    }

    /// Removes a child that the API server does not have.
    pub(super) fn drop_child(&mut self, owner: &str, identity: &ChildIdentity, uid: &str) {
        let Some(entry) = self.owners.get_mut(owner) else {
            return;
        };
        if entry
            .children
            .get(identity)
            .is_some_and(|it| *it.uid == *uid)
        {
            entry.children.remove(identity);
            self.owner_of.remove(uid);
        }
    }

    /// Takes a child back from another client; fails with the time until that is possible.
    pub(super) fn take_back(
        &mut self,
        owner: &str,
        identity: &ChildIdentity,
        now: Moment,
    ) -> Result<(), Duration> {
        let entry = self.owners.entry(owner.into()).or_default();
        entry.takebacks.retain(|_, it| !it.is_over(now));
        let takebacks = entry.takebacks.entry(identity.clone()).or_default();
        takebacks.take_back(now)
    }

    pub(super) fn conflict(&self, owner: &str, identity: &ChildIdentity) -> Option<&ConflictNote> {
        self.owners.get(owner)?.conflicts.get(identity)
    }

    pub(super) fn note_conflict(
        &mut self,
        owner: &str,
        identity: &ChildIdentity,
        note: ConflictNote,
    ) {
        let entry = self.owners.entry(owner.into()).or_default();
        entry.conflicts.insert(identity.clone(), note);
    }

    pub(super) fn update_owner(
        &mut self,
        key: &Arc<ObjectKey>,
        handled: &Arc<[KindIndex]>,
        text: &Arc<RawValue>,
        version: Option<ResourceVersion>,
    ) {
        let entry = self.owners.entry(key.uid.clone()).or_default();
        if let (Some((_, Some(known))), Some(version)) = (&entry.latest, &version)
            && version.is_not_newer_than(known)
        {
            return;
        }
        entry.note_key(key, handled);
        entry.latest = Some((Arc::clone(text), version));
    }

    /// Notes that the handling of an owner begins.
    pub(super) fn begin_handling(&mut self, uid: &str) {
        if let Some(entry) = self.owners.get_mut(uid) {
            entry.handling_begun = true;
        }
    }

    pub(super) fn replace_owner(
        &mut self,
        key: &Arc<ObjectKey>,
        handled: &Arc<[KindIndex]>,
        text: &Arc<RawValue>,
    ) {
        let entry = self.owners.entry(key.uid.clone()).or_default();
        entry.note_key(key, handled);
        entry.latest = Some((Arc::clone(text), None));
    }

    pub(super) fn latest_owner(&self, uid: &str) -> Option<Arc<RawValue>> {
        let (text, _) = self.owners.get(uid)?.latest.as_ref()?;
        Some(Arc::clone(text))
    }

    pub(super) fn forget_owner(&mut self, uid: &str) {
        self.used.set(uid, Vec::new());
        let Some(entry) = self.owners.get_mut(uid) else {
            return;
        };
        *entry = OwnerEntry {
            children: std::mem::take(&mut entry.children),
            ..OwnerEntry::default()
        };
        if entry.is_unused() {
            table::remove(&mut self.owners, uid);
        }
    }

    pub(super) fn take_news(&mut self, uid: &str) -> Vec<ChildEvent> {
        let entry = self.owners.get_mut(uid);
        entry.map_or_else(Vec::new, |entry| entry.news.drain(..).collect())
    }

    pub(super) fn set_uses(&mut self, uid: &str, names: Vec<ChildIdentity>) {
        self.used.set(uid, names);
    }

    /// Notes a watch event of an object that may be referred to; returns the owners to be handled.
    pub(super) fn observe_used(
        &mut self,
        kind: &WatchedKind,
        key: &ObjectKey,
        watch_event: &WatchEvent,
    ) -> Vec<OwnerRequeue> {
        let identity = ChildIdentity {
            kind: kind.index,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        };
        let users = self.used.observe(&identity, watch_event);
        let reason = ReconcileReason::UsedChanged(related(kind, &identity));
        let keys = users.filter_map(|uid| self.owners.get(&*uid)?.key.clone());
        keys.map(|key| (key, Some(reason.clone()))).collect()
    }
}

// === impl OwnerEntry ===

impl OwnerEntry {
    fn requeue(&self, kind: &WatchedKind, identity: &ChildIdentity) -> Option<OwnerRequeue> {
        let reason = ReconcileReason::ChildChanged(related(kind, identity));
        Some((Arc::clone(self.begun_key()?), Some(reason)))
    }

    /// The owner, if it was handled.
    fn begun_key(&self) -> Option<&Arc<ObjectKey>> {
        self.key.as_ref().filter(|_| self.handling_begun)
    }

    /// Notes that the owner will be handled. Children that were there before are news then.
    fn note_key(&mut self, key: &Arc<ObjectKey>, handled: &Arc<[KindIndex]>) {
        if self.key.as_ref() == Some(key) {
            return;
        }
        self.key = Some(Arc::clone(key));
        self.handled = Arc::clone(handled);
        let known = self.children.iter();
        let known = known.filter(|(identity, _)| handled.contains(&identity.kind));
        let known = known.map(|(_, child)| ChildEvent::of(child, false));
        self.news = known.take(MAX_NEWS).collect();
    }

    fn push_news(&mut self, child: &StoredChild, deleted: bool) {
        if self.news.len() >= MAX_NEWS {
            self.news.pop_front();
        }
        self.news.push_back(ChildEvent::of(child, deleted));
    }

    fn is_unused(&self) -> bool {
        self.key.is_none() && self.children.is_empty() && self.in_flight.is_empty()
    }
}

// === impl ChildEvent ===

impl ChildEvent {
    fn of(child: &StoredChild, deleted: bool) -> Self {
        Self {
            uid: child.uid.clone(),
            text: Arc::clone(&child.text),
            deleted,
        }
    }
}

fn related(kind: &WatchedKind, identity: &ChildIdentity) -> RelatedObject {
    RelatedObject {
        kind: kind.spec.kind.to_string(),
        namespace: identity.namespace.as_deref().map(str::to_owned),
        name: identity.name.to_string(),
    }
}

#[cfg(test)]
mod tests;
