//! The checker: compares the journal with what really happened.
//!
//! All rules are functions of the evidence, without clock and cluster.

mod background;
pub(crate) mod call_counts;
mod calls;
mod children;
mod lost;
mod orphans;
mod overlap;
mod repeated;
#[cfg(test)]
mod samples;
mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use calls::Calls;

use crate::footprint::Footprint;
use crate::journal::JournalContent;
use crate::operators::OperatorLife;
use crate::tested_operator::TestedOperator;
use crate::watch_log::{ChildVersion, ObjectVersion, WatchLogContent};

/// Everything that the rules look at.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) journal: JournalContent,
    pub(crate) watch: WatchLogContent<ObjectVersion>,
    pub(crate) child_watch: WatchLogContent<ChildVersion>,
    pub(crate) lives: Vec<OperatorLife>,
    /// The widgets at rest, by namespace and name.
    pub(crate) widgets: BTreeMap<String, ObjectVersion>,
    /// The gates at rest, by namespace and name.
    pub(crate) gates: BTreeMap<String, ObjectVersion>,
    /// The children at rest, by uid.
    pub(crate) children: BTreeMap<String, ChildVersion>,
    /// The children that users deleted, by uid.
    pub(crate) deleted_children: BTreeSet<String>,
    /// The namespaces that were deleted with all children.
    pub(crate) deleted_namespaces: BTreeSet<String>,
    /// The objects and children that were written at rest, by name.
    pub(crate) written_at_rest: BTreeSet<String>,
    /// The objects on which others changed the facts of the operator.
    pub(crate) tampered: BTreeSet<String>,
    /// The objects whose writes the API server rejects.
    pub(crate) rejected: BTreeSet<String>,
    /// The time at which everything was settled.
    pub(crate) quiet_from: u64,
    /// The end of the rest, when the objects were read.
    pub(crate) rest: u64,
    /// The processes at rest, the one with the webhooks first.
    pub(crate) pids: Vec<i32>,
    /// The operator that was tested.
    pub(crate) tested: TestedOperator,
    /// The requests of the operator, also those that got no answer.
    pub(crate) requests: usize,
    /// Whether there is a leader election among them.
    pub(crate) elected: bool,
    /// What the first process used at rest before the trouble, and the last one after it.
    pub(crate) footprints: Option<(Footprint, Footprint)>,
    /// What was left after the operator had stopped.
    pub(crate) left_behind: Vec<String>,
    /// Gates that were stored although the webhooks deny them.
    pub(crate) admitted: u64,
}

/// A claim that the checker holds the operator to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// Every matching handler has ended on the final state.
    NothingLost,
    /// No handler is called again for a state on which its end was recorded.
    NothingRepeated,
    /// No two calls for one object at once.
    NoOverlap,
    /// A daemon and a timer for each object, and for no other.
    Background,
    /// The index has the objects, all of them and no others.
    IndexComplete,
    /// The children are those of the final state, and none was deleted without a reason.
    Children,
    /// Nothing is written when there is nothing to do.
    NoWriteAtRest,
    /// Nothing of the operator is left where it does not belong.
    NoOrphans,
    /// The operator uses what it used before.
    Footprint,
    /// No object passes a webhook that denies it.
    Admission,
    /// The operator never panics.
    NoPanic,
}

/// A claim that does not hold, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrokenClaim {
    pub(crate) claim: Claim,
    pub(crate) text: String,
}

/// Holds the evidence against all claims.
pub(crate) fn check(evidence: &Evidence) -> Vec<BrokenClaim> {
    let calls = Calls::of(evidence);
    let mut broken = Vec::new();
    broken.extend(lost::check(evidence, &calls));
    if Claim::NothingRepeated.is_checked(evidence) {
        broken.extend(repeated::check(evidence, &calls));
    }
    broken.extend(overlap::check(evidence, &calls));
    broken.extend(background::check(evidence, &calls));
    broken.extend(children::check(evidence, &calls));
    broken.extend(orphans::check(evidence, &calls));
    broken
}

// === impl Claim ===

impl Claim {
    pub(crate) const ALL: [Self; 11] = [
        Self::NothingLost,
        Self::NothingRepeated,
        Self::NoOverlap,
        Self::Background,
        Self::IndexComplete,
        Self::Children,
        Self::NoWriteAtRest,
        Self::NoOrphans,
        Self::Footprint,
        Self::Admission,
        Self::NoPanic,
    ];

    /// Whether there is something to hold against the claim.
    pub(crate) fn is_checked(self, evidence: &Evidence) -> bool {
        let tested = evidence.tested;
        match self {
            Self::Children => tested.has_children(),
            Self::Admission => tested.has_gates(),
            // Without records, a function is called for a state whenever there may be a reason.
            Self::NothingRepeated | Self::Background | Self::IndexComplete => tested.has_records(),
            _ => true,
        }
    }

    pub(crate) fn broken(self, text: String) -> BrokenClaim {
        BrokenClaim { claim: self, text }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NothingLost => "nothing lost",
            Self::NothingRepeated => "nothing repeated",
            Self::NoOverlap => "no overlap",
            Self::Background => "daemons and timers",
            Self::IndexComplete => "index complete",
            Self::Children => "children",
            Self::NoWriteAtRest => "no write at rest",
            Self::NoOrphans => "no orphans",
            Self::Footprint => "memory, tasks, descriptors",
            Self::Admission => "admission",
            Self::NoPanic => "no panic",
        })
    }
}
