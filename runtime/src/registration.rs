//! A kind with its handlers, as generated code puts them together.

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
use crate::handler::webhook::WebhookHandler;
use crate::handler::{
    ChangeHandler, DaemonHandler, Declared, EventHandler, FieldHandler, IndexHandler, InitialDelay,
    TimerHandler,
};
use crate::health::metrics::Form;
use crate::index::{Index, IndexResult};
use crate::registration::function::index::{IndexAdapter, IndexFunction};
use crate::registration::function::webhook::{MutationAdapter, ReviewFunction, ValidationAdapter};
use crate::registration::function::{
    ChangeAdapter, ChangeFunction, DaemonAdapter, DaemonFunction, EventAdapter, EventFunction,
    FieldAdapter, TimerAdapter, TimerFunction,
};

/// Collects the handlers of one kind `K`, which are methods of `S`.
#[must_use]
pub struct Resource<K, S> {
    target: ResourceTarget,
    state: Arc<S>,
    handlers: Vec<RegisteredHandler>,
    webhooks: Vec<RegisteredWebhook>,
    memos: Option<Arc<Memos>>,
    tracking: Tracking,
    object: PhantomData<fn() -> K>,
}

/// A kind and its handlers, ready for an operator.
pub struct ResourceHandlers {
    pub(crate) target: ResourceTarget,
    /// What the server says about the kind, if it is one.
    pub(crate) description: Option<ResourceDescription>,
    pub(crate) handlers: Vec<RegisteredHandler>,
    pub(crate) webhooks: Vec<RegisteredWebhook>,
    pub(crate) memos: Option<Arc<Memos>>,
    pub(crate) tracking: Tracking,
}

/// One declared handler with its function.
#[derive(Clone)]
pub(crate) struct RegisteredHandler {
    pub(crate) spec: HandlerSpec,
    pub(crate) function: HandlerFunction,
    pub(crate) param: Option<Arc<Value>>,
}

/// One declared webhook with its function.
pub(crate) struct RegisteredWebhook {
    pub(crate) spec: WebhookSpec,
    pub(crate) function: Arc<dyn ReviewFunction>,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) memos: Option<Arc<Memos>>,
    pub(crate) description: Option<ResourceDescription>,
}

/// What is called.
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
    /// Whether any handler accompanies objects.
    pub(crate) fn has_duties(&self) -> bool {
        let mut handlers = self.handlers.iter();
        handlers.any(|it| it.spec.trigger.is_background())
    }

    /// Whether objects are found in any index.
    pub(crate) fn has_indices(&self) -> bool {
        let mut handlers = self.handlers.iter();
        handlers.any(|it| matches!(it.function, HandlerFunction::Index(_)))
    }

    /// Whether its handlers write to objects, if only to keep their progress.
    pub(crate) fn writes(&self) -> bool {
        let writes = |trigger: Trigger| trigger.is_change() || trigger.is_background();
        self.handlers.iter().any(|it| writes(it.spec.trigger))
    }
}

// === impl HandlerFunction ===

impl HandlerFunction {
    /// As what it is counted.
    pub(crate) fn form(&self) -> Form {
        match self {
            Self::Change(_) => Form::Change,
            Self::Event(_) => Form::Event,
            Self::Daemon(_) => Form::Daemon,
            Self::Timer(_) => Form::Timer,
            Self::Index(_) => Form::Index,
        }
    }
}

/// A daemon with what belongs to it alone.
#[derive(Clone)]
pub(crate) struct RegisteredDaemon {
    pub(crate) function: Arc<dyn DaemonFunction>,
    pub(crate) initial_delay: InitialDelay,
    pub(crate) stopping: StopPolicy,
}

