//! Which children are deleted: those that a complete call did not apply, and those of an owner
//! that is deleted where Kubernetes itself does not reach them.

use crate::children::options::Pruning;

/// A child as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownChild<I> {
    /// Its identity.
    pub identity: I,
    /// What becomes of children of its kind.
    pub pruning: Pruning,
    /// Whether `reconcile` has applied it: it has our labels.
    pub applied: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it has an owner reference to its owner.
    pub reachable: bool,
}

/// The children that a complete, successful call did not apply.
pub fn abandoned<I: PartialEq>(
    known: impl IntoIterator<Item = KnownChild<I>>,
    applied: &[I],
) -> Vec<I> {
    let known = known.into_iter();
    let abandoned = known.filter(|child| {
        child.applied
            && child.pruning == Pruning::Prune
            && !child.deleting
            && !applied.contains(&child.identity)
    });
    abandoned.map(|child| child.identity).collect()
}

/// The children that Kubernetes does not delete together with their owner, and that the operator
/// has to delete. Those that are never pruned stay, as an operator may lack the right to delete
/// them.
///
/// Those that are being deleted already hold the owner, too, and are not deleted again.
pub fn out_of_reach<I>(
    known: impl IntoIterator<Item = KnownChild<I>>,
) -> impl Iterator<Item = KnownChild<I>> {
    let known = known.into_iter();
    known.filter(|child| child.applied && !child.reachable && child.pruning == Pruning::Prune)
}

/// The meaning of the answer to the deletion of a child by its uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDeletion {
    /// The child is gone.
    Gone,
    /// Another object has its name, or the API server gave up against faster writers, or a webhook
    /// objects: only a read tells.
    Unclear,
    /// The child is there as before, as far as is known.
    Failed,
}

/// The meaning of a status with which the API server refuses to delete a child.
#[must_use]
pub fn after_refusal(code: u16) -> AfterDeletion {
    match code {
        404 => AfterDeletion::Gone,
        409 => AfterDeletion::Unclear,
        _ => AfterDeletion::Failed,
    }
}

/// The meaning of a read after an unclear answer, which found the object with this uid, or none.
#[must_use]
pub fn after_read(found: Option<&str>, uid: &str) -> AfterDeletion {
    match found {
        Some(found) if found == uid => AfterDeletion::Failed,
        _ => AfterDeletion::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(identity: &str) -> KnownChild<&str> {
        KnownChild {
            identity,
            pruning: Pruning::Prune,
            applied: true,
            deleting: false,
            reachable: true,
        }
    }

    #[test]
    fn only_what_reconcile_applied_before_and_not_now_is_deleted() {
        let known = || {
            [
                child("kept"),
                child("old"),
                KnownChild {
                    pruning: Pruning::Keep,
                    ..child("not-pruned")
                },
                KnownChild {
                    applied: false,
                    ..child("adopted-by-python")
                },
                KnownChild {
                    deleting: true,
                    ..child("going")
                },
            ]
        };
        assert_eq!(abandoned(known(), &["kept", "new"]), ["old"]);
        assert_eq!(abandoned(known(), &["kept", "old"]), [""; 0]);
    }

    #[test]
    fn children_without_an_owner_reference_hold_their_owner() {
        let far = KnownChild {
            reachable: false,
            ..child("far")
        };
        let theirs = KnownChild {
            applied: false,
            ..far.clone()
        };
        let staying = KnownChild {
            pruning: Pruning::Keep,
            ..far.clone()
        };
        let held: Vec<_> = out_of_reach([child("near"), far, theirs, staying]).collect();
        assert_eq!(held.len(), 1);
        assert_eq!(held[0].identity, "far");
    }

    #[test]
    fn a_conflict_does_not_say_that_the_child_is_gone() {
        assert_eq!(after_refusal(404), AfterDeletion::Gone);
        assert_eq!(after_refusal(500), AfterDeletion::Failed);
        assert_eq!(after_refusal(409), AfterDeletion::Unclear);
        assert_eq!(after_read(Some("u"), "u"), AfterDeletion::Failed);
        assert_eq!(after_read(Some("another"), "u"), AfterDeletion::Gone);
        assert_eq!(after_read(None, "u"), AfterDeletion::Gone);
    }
}
