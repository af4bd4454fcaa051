//! Objects about which somebody else has other ideas: those whose states keep coming back.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::cycle::CycleInput;
use kopf_core::reverts::{RevertHistory, StateDigest, WriteRate};

use super::Case;
use crate::process::memory::Memory;

/// The contests by the identity of the object; there is none for most operators, ever.
#[derive(Debug, Default)]
pub(super) struct RevertedObjects {
    // Touched for the length of a lookup, and only for objects that are written to very often.
    contests: Mutex<HashMap<String, RevertHistory>>,
}

/// How a turn may begin.
pub(super) enum TurnAdmission {
    /// As usual.
    Unsuspicious,
    /// On a state that is noted if something is written on it.
    Marked(StateDigest),
    /// Later: what was written on this very state was undone.
    Undone(Duration),
}

// === impl RevertedObjects ===

impl RevertedObjects {
    /// Looks at a state before anything is done about it.
    pub(super) fn meet(
        &self,
        case: &Case<'_>,
        memory: &mut Memory,
        situation: &CycleInput,
    ) -> TurnAdmission {
        let now = Timestamp::now();
        if !memory.pace.is_suspicious(now) {
            return TurnAdmission::Unsuspicious;
        }
        let mark = StateDigest::of(
            &situation.change,
            situation.view(),
            &situation.registry,
            &situation.persistence,
        );
        let mut contests = self.lock();
        let Some(contest) = contests.get_mut(&*case.key.uid) else {
            return TurnAdmission::Marked(mark);
        };
        if contest.is_over(now) {
            contests.remove(&*case.key.uid);
            memory.pace.set_has_history(false);
            return TurnAdmission::Marked(mark);
        }
        let pauses = |lost| case.settings.queueing.error_delay(lost);
        match contest.pause_for(mark, now, pauses) {
            Some(pause) => TurnAdmission::Undone(pause),
            None => TurnAdmission::Marked(mark),
        }
    }

    /// Notes that something was written.
    pub(super) fn wrote(&self, uid: &str, pace: &mut WriteRate, mark: Option<StateDigest>) {
        let now = Timestamp::now();
        pace.count(now);
        if let Some(mark) = mark {
            pace.set_has_history(true);
            let mut contests = self.lock();
            contests
                .entry(uid.to_owned())
                .or_default()
                .record_write(mark, now);
        }
    }

    /// The object is gone.
    pub(super) fn forget(&self, uid: &str) {
        let mut contests = self.lock();
        if !contests.is_empty() {
            contests.remove(uid);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, RevertHistory>> {
        self.contests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
