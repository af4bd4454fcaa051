//! Login handlers, which find credentials for the cluster.

use std::sync::Arc;

use futures::future::BoxFuture;
use kopf_core::handler::HandlerId;

use super::credentials::{Credentials, LoginResult};
use super::handler::{Hook, HookAttempt, HookFunction, HookHandler};
use crate::handler::error::HandlerResult;

/// The context of login handlers, which run when the operator has no valid credentials.
pub struct LoginContext {
    pub(super) attempt: HookAttempt,
    renewal: bool,
    pub(crate) found: Vec<(HandlerId, Credentials)>,
}

pub(super) struct LoginAdapter<S> {
    state: Arc<S>,
    function: for<'a> fn(&'a S, &'a mut LoginContext) -> BoxFuture<'a, LoginResult>,
}

impl LoginContext {
    pub(crate) fn new(renewal: bool) -> Self {
        Self {
            attempt: HookAttempt::none(),
            renewal,
            found: Vec::new(),
        }
    }

    /// Whether earlier credentials were rejected by the API server, or have expired.
    pub fn is_renewal(&self) -> bool {
        self.renewal
    }
}

pub(super) fn hook<S: Send + Sync + 'static>(
    state: &Arc<S>,
    declared: HookHandler,
    function: for<'a> fn(&'a S, &'a mut LoginContext) -> BoxFuture<'a, LoginResult>,
) -> Hook<LoginContext> {
    let state = Arc::clone(state);
    Hook {
        declared,
        function: Box::new(LoginAdapter { state, function }),
    }
}

impl<S: Send + Sync> HookFunction<LoginContext> for LoginAdapter<S> {
    fn call<'a>(&'a self, cx: &'a mut LoginContext) -> BoxFuture<'a, HandlerResult> {
        Box::pin(async move {
            if let Some(credentials) = (self.function)(&self.state, cx).await? {
                let handler = cx.attempt.handler.clone();
                cx.found.push((handler, credentials));
            }
            Ok(())
        })
    }
}
