//! Registration of a kind's handlers and webhooks by generated code.

pub(crate) mod function;

use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;
use kopf_core::admission::{WebhookRole, WebhookSpec};
use kopf_core::background::stopping::StopPolicy;
use kopf_core::background::timing::TimerTiming;
use kopf_core::children::options::{ChildContents, ChildOptions};
use kopf_core::handler::registry::Tracking;
use kopf_core::handler::{HandlerSpec, Trigger};
use kopf_core::selection::Selector;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::children::RelatedRole;
use crate::client::resource::{
    KindName, KindSpec, ResourceDescription, ResourceSpec, ResourceTarget,
};
use crate::context::change::ChangeContext;
use crate::context::child::ChildContext;
use crate::context::daemon::DaemonContext;
use crate::context::event::EventContext;
use crate::context::field::FieldContext;
use crate::context::index::IndexContext;
use crate::context::mutation::MutationContext;
use crate::context::reconcile::{ChildKind, ChildOf, ReconcileContext, kind_name};
use crate::context::timer::TimerContext;
use crate::context::validation::ValidationContext;
use crate::handler::error::{AdmissionResult, HandlerResult};
use crate::handler::memo::{Memo, Memos};
use crate::handler::reconcile::ReconcileTiming;
use crate::handler::state::SharedState;
use crate::handler::webhook::WebhookHandler;
use crate::handler::{
    ChangeHandler, ChildHandler, DaemonHandler, EventHandler, FieldHandler, HandlerDeclaration,
    IndexHandler, InitialDelay, ReconcileHandler, TimerHandler, UsedBy,
};
use crate::health::metrics::HandlerType;
use crate::index::{Index, IndexResult};
use crate::registration::function::children::{
    ChildAdapter, ChildFunction, ReconcileAdapter, ReconcileFunction,
};
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
    related: RelatedKinds,
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
    pub(crate) related: RelatedKinds,
}

/// The kinds of children and of objects that are referred to.
#[derive(Clone, Default)]
pub(crate) struct RelatedKinds {
    pub(crate) children: Vec<RegisteredChild>,
    pub(crate) used: Vec<RegisteredUse>,
    pub(crate) child_handlers: Vec<RegisteredChildHandler>,
}

/// A kind of children.
#[derive(Debug, Clone)]
pub(crate) struct RegisteredChild {
    pub(crate) name: KindName,
    pub(crate) spec: ResourceSpec,
    pub(crate) options: ChildOptions,
}

/// A kind whose objects are referred to.
#[derive(Debug, Clone)]
pub(crate) struct RegisteredUse {
    pub(crate) spec: ResourceSpec,
    pub(crate) by: UsedBy,
}

/// A handler of children of one kind.
#[derive(Clone)]
pub(crate) struct RegisteredChildHandler {
    pub(crate) name: KindName,
    pub(crate) spec: Arc<HandlerSpec>,
    pub(crate) function: Arc<dyn ChildFunction>,
    pub(crate) param: Option<Arc<Value>>,
}

/// The function and the options of `reconcile`.
#[derive(Clone)]
pub(crate) struct RegisteredReconcile {
    pub(crate) function: Arc<dyn ReconcileFunction>,
    pub(crate) timing: ReconcileTiming,
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
    Reconcile(RegisteredReconcile),
}

// === impl ResourceHandlers ===

impl ResourceHandlers {
    /// Returns true if any handler is a daemon or timer.
    pub(crate) fn has_background(&self) -> bool {
        let mut handlers = self.handlers.iter();
        handlers.any(|it| it.spec.trigger.is_background())
    }

    /// Returns true if no handler may be called before all lists are complete: there are index
    /// functions or children.
    pub(crate) fn needs_lists(&self) -> bool {
        let mut handlers = self.handlers.iter();
        handlers.any(|it| matches!(it.function, HandlerFunction::Index(_)))
            || self.related_kinds().next().is_some()
    }

    /// The kinds that are watched for `reconcile`.
    pub(crate) fn related_kinds(&self) -> impl Iterator<Item = (ResourceSpec, RelatedRole)> {
        let children = self.related.children.iter();
        let children = children.map(|it| (it.spec, RelatedRole::Child(it.options.kept())));
        let used = self.related.used.iter();
        children.chain(used.map(|it| (it.spec, RelatedRole::Used)))
    }

    /// Returns true if any handler writes to objects, if only its progress.
    pub(crate) fn writes(&self) -> bool {
        let writes = |trigger: Trigger| {
            trigger.is_change() || trigger.is_background() || trigger == Trigger::Reconcile
        };
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
            Self::Reconcile(_) => HandlerType::Reconcile,
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
            related: RelatedKinds::default(),
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

    /// Declares a kind whose objects are children of these; `C` is the marker of this kind.
    pub fn child<C, T: ChildOf<C>>(mut self, spec: ResourceSpec) -> Self {
        let (name, options) = (kind_name::<T>(), T::OPTIONS);
        let child = RegisteredChild {
            name,
            spec,
            options,
        };
        self.related.children.push(child);
        self
    }

    /// Declares a kind whose objects these refer to: a change of one calls `reconcile`.
    pub fn uses<T: ChildKind>(mut self, spec: ResourceSpec, by: UsedBy) -> Self {
        self.related.used.push(RegisteredUse { spec, by });
        self
    }

    /// Adds the function that keeps the children of an object as they should be.
    pub fn reconcile<C: 'static>(
        self,
        handler: ReconcileHandler,
        function: for<'a> fn(&'a S, &'a mut ReconcileContext<K, C>) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let state = self.state.clone();
        let (declared, timing) = handler.declare();
        let registered = RegisteredReconcile {
            function: Arc::new(ReconcileAdapter { state, function }),
            timing,
        };
        self.with(declared, &HandlerFunction::Reconcile(registered))
    }

    /// Adds a handler of what happens to the children of one kind.
    pub fn on_child<T: ChildKind>(
        mut self,
        handler: ChildHandler,
        function: for<'a> fn(&'a S, &'a mut ChildContext<K, T>) -> BoxFuture<'a, HandlerResult>,
    ) -> Self {
        let state = self.state.clone();
        let (spec, param) = handler.declare();
        self.related.child_handlers.push(RegisteredChildHandler {
            name: kind_name::<T>(),
            spec: Arc::new(spec),
            function: Arc::new(ChildAdapter { state, function }),
            param,
        });
        self
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
        for child in &mut self.related.children {
            // A handler takes the whole child.
            let mut handlers = self.related.child_handlers.iter();
            if handlers.any(|handler| handler.name == child.name) {
                child.options = child.options.contents(ChildContents::Bodies);
            }
        }
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
            related: self.related,
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
