//! The context of event handlers: they are called for every watch event and keep no progress.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::handler::HandlerId;
use serde::Serialize;
use serde_json::Value;

use super::accessors::{
    adoption_accessors, attempt_accessors, event_accessors, existing_object_accessors,
    handler_accessors, object_accessors,
};
use super::blocking::blocking_accessors;
use super::change::ResultSlot;
use super::draft::{DraftSlot, DraftSource, draft_accessors};
use crate::handler::patch::Patch;
use crate::process::execute::handler_scope::HandlerScope;
use crate::watch::WatchEventType;

/// The context of an event handler: one watch event of an object.
pub struct EventContext<K> {
    object: K,
    inputs: EventInputs,
    pub(crate) draft: DraftSlot<K>,
    pub(crate) patch: Patch,
    pub(crate) result: ResultSlot,
}

/// The event and the handler that is called for it.
pub(crate) struct EventInputs {
    pub(crate) raw: Arc<Value>,
    pub(crate) scope: HandlerScope,
    pub(crate) event_type: WatchEventType,
    pub(crate) handler: HandlerId,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) retry: u32,
    pub(crate) started: Timestamp,
    pub(crate) runtime: Duration,
}

impl DraftSource for Arc<Value> {
    fn drafted(&self) -> Value {
        Value::clone(self)
    }

    fn generation(&self) -> Option<i64> {
        self["metadata"]["generation"].as_i64()
    }
}

impl<K> EventContext<K> {
    pub(crate) fn new(object: K, inputs: EventInputs) -> Self {
        Self {
            object,
            inputs,
            draft: DraftSlot::default(),
            patch: Patch::default(),
            result: ResultSlot::default(),
        }
    }

    /// The type of the watch event.
    pub fn event_type(&self) -> WatchEventType {
        self.inputs.event_type
    }

    /// The object as the watch event has it; its last state if it was deleted.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// The object as the API server sent it.
    pub fn raw(&self) -> &Value {
        &self.inputs.raw
    }

    /// Sets the result of the handler, which the runtime writes to `status.<handler id>`.
    ///
    /// # Errors
    /// If the value cannot be expressed in JSON.
    pub fn set_result(&self, result: &impl Serialize) -> Result<(), serde_json::Error> {
        self.result.put(result)
    }
}

object_accessors!(EventContext, inputs.scope);
existing_object_accessors!(EventContext, inputs.scope);
adoption_accessors!(EventContext, inputs.scope);
handler_accessors!(EventContext, inputs);
attempt_accessors!(EventContext, inputs);
blocking_accessors!(EventContext);
draft_accessors!(EventContext, patch, inputs.raw);
event_accessors!(EventContext, inputs.scope);
