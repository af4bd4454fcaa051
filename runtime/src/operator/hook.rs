//! Handlers of the operator as a whole: what it does before it sees objects, and when it ends.

mod credentials;
pub(crate) mod login;
pub(crate) mod probe;
mod run;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kopf_core::handler::HandlerId;
use kopf_core::handler::retry::{ErrorMode, RetryPolicy};
use kube::Client;
use serde_json::Value;

use crate::handler::error::HandlerResult;
use crate::index::{Index, IndexView, Indices};
use crate::settings::{PeeringSettings, Settings};

pub use self::credentials::Credentials;
pub use self::login::{LoginContext, LoginResult};
pub use self::probe::ProbeContext;
pub use self::run::HookFailure;
pub(crate) use self::run::{HookFailurePolicy, run_hooks};

/// The declaration of a handler of the operator as a whole.
#[derive(Debug, Clone)]
#[must_use]
pub struct HookHandler {
    id: HandlerId,
    policy: RetryPolicy,
    param: Option<Arc<Value>>,
}

/// Collects the handlers of the operator as a whole, which are methods of `S`.
#[must_use]
pub struct Hooks<S> {
    state: Arc<S>,
    handlers: OperatorHandlers,
}

/// The handlers of the operator as a whole, ready for it.
#[derive(Default)]
pub struct OperatorHandlers {
    pub(crate) startups: Vec<Hook<StartupContext>>,
    pub(crate) cleanups: Vec<Hook<CleanupContext>>,
    pub(crate) logins: Vec<Hook<LoginContext>>,
    pub(crate) probes: Vec<Hook<ProbeContext>>,
}

/// One declared handler with its function.
pub(crate) struct Hook<C> {
    declared: HookHandler,
    function: Box<dyn HookFunction<C>>,
}

/// A handler without the type of its state.
pub(crate) trait HookFunction<C>: Send + Sync {
    fn call<'a>(&'a self, cx: &'a mut C) -> BoxFuture<'a, HandlerResult>;
}

/// A context that serves one attempt after the other.
pub(crate) trait HookContext: Send {
    fn attempt(&mut self, attempt: HookAttempt);
}

/// What is known before a handler is called.
#[derive(Debug, Clone)]
pub(crate) struct HookAttempt {
    handler: HandlerId,
    param: Option<Arc<Value>>,
    retry: u32,
    started: Timestamp,
    runtime: Duration,
}

/// The operator before it talks to the cluster: the time to prepare, and to change settings.
///
/// What is changed stays changed, also if the attempt fails.
#[derive(Debug)]
pub struct StartupContext {
    attempt: HookAttempt,
    pub(crate) settings: Settings,
    pub(crate) peering: PeeringSettings,
    indices: Indices,
}

/// The operator after all of its other handlers have ended.
pub struct CleanupContext {
    attempt: HookAttempt,
    client: Option<Client>,
    indices: Indices,
}

struct HookAdapter<S, C> {
    state: Arc<S>,
    function: for<'a> fn(&'a S, &'a mut C) -> BoxFuture<'a, HandlerResult>,
}

// === impl HookHandler ===

impl HookHandler {
    /// A handler with the id by which the log tells of it.
    pub fn new(id: &'static str) -> Self {
        Self {
            id: HandlerId::new(id),
            policy: RetryPolicy::default(),
            param: None,
        }
    }

    /// How errors that say nothing about themselves are treated.
    pub fn errors(mut self, mode: ErrorMode) -> Self {
        self.policy.errors = mode;
        self
    }

    /// How often the handler is called at most.
    pub fn retries(mut self, retries: u32) -> Self {
        self.policy.retries = Some(retries);
        self
    }

    /// The time for all attempts together; a handler that runs when it ends is stopped.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.policy.timeout = Some(timeout);
        self
    }

    /// The pause after an error that does not name one.
    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.policy.backoff = Some(backoff);
        self
    }

    /// Anything for the handler to know.
    pub fn param(mut self, param: impl Into<Value>) -> Self {
        self.param = Some(Arc::new(param.into()));
        self
    }
}

// === impl Hooks ===

