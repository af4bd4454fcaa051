//! Objects about which somebody else has other ideas: those whose states keep coming back.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::cycle::CycleInput;
use kopf_core::reverts::{RevertHistory, StateDigest, WriteRate};

use super::ObjectHandling;
use crate::process::memory::Memory;

/// The contests by the identity of the object; there is none for most operators, ever.
#[derive(Debug, Default)]
pub(super) struct RevertTracker {
    // Touched for the length of a lookup, and only for objects that are written to very often.
    histories: Mutex<HashMap<String, RevertHistory>>,
}

/// How a turn may begin.
pub(super) enum TurnStart {
    /// As usual.
    Unrestricted,
    /// On a state that is noted if something is written on it.
    Tracked(StateDigest),
    /// Later: what was written on this very state was undone.
    Reverted(Duration),
}

// === impl RevertTracker ===

impl RevertTracker {
    /// Looks at a state before anything is done about it.
    pub(super) fn check(
        &self,
        handling: &ObjectHandling<'_>,
        memory: &mut Memory,
        input: &CycleInput,
    ) -> TurnStart {
        let now = Timestamp::now();
        if !memory.pace.is_suspicious(now) {
            return TurnStart::Unrestricted;
        }
        let digest = StateDigest::of(
            &input.sight,
            input.view(),
            &input.registry,
            &input.persistence,
        );
        let mut histories = self.lock();
        let Some(history) = histories.get_mut(&*handling.key.uid) else {
            return TurnStart::Tracked(digest);
        };
        if history.is_over(now) {
            histories.remove(&*handling.key.uid);
            memory.pace.set_contested(false);
            return TurnStart::Tracked(digest);
        }
        let pauses = |lost| handling.settings.queueing.error_delay(lost);
        match history.meet(digest, now, pauses) {
            Some(pause) => TurnStart::Reverted(pause),
            None => TurnStart::Tracked(digest),
        }
    }

    /// Notes that something was written.
    pub(super) fn wrote(&self, uid: &str, pace: &mut WriteRate, digest: Option<StateDigest>) {
        let now = Timestamp::now();
        pace.count(now);
        if let Some(digest) = digest {
            pace.set_contested(true);
            let mut histories = self.lock();
            histories
                .entry(uid.to_owned())
                .or_default()
                .wrote_on(digest, now);
        }
    }

    /// The object is gone.
    pub(super) fn forget(&self, uid: &str) {
        let mut histories = self.lock();
        if !histories.is_empty() {
            histories.remove(uid);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, RevertHistory>> {
        self.histories
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
