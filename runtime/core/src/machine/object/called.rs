//! Handlers that were called in a turn, and `reconcile`.

use std::sync::Arc;

use crate::{
    handler::HandlerSpec,
    machine::reconcile::ReconcileDigest,
    object::patch::ObjectPatch,
    outcome::{HandlerFailure, Outcome},
    progress::record::Record,
    turn::{TurnInput, sub::SubTurn},
};

/// A handler that was called in this turn.
#[derive(Debug)]
pub(super) struct CalledHandler {
    pub(super) spec: Arc<HandlerSpec>,
    pub(super) outcome: Outcome,
    pub(super) writes: ObjectPatch,
    /// Its sub-handlers, whose records are written with its own.
    pub(super) subs: Vec<SubTurn>,
    /// Whether there is anything to write but its record.
    pub(super) has_effects: bool,
}

/// A call of `reconcile` whose effects are being written.
#[derive(Debug)]
pub(super) struct ReconcileWrite {
    pub(super) stored: Option<Record>,
    pub(super) before: Record,
    pub(super) digest: ReconcileDigest,
    pub(super) input: TurnInput,
}

// === impl CalledHandler ===

impl CalledHandler {
    /// The call without its effects: if it had any, it has failed.
    pub(super) fn refused(self, reason: &str) -> Self {
        let outcome = match self.has_effects {
            true => Outcome::Error(HandlerFailure::Other {
                message: reason.to_owned(),
            }),
            false => self.outcome,
        };
        Self {
            outcome,
            writes: ObjectPatch::new(),
            has_effects: false,
            ..self
        }
    }
}
