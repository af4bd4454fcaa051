//! The context of event handlers: they are called for every watch event and keep no progress.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::accessors::{
    adoption_accessors, event_accessors, existing_object_accessors, object_accessors,
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
    raw: Arc<Value>,
    scope: HandlerScope,
    event_type: WatchEventType,
    pub(crate) draft: DraftSlot<K>,
    pub(crate) patch: Patch,
    pub(crate) result: ResultSlot,
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
    pub(crate) fn new(
        object: K,
        raw: Arc<Value>,
        scope: HandlerScope,
        event_type: WatchEventType,
    ) -> Self {
        Self {
            object,
            raw,
            scope,
            event_type,
            draft: DraftSlot::default(),
            patch: Patch::default(),
            result: ResultSlot::default(),
        }
    }

    /// The type of the watch event.
    pub fn event_type(&self) -> WatchEventType {
        self.event_type
    }

    /// The object as the watch event has it; its last state if it was deleted.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// The object as the API server sent it.
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    /// Sets the result of the handler, which the runtime writes to `status.<handler id>`.
    ///
    /// # Errors
    /// If the value cannot be expressed in JSON.
    pub fn set_result(&self, result: &impl Serialize) -> Result<(), serde_json::Error> {
        self.result.put(result)
    }
}

object_accessors!(EventContext, scope);
existing_object_accessors!(EventContext, scope);
adoption_accessors!(EventContext, scope);
blocking_accessors!(EventContext);
draft_accessors!(EventContext, patch, raw);
event_accessors!(EventContext, scope);
