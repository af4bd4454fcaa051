//! How generated code declares probe handlers.

use std::time::Duration;

use kopf_core::handler::retry::ErrorMode;
use serde_json::Value;

/// A handler that tells how the operator is, when somebody asks.
#[derive(Debug, Clone)]
#[must_use]
pub struct ProbeHandler {
    pub(crate) id: &'static str,
    pub(crate) errors: ErrorMode,
    pub(crate) timeout: Option<Duration>,
    pub(crate) param: Option<Value>,
}

impl ProbeHandler {
    /// A handler with this id, under which its result is shown.
    pub fn new(id: &'static str) -> Self {
        Self {
            id,
            errors: ErrorMode::default(),
            timeout: None,
            param: None,
        }
    }

    /// What arbitrary errors mean: the probe fails, unless they are ignored.
    pub fn errors(mut self, mode: ErrorMode) -> Self {
        self.errors = mode;
        self
    }

    /// How long it may take before it has failed.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A value for the handler.
    pub fn param(mut self, param: Value) -> Self {
        self.param = Some(param);
        self
    }
}
