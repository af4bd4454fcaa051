//! Deletes children: those that are not applied any more, and those of owners that are deleted
//! where Kubernetes itself does not reach them.

use std::time::Duration;

use kopf_core::children::options::Pruning;
use kopf_core::children::prune::{self, AfterDeletion, KnownChild};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use tracing::{info, warn};

use super::store::child::ChildEnding;
use super::{ChildIdentity, Children, OwnedKind};
use crate::watch::ObjectKey;

/// Why a child is not deleted for a while.
const MADE_AGAIN: &str = "other clients make it again and again";

/// What has become of a child that was to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deletion {
    /// The watch will say when it is gone.
    Begun,
    /// It was gone before, and is not known any more.
    AlreadyGone,
}

impl Children {
    /// Deletes the children of an owner that a complete call did not apply.
    ///
    /// # Errors
    /// The first failure; the others are deleted all the same.
    pub(super) async fn prune(
        &self,
        owner: &ObjectKey,
        kinds: &[OwnedKind],
        applied: &[ChildIdentity],
    ) -> Result<(), String> {
        let known = self.known_children(owner, kinds);
        let known: Vec<_> = known
            .into_iter()
            .filter(|child| !applied.contains(&child.identity.0))
            .collect();
        let mut result = Ok(());
        for (identity, uid) in prune::abandoned(known, &[]) {
            let is_own = self.store().was_as_desired(&owner.uid, &identity);
            if !is_own && self.take_back(owner, &identity).is_err() {
                let child = self.describe(&identity);
                result =
                    result.and_then(|()| Err(format!("the {child} is not deleted: {MADE_AGAIN}")));
                continue;
            }
            let pruned = self.delete(owner, &identity, &uid, ChildEnding::Pruned);
            match pruned.await {
                Ok(_) => info!(
                    "the {} is not applied any more: deleted",
                    self.describe(&identity)
                ),
                Err(error) if result.is_ok() => {
                    let child = self.describe(&identity);
                    result = Err(format!("the {child} cannot be deleted: {error}"));
                }
                Err(_) => {}
            }
        }
        result
    }

    /// Takes a child back from other clients; fails with the time until that is possible.
    pub(super) fn take_back(
        &self,
        owner: &ObjectKey,
        identity: &ChildIdentity,
    ) -> Result<(), Duration> {
        let now = self.origin.elapsed();
        self.store().take_back(&owner.uid, identity, now)
    }

    /// Whether children hold an owner: those that Kubernetes does not delete together with it.
    pub(crate) fn hold(&self, owner: &ObjectKey, kinds: &[OwnedKind]) -> bool {
        let known = self.known_children(owner, kinds);
        prune::out_of_reach(known).next().is_some()
    }

    /// The children of an owner, with what becomes of those that are not wanted any more.
    fn known_children(
        &self,
        owner: &ObjectKey,
        kinds: &[OwnedKind],
    ) -> Vec<KnownChild<(ChildIdentity, Box<str>)>> {
        self.store().known_children(owner, |index| {
            let kind = kinds.iter().find(|kind| kind.index == index);
            kind.map_or(Pruning::Keep, |kind| kind.options.pruning)
        })
    }

    /// Deletes the children that hold an owner which is being deleted; returns whether one is left,
    /// and whether a request has failed.
    pub(crate) async fn release(&self, owner: &ObjectKey, kinds: &[OwnedKind]) -> (bool, bool) {
        let known = self.known_children(owner, kinds);
        let held: Vec<_> = prune::out_of_reach(known).collect();
        let mut has_failed = false;
        for child in held.into_iter().filter(|child| !child.deleting) {
            let (identity, uid) = child.identity;
            let deleted = self.delete(owner, &identity, &uid, ChildEnding::Awaited);
            if let Err(error) = deleted.await {
                warn!(
                    "the {} cannot be deleted: {error}",
                    self.describe(&identity)
                );
                has_failed = true;
            }
        }
        (self.hold(owner, kinds), has_failed)
    }

    /// Deletes the child with this uid, and no other object of that name.
    pub(super) async fn delete(
        &self,
        owner: &ObjectKey,
        identity: &ChildIdentity,
        uid: &str,
        ending: ChildEnding,
    ) -> Result<Deletion, kube::Error> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            }),
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        // The event of the deletion may come before its answer.
        self.store().note_ending(&owner.uid, identity, uid, ending);
        let api = self.api(identity.kind, identity.namespace.as_deref());
        let Err(error) = api.delete(&identity.name, &params).await else {
            return Ok(Deletion::Begun);
        };
        let mut meaning = match &error {
            kube::Error::Api(status) => prune::after_refusal(status.code),
            _ => AfterDeletion::Failed,
        };
        if meaning == AfterDeletion::Unclear {
            meaning = match api.get_metadata_opt(&identity.name).await {
                Ok(found) => prune::after_read(found.and_then(|it| it.uid()).as_deref(), uid),
                Err(_) => AfterDeletion::Failed,
            };
        }
        if meaning == AfterDeletion::Gone {
            self.store().drop_child(&owner.uid, identity, uid);
            return Ok(Deletion::AlreadyGone);
        }
        self.store().forget_ending(&owner.uid, identity, uid);
        Err(error)
    }

    pub(super) fn describe(&self, identity: &ChildIdentity) -> String {
        let kind = &self.kind(identity.kind).spec.kind;
        match &identity.namespace {
            Some(namespace) => format!("{kind} {namespace}/{}", identity.name),
            None => format!("{kind} {}", identity.name),
        }
    }
}
