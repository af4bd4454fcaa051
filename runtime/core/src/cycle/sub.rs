//! Sub-handlers: registered while their parent runs, tracked like any other handler.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    cycle::{
        CycleInput,
        tracker::{HandlerAttempt, Tracker},
    },
    handled_states::HandledStates,
    handler::{HandlerId, HandlerSpec, retry::RetryLimit},
    lifecycle::Lifecycle,
    object::path::FieldPath,
    outcome::{Consequence, Outcome},
    progress::record::Record,
};

/// The sub-handlers of one handler during one turn; independent of the cycle until absorbed.
#[derive(Clone, Debug)]
pub struct SubCycle {
    input: CycleInput,
    handled: Arc<HandledStates>,
    scope: FieldPath,
    parent: HandlerId,
    tracker: Tracker,
}

// === impl SubCycle ===

impl SubCycle {
    pub(crate) fn open(
        input: CycleInput,
        handled: Arc<HandledStates>,
        scope: FieldPath,
        parent: HandlerId,
        specs: impl IntoIterator<Item = HandlerSpec>,
        now: Timestamp,
    ) -> Self {
        let specs: Vec<Arc<HandlerSpec>> = specs.into_iter().map(Arc::new).collect();
        let owned: Vec<HandlerId> = specs.iter().map(|spec| spec.id.clone()).collect();
        let selected: Vec<Arc<HandlerSpec>> = input.ask(|subject| {
            specs
                .iter()
                .filter(|spec| spec.matches(subject))
                .cloned()
                .collect()
        });
        let mut tracker = Tracker::open(
            input.change.reason,
            &owned,
            &selected,
            &*input.persistence.progress,
            input.view(),
            now,
        );
        tracker.supersede();
        let current: Vec<HandlerId> = owned
            .into_iter()
            .filter(|id| {
                tracker.has_finished_on(id, &handled, &scope, &input.change.new) == Some(true)
            })
            .collect();
        tracker.finish_unchanged(&current);
        Self {
            input,
            handled,
            scope,
            parent,
            tracker,
        }
    }

    /// The handler that registered these.
    #[must_use]
    pub fn parent(&self) -> &HandlerId {
        &self.parent
    }

    /// The record of a sub-handler.
    #[must_use]
    pub fn record(&self, id: &HandlerId) -> Option<&Record> {
        self.tracker.record(id)
    }

    /// The sub-handlers to run in this turn, in this order.
    #[must_use]
    pub fn due(&self, lifecycle: &Lifecycle, seed: u64, now: Timestamp) -> Vec<Arc<HandlerSpec>> {
        self.tracker.due(lifecycle, seed, now)
    }

    /// What to tell a sub-handler about the call that is about to be made.
    ///
    /// # Errors
    /// If a limit forbids the call.
    pub fn begin(&self, id: &HandlerId, now: Timestamp) -> Result<HandlerAttempt, RetryLimit> {
        self.tracker.begin(id, now)
    }

    /// Takes in how a call ended, and tells what that means.
    pub fn finish(
        &mut self,
        id: &HandlerId,
        outcome: Outcome,
        default_backoff: Duration,
        now: Timestamp,
    ) -> Consequence {
        self.tracker.finish(id, outcome, default_backoff, now)
    }

    /// Opens the records of sub-handlers of a sub-handler.
    #[must_use]
    pub fn sub(
        &self,
        parent: &HandlerId,
        specs: impl IntoIterator<Item = HandlerSpec>,
        now: Timestamp,
    ) -> Self {
        Self::open(
            self.input.clone(),
            Arc::clone(&self.handled),
            self.scope.clone(),
            parent.clone(),
            specs,
            now,
        )
    }

    /// Takes over the records of sub-handlers of a sub-handler.
    pub fn absorb(&mut self, sub: Self) {
        let (parent, tracker) = sub.into_parts();
        self.tracker.absorb(&parent, tracker);
    }

    /// What the parent's own return means, given the state of its sub-handlers.
    #[must_use]
    pub fn outcome(&self, result: Value, now: Timestamp) -> Outcome {
        if self.tracker.is_done() {
            Outcome::Success(result)
        } else {
            Outcome::Waiting {
                delay: self.tracker.delay(now).filter(|delay| !delay.is_zero()),
            }
        }
    }

    pub(crate) fn into_parts(self) -> (HandlerId, Tracker) {
        (self.parent, self.tracker)
    }
}
