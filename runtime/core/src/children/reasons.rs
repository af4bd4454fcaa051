//! Why `reconcile` is called.

/// The longest list of reasons; beyond it, only their number is known.
const MAX_REASONS: usize = 32;

/// One reason for which `reconcile` is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconcileReason {
    /// The object is new: it has neither a record of a call nor a child.
    Created,
    /// The object changed.
    Changed,
    /// The operator found the object, at its start or after a pause.
    Listed,
    /// Another client changed or deleted a child.
    ChildChanged(RelatedObject),
    /// An object that this one refers to changed, appeared or went.
    UsedChanged(RelatedObject),
    /// The interval is over.
    Interval,
    /// The last call asked for this one.
    Asked,
    /// The last call failed.
    Failed,
}

/// A child, or an object that is referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedObject {
    /// Its kind.
    pub kind: String,
    /// Its namespace; none for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// What happened since the last call of `reconcile`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReconcileReasons {
    reasons: Vec<ReconcileReason>,
    left_out: usize,
}

// === impl ReconcileReasons ===

impl ReconcileReasons {
    /// The reasons, each once, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = &ReconcileReason> {
        self.reasons.iter()
    }

    /// Whether there is this reason.
    #[must_use]
    pub fn contains(&self, reason: &ReconcileReason) -> bool {
        self.reasons.contains(reason)
    }

    /// Whether nothing happened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// The number of reasons that are not in the list, as there are too many.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The children that other clients changed or deleted.
    pub fn children(&self) -> impl Iterator<Item = &RelatedObject> {
        self.reasons.iter().filter_map(|reason| match reason {
            ReconcileReason::ChildChanged(child) => Some(child),
            _ => None,
        })
    }

    /// The same reasons for an object of which a child shows that it is not new.
    #[must_use]
    pub fn not_new(mut self) -> Self {
        for reason in &mut self.reasons {
            if *reason == ReconcileReason::Created {
                *reason = ReconcileReason::Listed;
            }
        }
        self
    }

    /// Adds a reason.
    pub fn add(&mut self, reason: ReconcileReason) {
        if self.reasons.contains(&reason) {
            return;
        }
        if self.reasons.len() < MAX_REASONS {
            self.reasons.push(reason);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    /// Adds all reasons of another list.
    pub fn absorb(&mut self, other: Self) {
        self.left_out = self.left_out.saturating_add(other.left_out);
        for reason in other.reasons {
            self.add(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(name: &str) -> ReconcileReason {
        ReconcileReason::ChildChanged(RelatedObject {
            kind: "ConfigMap".to_owned(),
            namespace: None,
            name: name.to_owned(),
        })
    }

    #[test]
    fn an_object_with_a_child_is_not_new() {
        let mut reasons = ReconcileReasons::default();
        reasons.add(ReconcileReason::Created);
        reasons.add(ReconcileReason::Changed);
        let reasons: Vec<_> = reasons.not_new().iter().cloned().collect();
        assert_eq!(reasons, [ReconcileReason::Listed, ReconcileReason::Changed]);
    }

    #[test]
    fn each_reason_is_named_once_and_the_list_is_bounded() {
        let mut reasons = ReconcileReasons::default();
        assert!(reasons.is_empty());
        reasons.add(ReconcileReason::Changed);
        reasons.add(ReconcileReason::Changed);
        assert_eq!(reasons.iter().count(), 1);
        let mut more = ReconcileReasons::default();
        (0..MAX_REASONS).for_each(|at| more.add(child(&at.to_string())));
        reasons.absorb(more);
        assert_eq!(reasons.iter().count(), MAX_REASONS);
        assert_eq!(reasons.left_out(), 1);
        assert_eq!(reasons.children().count(), MAX_REASONS - 1);
        assert!(reasons.contains(&child("0")));
    }
}
