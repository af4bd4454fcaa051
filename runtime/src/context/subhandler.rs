//! Sub-handlers: parts of a change handler with their own progress, retries and timeouts.

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kopf_core::handler::{HandlerId, HandlerSpec, Trigger};
use kopf_core::lifecycle::Lifecycle;
use kopf_core::outcome::{HandlerFailure, Outcome};
use kopf_core::turn::sub::SubTurn;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::Instrument as _;

use super::change::{
    ChangeContext, ChangeInputs, HandlerEffects, RegisteredSubHandler, SubFunction,
};
use super::field::FieldContext;
use super::filter::{FilterMemo, FilterResource, FilterScope};
use crate::events::span;
use crate::handler::SubHandler;
use crate::handler::error::{HandlerError, HandlerResult};
use crate::process::execute::{invoke, report};

impl<K: DeserializeOwned + Send + Sync + 'static> ChangeContext<K> {
    /// Registers a sub-handler, which the runtime calls after the handler itself has returned.
    ///
    /// The runtime calls the handler again, and it must register the same sub-handlers again,
    /// until all of them are done. Those that are done are not called again.
    pub fn sub(
        &mut self,
        handler: SubHandler,
        function: impl for<'a> FnOnce(&'a mut Self) -> BoxFuture<'a, HandlerResult> + Send + 'static,
    ) {
        let function: SubFunction = Box::new(move |inputs, limit| {
            Box::pin(async move {
                let mut cx = match K::deserialize(&*inputs.situation.body) {
                    Ok(object) => Self::new(object, inputs),
                    Err(error) => return undecodable(&error),
                };
                let end = invoke::supervised(function(&mut cx), limit).await;
                (cx.after(end).await, cx.effects)
            })
        });
        self.registered()
            .push(RegisteredSubHandler { handler, function });
    }

    /// Registers a sub-handler as [`sub`](Self::sub) does; its context has the old and the new
    /// value of its field. Without a field of its own, it is that of the handler above it, or the
    /// essence of the whole object.
    pub fn sub_field<F: DeserializeOwned + Send + Sync + 'static>(
        &mut self,
        handler: SubHandler,
        function: impl for<'a> FnOnce(&'a mut FieldContext<K, F>) -> BoxFuture<'a, HandlerResult>
        + Send
        + 'static,
    ) {
        let function: SubFunction = Box::new(move |inputs, limit| {
            Box::pin(async move {
                let mut cx = match FieldContext::new(inputs) {
                    Ok(cx) => cx,
                    Err(error) => return undecodable(&error),
                };
                let end = invoke::supervised(function(&mut cx), limit).await;
                (cx.after(end).await, std::mem::take(&mut cx.effects))
            })
        });
        self.registered()
            .push(RegisteredSubHandler { handler, function });
    }

    /// Calls the sub-handlers that are registered so far and are due.
    ///
    /// # Errors
    /// If some are not done yet. Return this error: the runtime then calls the handler again when
    /// they are due, and does not count that as another attempt.
    pub async fn run_subs(&mut self) -> HandlerResult {
        let lifecycle = self.inputs.execution.lifecycle.clone();
        self.run_subs_by(&lifecycle).await
    }

    /// As [`run_subs`](Self::run_subs), in the order of this lifecycle.
    ///
    /// # Errors
    /// As [`run_subs`](Self::run_subs).
    pub async fn run_subs_by(&mut self, lifecycle: &Lifecycle) -> HandlerResult {
        let registered = std::mem::take(self.registered());
        if registered.is_empty() {
            return Ok(());
        }
        // What the sub-handlers change comes later than what this handler changed so far.
        self.draft.settle(&self.effects.patch)?;
        let parent = self.inputs.handler.clone();
        let changing = self.inputs.changing;
        let scope = &self.inputs.scope;
        let (specs, mut functions): (Vec<_>, Vec<_>) = registered
            .into_iter()
            .map(|registered| {
                let param = registered.handler.parameter();
                let mut spec = registered
                    .handler
                    .declare(&parent, Trigger::Sub { changing });
                let filter_scope = FilterScope {
                    indices: scope.services.indices.clone(),
                    memo: FilterMemo::of_object(scope.memo.as_ref()),
                    param: param.clone(),
                    resource: FilterResource::Known(Arc::clone(&scope.resource)),
                };
                filter_scope.bind(&mut spec.filters);
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

    /// Runs the sub-handlers after a call that succeeded, and returns how the whole ended.
    pub(crate) async fn after(&mut self, end: invoke::CallEnd) -> invoke::CallEnd {
        match self.draft.settle_at(end, &self.effects.patch) {
            invoke::CallEnd::Returned(Ok(())) => invoke::CallEnd::Returned(self.run_subs().await),
            end => end,
        }
    }

    async fn call_sub(
        &mut self,
        cycle: &mut SubTurn,
        spec: &HandlerSpec,
        param: Option<Arc<Value>>,
        function: SubFunction,
    ) {
        let id: &HandlerId = &spec.id;
        let reason = self.inputs.situation.change.reason;
        let outcome = match cycle.begin(id, Timestamp::now()) {
            Err(limit) => Outcome::Error(HandlerFailure::Exhausted(limit)),
            Ok(allowance) => {
                let inputs = ChangeInputs {
                    handler: id.clone(),
                    param,
                    retry: allowance.retry,
                    started: allowance.started,
                    runtime: allowance.runtime,
                    ..self.inputs.clone()
                };
                let span = span::handler(id.as_str(), allowance.retry);
                let call = function(inputs.within_field_of(spec), allowance.time_left);
                let (end, mut effects) = call.instrument(span).await;
                let result = effects.result.take();
                for nested in std::mem::take(&mut effects.subs) {
                    cycle.absorb(nested);
                }
                self.effects.absorb(effects);
                end.into_outcome(result, reason, &spec.policy)
            }
        };
        if let Outcome::Success(result) = &outcome {
            self.effects.deliver(id, result);
        }
        let default_backoff = self.inputs.execution.default_backoff;
        let now = Timestamp::now();
        let consequence = cycle.finish(id, outcome.clone(), default_backoff, now);
        let finished = report::FinishedCall {
            spec,
            outcome: &outcome,
            consequence: &consequence,
            record: cycle.record(id),
            default_backoff,
            now,
        };
        report::report_call(&finished, &self.inputs.scope);
    }
}

/// The end of a call whose object or field does not fit its type.
fn undecodable(error: &serde_json::Error) -> (invoke::CallEnd, HandlerEffects) {
    let end = invoke::CallEnd::Undecodable(error.to_string());
    (end, HandlerEffects::default())
}