/// A timer with what belongs to it alone.
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
    /// A kind without handlers so far.
    pub fn new(spec: ResourceSpec, state: &Arc<S>) -> Self {
        Self::about(ResourceTarget::Kind(spec), state)
    }

    /// All kinds of the server that are like this, as they come and go.
    ///
    /// Where one of them is declared by itself, too, one stream serves both.
    pub fn selected(selector: Selector, state: &Arc<S>) -> Self {
        Self::about(ResourceTarget::Selection(selector), state)
    }

    fn about(target: ResourceTarget, state: &Arc<S>) -> Self {
        Self {
            target,
            state: Arc::clone(state),
            handlers: Vec::new(),
            webhooks: Vec::new(),
            memos: None,
            tracking: Tracking::default(),
            object: PhantomData,
        }
    }

    /// Remembers this of each object, for all of its handlers.
    pub fn memo<M: Memo<K>>(mut self) -> Self {
        self.memos = Some(Arc::new(Memos::of::<K, M>()));
        self
    }

    /// Keeps the last handled state of every object, also of those that no handler matches.
    ///
    /// Whoever begins to match is then compared with what it was before, and is not new.
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
        let state = Arc::clone(&self.state);
        let shim = ChangeAdapter { state, function };
        self.with(handler.declare(), &HandlerFunction::Change(Arc::new(shim)))
    }

    /// Adds a handler of one field, which holds an `F` when it is there.
    pub fn field<F: DeserializeOwned + Send + Sync + 'static>(
        self,
        handler: FieldHandler,
        function: for<'a> fn(&'a S, &'a mut FieldContext<K, F>) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let shim = FieldAdapter {
            state: Arc::clone(&self.state),
            field: handler.path(),
            function,
        };
        self.with(handler.declare(), &HandlerFunction::Change(Arc::new(shim)))
    }

    /// Adds a handler of all events.
    pub fn event(
        self,
        handler: EventHandler,
        function: for<'a> fn(&'a S, &'a mut EventContext<K>) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let state = Arc::clone(&self.state);
        let shim = EventAdapter { state, function };
        self.with(handler.declare(), &HandlerFunction::Event(Arc::new(shim)))
    }

    /// Adds a daemon.
    pub fn daemon(
        self,
        handler: DaemonHandler,
        function: for<'a> fn(&'a S, &'a mut DaemonContext<K>) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let state = Arc::clone(&self.state);
        let (declared, initial_delay, stopping) = handler.declare();
        let part = RegisteredDaemon {
            function: Arc::new(DaemonAdapter { state, function }),
            initial_delay,
            stopping,
        };
        self.with(declared, &HandlerFunction::Daemon(part))
    }

    /// Adds a timer.
    pub fn timer(
        self,
        handler: TimerHandler,
        function: for<'a> fn(&'a S, &'a mut TimerContext<K>) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let state = Arc::clone(&self.state);
        let (declared, initial_delay, timing) = handler.declare();
        let part = RegisteredTimer {
            function: Arc::new(TimerAdapter { state, function }),
            initial_delay,
            timing,
        };
        self.with(declared, &HandlerFunction::Timer(part))
    }

    /// Adds a function that says by which keys objects are found in an index, and what is found.
    pub fn index<I: Index>(
        self,
        _: I,
        handler: IndexHandler,
        function: for<'a> fn(&'a S, &'a mut IndexContext<K>) -> BoxFuture<'a, IndexResult<I>>,
    ) -> Self {
        let state = Arc::clone(&self.state);
        let shim = IndexAdapter::<I, K, S> { state, function };
        self.with(
            handler.declare(I::NAME),
            &HandlerFunction::Index(Arc::new(shim)),
        )
    }

    /// Adds a webhook that says whether a request may pass. It is given an `O`: the kind itself,
    /// or JSON for subresources that are something else.
    pub fn validate<O: DeserializeOwned + Send + Sync + 'static>(
        self,
        handler: WebhookHandler,
        function: for<'a> fn(&'a S, &'a mut ValidationContext<O>) -> BoxFuture<'a, AdmissionResult>,
    ) -> Self {
        let state = Arc::clone(&self.state);
        let shim = ValidationAdapter { state, function };
        self.with_webhook(handler, WebhookRole::Validating, Arc::new(shim))
    }

    /// Adds a webhook that may change objects before they are stored.
    pub fn mutate<O: DeserializeOwned + Send + Sync + 'static>(
        self,
        handler: WebhookHandler,
        function: for<'a> fn(&'a S, &'a mut MutationContext<O>) -> BoxFuture<'a, AdmissionResult>,
    ) -> Self {
        let state = Arc::clone(&self.state);
        let shim = MutationAdapter { state, function };
        self.with_webhook(handler, WebhookRole::Mutating, Arc::new(shim))
    }

    /// All of it, for [`Operator::resource`](crate::Operator::resource).
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

    fn with(mut self, declared: Declared, function: &HandlerFunction) -> Self {
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
