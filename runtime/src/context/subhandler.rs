//! Sub-handlers: parts of a handler that are recorded, retried and awaited one by one.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kopf_core::cycle::sub::SubCycle;
use kopf_core::handler::{HandlerId, HandlerSpec, Trigger};
use kopf_core::lifecycle::Lifecycle;
use kopf_core::outcome::{HandlerFailure, Outcome};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::Instrument as _;

use super::change::{ChangeContext, ChangeInputs};
use crate::events::span;
use crate::handler::SubHandler;
use crate::handler::error::{HandlerError, HandlerResult};
use crate::process::execute::{invoke, report};

/// A registered sub-handler with its function.
pub(crate) struct RegisteredSubHandler<K> {
    handler: SubHandler,
    function: SubFunction<K>,
}

type SubFunction<K> =
    Box<dyn for<'a> FnOnce(&'a mut ChangeContext<K>) -> BoxFuture<'a, HandlerResult> + Send>;

impl<K: DeserializeOwned + Send + Sync + 'static> ChangeContext<K> {
    /// Registers a sub-handler, which runs when the handler itself has returned.
    ///
    /// The handler is called again, and must register the same sub-handlers again, until all of
    /// them are done; those that are done are not called again.
    pub fn sub(
        &mut self,
        handler: SubHandler,
        function: impl for<'a> FnOnce(&'a mut Self) -> BoxFuture<'a, HandlerResult> + Send + 'static,
    ) {
        self.registered.push(RegisteredSubHandler {
            handler,
            function: Box::new(function),
        });
    }

    /// Runs the sub-handlers that are registered so far, as far as they are due.
    ///
    /// # Errors
    /// If some are not done yet. Return this error: the handler is then called again in time,
    /// which does not count as an attempt of its own.
    pub async fn run_subs(&mut self) -> HandlerResult {
        let lifecycle = self.inputs.execution.lifecycle.clone();
        self.run_subs_by(&lifecycle).await
    }

    /// The same with another order, or with all of them at once.
    ///
    /// # Errors
    /// As [`run_subs`](Self::run_subs).
    pub async fn run_subs_by(&mut self, lifecycle: &Lifecycle) -> HandlerResult {
        let registered = std::mem::take(&mut self.registered);
        if registered.is_empty() {
            return Ok(());
        }
        let parent = self.inputs.handler.clone();
        let changing = self.inputs.changing;
        let (specs, mut functions): (Vec<_>, Vec<_>) = registered
            .into_iter()
            .map(|registered| {
                let param = registered.handler.parameter();
                let spec = registered
                    .handler
                    .declare(&parent, Trigger::Sub { changing });
                (spec.clone(), (spec.id, param, registered.function))
            })
            .unzip();
        let now = Timestamp::now();
        let mut cycle = self.inputs.subs.sub(&parent, specs, now);
        for spec in cycle.due(lifecycle, fastrand::u64(..), now) {
            if !self.inputs.scope.services.pause_gate.is_running() {
                break;
            }
            let Some(at) = functions.iter().position(|(id, ..)| *id == spec.id) else {
                continue;
            };
            let (_, param, function) = functions.swap_remove(at);
            self.call_sub(&mut cycle, &spec, param, function).await;
        }
        let outcome = cycle.outcome(Value::Null, Timestamp::now());
        self.effects.subs.push(cycle);
        match outcome {
            Outcome::Waiting { delay } => Err(HandlerError::waiting(delay)),
            Outcome::Success(_) | Outcome::Error(_) => Ok(()),
        }
    }

    /// Calls a sub-handler, and then those that it registered in its turn.
    fn call(
        &mut self,
        function: SubFunction<K>,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, invoke::CallEnd> {
        Box::pin(async move {
            let verdict = invoke::supervised(function(self), limit).await;
            self.after(verdict).await
        })
    }

    /// What a call that ended so comes to, once its sub-handlers have run.
    pub(crate) async fn after(&mut self, verdict: invoke::CallEnd) -> invoke::CallEnd {
        match verdict {
            invoke::CallEnd::Returned(Ok(())) => invoke::CallEnd::Returned(self.run_subs().await),
            verdict => verdict,
        }
    }

    async fn call_sub(
        &mut self,
        cycle: &mut SubCycle,
        spec: &HandlerSpec,
        param: Option<Arc<Value>>,
        function: SubFunction<K>,
    ) {
        let id: &HandlerId = &spec.id;
        let reason = self.inputs.situation.sight.reason;
        let outcome = match cycle.begin(id, Timestamp::now()) {
            Err(limit) => Outcome::Error(HandlerFailure::Exhausted(limit)),
            Ok(allowance) => {
                let inputs = ChangeInputs {
                    handler: id.clone(),
                    param,
                    diff: self.inputs.diff_for(spec),
                    retry: allowance.retry,
                    started: allowance.started,
                    runtime: allowance.runtime,
                    ..self.inputs.clone()
                };
                match K::deserialize(&*inputs.situation.body) {
                    Err(error) => invoke::CallEnd::Undecodable(error.to_string()).into_outcome(
                        None,
                        reason,
                        &spec.policy,
                    ),
                    Ok(object) => {
                        let mut cx = Self::new(object, inputs);
                        let span = span::handler(id.as_str(), allowance.retry);
                        let verdict = cx
                            .call(function, allowance.time_left)
                            .instrument(span)
                            .await;
                        let result = cx.effects.result.take();
                        for nested in std::mem::take(&mut cx.effects.subs) {
                            cycle.absorb(nested);
                        }
                        self.effects.absorb(cx.effects);
                        verdict.into_outcome(result, reason, &spec.policy)
                    }
                }
            }
        };
        if let Outcome::Success(result) = &outcome {
            self.effects.deliver(id, result);
        }
        let default_backoff = self.inputs.execution.default_backoff;
        let now = Timestamp::now();
        let consequence = cycle.finish(id, outcome.clone(), default_backoff, now);
        let finished = report::Finished {
            spec,
            outcome: &outcome,
            consequence: &consequence,
            record: cycle.record(id),
            default_backoff,
            now,
        };
        report::tell(&finished, &self.inputs.scope);
    }
}