impl<S: Send + Sync + 'static> Hooks<S> {
    /// No handlers so far.
    pub fn new(state: &Arc<S>) -> Self {
        Self {
            state: Arc::clone(state),
            handlers: OperatorHandlers::default(),
        }
    }

    /// Adds a handler that has to succeed before anything is asked of the cluster.
    pub fn startup(
        mut self,
        declared: HookHandler,
        function: for<'a> fn(&'a S, &'a mut StartupContext) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let hook = self.hook(declared, function);
        self.handlers.startups.push(hook);
        self
    }

    /// Adds a handler that is called when everything else has ended.
    pub fn cleanup(
        mut self,
        declared: HookHandler,
        function: for<'a> fn(&'a S, &'a mut CleanupContext) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let hook = self.hook(declared, function);
        self.handlers.cleanups.push(hook);
        self
    }

    /// Adds a handler that is asked when somebody asks whether the operator is alive. It is called
    /// once each time: a failure fails the probe, unless it is arbitrary and such are ignored.
    pub fn probe(
        mut self,
        declared: HookHandler,
        function: for<'a> fn(&'a S, &'a mut ProbeContext) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let hook = self.hook(declared, function);
        self.handlers.probes.push(hook);
        self
    }

    /// Adds a handler that finds credentials for the cluster. With any such handler, nothing else
    /// is looked for.
    pub fn login(
        mut self,
        declared: HookHandler,
        function: for<'a> fn(&'a S, &'a mut LoginContext) -> BoxFuture<'a, LoginResult>,
    ) -> Self {
        let hook = login::hook(&self.state, declared, function);
        self.handlers.logins.push(hook);
        self
    }

    /// All of them, for [`Operator::handlers`](crate::Operator::handlers).
    pub fn build(self) -> OperatorHandlers {
        self.handlers
    }

    fn hook<C: 'static>(
        &self,
        declared: HookHandler,
        function: for<'a> fn(&'a S, &'a mut C) -> BoxFuture<'a, HandlerResult>,
    ) -> Hook<C> {
        let state = Arc::clone(&self.state);
        Hook {
            declared,
            function: Box::new(HookAdapter { state, function }),
        }
    }
}

impl<S: Send + Sync, C> HookFunction<C> for HookAdapter<S, C> {
    fn call<'a>(&'a self, cx: &'a mut C) -> BoxFuture<'a, HandlerResult> {
        (self.function)(&self.state, cx)
    }
}

// === impl HookAttempt ===

impl HookAttempt {
    /// Before the first one.
    fn none() -> Self {
        Self {
            handler: HandlerId::new(""),
            param: None,
            retry: 0,
            started: Timestamp::UNIX_EPOCH,
            runtime: Duration::ZERO,
        }
    }
}

/// The methods that all of these contexts have.
macro_rules! hook_context {
    ($context:ident) => {
        impl $context {
            /// How many attempts were made before this one.
            pub fn retry(&self) -> u32 {
                self.attempt.retry
            }

            /// When the first of these attempts began.
            pub fn started(&self) -> Timestamp {
                self.attempt.started
            }

            /// How long that was ago when this attempt began.
            pub fn runtime(&self) -> Duration {
                self.attempt.runtime
            }

            /// What the manifest says in `param`.
            pub fn param(&self) -> Option<&Value> {
                self.attempt.param.as_deref()
            }

            /// The id by which the log tells of the handler.
            pub fn handler_id(&self) -> &str {
                self.attempt.handler.as_str()
            }
        }

        impl HookContext for $context {
            fn attempt(&mut self, attempt: HookAttempt) {
                self.attempt = attempt;
            }
        }
    };
}

hook_context!(StartupContext);
hook_context!(CleanupContext);
hook_context!(LoginContext);
hook_context!(ProbeContext);

// === impl StartupContext ===

impl StartupContext {
    pub(crate) fn new(settings: Settings, peering: PeeringSettings, indices: Indices) -> Self {
        Self {
            attempt: HookAttempt::none(),
            settings,
            peering,
            indices,
        }
    }

    /// The indices, to be looked into later: there is nothing in them yet.
    pub fn indices(&self) -> &Indices {
        &self.indices
    }

    /// The settings with which the operator is going to run.
    pub fn settings(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// How the operator is going to get along with others.
    pub fn peering(&mut self) -> &mut PeeringSettings {
        &mut self.peering
    }
}

// === impl CleanupContext ===

impl CleanupContext {
    pub(crate) fn new(client: Option<Client>, indices: Indices) -> Self {
        Self {
            attempt: HookAttempt::none(),
            client,
            indices,
        }
    }

    /// An index of the operator as it was in the end.
    pub fn index<I: Index>(&self, index: I) -> IndexView<I> {
        self.indices.get(index)
    }

    /// A client for the cluster; none if the operator ends because it found no cluster.
    pub fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }
}
