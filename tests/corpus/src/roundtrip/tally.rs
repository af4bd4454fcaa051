//! The outcomes of many objects, counted by definition.

use std::collections::BTreeMap;
use std::fmt;

use super::{Case, Fate, Label, Outcome};

/// How many definitions fared how, each counted by its worst object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    identical: usize,
    null_dropped: usize,
    lossy: usize,
    refused: usize,
}

// === impl Tally ===

impl Tally {
    /// One tally per kind of object, and one for all of them.
    #[must_use]
    pub fn of(results: &[(&Case, Vec<Outcome>)]) -> BTreeMap<&'static str, Self> {
        let mut tallies: BTreeMap<&'static str, Self> = BTreeMap::new();
        for (_, outcomes) in results {
            let mut worst: BTreeMap<&'static str, &Fate> = BTreeMap::new();
            for outcome in outcomes {
                for title in [title(outcome.label), "all objects"] {
                    let entry = worst.entry(title).or_insert(&outcome.fate);
                    if outcome.fate.rank() > entry.rank() {
                        *entry = &outcome.fate;
                    }
                }
            }
            for (title, fate) in worst {
                tallies.entry(title).or_default().count(fate);
            }
        }
        tallies
    }

    fn count(&mut self, fate: &Fate) {
        *match fate {
            Fate::Identical => &mut self.identical,
            Fate::NullDropped(_) => &mut self.null_dropped,
            Fate::Lossy(_) => &mut self.lossy,
            Fate::Refused { .. } => &mut self.refused,
        } += 1;
    }
}

fn title(label: Label) -> &'static str {
    use crate::corpus::Origin;
    use crate::synthesis::Filling;
    match label {
        Label::Sample(Origin::Applied) => "applied samples",
        Label::Sample(Origin::Served) => "served samples",
        Label::Synthetic(Filling::Maximal, _) => "maximal objects",
        Label::Synthetic(Filling::Minimal, _) => "minimal objects",
        Label::Synthetic(Filling::Hollow, _) => "hollow objects",
        Label::Synthetic(Filling::Null, _) => "null-filled objects",
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            identical,
            null_dropped,
            lossy,
            refused,
        } = self;
        let all = identical + null_dropped + lossy + refused;
        write!(
            formatter,
            "{identical} of {all} versions identical, {null_dropped} with null dropped, {lossy} lossy, {refused} refused"
        )
    }
}
