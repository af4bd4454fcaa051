//! Adapters from the untyped runtime to typed handlers: they decode the object and call the
//! function, and catch its panics and timeouts.

pub(crate) mod children;
pub(crate) mod index;
pub(crate) mod webhook;

use std::time::Duration;

use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::context::background::BackgroundInputs;
use crate::context::change::{ChangeContext, ChangeInputs, HandlerEffects};
use crate::context::daemon::DaemonContext;
use crate::context::event::{EventContext, EventInputs};
use crate::context::field::FieldContext;
use crate::context::timer::TimerContext;
use crate::handler::error::HandlerResult;
use crate::handler::state::SharedState;
use crate::process::execute::invoke::{CallEnd, supervised};

/// A change handler without its types.
pub(crate) trait ChangeFunction: Send + Sync {
    /// Makes one attempt, for at most `limit`.
    fn call(&self, inputs: ChangeInputs, limit: Option<Duration>) -> BoxFuture<'_, AttemptResult>;
}

/// An event handler without its types.
pub(crate) trait EventFunction: Send + Sync {
    /// Makes one attempt, for at most `limit`.
    fn call(&self, inputs: EventInputs, limit: Option<Duration>) -> BoxFuture<'_, AttemptResult>;
}

/// A daemon without its types.
pub(crate) trait DaemonFunction: Send + Sync {
    /// Makes one attempt, for at most `limit`, and until `interrupted` completes.
    fn call(
        &self,
        inputs: BackgroundInputs,
        interrupted: BoxFuture<'static, ()>,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, AttemptResult>;
}

/// A timer without its types.
pub(crate) trait TimerFunction: Send + Sync {
    /// Makes one attempt, for at most `limit`.
    fn call(
        &self,
        inputs: BackgroundInputs,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, AttemptResult>;
}

/// The result of one call of a handler.
#[derive(Debug)]
pub(crate) struct AttemptResult {
    pub(crate) effects: HandlerEffects,
    pub(crate) end: CallEnd,
}

pub(crate) struct ChangeAdapter<K, S> {
    pub(crate) state: SharedState<S>,
    pub(crate) function:
        for<'a> fn(&'a S, &'a mut ChangeContext<K>) -> BoxFuture<'a, HandlerResult>,
}

pub(crate) struct FieldAdapter<K, F, S> {
    pub(crate) state: SharedState<S>,
    pub(crate) function:
        for<'a> fn(&'a S, &'a mut FieldContext<K, F>) -> BoxFuture<'a, HandlerResult>,
}

pub(crate) struct EventAdapter<K, S> {
    pub(crate) state: SharedState<S>,
    pub(crate) function: for<'a> fn(&'a S, &'a mut EventContext<K>) -> BoxFuture<'a, HandlerResult>,
}

pub(crate) struct DaemonAdapter<K, S> {
    pub(crate) state: SharedState<S>,
    pub(crate) function:
        for<'a> fn(&'a S, &'a mut DaemonContext<K>) -> BoxFuture<'a, HandlerResult>,
}

pub(crate) struct TimerAdapter<K, S> {
    pub(crate) state: SharedState<S>,
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
            let end = supervised((self.function)(self.state.get(), &mut cx), limit).await;
            let end = cx.after(end).await;
            AttemptResult {
                effects: cx.effects,
                end,
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
            let mut cx = match FieldContext::new(inputs) {
                Ok(cx) => cx,
                Err(error) => return AttemptResult::undecodable(&error),
            };
            let end = supervised((self.function)(self.state.get(), &mut cx), limit).await;
            let end = cx.after(end).await;
            AttemptResult {
                effects: std::mem::take(&mut cx.effects),
                end,
            }
        })
    }
}

impl<K, S> EventFunction for EventAdapter<K, S>
where
    K: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    fn call(&self, inputs: EventInputs, limit: Option<Duration>) -> BoxFuture<'_, AttemptResult> {
        Box::pin(async move {
            let object = match K::deserialize(&*inputs.raw) {
                Ok(object) => object,
                Err(error) => return AttemptResult::undecodable(&error),
            };
            let mut cx = EventContext::new(object, inputs);
            let end = supervised((self.function)(self.state.get(), &mut cx), limit).await;
            let end = cx.draft.settle_at(end, &cx.patch);
            AttemptResult {
                effects: HandlerEffects {
                    patch: cx.patch,
                    result: cx.result,
                    subs: Vec::new(),
                },
                end,
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
            let end = tokio::select! {
                end = supervised((self.function)(self.state.get(), &mut cx), limit) => end,
                () = interrupted => CallEnd::Interrupted,
            };
            let end = cx.draft.settle_at(end, &cx.effects.patch);
            AttemptResult {
                effects: cx.effects,
                end,
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
            let end = supervised((self.function)(self.state.get(), &mut cx), limit).await;
            let end = cx.draft.settle_at(end, &cx.effects.patch);
            AttemptResult {
                effects: cx.effects,
                end,
            }
        })
    }
}

// === impl AttemptResult ===

impl AttemptResult {
    pub(super) fn undecodable(error: &serde_json::Error) -> Self {
        Self {
            effects: HandlerEffects::default(),
            end: CallEnd::Undecodable(error.to_string()),
        }
    }
}
