//! Handlers that are asked how the operator is.

use std::time::Duration;

use jiff::Timestamp;
use kopf_core::handler::retry::ErrorMode;
use kube::Client;
use serde::Serialize;
use serde_json::Value;
use tracing::{Instrument as _, error};

use super::{Hook, HookAttempt};
use crate::events::span;
use crate::index::{Index, IndexView, Indices};
use crate::process::execute::invoke::supervised;

/// A question about the operator's health.
pub struct ProbeContext {
    pub(super) attempt: HookAttempt,
    client: Client,
    indices: Indices,
    result: Option<Value>,
}

impl ProbeContext {
    /// Shows a value under the handler's id in the answer of the liveness endpoint, if the handler
    /// succeeds; null is not shown.
    ///
    /// # Errors
    /// If the result cannot be turned into JSON.
    pub fn set_result(&mut self, result: &impl Serialize) -> Result<(), serde_json::Error> {
        self.result = Some(serde_json::to_value(result)?);
        Ok(())
    }

    /// A client for the cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// An index of the operator, always as it is now.
    pub fn index<I: Index>(&self, index: I) -> IndexView<I> {
        self.indices.get(index)
    }
}

impl Hook<ProbeContext> {
    /// The id under which the result is shown.
    pub(crate) fn id(&self) -> &str {
        self.declared.id.as_str()
    }

    /// Asks once: whoever asks again later is what a retry would be.
    ///
    /// # Errors
    /// If the handler fails, and its errors are not ignored.
    pub(crate) async fn ask(
        &self,
        client: Client,
        indices: Indices,
    ) -> Result<Option<Value>, String> {
        let policy = &self.declared.policy;
        let mut cx = ProbeContext {
            attempt: HookAttempt {
                handler: self.declared.id.clone(),
                param: self.declared.param.clone(),
                retry: 0,
                started: Timestamp::now(),
                runtime: Duration::ZERO,
            },
            client,
            indices,
            result: None,
        };
        let span = span::handler(self.id(), 0);
        let call = supervised(self.function.call(&mut cx), policy.timeout);
        let verdict = call.instrument(span.clone()).await;
        let ignored = policy.errors == ErrorMode::Ignored && verdict.is_arbitrary();
        let Some(problem) = verdict.problem() else {
            return Ok(cx.result);
        };
        let story = format!("Probe '{}' failed: {problem}", self.id());
        span.in_scope(|| error!("{story}"));
        if ignored { Ok(None) } else { Err(story) }
    }
}
