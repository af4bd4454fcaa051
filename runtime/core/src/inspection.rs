//! What an object shows of its handling: for people, without the operator that handles it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    diffbase::is_sensitive,
    handler::HandlerId,
    object::{
        ObjectView,
        diff::{Diff, OldValue},
        essence::EssenceRules,
        finalizer,
        patch::{ObjectPatch, apply_merge},
    },
    persistence::Persistence,
    progress::record::Record,
};

/// The handling of one object, as far as the object shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// Its state.
    pub state: HandlingState,
    /// The time since which it is in this state; none if the object does not show it.
    pub since: Option<Timestamp>,
    /// The handlers that have a record, by their ids.
    pub handlers: Vec<InspectedHandler>,
    /// The changes since the last handled state; none if there is no such state.
    pub changes: Diff,
    /// All finalizers, in their order.
    pub finalizers: Vec<InspectedFinalizer>,
    /// Whether the values of the object are secret.
    pub is_sensitive: bool,
}

/// The state of the handling of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlingState {
    /// No operator has handled it.
    New,
    /// The last handled state is its present state.
    Handled,
    /// It has changed since it was handled, and no handler has been called for the change.
    Changed,
    /// Handlers are due or running.
    Handling,
    /// All handlers that are left wait for their next attempt.
    Waiting,
    /// It is being deleted.
    Deleting,
}

/// A handler with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedHandler {
    /// Its id; the name of its annotation if no known handler has that name.
    pub id: HandlerId,
    /// Its state.
    pub state: HandlerState,
    /// Its record.
    pub record: Record,
}

/// The state of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerState {
    /// It is due or running.
    Pending,
    /// It waits for its next attempt.
    Waiting,
    /// It has succeeded.
    Succeeded,
    /// It has failed for good.
    Failed,
}

/// A finalizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedFinalizer {
    /// Its name.
    pub name: String,
    /// Whether it is the one of the inspected operator.
    pub is_ours: bool,
}

/// How an object is inspected.
#[derive(Clone, Copy, Debug)]
pub struct Inspector<'a> {
    /// The storages of the operator.
    pub persistence: &'a Persistence,
    /// The ids of its handlers, as far as they are known: annotations show some of them shortened.
    pub handlers: &'a [HandlerId],
    /// The fields whose changes count.
    pub rules: &'a EssenceRules,
    /// The time.
    pub now: Timestamp,
}

// === impl Inspector ===

