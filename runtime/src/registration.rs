//! Registration of a kind's handlers and webhooks by generated code.

pub(crate) mod function;

use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;
use kopf_core::admission::{WebhookRole, WebhookSpec};
use kopf_core::background::stopping::StopPolicy;
use kopf_core::background::timing::TimerTiming;
use kopf_core::handler::registry::Tracking;
use kopf_core::handler::{HandlerSpec, Trigger};
use kopf_core::selection::Selector;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::resource::{KindSpec, ResourceDescription, ResourceSpec, ResourceTarget};
use crate::context::change::ChangeContext;
use crate::context::daemon::DaemonContext;
use crate::context::event::EventContext;
use crate::context::field::FieldContext;
use crate::context::index::IndexContext;
use crate::context::mutation::MutationContext;
use crate::context::timer::TimerContext;
use crate::context::validation::ValidationContext;
use crate::handler::error::{AdmissionResult, HandlerResult};
use crate::handler::memo::{Memo, Memos};
use crate::handler::state::SharedState;
use crate::handler::webhook::WebhookHandler;
use crate::handler::{
    ChangeHandler, DaemonHandler, EventHandler, FieldHandler, HandlerDeclaration, IndexHandler,
    InitialDelay, TimerHandler,
};
use crate::health::metrics::HandlerType;
use crate::index::{Index, IndexResult};
use crate::registration::function::index::{IndexAdapter, IndexFunction};
use crate::registration::function::webhook::{MutationAdapter, ReviewFunction, ValidationAdapter};
use crate::registration::function::{
    ChangeAdapter, ChangeFunction, DaemonAdapter, DaemonFunction, EventAdapter, EventFunction,
    FieldAdapter, TimerAdapter, TimerFunction,
};

/// Collects the handlers of the kind `K`, which are methods of `S`.
#[must_use]
pub struct Resource<K, S> {
    target: ResourceTarget,
    state: SharedState<S>,
    handlers: Vec<RegisteredHandler>,
    webhooks: Vec<RegisteredWebhook>,
    memos: Option<Arc<Memos>>,
    tracking: Tracking,
    object: PhantomData<fn() -> K>,
}

/// A kind and its handlers, for [`Operator::resource`](crate::Operator::resource).
pub struct ResourceHandlers {
    pub(crate) target: ResourceTarget,
    /// The resource as discovery finds it; none for a selection of kinds.
    pub(crate) description: Option<ResourceDescription>,
    pub(crate) handlers: Vec<RegisteredHandler>,
    pub(crate) webhooks: Vec<RegisteredWebhook>,
    pub(crate) memos: Option<Arc<Memos>>,
    pub(crate) tracking: Tracking,
}

/// A handler for one trigger, with its function.
#[derive(Clone)]
pub(crate) struct RegisteredHandler {
    pub(crate) spec: HandlerSpec,
    pub(crate) function: HandlerFunction,
    pub(crate) param: Option<Arc<Value>>,
}

/// A webhook with its function.
pub(crate) struct RegisteredWebhook {
    pub(crate) spec: WebhookSpec,
    pub(crate) function: Arc<dyn ReviewFunction>,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) memos: Option<Arc<Memos>>,
    pub(crate) description: Option<ResourceDescription>,
}

/// The function of a handler.
#[derive(Clone)]
pub(crate) enum HandlerFunction {
    Change(Arc<dyn ChangeFunction>),
    Event(Arc<dyn EventFunction>),
    Daemon(RegisteredDaemon),
    Timer(RegisteredTimer),
    Index(Arc<dyn IndexFunction>),
}

// === impl ResourceHandlers ===

impl ResourceHandlers {
    /// Returns true if any handler is a daemon or timer.
    pub(crate) fn has_background(&self) -> bool {
        let mut handlers = self.handlers.iter();
        handlers.any(|it| it.spec.trigger.is_background())
    }

