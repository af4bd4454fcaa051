//! One kind at work: its handlers in order, and how its objects are remembered.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::handler::HandlerSpec;
use kopf_core::handler::registry::{Error, Registry, Tracking};
use kopf_core::handler::selector::Selectors;
use kopf_core::persistence::Persistence;
use kube::Client;
use serde_json::Value;

use super::batch::Keep;
use crate::background::declaration::{Duty, Work};
use crate::client::requests::KindApi;
use crate::client::resource::KindSpec;
use crate::events::object_ref::ObjectRef;
use crate::handler::memo::Memos;
use crate::health::metrics::{HandlerMetrics, KindMetrics};
use crate::index::update::Indexer;
use crate::registration::function::{ChangeFunction, EventFunction};
use crate::registration::{HandlerFunction, ResourceHandlers};
use crate::watch::ObjectKey;
use crate::watch::known_objects::Retain;

/// A kind with everything that handling its objects takes.
pub(crate) struct Kind {
    spec: KindSpec,
    api: Arc<KindApi>,
    registry: Arc<Registry>,
    persistence: Arc<Persistence>,
    /// The functions of the registry's handlers, in the same order.
    callees: Vec<Callee>,
    /// Daemons and timers, in the order of the registry.
    duties: Vec<Arc<Duty>>,
    indexers: Vec<Indexer>,
    keep: Keep,
    /// One for each declaration that has any.
    memos: Vec<Arc<Memos>>,
    metrics: Arc<KindMetrics>,
}

/// What a handler calls, and where that is counted.
struct Callee {
    function: HandlerFunction,
    param: Option<Arc<Value>>,
    metrics: Arc<HandlerMetrics>,
    memos: Option<Arc<Memos>>,
}

/// What kinds are made with.
pub(crate) struct Supplies {
    pub(crate) client: Client,
    pub(crate) persistence: Arc<Persistence>,
    /// How long the server may take to answer.
    pub(crate) patience: Duration,
    pub(crate) metrics: Arc<KindMetrics>,
}

impl Kind {
    /// A kind with the handlers of all declarations that are about it, in their order.
    pub(crate) fn new(
        spec: KindSpec,
        declarations: &[&ResourceHandlers],
        supplies: Supplies,
    ) -> Result<Self, Error> {
        let Supplies {
            client,
            persistence,
            patience,
            metrics,
        } = supplies;
        let handlers = declarations.iter().flat_map(|declared| {
            let handlers = declared.handlers.iter().cloned();
            handlers.map(|handler| (handler, declared.memos.clone()))
        });
        let handlers = handlers.map(|(handler, memos)| {
            let metrics = metrics.handler(handler.spec.id.as_str(), handler.function.form());
            let callee = Callee {
                function: handler.function,
                param: handler.param,
                metrics,
                memos,
            };
            (handler.spec, callee)
        });
        let (specs, callees): (Vec<_>, Vec<_>) = handlers.unzip();
        let shows_events = callees
            .iter()
            .any(|callee| matches!(callee.function, HandlerFunction::Event(_)));
        let mut trackings = declarations.iter().map(|it| it.tracking);
        let tracking = if trackings.any(|it| it == Tracking::Always) {
            Tracking::Always
        } else {
            Tracking::default()
        };
        let registry = Registry::new(specs)?.tracking(tracking);
        let selectors = Selectors::derive(&registry);
        let api = KindApi::new(client, spec.clone(), selectors).with_timeout(patience);
        let mut described = declarations.iter().filter_map(|it| it.description.clone());
        let api = Arc::new(match described.next() {
            Some(description) => api.with_description(description),
            None => api,
        });
        let duties = registry.handlers().iter().zip(&callees);
        let duties = duties.filter_map(|(handler, callee)| {
            let work = match &callee.function {
                HandlerFunction::Daemon(part) => Work::Daemon(part.clone()),
                HandlerFunction::Timer(part) => Work::Timer(Arc::new(part.clone())),
                HandlerFunction::Change(_)
                | HandlerFunction::Event(_)
                | HandlerFunction::Index(_) => return None,
            };
            Some(Arc::new(Duty {
                spec: Arc::clone(handler),
                param: callee.param.clone(),
                metrics: Arc::clone(&callee.metrics),
                work,
                resource: spec.clone(),
                api: Arc::clone(&api),
                memos: callee.memos.clone(),
            }))
        });
        let duties = duties.collect();
        let handlers = registry.handlers().iter().zip(&callees);
        let indexers = handlers.filter_map(|(spec, callee)| match &callee.function {
            HandlerFunction::Index(function) => Some(Indexer {
                spec: Arc::clone(spec),
                function: Arc::clone(function),
                param: callee.param.clone(),
                metrics: Arc::clone(&callee.metrics),
                memos: callee.memos.clone(),
            }),
            _ => None,
        });
        let indexers = indexers.collect();
        let memos = declarations.iter().filter_map(|it| it.memos.clone());
        Ok(Self {
            spec,
            api,
            registry: Arc::new(registry),
            persistence,
            callees,
            duties,
            metrics,
            indexers,
            keep: if shows_events {
                Keep::Events
            } else {
                Keep::Newest
            },
            memos: memos.collect(),
        })
    }

