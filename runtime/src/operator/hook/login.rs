//! Login handlers, which find credentials for the cluster.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kopf_core::handler::HandlerId;

use super::credentials::{Credentials, LoginResult};
use super::handler::{Hook, HookAttempt, HookFunction, HookHandler};
use crate::handler::error::{HandlerError, HandlerResult};
use crate::handler::state::SharedState;
use crate::index::{Index, IndexView, Indices};
use crate::settings::Settings;

/// The attempts of the default login to read a kubeconfig again, which may be half written.
const READS: u32 = 3;
const READ_PAUSE: Duration = Duration::from_secs(1);

/// The context of login handlers, which run when the operator has no valid credentials.
pub struct LoginContext {
    pub(super) attempt: HookAttempt,
    renewal: bool,
    settings: Arc<Settings>,
    indices: Indices,
    pub(crate) found: Vec<(HandlerId, Credentials)>,
}

pub(super) struct LoginAdapter<S> {
    state: SharedState<S>,
    function: for<'a> fn(&'a S, &'a mut LoginContext) -> BoxFuture<'a, LoginResult>,
}

impl LoginContext {
    pub(crate) fn new(renewal: bool, settings: Arc<Settings>, indices: Indices) -> Self {
        Self {
            attempt: HookAttempt::none(),
            renewal,
            settings,
            indices,
            found: Vec::new(),
        }
    }

    /// Whether earlier credentials were rejected by the API server, or have expired.
    pub fn is_renewal(&self) -> bool {
        self.renewal
    }

    /// The settings with which the operator runs.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// An index of the operator, in its current state: empty at the first login, which is before
    /// all objects are read.
    pub fn index<I: Index>(&self, index: I) -> IndexView<I> {
        self.indices.get(index)
    }
}

pub(super) fn hook<S: Send + Sync + 'static>(
    state: &SharedState<S>,
    declared: HookHandler,
    function: for<'a> fn(&'a S, &'a mut LoginContext) -> BoxFuture<'a, LoginResult>,
) -> Hook<LoginContext> {
    let state = state.clone();
    Hook {
        declared,
        function: Box::new(LoginAdapter { state, function }),
    }
}

/// The login of operators without login handlers: a kubeconfig, or the service account of the pod.
pub(crate) fn default_login() -> Hook<LoginContext> {
    let declared = HookHandler::new("default_login").retries(READS);
    hook(&(&Arc::new(())).into(), declared, |(), cx| {
        Box::pin(async move {
            let found = Credentials::infer().await;
            match found {
                Err(error) if cx.is_renewal() => {
                    Err(HandlerError::temporary_after(READ_PAUSE, error.to_string()))
                }
                found => found,
            }
        })
    })
}

impl<S: Send + Sync> HookFunction<LoginContext> for LoginAdapter<S> {
    fn call<'a>(&'a self, cx: &'a mut LoginContext) -> BoxFuture<'a, HandlerResult> {
        Box::pin(async move {
            if let Some(credentials) = (self.function)(self.state.get(), cx).await? {
                let handler = cx.attempt.handler.clone();
                cx.found.push((handler, credentials));
            }
            Ok(())
        })
    }
}
