//! The run of the handlers of one level in one turn: which are due, and how their calls end.
//!
//! The declared handlers are one level, the sub-handlers of one handler are another.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;

use crate::{
    handled_states::HandledStates,
    handler::{HandlerId, HandlerSpec, retry::RetryLimit},
    lifecycle::Lifecycle,
    outcome::{Consequence, Outcome},
    progress::record::Record,
    turn::{
        TurnInput,
        tracker::{HandlerAttempt, Tracker},
    },
};

/// The handlers of one level during one turn; `L` holds what only that level needs.
#[derive(Clone, Debug)]
pub struct HandlerRun<L> {
    pub(super) input: TurnInput,
    pub(super) handled: Arc<HandledStates>,
    pub(super) tracker: Tracker,
    pub(super) level: L,
}

// === impl HandlerRun ===

impl<L> HandlerRun<L> {
    /// The record of a handler.
    #[must_use]
    pub fn record(&self, id: &HandlerId) -> Option<&Record> {
        self.tracker.record(id)
    }

    /// The handlers to call in this turn, in this order.
    #[must_use]
    pub fn due(&self, lifecycle: &Lifecycle, seed: u64, now: Timestamp) -> Vec<Arc<HandlerSpec>> {
        self.tracker.due(lifecycle, seed, now)
    }

    /// Describes the call that is about to be made.
    ///
    /// # Errors
    /// If a limit forbids the call; report that as [`crate::outcome::HandlerFailure::Exhausted`].
    pub fn begin(&self, id: &HandlerId, now: Timestamp) -> Result<HandlerAttempt, RetryLimit> {
        self.tracker.begin(id, now)
    }

    /// Advances the record of a handler after a call, and returns the consequence.
    pub fn finish(
        &mut self,
        id: &HandlerId,
        outcome: Outcome,
        default_backoff: Duration,
        now: Timestamp,
    ) -> Consequence {
        self.tracker.finish(id, outcome, default_backoff, now)
    }
}
