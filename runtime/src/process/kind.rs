//! A handled kind: its handlers in order, its API, its storage of progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kopf_core::children::options::Pruning;
use kopf_core::handler::HandlerSpec;
use kopf_core::handler::registry::{Error, Registry, Tracking};
use kopf_core::handler::watch_selectors::WatchSelectors;
use kopf_core::machine::reconcile::ReconcileRules;
use kopf_core::persistence::Persistence;
use kopf_core::watch::batch::BatchMode;
use kube::Client;
use serde_json::Value;

use crate::background::declaration::{BackgroundHandler, RegisteredBackground};
use crate::children::{Children, OwnedKind, ReferredKind};
use crate::client::requests::KindApi;
use crate::client::resource::{KindSpec, ResourceDescription, Scope};
use crate::context::filter::{FilterMemo, FilterResource, FilterScope};
use crate::events::object_ref::ObjectRef;
use crate::handler::memo::Memos;
use crate::health::metrics::{HandlerMetrics, HandlerType, KindMetrics};
use crate::index::Indices;
use crate::index::update::Indexer;
use crate::registration::function::children::ReconcileFunction;
use crate::registration::function::{ChangeFunction, EventFunction};
use crate::registration::{HandlerFunction, RegisteredChildHandler, ResourceHandlers};
use crate::watch::{KindIndex, ObjectKey};
use kopf_core::watch::known_objects::Retention;

/// A kind with everything that the handling of its objects needs.
pub(crate) struct HandledKind {
    spec: KindSpec,
    api: Arc<KindApi>,
    registry: Arc<Registry>,
    persistence: Arc<Persistence>,
    /// The functions of the registry's handlers, in the same order.
    handlers: Vec<KindHandler>,
    /// Daemons and timers, in the order of the registry.
    background_handlers: Vec<Arc<BackgroundHandler>>,
    indexers: Vec<Indexer>,
    batch_mode: BatchMode,
    /// One for each declaration with memos.
    memos: Vec<Arc<Memos>>,
    metrics: Arc<KindMetrics>,
    related: KindRelations,
}

/// The children of a kind, and the objects that it refers to.
#[derive(Default)]
pub(crate) struct KindRelations {
    pub(crate) reconcile: Option<ReconcileRules>,
    pub(crate) owned: Arc<[OwnedKind]>,
    pub(crate) referred: Vec<ReferredKind>,
    pub(crate) child_handlers: Vec<KindChildHandler>,
    /// The kinds of children with handlers.
    pub(crate) handled_children: Arc<[KindIndex]>,
    /// Whether the API server has pruned conditions: the schema has none.
    prunes_conditions: AtomicBool,
}

/// A handler of children with its metrics.
pub(crate) struct KindChildHandler {
    pub(crate) registered: RegisteredChildHandler,
    pub(crate) metrics: Arc<HandlerMetrics>,
    pub(crate) memos: Option<Arc<Memos>>,
}

/// The function of a handler with its parameter and metrics.
struct KindHandler {
    function: HandlerFunction,
    param: Option<Arc<Value>>,
    metrics: Arc<HandlerMetrics>,
    memos: Option<Arc<Memos>>,
}

/// The services that a kind is created with.
pub(crate) struct KindServices {
    pub(crate) client: Client,
    pub(crate) persistence: Arc<Persistence>,
    pub(crate) indices: Indices,
    /// The time for the API server to answer.
    pub(crate) patience: Duration,
    pub(crate) metrics: Arc<KindMetrics>,
    pub(crate) children: Arc<Children>,
}

