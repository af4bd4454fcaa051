//! A handler that was called in a turn.

use std::sync::Arc;

use crate::{
    handler::HandlerSpec,
    object::patch::ObjectPatch,
    outcome::{HandlerFailure, Outcome},
};

/// A handler that was called in this turn.
#[derive(Debug)]
pub(super) struct CalledHandler {
    pub(super) spec: Arc<HandlerSpec>,
    pub(super) outcome: Outcome,
    pub(super) writes: ObjectPatch,
    /// Whether there is anything to write but its record.
    pub(super) has_effects: bool,
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
