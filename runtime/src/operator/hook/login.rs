//! Handlers that find credentials for the cluster.

use std::sync::Arc;

use futures::future::BoxFuture;
use kopf_core::handler::HandlerId;

use super::{Credentials, Hook, HookAttempt, HookFunction, HookHandler};
use crate::handler::error::{HandlerError, HandlerResult};

/// What a login handler returns: credentials, or none if it has none to offer.
pub type LoginResult = Result<Option<Credentials>, HandlerError>;

/// The need of credentials for the cluster.
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

    /// Whether there were credentials before, which were refused or whose time is over.
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
