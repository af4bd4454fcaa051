//! Sub-handlers: a handler registers them while it runs, and their records are kept like others.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    handled_states::HandledStates,
    handler::{HandlerId, HandlerSpec},
    object::path::FieldPath,
    outcome::Outcome,
    turn::{TurnInput, run::HandlerRun, tracker::Tracker},
};

/// The sub-handlers of one handler during one turn; apart from the cycle until absorbed.
pub type SubTurn = HandlerRun<SubLevel>;

/// The parent of sub-handlers, and what the declared handler above them is about.
#[derive(Clone, Debug)]
pub struct SubLevel {
    pub(super) parent: HandlerId,
    /// The field of that handler.
    scope: FieldPath,
    /// The sub-handlers that are restarted with it: what the object says of them does not count.
    restarted: Arc<[HandlerId]>,
    /// Whether the object says nothing of the declared handler above: records of its sub-handlers are
    /// left from a cycle that another operator has ended.
    is_new: bool,
}

// === impl HandlerRun ===

impl<L> HandlerRun<L> {
    /// Takes over the records of sub-handlers; their parent keeps them until it is done.
    pub fn absorb(&mut self, sub: SubTurn) {
        let SubTurn { level, tracker, .. } = sub;
        self.tracker.absorb(&level.parent, tracker);
    }
}

// === impl SubTurn ===

impl SubTurn {
    pub(super) fn open(
        input: TurnInput,
        handled: Arc<HandledStates>,
        level: SubLevel,
        specs: impl IntoIterator<Item = HandlerSpec>,
        now: Timestamp,
    ) -> Self {
        let specs: Vec<Arc<HandlerSpec>> = specs.into_iter().map(Arc::new).collect();
        let owned: Vec<HandlerId> = specs.iter().map(|spec| spec.id.clone()).collect();
        let selected: Vec<Arc<HandlerSpec>> = input.with_subject(|subject| {
            specs
                .iter()
                .filter(|spec| spec.matches(subject))
                .cloned()
                .collect()
        });
        let mut ignored = level.restarted.to_vec();
        if level.is_new {
            ignored.extend_from_slice(&owned);
        }
        let mut tracker = Tracker::open(
            input.change.reason,
            &owned,
            &selected,
            &ignored,
            &input,
            now,
        );
        tracker.supersede(&[]);
        let present = &input.change.new;
        let unchanged: Vec<HandlerId> = owned
            .into_iter()
            .filter(|id| match planted!(NestedSubsForgotten) {
                true => tracker.has_finished_on(id, &handled, &level.scope, present) == Some(true),
                false => tracker.family_has_finished_on(id, &handled, &level.scope, present),
            })
            .collect();
        tracker.finish_unchanged(&unchanged);
        let is_selected = |spec: &HandlerSpec| selected.iter().any(|it| it.id == spec.id);
        let has_missed_change = |spec: &HandlerSpec| {
            let state = tracker.finished_state(&spec.id, &handled);
            state.is_none_or(|state| input.calls_sub_since(state, spec))
        };
        let unmatched = specs
            .iter()
            .filter(|it| !is_selected(it) && !has_missed_change(it));
        let unmatched: Vec<HandlerId> = unmatched.map(|it| it.id.clone()).collect();
        tracker.settle_unmatched(&unmatched);
        if planted!(SubHandlersRepeated) {
            selected
                .iter()
                .for_each(|spec| tracker.reset(&spec.id, now));
        }
        Self {
            input,
            handled,
            tracker,
            level,
        }
    }

    /// The level below a declared handler that is called outside of a cycle.
    #[must_use]
    pub fn of(input: TurnInput, parent: HandlerId, now: Timestamp) -> Self {
        let level = SubLevel::new(parent, FieldPath::root(), &[], false);
        Self::open(input, Arc::default(), level, [], now)
    }

    /// The handler that registered these.
    #[must_use]
    pub fn parent(&self) -> &HandlerId {
        &self.level.parent
    }

    /// Opens the records of the sub-handlers of a sub-handler.
    #[must_use]
    pub fn sub(
        &self,
        parent: &HandlerId,
        specs: impl IntoIterator<Item = HandlerSpec>,
        now: Timestamp,
    ) -> Self {
        let level = SubLevel {
            parent: parent.clone(),
            ..self.level.clone()
        };
        let handled = Arc::clone(&self.handled);
        Self::open(self.input.clone(), handled, level, specs, now)
    }

    /// The outcome of the parent's call: it has succeeded only if its sub-handlers are done.
    #[must_use]
    pub fn outcome(&self, result: Value, now: Timestamp) -> Outcome {
        if self.tracker.is_done() || planted!(ParentDoesNotWait) {
            Outcome::Success(result)
        } else {
            Outcome::Waiting {
                delay: self.tracker.delay(now).filter(|delay| !delay.is_zero()),
            }
        }
    }
}

// === impl SubLevel ===

impl SubLevel {
    pub(super) fn new(
        parent: HandlerId,
        scope: FieldPath,
        restarted: &[HandlerId],
        is_new: bool,
    ) -> Self {
        Self {
            parent,
            scope,
            is_new,
            restarted: match planted!(RestartedSubsRead) {
                true => Arc::default(),
                false => restarted.into(),
            },
        }
    }
}
