//! The write of a turn; writes that the API server rejects are kept until it accepts them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kopf_core::handler::finalizer_need::FinalizerNeed;
use kopf_core::machine::write::{OnConflict, ReadBack};
use kopf_core::object::patch::ObjectPatch;
use tokio::time::Instant;

/// The wait for a time that the clock cannot express.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// The write of a turn.
#[derive(Clone)]
pub(super) struct TurnWrite {
    pub(super) patch: ObjectPatch,
    pub(super) on_conflict: OnConflict,
    pub(super) read_back: ReadBack,
    /// The change of the finalizer that is in the patch.
    pub(super) finalizer: FinalizerNeed,
}

/// The rejected writes by the uid of the object; most operators never have any.
#[derive(Default)]
pub(super) struct UnwrittenTurns {
    // Held for the length of a lookup.
    turns: Mutex<HashMap<String, UnwrittenTurn>>,
}

/// The write of a turn whose handlers were called, and that is not on the object yet.
pub(super) struct UnwrittenTurn {
    pub(super) write: TurnWrite,
    /// How often the API server rejected it.
    pub(super) failures: u32,
    /// The time of the next attempt; none if the clock cannot express it.
    next: Option<Instant>,
    /// The reason that was reported last.
    pub(super) reason: String,
    /// The epoch of the pause gate: after a pause, another operator may have handled the object.
    epoch: u64,
    /// True if the object was being deleted.
    deleting: bool,
}

// === impl TurnWrite ===

impl From<ObjectPatch> for TurnWrite {
    fn from(patch: ObjectPatch) -> Self {
        Self {
            patch,
            on_conflict: OnConflict::Repeat,
            read_back: ReadBack::Always,
            finalizer: FinalizerNeed::Settled,
        }
    }
}

// === impl UnwrittenTurns ===

impl UnwrittenTurns {
    pub(super) fn keep(&self, uid: &str, turn: UnwrittenTurn) {
        self.lock().insert(uid.to_owned(), turn);
    }

    /// Takes the write of this object, unless it is from before a pause or before its deletion,
    /// which calls other handlers and needs no record of those that were called before.
    pub(super) fn take(&self, uid: &str, epoch: u64, deleting: bool) -> Option<UnwrittenTurn> {
        let mut turns = self.lock();
        if turns.is_empty() {
            return None;
        }
        let turn = turns.remove(uid)?;
        (turn.epoch == epoch && turn.deleting == deleting).then_some(turn)
    }

    /// Forgets an object that is gone.
    pub(super) fn forget(&self, uid: &str) {
        let mut turns = self.lock();
        if !turns.is_empty() {
            turns.remove(uid);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, UnwrittenTurn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl UnwrittenTurn ===

impl UnwrittenTurn {
    pub(super) fn new(write: TurnWrite, epoch: u64, deleting: bool) -> Self {
        Self {
            write,
            failures: 0,
            next: Some(Instant::now()),
            reason: String::new(),
            epoch,
            deleting,
        }
    }

    /// Notes that the API server rejected it, and that it is sent again after this time.
    pub(super) fn rejected_for(&mut self, delay: Duration) {
        self.failures = self.failures.saturating_add(1);
        self.next = Instant::now().checked_add(delay);
    }

    /// The time until it is sent again.
    pub(super) fn wait(&self) -> Duration {
        self.next.map_or(LONGEST_WAIT, |next| {
            next.saturating_duration_since(Instant::now())
        })
    }
}