impl Inspector<'_> {
    /// What an object shows of its handling.
    #[must_use]
    pub fn inspect(&self, view: ObjectView<'_>) -> Inspection {
        let handlers = self.handlers(view);
        let baseline = self.persistence.baseline(view);
        let changes = if baseline.is_absent() {
            Diff::default()
        } else {
            baseline.diff(&self.persistence.essence(view, self.rules))
        };
        let state = if view.is_being_deleted() {
            HandlingState::Deleting
        } else if let Some(state) = state_of_records(&handlers) {
            state
        } else if !changes.is_empty() {
            HandlingState::Changed
        } else if baseline.is_absent() && handlers.is_empty() {
            HandlingState::New
        } else {
            HandlingState::Handled
        };
        Inspection {
            state,
            since: self.since(state, &handlers, view),
            handlers,
            changes,
            finalizers: self.finalizers(view),
            is_sensitive: is_sensitive(view),
        }
    }

    /// An object without our finalizer and without records of handlers; none if it has neither.
    ///
    /// The last handled state stays: an operator that comes back continues from there.
    #[must_use]
    pub fn released(&self, body: &Value) -> Option<Value> {
        let view = ObjectView::new(body);
        let storage = &self.persistence.progress;
        let mut patch = ObjectPatch::default();
        for handler in self.handlers(view) {
            storage.purge(&handler.id, view, &mut patch);
        }
        storage.store_handled_states(None, view, &mut patch);
        storage.touch(None, view, &mut patch);
        let mut released = body.clone();
        apply_merge(&mut released, &Value::Object(patch.merge_patch().clone()));
        finalizer::remove(&mut released, &self.persistence.finalizer);
        (released != *body).then_some(released)
    }

    fn handlers(&self, view: ObjectView<'_>) -> Vec<InspectedHandler> {
        let storage = &self.persistence.progress;
        let mut known = self.handlers.to_vec();
        let found = storage.records(&known, view);
        // The record of a handler names its sub-handlers in full.
        known.extend(found.into_iter().flat_map(|(_, record)| record.subrefs));
        let mut seen = BTreeSet::new();
        let mut found = storage.records(&known, view);
        found.retain(|(id, _)| seen.insert(id.clone()));
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let inspected = found.into_iter().map(|(id, record)| InspectedHandler {
            id,
            state: HandlerState::of(&record, self.now),
            record,
        });
        inspected.collect()
    }

    fn finalizers(&self, view: ObjectView<'_>) -> Vec<InspectedFinalizer> {
        let finalizers = view.finalizers().map(|name| InspectedFinalizer {
            name: name.to_owned(),
            is_ours: name == self.persistence.finalizer,
        });
        finalizers.collect()
    }

    fn since(
        &self,
        state: HandlingState,
        handlers: &[InspectedHandler],
        view: ObjectView<'_>,
    ) -> Option<Timestamp> {
        let meta = |field: &str| view.meta(field)?.as_str()?.parse().ok();
        match state {
            HandlingState::New => meta("creationTimestamp"),
            HandlingState::Deleting => meta("deletionTimestamp"),
            HandlingState::Handling | HandlingState::Waiting => {
                handlers.iter().map(|handler| handler.record.started).min()
            }
            HandlingState::Handled => self.write_times(view).0,
            HandlingState::Changed => self.write_times(view).1,
        }
    }

    /// The times of the last writes by those who write our annotations, and by others.
    fn write_times(&self, view: ObjectView<'_>) -> (Option<Timestamp>, Option<Timestamp>) {
        let entries = view.meta("managedFields").and_then(Value::as_array);
        let (mut ours, mut others) = (None, None);
        for entry in entries.into_iter().flatten() {
            let time = entry["time"].as_str().and_then(|text| text.parse().ok());
            let fields = entry["fieldsV1"]["f:metadata"]["f:annotations"].as_object();
            let mut names = fields.into_iter().flat_map(|fields| fields.keys());
            let is_ours = names.any(|name| {
                let name = name.strip_prefix("f:");
                name.is_some_and(|name| self.persistence.owns_annotation(name))
            });
            let latest = if is_ours { &mut ours } else { &mut others };
            *latest = (*latest).max(time);
        }
        (ours, others)
    }
}

/// The state that open records show; none if there are none. The record of a finished `reconcile`
/// stays.
fn state_of_records(handlers: &[InspectedHandler]) -> Option<HandlingState> {
    let is_open = |handler: &&InspectedHandler| !handler.record.is_finished();
    let mut open = handlers.iter().filter(is_open).peekable();
    open.peek()?;
    if open.all(|it| it.state == HandlerState::Waiting) {
        Some(HandlingState::Waiting)
    } else {
        Some(HandlingState::Handling)
    }
}

// === impl Inspection ===

impl Inspection {
    /// The time of the next attempt, if all handlers that are left wait.
    #[must_use]
    pub fn next_attempt(&self) -> Option<Timestamp> {
        let waiting = |it: &&InspectedHandler| it.state == HandlerState::Waiting;
        let waiting = self.handlers.iter().filter(waiting);
        waiting.filter_map(|it| it.record.delayed).min()
    }

    /// Whether an operator of these storages has left anything on the object.
    #[must_use]
    pub fn has_traces(&self) -> bool {
        let marked = self.finalizers.iter().any(|finalizer| finalizer.is_ours);
        marked || !self.handlers.is_empty() || self.state != HandlingState::New
    }

    /// The old and the new value of a change, of which those of a secret object are not shown.
    #[must_use]
    pub fn shown_values<'a>(
        &self,
        old: &'a OldValue,
        new: Option<&'a Value>,
    ) -> (Option<&'a Value>, Option<&'a Value>) {
        if self.is_sensitive {
            (None, None)
        } else {
            (old.known(), new)
        }
    }
}

// === impl HandlerState ===

impl HandlerState {
    fn of(record: &Record, now: Timestamp) -> Self {
        match record {
            Record { success: true, .. } => Self::Succeeded,
            Record { failure: true, .. } => Self::Failed,
            record if record.is_sleeping(now) => Self::Waiting,
            _ => Self::Pending,
        }
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Waiting => "waiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }
}

// === impl HandlingState ===

impl HandlingState {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Handled => "handled",
            Self::Changed => "changed",
            Self::Handling => "handling",
            Self::Waiting => "waiting",
            Self::Deleting => "deleting",
        }
    }
}

#[cfg(test)]
mod tests;
