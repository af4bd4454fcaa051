//! Objects whose former state is back after our writes, as another controller restores it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::reverts::{RevertHistory, StateDigest, WriteRate};
use kopf_core::turn::TurnInput;

use super::ObjectHandling;
use crate::process::memory::Memory;

/// The objects that are written to very often, by their uid; most operators never have any.
#[derive(Debug, Default)]
pub(super) struct RevertTracker {
    /// Locked for a lookup, and only for objects that are written to very often.
    histories: Mutex<HashMap<String, RevertHistory>>,
}

/// The decision about the start of a turn.
pub(super) enum TurnStart {
    /// The turn starts as usual.
    Unrestricted,
    /// The turn starts, and its state is noted if it writes.
    Tracked(StateDigest),
    /// The turn starts after this time: our write to this very state was reverted.
    Reverted(Duration),
}

// === impl RevertTracker ===

impl RevertTracker {
    /// Decides whether a turn may start on this state.
    pub(super) fn check(
        &self,
        handling: &ObjectHandling<'_>,
        memory: &mut Memory,
        input: &TurnInput,
    ) -> TurnStart {
        let now = Timestamp::now();
        if !memory.pace.is_suspicious(now) {
            return TurnStart::Unrestricted;
        }
        let digest = StateDigest::of(
            &input.change,
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
            memory.pace.set_has_history(false);
            return TurnStart::Tracked(digest);
        }
        let pauses = |lost| handling.settings.queueing.error_delay(lost);
        match history.pause_for(digest, now, pauses) {
            Some(pause) => TurnStart::Reverted(pause),
            None => TurnStart::Tracked(digest),
        }
    }

    /// Notes a write to the state with this digest.
    pub(super) fn wrote(&self, uid: &str, pace: &mut WriteRate, digest: Option<StateDigest>) {
        let now = Timestamp::now();
        pace.count(now);
        if let Some(digest) = digest {
            pace.set_has_history(true);
            let mut histories = self.lock();
            histories
                .entry(uid.to_owned())
                .or_default()
                .record_write(digest, now);
        }
    }

    /// Forgets an object that is gone.
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
