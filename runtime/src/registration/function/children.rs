//! Adapters from the untyped runtime to `reconcile` and to handlers of children.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::AttemptResult;
use crate::context::change::HandlerEffects;
use crate::context::child::{ChildChange, ChildContext};
use crate::context::event::EventInputs;
use crate::context::reconcile::{ReconcileContext, ReconcileInputs};
use crate::handler::error::HandlerResult;
use crate::handler::state::SharedState;
use crate::process::execute::invoke::supervised;

/// `reconcile` without its types.
pub(crate) trait ReconcileFunction: Send + Sync {
    /// Makes one attempt, for at most `limit`.
    fn call(
        &self,
        inputs: ReconcileInputs,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, AttemptResult>;
}

/// A handler of children without its types.
pub(crate) trait ChildFunction: Send + Sync {
    /// Makes one attempt, for at most `limit`.
    fn call(
        &self,
        inputs: EventInputs,
        child: Arc<Value>,
        change: ChildChange,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, AttemptResult>;
}

pub(crate) struct ReconcileAdapter<K, C, S> {
    pub(crate) state: SharedState<S>,
    pub(crate) function:
        for<'a> fn(&'a S, &'a mut ReconcileContext<K, C>) -> BoxFuture<'a, HandlerResult>,
}

pub(crate) struct ChildAdapter<K, T, S> {
    pub(crate) state: SharedState<S>,
    pub(crate) function:
        for<'a> fn(&'a S, &'a mut ChildContext<K, T>) -> BoxFuture<'a, HandlerResult>,
}

impl<K, C, S> ReconcileFunction for ReconcileAdapter<K, C, S>
where
    K: DeserializeOwned + Send + Sync + 'static,
    C: 'static,
    S: Send + Sync + 'static,
{
    fn call(
        &self,
        inputs: ReconcileInputs,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, AttemptResult> {
        Box::pin(async move {
            let object = match K::deserialize(&*inputs.raw) {
                Ok(object) => object,
                Err(error) => return AttemptResult::undecodable(&error),
            };
            let mut cx = ReconcileContext::new(object, inputs);
            let end = supervised((self.function)(self.state.get(), &mut cx), limit).await;
            let end = cx.draft.settle_at(end, &cx.effects.patch);
            AttemptResult {
                effects: cx.into_effects(),
                end,
            }
        })
    }
}

impl<K, T, S> ChildFunction for ChildAdapter<K, T, S>
where
    K: DeserializeOwned + Send + Sync + 'static,
    T: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    fn call(
        &self,
        inputs: EventInputs,
        child: Arc<Value>,
        change: ChildChange,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, AttemptResult> {
        Box::pin(async move {
            let decoded = K::deserialize(&*inputs.raw)
                .and_then(|owner| T::deserialize(&*child).map(|child| (owner, child)));
            let (owner, child) = match decoded {
                Ok(decoded) => decoded,
                Err(error) => return AttemptResult::undecodable(&error),
            };
            let mut cx = ChildContext::new(owner, inputs, child, change);
            let end = supervised((self.function)(self.state.get(), &mut cx), limit).await;
            let end = cx.draft.settle_at(end, &cx.patch);
            let owner = cx.into_owner();
            AttemptResult {
                effects: HandlerEffects {
                    patch: owner.patch,
                    result: owner.result,
                    subs: Vec::new(),
                },
                end,
            }
        })
    }
}
