//! The roundtrip results of many objects, counted per definition.

use std::collections::BTreeMap;
use std::fmt;

use super::{ObjectOrigin, ObjectResult, RoundtripCase, RoundtripResult};

/// The number of definitions per result; a definition counts with its worst object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundtripCounts {
    identical: usize,
    null_dropped: usize,
    lossy: usize,
    refused: usize,
}

// === impl RoundtripCounts ===

impl RoundtripCounts {
    /// The counts per origin of objects, and for all objects.
    #[must_use]
    pub fn of(results: &[(&RoundtripCase, Vec<ObjectResult>)]) -> BTreeMap<&'static str, Self> {
        let mut by_origin: BTreeMap<&'static str, Self> = BTreeMap::new();
        for (_, outcomes) in results {
            let mut worst: BTreeMap<&'static str, &RoundtripResult> = BTreeMap::new();
            for outcome in outcomes {
                for title in [title(outcome.origin), "all objects"] {
                    let entry = worst.entry(title).or_insert(&outcome.result);
                    if outcome.result.rank() > entry.rank() {
                        *entry = &outcome.result;
                    }
                }
            }
            for (title, result) in worst {
                by_origin.entry(title).or_default().count(result);
            }
        }
        by_origin
    }

    fn count(&mut self, result: &RoundtripResult) {
        *match result {
            RoundtripResult::Identical => &mut self.identical,
            RoundtripResult::NullDropped(_) => &mut self.null_dropped,
            RoundtripResult::Lossy(_) => &mut self.lossy,
            RoundtripResult::Refused { .. } => &mut self.refused,
        } += 1;
    }
}

fn title(origin: ObjectOrigin) -> &'static str {
    use crate::corpus::SampleForm;
    use crate::synthesis::Filling;
    match origin {
        ObjectOrigin::Sample(SampleForm::Applied) => "applied samples",
        ObjectOrigin::Sample(SampleForm::Served) => "served samples",
        ObjectOrigin::Synthetic(Filling::Maximal, _) => "maximal objects",
        ObjectOrigin::Synthetic(Filling::Minimal, _) => "minimal objects",
        ObjectOrigin::Synthetic(Filling::Hollow, _) => "hollow objects",
        ObjectOrigin::Synthetic(Filling::Null, _) => "null-filled objects",
    }
}

impl fmt::Display for RoundtripCounts {
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