    /// Returns true if any handler is an index function.
    pub(crate) fn has_indices(&self) -> bool {
        let mut handlers = self.handlers.iter();
        handlers.any(|it| matches!(it.function, HandlerFunction::Index(_)))
    }

    /// Returns true if any handler writes to objects, if only its progress.
    pub(crate) fn writes(&self) -> bool {
        let writes = |trigger: Trigger| trigger.is_change() || trigger.is_background();
        self.handlers.iter().any(|it| writes(it.spec.trigger))
    }
}

// === impl HandlerFunction ===

impl HandlerFunction {
    /// The type of the handler in metrics.
    pub(crate) fn handler_type(&self) -> HandlerType {
        match self {
            Self::Change(_) => HandlerType::Change,
            Self::Event(_) => HandlerType::Event,
            Self::Daemon(_) => HandlerType::Daemon,
            Self::Timer(_) => HandlerType::Timer,
            Self::Index(_) => HandlerType::Index,
        }
    }
}

/// The function and the options of a daemon.
#[derive(Clone)]
pub(crate) struct RegisteredDaemon {
    pub(crate) function: Arc<dyn DaemonFunction>,
    pub(crate) initial_delay: InitialDelay,
    pub(crate) stopping: StopPolicy,
}

/// The function and the options of a timer.
#[derive(Clone)]
pub(crate) struct RegisteredTimer {
    pub(crate) function: Arc<dyn TimerFunction>,
    pub(crate) initial_delay: InitialDelay,
    pub(crate) timing: TimerTiming,
}

