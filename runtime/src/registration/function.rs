//! Between the untyped runtime and typed handlers: decodes the object, calls, and survives it.

pub(crate) mod index;
pub(crate) mod webhook;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kopf_core::object::diff::OldValue;
use kopf_core::object::path::FieldPath;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::Old;
use crate::context::background::BackgroundInputs;
use crate::context::change::{ChangeContext, ChangeInputs, HandlerEffects};
use crate::context::daemon::DaemonContext;
use crate::context::event::EventContext;
use crate::context::field::FieldContext;
use crate::context::timer::TimerContext;
use crate::handler::error::HandlerResult;
use crate::process::execute::invoke::{CallEnd, supervised};
use crate::process::execute::scope::HandlerScope;
use crate::watch::WatchEventType;

/// A change handler without its types.
pub(crate) trait ChangeFunction: Send + Sync {
    /// Makes one attempt, at most as long as `limit`.
    fn call(&self, inputs: ChangeInputs, limit: Option<Duration>) -> BoxFuture<'_, AttemptResult>;
}

/// An event handler without its types.
pub(crate) trait EventFunction: Send + Sync {
    /// Makes one attempt, at most as long as `limit`.
    fn call(
        &self,
        scope: HandlerScope,
        raw: Arc<Value>,
        event_type: WatchEventType,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, AttemptResult>;
}

/// A daemon without its types.
pub(crate) trait DaemonFunction: Send + Sync {
    /// Makes one attempt, at most as long as `limit`, and until it is interrupted.
    fn call(
        &self,
        inputs: BackgroundInputs,
        interrupted: BoxFuture<'static, ()>,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, AttemptResult>;
}

/// A timer without its types.
pub(crate) trait TimerFunction: Send + Sync {
    /// Makes one attempt, at most as long as `limit`.
    fn call(
        &self,
        inputs: BackgroundInputs,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, AttemptResult>;
}

/// What one call of a handler came to.
#[derive(Debug)]
pub(crate) struct AttemptResult {
    pub(crate) effects: HandlerEffects,
    pub(crate) verdict: CallEnd,
}

pub(crate) struct ChangeAdapter<K, S> {
    pub(crate) state: Arc<S>,
    pub(crate) function:
        for<'a> fn(&'a S, &'a mut ChangeContext<K>) -> BoxFuture<'a, HandlerResult>,
}

pub(crate) struct FieldAdapter<K, F, S> {
    pub(crate) state: Arc<S>,
    pub(crate) field: FieldPath,
    pub(crate) function:
        for<'a> fn(&'a S, &'a mut FieldContext<K, F>) -> BoxFuture<'a, HandlerResult>,
}

pub(crate) struct EventAdapter<K, S> {
    pub(crate) state: Arc<S>,
    pub(crate) function: for<'a> fn(&'a S, &'a mut EventContext<K>) -> BoxFuture<'a, HandlerResult>,
}

pub(crate) struct DaemonAdapter<K, S> {
    pub(crate) state: Arc<S>,
    pub(crate) function:
        for<'a> fn(&'a S, &'a mut DaemonContext<K>) -> BoxFuture<'a, HandlerResult>,
}

pub(crate) struct TimerAdapter<K, S> {
    pub(crate) state: Arc<S>,
    pub(crate) function: for<'a> fn(&'a S, &'a mut TimerContext<K>) -> BoxFuture<'a, HandlerResult>,
}

// === impl ChangeFunction ===

impl<K, S> ChangeFunction for ChangeAdapter<K, S>
where
    K: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    fn call(&self, inputs: ChangeInputs, limit: Option<Duration>) -> BoxFuture<'_, AttemptResult> {
        Box::pin(async move {
            let object = match K::deserialize(&*inputs.situation.body) {
                Ok(object) => object,
                Err(error) => return AttemptResult::undecodable(&error),
            };
            let mut cx = ChangeContext::new(object, inputs);
            let verdict = supervised((self.function)(&self.state, &mut cx), limit).await;
            let verdict = cx.after(verdict).await;
            AttemptResult {
                effects: cx.effects,
                verdict,
            }
        })
    }
}

impl<K, F, S> ChangeFunction for FieldAdapter<K, F, S>
where
    K: DeserializeOwned + Send + Sync + 'static,
    F: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    fn call(&self, inputs: ChangeInputs, limit: Option<Duration>) -> BoxFuture<'_, AttemptResult> {
        Box::pin(async move {
            let sight = &inputs.situation.sight;
            let decoded = K::deserialize(&*inputs.situation.body).and_then(|object| {
                let new = self.field.resolve(sight.new.as_value());
                let new = new.map(F::deserialize).transpose()?;
                Ok((object, new))
            });
            let (object, new) = match decoded {
                Ok(decoded) => decoded,
                Err(error) => return AttemptResult::undecodable(&error),
            };
            let old = match sight.old.value_at(&self.field, &sight.new) {
                OldValue::Absent => Old::Absent,
                // The type may be younger than the state: what it cannot hold is not known.
                OldValue::Known(value) => F::deserialize(value).map_or(Old::Unknown, Old::Known),
                OldValue::Unknown => Old::Unknown,
            };
            let mut cx = FieldContext::new(ChangeContext::new(object, inputs), old, new);
            let verdict = supervised((self.function)(&self.state, &mut cx), limit).await;
            let verdict = cx.after(verdict).await;
            AttemptResult {
                effects: std::mem::take(&mut cx.effects),
                verdict,
            }
        })
    }
}

impl<K, S> EventFunction for EventAdapter<K, S>
where
    K: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    fn call(
        &self,
        scope: HandlerScope,
        raw: Arc<Value>,
        event_type: WatchEventType,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, AttemptResult> {
        Box::pin(async move {
            let object = match K::deserialize(&*raw) {
                Ok(object) => object,
                Err(error) => return AttemptResult::undecodable(&error),
            };
            let mut cx = EventContext::new(object, raw, scope, event_type);
            let verdict = supervised((self.function)(&self.state, &mut cx), limit).await;
            AttemptResult {
                effects: HandlerEffects {
                    patch: cx.patch,
                    result: cx.result,
                    subs: Vec::new(),
                },
                verdict,
            }
        })
    }
}

impl<K, S> DaemonFunction for DaemonAdapter<K, S>
where
    K: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    fn call(
        &self,
        inputs: BackgroundInputs,
        interrupted: BoxFuture<'static, ()>,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, AttemptResult> {
        Box::pin(async move {
            let mut cx = match DaemonContext::new(inputs) {
                Ok(cx) => cx,
                Err(error) => return AttemptResult::undecodable(&error),
            };
            let verdict = tokio::select! {
                verdict = supervised((self.function)(&self.state, &mut cx), limit) => verdict,
                () = interrupted => CallEnd::Interrupted,
            };
            AttemptResult {
                effects: cx.effects,
                verdict,
            }
        })
    }
}

impl<K, S> TimerFunction for TimerAdapter<K, S>
where
    K: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    fn call(
        &self,
        inputs: BackgroundInputs,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, AttemptResult> {
        Box::pin(async move {
            let mut cx = match TimerContext::new(inputs) {
                Ok(cx) => cx,
                Err(error) => return AttemptResult::undecodable(&error),
            };
            let verdict = supervised((self.function)(&self.state, &mut cx), limit).await;
            AttemptResult {
                effects: cx.effects,
                verdict,
            }
        })
    }
}

// === impl AttemptResult ===

impl AttemptResult {
    fn undecodable(error: &serde_json::Error) -> Self {
        Self {
            effects: HandlerEffects::default(),
            verdict: CallEnd::Undecodable(error.to_string()),
        }
    }
}
