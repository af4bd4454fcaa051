//! The context of probe handlers, which tell how the operator is.

use std::sync::Arc;

use kube::Client;
use serde::Serialize;
use serde_json::Value;

use super::change::Slot;

/// A question about the operator's health.
pub struct Probe {
    client: Client,
    param: Option<Arc<Value>>,
    pub(crate) result: Slot,
}

impl Probe {
    pub(crate) fn new(client: Client, param: Option<Arc<Value>>) -> Self {
        Self {
            client,
            param,
            result: Slot::default(),
        }
    }

    /// The parameter of the handler.
    pub fn param(&self) -> Option<&Value> {
        self.param.as_deref()
    }

    /// Shows a value under the handler's id in the answer of the liveness endpoint, if the handler
    /// succeeds; null is not shown.
    ///
    /// # Errors
    /// If the result cannot be turned into JSON.
    pub fn set_result(&self, result: &impl Serialize) -> Result<(), serde_json::Error> {
        self.result.put(result)
    }

    /// A client for the cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }
}