impl HandledKind {
    /// A kind with the handlers of all declarations that are about it, in their order.
    pub(crate) fn new(
        spec: KindSpec,
        declarations: &[&ResourceHandlers],
        services: KindServices,
    ) -> Result<Self, Error> {
        let mut descriptions = declarations.iter().filter_map(|it| it.description.clone());
        let declared = || ResourceDescription::declared(&spec);
        let description = descriptions.next().unwrap_or_else(declared);
        let (specs, handlers): (Vec<_>, Vec<_>) =
            declared_handlers(declarations, &services, &description).unzip();
        let registry = Registry::new(specs)?.tracking(tracking(declarations));
        let selectors = match may_be_held_by_children(&spec, declarations) {
            true => WatchSelectors::default(),
            false => WatchSelectors::derive(&registry),
        };
        let api = KindApi::new(services.client, spec.clone(), selectors)
            .with_timeout(services.patience)
            .with_description(description);
        let api = Arc::new(api);
        let memos = declarations.iter().filter_map(|it| it.memos.clone());
        Ok(Self {
            background_handlers: background_handlers(&registry, &handlers, &spec, &api),
            indexers: indexers(&registry, &handlers),
            batch_mode: batch_mode(&handlers),
            related: KindRelations::new(
                declarations,
                &registry,
                &handlers,
                &services.children,
                &services.metrics,
            ),
            memos: memos.collect(),
            spec,
            api,
            registry: Arc::new(registry),
            persistence: services.persistence,
            handlers,
            metrics: services.metrics,
        })
    }

    pub(crate) fn spec(&self) -> &KindSpec {
        &self.spec
    }

    /// True if objects that the selectors exclude may have our finalizer, from an earlier version
    /// of the operator. An operator with event handlers only was never allowed to write it.
    pub(crate) fn may_have_unselected_finalizers(&self) -> bool {
        self.api.is_selective() && self.registry.handles_changes()
    }

    pub(crate) fn api(&self) -> &KindApi {
        &self.api
    }

    pub(crate) fn subject(&self, key: &Arc<ObjectKey>) -> ObjectRef {
        ObjectRef::handled(Arc::clone(self.api.name()), Arc::clone(key))
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub(crate) fn persistence(&self) -> &Arc<Persistence> {
        &self.persistence
    }

    pub(crate) fn background_handlers(&self) -> &[Arc<BackgroundHandler>] {
        &self.background_handlers
    }

    /// The children of this kind, and the objects that it refers to.
    pub(crate) fn related(&self) -> &KindRelations {
        &self.related
    }

    pub(crate) fn memos(&self) -> &[Arc<Memos>] {
        &self.memos
    }

    pub(crate) fn metrics(&self) -> &Arc<KindMetrics> {
        &self.metrics
    }

    pub(crate) fn indexers(&self) -> &[Indexer] {
        &self.indexers
    }

    /// True if all handlers are index functions.
    pub(crate) fn only_indexes(&self) -> bool {
        self.indexers.len() == self.handlers.len()
    }

    pub(crate) fn batch_mode(&self) -> BatchMode {
        self.batch_mode
    }

    pub(crate) fn retention(&self) -> Retention {
        match self.batch_mode {
            BatchMode::NewestOnly => Retention::Identity,
            BatchMode::EveryEvent => Retention::Body,
        }
    }

    /// The function of a change handler that came from this kind's registry.
    pub(crate) fn change_function(&self, spec: &Arc<HandlerSpec>) -> Option<ChangeHandlerRef<'_>> {
        let handler = self.entry(spec)?;
        match &handler.function {
            HandlerFunction::Change(function) => Some(ChangeHandlerRef {
                function: &**function,
                param: handler.param.clone(),
                metrics: &handler.metrics,
                memos: handler.memos.as_deref(),
            }),
            _ => None,
        }
    }