    pub(crate) fn spec(&self) -> &KindSpec {
        &self.spec
    }

    /// Whether objects that an earlier version of the operator held may be out of view.
    ///
    /// Who only looks at events has never been allowed to write.
    pub(crate) fn may_hide_leftovers(&self) -> bool {
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

    pub(crate) fn duties(&self) -> &[Arc<Duty>] {
        &self.duties
    }

    /// What is remembered of its objects, if anything is.
    pub(crate) fn memos(&self) -> &[Arc<Memos>] {
        &self.memos
    }

    /// Where what happens to its objects is counted.
    pub(crate) fn metrics(&self) -> &Arc<KindMetrics> {
        &self.metrics
    }

    pub(crate) fn indexers(&self) -> &[Indexer] {
        &self.indexers
    }

    /// Whether there is anything to do about objects beyond finding them.
    pub(crate) fn only_indexes(&self) -> bool {
        self.indexers.len() == self.callees.len()
    }

    pub(crate) fn keep(&self) -> Keep {
        self.keep
    }

    pub(crate) fn retain(&self) -> Retain {
        match self.keep {
            Keep::Newest => Retain::Identity,
            Keep::Events => Retain::Body,
        }
    }

    /// The function of a change handler that came from this kind's registry.
    pub(crate) fn change_function(&self, spec: &Arc<HandlerSpec>) -> Option<ChangeCallee<'_>> {
        let callee = self.entry(spec)?;
        match &callee.function {
            HandlerFunction::Change(function) => Some(ChangeCallee {
                function: &**function,
                param: callee.param.clone(),
                metrics: &callee.metrics,
                memos: callee.memos.as_deref(),
            }),
            _ => None,
        }
    }

    /// The function of an event handler that came from this kind's registry.
    pub(crate) fn event_function(&self, spec: &Arc<HandlerSpec>) -> Option<EventCallee<'_>> {
        let callee = self.entry(spec)?;
        match &callee.function {
            HandlerFunction::Event(function) => Some(EventCallee {
                function: &**function,
                metrics: &callee.metrics,
                memos: callee.memos.as_deref(),
            }),
            _ => None,
        }
    }

    fn entry(&self, spec: &Arc<HandlerSpec>) -> Option<&Callee> {
        let position = self
            .registry
            .handlers()
            .iter()
            .position(|handler| Arc::ptr_eq(handler, spec))?;
        self.callees.get(position)
    }
}

/// A change handler's function with its parameter.
pub(crate) struct ChangeCallee<'a> {
    pub(crate) function: &'a dyn ChangeFunction,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) metrics: &'a HandlerMetrics,
    pub(crate) memos: Option<&'a Memos>,
}

/// An event handler's function.
pub(crate) struct EventCallee<'a> {
    pub(crate) function: &'a dyn EventFunction,
    pub(crate) metrics: &'a HandlerMetrics,
    pub(crate) memos: Option<&'a Memos>,
}