impl<K, S> Resource<K, S>
where
    K: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    /// A kind, without handlers so far.
    pub fn new(spec: ResourceSpec, state: impl Into<SharedState<S>>) -> Self {
        Self::for_target(ResourceTarget::Kind(spec), state.into())
    }

    /// All kinds of the API server that match the selector, as they are added and removed.
    ///
    /// If one of these kinds is also registered by itself, one watch serves both.
    pub fn selected(selector: Selector, state: impl Into<SharedState<S>>) -> Self {
        Self::for_target(ResourceTarget::Selection(selector), state.into())
    }

    fn for_target(target: ResourceTarget, state: SharedState<S>) -> Self {
        Self {
            target,
            state,
            handlers: Vec::new(),
            webhooks: Vec::new(),
            memos: None,
            tracking: Tracking::default(),
            object: PhantomData,
        }
    }

    /// Keeps a memo of this type for each object, which all of its handlers share.
    pub fn memo<M: Memo<K>>(mut self) -> Self {
        self.memos = Some(Arc::new(Memos::of::<K, M>()));
        self
    }

    /// Stores the last handled state of every object, also of those that no handler matches.
    ///
    /// When such an object begins to match, its update handlers are called, not its create handlers,
    /// with the diff to its former state.
    pub fn track_always(mut self) -> Self {
        self.tracking = Tracking::Always;
        self
    }

    /// Adds a handler of creations, updates, deletions or resumptions.
    pub fn change(
        self,
        handler: ChangeHandler,
        function: for<'a> fn(&'a S, &'a mut ChangeContext<K>) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let state = self.state.clone();
        let adapter = ChangeAdapter { state, function };
        self.with(
            handler.declare(),
            &HandlerFunction::Change(Arc::new(adapter)),
        )
    }

    /// Adds a handler of one field, which is decoded as an `F`.
    pub fn field<F: DeserializeOwned + Send + Sync + 'static>(
        self,
        handler: FieldHandler,
        function: for<'a> fn(&'a S, &'a mut FieldContext<K, F>) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let state = self.state.clone();
        let adapter = FieldAdapter { state, function };
        self.with(
            handler.declare(),
            &HandlerFunction::Change(Arc::new(adapter)),
        )
    }

    /// Adds a handler of all watch events.
    pub fn event(
        self,
        handler: EventHandler,
        function: for<'a> fn(&'a S, &'a mut EventContext<K>) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let state = self.state.clone();
        let adapter = EventAdapter { state, function };
        self.with(
            handler.declare(),
            &HandlerFunction::Event(Arc::new(adapter)),
        )
    }

    /// Adds a daemon.
    pub fn daemon(
        self,
        handler: DaemonHandler,
        function: for<'a> fn(&'a S, &'a mut DaemonContext<K>) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let state = self.state.clone();
        let (declared, initial_delay, stopping) = handler.declare();
        let registered = RegisteredDaemon {
            function: Arc::new(DaemonAdapter { state, function }),
            initial_delay,
            stopping,
        };
        self.with(declared, &HandlerFunction::Daemon(registered))
    }

    /// Adds a timer.
    pub fn timer(
        self,
        handler: TimerHandler,
        function: for<'a> fn(&'a S, &'a mut TimerContext<K>) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let state = self.state.clone();
        let (declared, initial_delay, timing) = handler.declare();
        let registered = RegisteredTimer {
            function: Arc::new(TimerAdapter { state, function }),
            initial_delay,
            timing,
        };
        self.with(declared, &HandlerFunction::Timer(registered))
    }

    /// Adds an index function, which returns the keys and values of an object in an index.
    pub fn index<I: Index>(
        self,
        _: I,
        handler: IndexHandler,
        function: for<'a> fn(&'a S, &'a mut IndexContext<K>) -> BoxFuture<'a, IndexResult<I>>,
    ) -> Self {
        let state = self.state.clone();
        let adapter = IndexAdapter::<I, K, S> { state, function };
        self.with(
            handler.declare(I::NAME),
            &HandlerFunction::Index(Arc::new(adapter)),
        )
    }

    /// Adds a validating webhook. It takes an `O`: the kind itself, or JSON for subresources with
    /// another type.
    pub fn validate<O: DeserializeOwned + Send + Sync + 'static>(
        self,
        handler: WebhookHandler,
        function: for<'a> fn(&'a S, &'a mut ValidationContext<O>) -> BoxFuture<'a, AdmissionResult>,
    ) -> Self {
        let state = self.state.clone();
        let adapter = ValidationAdapter { state, function };
        self.with_webhook(handler, WebhookRole::Validating, Arc::new(adapter))
    }

    /// Adds a mutating webhook.
    pub fn mutate<O: DeserializeOwned + Send + Sync + 'static>(
        self,
        handler: WebhookHandler,
        function: for<'a> fn(&'a S, &'a mut MutationContext<O>) -> BoxFuture<'a, AdmissionResult>,
    ) -> Self {
        let state = self.state.clone();
        let adapter = MutationAdapter { state, function };
        self.with_webhook(handler, WebhookRole::Mutating, Arc::new(adapter))
    }

    /// The registered handlers, for [`Operator::resource`](crate::Operator::resource).
    pub fn build(mut self) -> ResourceHandlers {
        let description = match &self.target {
            ResourceTarget::Kind(spec) => {
                Some(ResourceDescription::to_discover(&KindSpec::from(*spec)))
            }
            ResourceTarget::Selection(_) => None,
        };
        for webhook in &mut self.webhooks {
            webhook.memos.clone_from(&self.memos);
            webhook.description.clone_from(&description);
        }
        ResourceHandlers {
            target: self.target,
            description,
            handlers: self.handlers,
            webhooks: self.webhooks,
            memos: self.memos,
            tracking: self.tracking,
        }
    }

    fn with_webhook(
        mut self,
        handler: WebhookHandler,
        role: WebhookRole,
        function: Arc<dyn ReviewFunction>,
    ) -> Self {
        let (spec, param) = handler.declare(role);
        self.webhooks.push(RegisteredWebhook {
            spec,
            function,
            param,
            memos: None,
            description: None,
        });
        self
    }

    fn with(mut self, declared: HandlerDeclaration, function: &HandlerFunction) -> Self {
        for spec in declared.specs {
            self.handlers.push(RegisteredHandler {
                spec,
                function: function.clone(),
                param: declared.param.clone(),
            });
        }
        self
    }
}