    /// The function of `reconcile` that came from this kind's registry.
    pub(crate) fn reconcile_function(
        &self,
        spec: &Arc<HandlerSpec>,
    ) -> Option<ReconcileHandlerRef<'_>> {
        let handler = self.entry(spec)?;
        match &handler.function {
            HandlerFunction::Reconcile(reconcile) => Some(ReconcileHandlerRef {
                function: &*reconcile.function,
                param: handler.param.clone(),
                metrics: &handler.metrics,
                memos: handler.memos.as_deref(),
            }),
            _ => None,
        }
    }

    /// The function of an event handler that came from this kind's registry.
    pub(crate) fn event_function(&self, spec: &Arc<HandlerSpec>) -> Option<EventHandlerRef<'_>> {
        let handler = self.entry(spec)?;
        match &handler.function {
            HandlerFunction::Event(function) => Some(EventHandlerRef {
                function: &**function,
                param: handler.param.clone(),
                metrics: &handler.metrics,
                memos: handler.memos.as_deref(),
            }),
            _ => None,
        }
    }

    fn entry(&self, spec: &Arc<HandlerSpec>) -> Option<&KindHandler> {
        let position = self
            .registry
            .handlers()
            .iter()
            .position(|handler| Arc::ptr_eq(handler, spec))?;
        self.handlers.get(position)
    }
}

/// The function of a change handler with its parameter and metrics.
pub(crate) struct ChangeHandlerRef<'a> {
    pub(crate) function: &'a dyn ChangeFunction,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) metrics: &'a HandlerMetrics,
    pub(crate) memos: Option<&'a Memos>,
}

/// The function of an event handler with its parameter and metrics.
pub(crate) struct EventHandlerRef<'a> {
    pub(crate) function: &'a dyn EventFunction,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) metrics: &'a HandlerMetrics,
    pub(crate) memos: Option<&'a Memos>,
}

/// The function of `reconcile` with its parameter and metrics.
pub(crate) struct ReconcileHandlerRef<'a> {
    pub(crate) function: &'a dyn ReconcileFunction,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) metrics: &'a HandlerMetrics,
    pub(crate) memos: Option<&'a Memos>,
}

// === impl KindRelations ===

impl KindRelations {
    fn new(
        declarations: &[&ResourceHandlers],
        registry: &Registry,
        handlers: &[KindHandler],
        children: &Children,
        metrics: &KindMetrics,
    ) -> Self {
        let related = || declarations.iter().map(|it| &it.related);
        let owned = related().flat_map(|related| &related.children);
        let owned = owned.filter_map(|it| children.owned(&it.name, &it.spec, it.options));
        let owned: Arc<[OwnedKind]> = owned.collect();
        let used = related().flat_map(|related| &related.used);
        let referred = used.filter_map(|it| children.referred(&it.spec, &it.by));
        let child_handlers = declarations.iter().flat_map(|declared| {
            let registered = declared.related.child_handlers.iter().cloned();
            registered.map(|registered| KindChildHandler {
                metrics: metrics.handler(registered.spec.id.as_str(), HandlerType::Child),
                memos: declared.memos.clone(),
                registered,
            })
        });
        let child_handlers: Vec<KindChildHandler> = child_handlers.collect();
        let handled = owned.iter().filter(|kind| {
            let mut handlers = child_handlers.iter();
            handlers.any(|handler| handler.registered.name == kind.name)
        });
        let handled_children = handled.map(|kind| kind.index).collect();
        let specs = registry.handlers().iter().zip(handlers);
        let mut reconcile = specs.filter_map(|(spec, handler)| match &handler.function {
            HandlerFunction::Reconcile(registered) => Some((spec, registered.timing)),
            _ => None,
        });
        let kinds = owned.iter().map(|kind| kind.record_id.clone());
        let rules = reconcile.next().map(|(spec, timing)| ReconcileRules {
            spec: Arc::clone(spec),
            interval: timing.interval,
            status: timing.status,
            kinds: kinds.collect(),
        });
        Self {
            reconcile: rules,
            owned,
            referred: referred.collect(),
            child_handlers,
            handled_children,
            prunes_conditions: AtomicBool::new(false),
        }
    }

    /// Notes that the API server keeps no conditions of this kind.
    pub(crate) fn note_pruned_conditions(&self) {
        self.prunes_conditions.store(true, Ordering::Relaxed);
    }

    /// Whether conditions are known to be pruned, so that writing them again is of no use.
    pub(crate) fn prunes_conditions(&self) -> bool {
        self.prunes_conditions.load(Ordering::Relaxed)
    }

