//! Calls probe handlers, and survives them.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::context::probe::Probe;
use crate::error::HandlerResult;
use crate::execute::invoke::{Verdict, supervised};

/// A probe handler without the type that it is a method of.
pub(crate) trait ProbeFunction: Send + Sync {
    /// Asks once, at most as long as `limit`; returns how that ended and the result.
    fn call(&self, cx: Probe, limit: Option<Duration>) -> BoxFuture<'_, (Verdict, Option<Value>)>;
}

pub(crate) struct ProbeShim<S> {
    pub(crate) state: Arc<S>,
    pub(crate) function: for<'a> fn(&'a S, &'a mut Probe) -> BoxFuture<'a, HandlerResult>,
}

impl<S: Send + Sync + 'static> ProbeFunction for ProbeShim<S> {
    fn call(
        &self,
        mut cx: Probe,
        limit: Option<Duration>,
    ) -> BoxFuture<'_, (Verdict, Option<Value>)> {
        Box::pin(async move {
            let verdict = supervised((self.function)(&self.state, &mut cx), limit).await;
            (verdict, cx.result.take())
        })
    }
}
