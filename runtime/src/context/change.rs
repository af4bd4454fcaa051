//! The context of change handlers.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kopf_core::cause::Reason;
use kopf_core::handler::{HandlerId, HandlerSpec};
use kopf_core::object::diff::{Baseline, Diff};
use kopf_core::object::path::FieldPath;
use kopf_core::turn::TurnInput;
use kopf_core::turn::sub::SubTurn;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Old;
use super::accessors::{
    adoption_accessors, attempt_accessors, event_accessors, existing_object_accessors,
    handler_accessors, object_accessors,
};
use super::blocking::blocking_accessors;
use super::draft::{DraftSlot, DraftSource, draft_accessors};
use crate::handler::SubHandler;
use crate::handler::patch::Patch;
use crate::process::execute::handler_scope::HandlerScope;
use crate::process::execute::invoke;
use crate::settings::ExecutionSettings;

/// The context of a change handler: one change of an object.
///
/// The runtime owns it and the handler borrows it: what the handler put into the patch is written
/// even after an error, a panic or a timeout.
pub struct ChangeContext<K> {
    object: K,
    old: OnceLock<Box<Old<K>>>,
    pub(super) inputs: ChangeInputs,
    /// Behind a lock only so that a reference to the context can be sent to other threads, as a
    /// handler does that holds one across an `await`; it is never contended.
    registered: Mutex<Vec<RegisteredSubHandler>>,
    pub(crate) draft: DraftSlot<K>,
    pub(crate) effects: HandlerEffects,
}

/// The inputs of one call of a change handler.
#[derive(Clone)]
pub(crate) struct ChangeInputs {
    pub(crate) scope: HandlerScope,
    pub(crate) execution: ExecutionSettings,
    pub(crate) situation: TurnInput,
    /// Opens the records of sub-handlers.
    pub(crate) subs: Arc<SubTurn>,
    /// From the last handled state to the current one; for a field handler, within that field.
    pub(crate) diff: Arc<Diff>,
    pub(crate) handler: HandlerId,
    /// The field of the handler, or of the handler above it; otherwise the whole object.
    pub(crate) field: FieldPath,
    /// True if the handler and its sub-handlers run only if their field changed.
    pub(crate) changing: bool,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) retry: u32,
    pub(crate) started: Timestamp,
    pub(crate) runtime: Duration,
}

/// A sub-handler and its function, registered by a handler that runs.
pub(super) struct RegisteredSubHandler {
    pub(super) handler: SubHandler,
    pub(super) function: SubFunction,
}

/// A sub-handler without its types: makes one attempt, for at most the given time.
pub(super) type SubFunction = Box<
    dyn FnOnce(
            ChangeInputs,
            Option<Duration>,
        ) -> BoxFuture<'static, (invoke::CallEnd, HandlerEffects)>
        + Send,
>;

/// The patch, result and sub-handlers of one call of a handler, even if it failed.
#[derive(Debug, Default)]
pub(crate) struct HandlerEffects {
    pub(crate) patch: Patch,
    pub(crate) result: ResultSlot,
    /// The records of its sub-handlers.
    pub(crate) subs: Vec<SubTurn>,
}

/// The result of a handler, behind a lock for the same reason as [`Patch`].
#[derive(Debug, Default)]
pub(crate) struct ResultSlot(Mutex<Option<Value>>);

// === impl ChangeInputs ===

impl ChangeInputs {
    /// Restricts the inputs to the field of a handler, if it has one.
    pub(crate) fn within_field_of(self, spec: &HandlerSpec) -> Self {
        let Some(field) = spec.field() else {
            return self;
        };
        let change = &self.situation.change;
        Self {
            diff: Arc::new(change.old.diff_at(field, &change.new)),
            field: field.clone(),
            ..self
        }
    }
}

impl DraftSource for ChangeInputs {
    fn drafted(&self) -> Value {
        Value::clone(&self.situation.body)
    }

    fn generation(&self) -> Option<i64> {
        self.situation.body["metadata"]["generation"].as_i64()
    }
}

// === impl HandlerEffects ===

