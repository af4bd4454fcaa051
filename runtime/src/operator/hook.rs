//! Handlers of the operator as a whole: startup, cleanup, login and probe handlers.

mod credentials;
mod handler;
mod login;
pub(crate) mod login_error;
mod probe;
mod run;
mod startup_cleanup;
mod state;

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;

use self::handler::{HookAttempt, HookContext, HookFunction};
use crate::handler::error::HandlerResult;
use crate::handler::state::SharedState;

pub use self::credentials::{Credentials, LoginResult};
pub(crate) use self::handler::Hook;
pub use self::handler::HookHandler;
pub use self::login::LoginContext;
pub(crate) use self::login::default_login;
pub use self::probe::ProbeContext;
pub use self::run::HookFailure;
pub(crate) use self::run::{HookFailurePolicy, run_hooks};
pub use self::startup_cleanup::{CleanupContext, StartupContext};
pub(crate) use self::state::StateHook;

/// Collects the startup, cleanup, login and probe handlers, which are methods of `S`.
#[must_use]
pub struct Hooks<S> {
    state: SharedState<S>,
    handlers: OperatorHandlers,
}

/// The startup, cleanup, login and probe handlers of an operator.
#[derive(Default)]
pub struct OperatorHandlers {
    /// The handler that builds the state, which all others need.
    pub(crate) state: Option<StateHook>,
    pub(crate) startups: Vec<Hook<StartupContext>>,
    pub(crate) cleanups: Vec<Hook<CleanupContext>>,
    pub(crate) logins: Vec<Hook<LoginContext>>,
    pub(crate) probes: Vec<Hook<ProbeContext>>,
}

struct HookAdapter<S, C> {
    state: SharedState<S>,
    function: for<'a> fn(&'a S, &'a mut C) -> BoxFuture<'a, HandlerResult>,
}

// === impl Hooks ===

impl<S: Send + Sync + 'static> Hooks<S> {
    /// A collection without handlers.
    pub fn new(state: impl Into<SharedState<S>>) -> Self {
        Self {
            state: state.into(),
            handlers: OperatorHandlers::default(),
        }
    }

    /// Sets the handler that builds the state, before all other handlers.
    pub fn state(
        mut self,
        declared: HookHandler,
        function: for<'a> fn(&'a mut StartupContext) -> BoxFuture<'a, HandlerResult<S>>,
    ) -> Self {
        self.handlers.state = Some(StateHook::new(&self.state, declared, function));
        self
    }

    /// Adds a handler that has to succeed before the operator sends any request.
    pub fn startup(
        mut self,
        declared: HookHandler,
        function: for<'a> fn(&'a S, &'a mut StartupContext) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let hook = self.hook(declared, function);
        self.handlers.startups.push(hook);
        self
    }

    /// Adds a handler that runs when everything else has ended.
    pub fn cleanup(
        mut self,
        declared: HookHandler,
        function: for<'a> fn(&'a S, &'a mut CleanupContext) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let hook = self.hook(declared, function);
        self.handlers.cleanups.push(hook);
        self
    }

    /// Adds a handler that runs when Kubernetes probes the liveness endpoint. It is called once per
    /// probe: a failure fails the probe, unless it is arbitrary and such errors are ignored.
    pub fn probe(
        mut self,
        declared: HookHandler,
        function: for<'a> fn(&'a S, &'a mut ProbeContext) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let hook = self.hook(declared, function);
        self.handlers.probes.push(hook);
        self
    }

    /// Adds a handler that finds credentials for the cluster. With any such handler, the operator
    /// reads neither a kubeconfig nor the service account of its pod.
    pub fn login(
        mut self,
        declared: HookHandler,
        function: for<'a> fn(&'a S, &'a mut LoginContext) -> BoxFuture<'a, LoginResult>,
    ) -> Self {
        let hook = login::hook(&self.state, declared, function);
        self.handlers.logins.push(hook);
        self
    }

    /// The collected handlers, for [`Operator::handlers`](crate::Operator::handlers).
    pub fn build(self) -> OperatorHandlers {
        self.handlers
    }

    fn hook<C: 'static>(
        &self,
        declared: HookHandler,
        function: for<'a> fn(&'a S, &'a mut C) -> BoxFuture<'a, HandlerResult>,
    ) -> Hook<C> {
        let state = self.state.clone();
        Hook {
            declared,
            function: Box::new(HookAdapter { state, function }),
        }
    }
}

impl<S: Send + Sync, C> HookFunction<C> for HookAdapter<S, C> {
    fn call<'a>(&'a self, cx: &'a mut C) -> BoxFuture<'a, HandlerResult> {
        (self.function)(self.state.get(), cx)
    }
}

/// The methods that all contexts of this module have.
macro_rules! hook_context {
    ($context:ident) => {
        impl $context {
            /// The number of attempts before this one.
            pub fn retry(&self) -> u32 {
                self.attempt.retry
            }

            /// The time at which the first attempt began.
            pub fn started(&self) -> Timestamp {
                self.attempt.started
            }

            /// The time from the start of the first attempt to the start of this one.
            pub fn runtime(&self) -> Duration {
                self.attempt.runtime
            }

            /// The `param` of the handler in the manifest.
            pub fn param(&self) -> Option<&Value> {
                self.attempt.param.as_deref()
            }

            /// The id of the handler, as the log shows it.
            pub fn handler_id(&self) -> &str {
                self.attempt.handler.as_str()
            }
        }

        impl HookContext for $context {
            fn set_attempt(&mut self, attempt: HookAttempt) {
                self.attempt = attempt;
            }
        }
    };
}

hook_context!(StartupContext);
hook_context!(CleanupContext);
hook_context!(LoginContext);
hook_context!(ProbeContext);
