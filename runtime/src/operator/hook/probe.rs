//! Probe handlers, which take part in the liveness probe.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::handler::retry::ErrorMode;
use kube::Client;
use serde::Serialize;
use serde_json::Value;
use tracing::{Instrument as _, error};

use super::handler::{Hook, HookAttempt};
use crate::events::span;
use crate::index::{Index, IndexView, Indices};
use crate::process::execute::invoke::supervised;
use crate::settings::Settings;

/// The context of probe handlers, which run when Kubernetes probes the liveness endpoint.
pub struct ProbeContext {
    pub(super) attempt: HookAttempt,
    client: Client,
    settings: Arc<Settings>,
    indices: Indices,
    result: Option<Value>,
}

impl ProbeContext {
    /// Sets a value that the liveness endpoint returns under the handler's id, if the handler
    /// succeeds; null is left out.
    ///
    /// # Errors
    /// If the result cannot be serialized to JSON.
    pub fn set_result(&mut self, result: &impl Serialize) -> Result<(), serde_json::Error> {
        self.result = Some(serde_json::to_value(result)?);
        Ok(())
    }

    /// A client for the cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The settings with which the operator runs.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// An index of the operator, always in its current state.
    pub fn index<I: Index>(&self, index: I) -> IndexView<I> {
        self.indices.get(index)
    }
}

impl Hook<ProbeContext> {
    /// The id under which the result is shown.
    pub(crate) fn id(&self) -> &str {
        self.declared.id.as_str()
    }

    /// Calls the handler once: the next probe takes the place of a retry.
    ///
    /// # Errors
    /// If the handler fails, and its errors are not ignored.
    pub(crate) async fn call_once(
        &self,
        client: Client,
        settings: Arc<Settings>,
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
            settings,
            indices,
            result: None,
        };
        let span = span::handler(self.id(), 0);
        let call = supervised(self.function.call(&mut cx), policy.timeout);
        let called = call.instrument(span.clone()).await;
        let ignored = policy.errors == ErrorMode::Ignored && called.is_arbitrary();
        let Some(problem) = called.problem() else {
            return Ok(cx.result);
        };
        let message = format!("Probe '{}' failed: {problem}", self.id());
        span.in_scope(|| error!("{message}"));
        if ignored { Ok(None) } else { Err(message) }
    }
}
