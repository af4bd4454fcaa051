//! Conflicts in a row: others write the object between our reads and our writes.

use std::time::Duration;

use crate::machine::{
    effect::{RequestPause, RequestReport},
    exchange::FIRST_PAUSE,
    growing_pause::GrowingPause,
    now::Now,
};

/// The longest pause after a conflict. The API server works: a longer one would only make it less
/// likely that one of the next requests comes between two writes of others.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The conflicts after which one without a newer state counts as a rejection.
const MOST_UNFOUNDED: u32 = 5;

/// The first conflict that is reported; then it is one at each power of two.
const FIRST_REPORTED: u32 = 8;

/// The conflicts in a row of the writes to one object.
#[derive(Clone, Debug)]
pub(crate) struct Contention {
    conflicts: u32,
    pauses: GrowingPause,
}

// === impl Contention ===

impl Default for Contention {
    fn default() -> Self {
        Self {
            conflicts: 0,
            pauses: GrowingPause::new(FIRST_PAUSE, LONGEST_PAUSE),
        }
    }
}

impl Contention {
    /// Another writer was faster. The pause comes before the newer state is read: one between that
    /// and the write would give others the time to be faster again.
    pub(in crate::machine) fn count(&mut self, now: &Now) -> Option<RequestPause> {
        let is_first = self.conflicts == 0 || planted!(ConflictsNotDelayed);
        self.conflicts = self.conflicts.saturating_add(1);
        (!is_first).then(|| RequestPause {
            pause: self.pauses.next(None, now.chance()),
            ends_at_stop: false,
            failure: None,
        })
    }

    /// The report of the last conflict.
    pub(super) fn report(&self) -> Option<RequestReport> {
        let is_reported = self.conflicts >= FIRST_REPORTED && self.conflicts.is_power_of_two();
        is_reported.then_some(RequestReport::Contended(self.conflicts))
    }

    /// Whether conflicts without a newer state count as a rejection by now.
    pub(super) fn is_long(&self) -> bool {
        self.conflicts >= MOST_UNFOUNDED
    }
}
