//! The context of index functions.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::handler::HandlerId;
use serde_json::Value;

use super::accessors::{
    attempt_accessors, event_accessors, existing_object_accessors, handler_accessors,
    object_accessors,
};
use super::blocking::blocking_accessors;
use crate::process::execute::handler_scope::HandlerScope;

/// The context of an index function: one object to be indexed.
///
/// The other handlers of the operator wait until the indices are complete: keep requests by
/// [`client`](Self::client) short. For the same reason, an [`index`](Self::index) that is read here
/// may be incomplete.
pub struct IndexContext<K> {
    object: K,
    inputs: IndexInputs,
}

/// The inputs of one call of an index function.
pub(crate) struct IndexInputs {
    pub(crate) scope: HandlerScope,
    pub(crate) raw: Arc<Value>,
    pub(crate) handler: HandlerId,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) retry: u32,
    pub(crate) started: Timestamp,
    pub(crate) runtime: Duration,
}

impl<K> IndexContext<K> {
    pub(crate) fn new(object: K, inputs: IndexInputs) -> Self {
        Self { object, inputs }
    }

    /// The object.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// The object as the API server sent it.
    pub fn raw(&self) -> &Value {
        &self.inputs.raw
    }
}

blocking_accessors!(IndexContext);
object_accessors!(IndexContext, inputs.scope);
existing_object_accessors!(IndexContext, inputs.scope);
handler_accessors!(IndexContext, inputs);
attempt_accessors!(IndexContext, inputs);
event_accessors!(IndexContext, inputs.scope);