    /// Whether the states of objects are kept for calls that children cause.
    pub(crate) fn keeps_owners(&self) -> bool {
        self.reconcile.is_some() || !self.child_handlers.is_empty()
    }
}

/// The specs and functions of all declared handlers, in their order.
fn declared_handlers(
    declarations: &[&ResourceHandlers],
    services: &KindServices,
    description: &ResourceDescription,
) -> impl Iterator<Item = (HandlerSpec, KindHandler)> {
    let handlers = declarations.iter().flat_map(|declared| {
        let handlers = declared.handlers.iter().cloned();
        handlers.map(|handler| (handler, declared.memos.clone()))
    });
    handlers.map(|(mut handler, memos)| {
        let filter_scope = FilterScope {
            indices: services.indices.clone(),
            memo: FilterMemo::of_kind(memos.as_ref()),
            param: handler.param.clone(),
            resource: FilterResource::Described(description.clone()),
        };
        filter_scope.bind(&mut handler.spec.filters);
        let function = &handler.function;
        let metrics = services
            .metrics
            .handler(handler.spec.id.as_str(), function.handler_type());
        let kind_handler = KindHandler {
            function: handler.function,
            param: handler.param,
            metrics,
            memos,
        };
        (handler.spec, kind_handler)
    })
}

/// Changes are tracked always as soon as one declaration asks for it.
fn tracking(declarations: &[&ResourceHandlers]) -> Tracking {
    let mut trackings = declarations.iter().map(|it| it.tracking);
    if trackings.any(|it| it == Tracking::Always) {
        Tracking::Always
    } else {
        Tracking::default()
    }
}

/// Whether objects may have children that Kubernetes does not delete together with them.
///
/// The finalizer holds such an object, whether it matches a filter or not, so that all objects of
/// the kind are watched.
fn may_be_held_by_children(spec: &KindSpec, declarations: &[&ResourceHandlers]) -> bool {
    let mut children = declarations.iter().flat_map(|it| &it.related.children);
    spec.scope == Scope::Namespaced && children.any(|child| child.options.pruning == Pruning::Prune)
}

fn background_handlers(
    registry: &Registry,
    handlers: &[KindHandler],
    resource: &KindSpec,
    api: &Arc<KindApi>,
) -> Vec<Arc<BackgroundHandler>> {
    let handlers = registry.handlers().iter().zip(handlers);
    let background_handlers = handlers.filter_map(|(spec, handler)| {
        let registered = match &handler.function {
            HandlerFunction::Daemon(daemon) => RegisteredBackground::Daemon(daemon.clone()),
            HandlerFunction::Timer(timer) => RegisteredBackground::Timer(Arc::new(timer.clone())),
            HandlerFunction::Change(_)
            | HandlerFunction::Event(_)
            | HandlerFunction::Index(_)
            | HandlerFunction::Reconcile(_) => return None,
        };
        Some(Arc::new(BackgroundHandler {
            spec: Arc::clone(spec),
            param: handler.param.clone(),
            metrics: Arc::clone(&handler.metrics),
            registered,
            resource: resource.clone(),
            api: Arc::clone(api),
            memos: handler.memos.clone(),
        }))
    });
    background_handlers.collect()
}

fn indexers(registry: &Registry, handlers: &[KindHandler]) -> Vec<Indexer> {
    let handlers = registry.handlers().iter().zip(handlers);
    let indexers = handlers.filter_map(|(spec, handler)| match &handler.function {
        HandlerFunction::Index(function) => Some(Indexer {
            spec: Arc::clone(spec),
            function: Arc::clone(function),
            param: handler.param.clone(),
            metrics: Arc::clone(&handler.metrics),
            memos: handler.memos.clone(),
        }),
        _ => None,
    });
    indexers.collect()
}

fn batch_mode(handlers: &[KindHandler]) -> BatchMode {
    let mut functions = handlers.iter().map(|handler| &handler.function);
    if functions.any(|function| matches!(function, HandlerFunction::Event(_))) {
        BatchMode::EveryEvent
    } else {
        BatchMode::NewestOnly
    }
}