impl HandlerEffects {
    /// Adds the patch of a sub-handler to this one.
    pub(super) fn absorb(&mut self, sub: Self) {
        self.patch.lock().absorb(sub.patch.into_writes());
    }

    /// Patches the result of a sub-handler into the status.
    pub(super) fn deliver(&mut self, id: &HandlerId, result: &Value) {
        self.patch.lock().store_result(id.as_str(), result);
    }
}

// === impl ResultSlot ===

impl ResultSlot {
    pub(super) fn put(&self, result: &impl Serialize) -> Result<(), serde_json::Error> {
        let result = serde_json::to_value(result)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        Ok(())
    }

    pub(crate) fn take(&mut self) -> Option<Value> {
        self.0
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

// === impl ChangeContext ===

impl<K> ChangeContext<K> {
    pub(crate) fn new(object: K, inputs: ChangeInputs) -> Self {
        Self {
            object,
            old: OnceLock::new(),
            inputs,
            registered: Mutex::default(),
            draft: DraftSlot::default(),
            effects: HandlerEffects::default(),
        }
    }

    pub(super) fn registered(&mut self) -> &mut Vec<RegisteredSubHandler> {
        let registered = self.registered.get_mut();
        registered.unwrap_or_else(PoisonError::into_inner)
    }

    /// The object as it is now.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// The object as the API server sent it.
    pub fn raw(&self) -> &Value {
        &self.inputs.situation.body
    }

    /// The reason of the call: creation, update, deletion or resumption.
    pub fn reason(&self) -> Reason {
        self.inputs.situation.change.reason
    }

    /// The differences to the last handled state; for a field handler, those within its field.
    pub fn diff(&self) -> &Diff {
        &self.inputs.diff
    }

    /// The essence of the object as it was handled last, as JSON: without the status, system
    /// metadata and the annotations of operators.
    pub fn old_raw(&self) -> Old<&Value> {
        match &self.inputs.situation.change.old {
            Baseline::Absent => Old::Absent,
            Baseline::Known(essence) => Old::Known(essence.as_value()),
            Baseline::Hashed(_) => Old::Unknown,
        }
    }

    /// The essence of the object as it is now.
    pub fn new_state(&self) -> &Value {
        self.inputs.situation.change.new.as_value()
    }

    /// Sets the result of the handler. The runtime writes it to `status.<handler id>` if the
    /// handler succeeds.
    ///
    /// # Errors
    /// If the value cannot be expressed in JSON.
    pub fn set_result(&self, result: &impl Serialize) -> Result<(), serde_json::Error> {
        self.effects.result.put(result)
    }
}

impl<K: DeserializeOwned> ChangeContext<K> {
    /// The object as it was handled last, without the status, system metadata and the annotations
    /// of operators. It is unknown if only a hash of it was stored, or if it does not fit the type
    /// of the object any more.
    pub fn old(&self) -> Old<&K> {
        let read = || {
            Box::new(match self.old_raw() {
                Old::Absent => Old::Absent,
                Old::Known(essence) => former(essence, self.raw()).map_or(Old::Unknown, Old::Known),
                Old::Unknown => Old::Unknown,
            })
        };
        self.old.get_or_init(read).as_ref().as_ref()
    }
}

/// A former state of an object in its type: the essence, with the identity of the object.
pub(super) fn former<K: DeserializeOwned>(
    essence: &Value,
    object: &Value,
) -> Result<K, serde_json::Error> {
    let mut former = essence.clone();
    for key in ["apiVersion", "kind"] {
        former[key] = object[key].clone();
    }
    for key in ["name", "namespace", "uid"] {
        if let Some(value) = object["metadata"].get(key) {
            former["metadata"][key] = value.clone();
        }
    }
    serde_json::from_value(former)
}

object_accessors!(ChangeContext, inputs.scope);
existing_object_accessors!(ChangeContext, inputs.scope);
handler_accessors!(ChangeContext, inputs);
attempt_accessors!(ChangeContext, inputs);
adoption_accessors!(ChangeContext, inputs.scope);
blocking_accessors!(ChangeContext);
draft_accessors!(ChangeContext, effects.patch, inputs);
event_accessors!(ChangeContext, inputs.scope);
