//! The declaration of a handler of the operator, its function, and one attempt to call it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kopf_core::handler::HandlerId;
use kopf_core::handler::retry::{ErrorMode, RetryPolicy};
use serde_json::Value;

use crate::handler::error::HandlerResult;

/// The declaration of a startup, cleanup, login or probe handler.
#[derive(Debug, Clone)]
#[must_use]
pub struct HookHandler {
    pub(super) id: HandlerId,
    pub(super) policy: RetryPolicy,
    pub(super) param: Option<Arc<Value>>,
}

/// One declared handler with its function.
pub(crate) struct Hook<C> {
    pub(super) declared: HookHandler,
    pub(super) function: Box<dyn HookFunction<C>>,
}

/// The function of a handler, with its state.
pub(crate) trait HookFunction<C>: Send + Sync {
    fn call<'a>(&'a self, cx: &'a mut C) -> BoxFuture<'a, HandlerResult>;
}

/// A context that is used for one attempt after the other.
pub(crate) trait HookContext: Send {
    fn set_attempt(&mut self, attempt: HookAttempt);
}

/// The properties of one attempt that handlers can read.
#[derive(Debug, Clone)]
pub(crate) struct HookAttempt {
    pub(super) handler: HandlerId,
    pub(super) param: Option<Arc<Value>>,
    pub(super) retry: u32,
    pub(super) started: Timestamp,
    pub(super) runtime: Duration,
}

// === impl HookHandler ===

impl HookHandler {
    /// A handler with this id, which the log shows.
    pub fn new(id: &'static str) -> Self {
        Self {
            id: HandlerId::new(id),
            policy: RetryPolicy::default(),
            param: None,
        }
    }

    /// Sets whether arbitrary errors are temporary, permanent or ignored.
    pub fn errors(mut self, mode: ErrorMode) -> Self {
        self.policy.errors = mode;
        self
    }

    /// Limits the number of attempts.
    pub fn retries(mut self, retries: u32) -> Self {
        self.policy.retries = Some(retries);
        self
    }

    /// Limits the time of all attempts together; a handler that still runs then is cancelled.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.policy.timeout = Some(timeout);
        self
    }

    /// Sets the pause after an error that does not name one.
    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.policy.backoff = Some(backoff);
        self
    }

    /// Sets a value that the handler can read.
    pub fn param(mut self, param: impl Into<Value>) -> Self {
        self.param = Some(Arc::new(param.into()));
        self
    }
}

// === impl HookAttempt ===

impl HookAttempt {
    /// The value before the first attempt.
    pub(super) fn none() -> Self {
        Self {
            handler: HandlerId::new(""),
            param: None,
            retry: 0,
            started: Timestamp::UNIX_EPOCH,
            runtime: Duration::ZERO,
        }
    }
}
