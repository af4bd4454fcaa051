//! One kind at work: its handlers in order, and how its objects are remembered.

use std::sync::Arc;

use kopf_core::handler::HandlerSpec;
use kopf_core::handler::registry::{Error, Registry};
use kopf_core::handler::selector::Selectors;
use kopf_core::persistence::Persistence;
use kube::Client;
use serde_json::Value;

use super::batch::Keep;
use crate::api::KindApi;
use crate::background::duty::{Duty, Work};
use crate::declare::{Function, ResourceHandlers};
use crate::engine::subject::Subject;
use crate::indexing::Indexer;
use crate::memo::Memos;
use crate::metrics::{HandlerMetrics, KindMetrics};
use crate::resource::ResourceSpec;
use crate::settings::NetworkingSettings;
use crate::shim::{ChangeFunction, EventFunction};
use crate::watch::ObjectKey;
use crate::watch::census::Retain;

/// A kind with everything that handling its objects takes.
pub(crate) struct Kind {
    spec: ResourceSpec,
    api: Arc<KindApi>,
    registry: Arc<Registry>,
    persistence: Arc<Persistence>,
    /// The functions of the registry's handlers, in the same order.
    callees: Vec<Callee>,
    /// Daemons and timers, in the order of the registry.
    duties: Vec<Arc<Duty>>,
    indexers: Vec<Indexer>,
    keep: Keep,
    memos: Option<Arc<Memos>>,
    metrics: Arc<KindMetrics>,
}

/// What a handler calls, and where that is counted.
struct Callee {
    function: Function,
    param: Option<Arc<Value>>,
    metrics: Arc<HandlerMetrics>,
}

impl Kind {
    pub(crate) fn new(
        resource: ResourceHandlers,
        client: Client,
        persistence: Arc<Persistence>,
        networking: &NetworkingSettings,
        metrics: Arc<KindMetrics>,
    ) -> Result<Self, Error> {
        let handlers = resource.handlers.into_iter().map(|handler| {
            let metrics = metrics.handler(handler.spec.id.as_str(), handler.function.form());
            let callee = Callee {
                function: handler.function,
                param: handler.param,
                metrics,
            };
            (handler.spec, callee)
        });
        let (specs, callees): (Vec<_>, Vec<_>) = handlers.unzip();
        let shows_events = callees
            .iter()
            .any(|callee| matches!(callee.function, Function::Event(_)));
        let registry = Registry::new(specs)?.tracking(resource.tracking);
        let selectors = Selectors::derive(&registry);
        let api = KindApi::new(client, resource.spec, selectors);
        let api = Arc::new(api.within(networking.request_timeout));
        let duties = registry.handlers().iter().zip(&callees);
        let duties = duties.filter_map(|(spec, callee)| {
            let work = match &callee.function {
                Function::Daemon(part) => Work::Daemon(part.clone()),
                Function::Timer(part) => Work::Timer(Arc::new(part.clone())),
                Function::Change(_) | Function::Event(_) | Function::Index(_) => return None,
            };
            Some(Arc::new(Duty {
                spec: Arc::clone(spec),
                param: callee.param.clone(),
                metrics: Arc::clone(&callee.metrics),
                work,
                resource: resource.spec,
                api: Arc::clone(&api),
                memos: resource.memos.clone(),
            }))
        });
        let duties = duties.collect();
        let handlers = registry.handlers().iter().zip(&callees);
        let indexers = handlers.filter_map(|(spec, callee)| match &callee.function {
            Function::Index(function) => Some(Indexer {
                spec: Arc::clone(spec),
                function: Arc::clone(function),
                param: callee.param.clone(),
                metrics: Arc::clone(&callee.metrics),
            }),
            _ => None,
        });
        let indexers = indexers.collect();
        Ok(Self {
            spec: resource.spec,
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
            memos: resource.memos,
        })
    }

    pub(crate) fn spec(&self) -> &ResourceSpec {
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

    pub(crate) fn subject(&self, key: &Arc<ObjectKey>) -> Subject {
        Subject::handled(Arc::clone(self.api.name()), Arc::clone(key))
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
    pub(crate) fn memos(&self) -> Option<&Arc<Memos>> {
        self.memos.as_ref()
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
            Function::Change(function) => Some(ChangeCallee {
                function: &**function,
                param: callee.param.clone(),
                metrics: &callee.metrics,
            }),
            _ => None,
        }
    }

    /// The function of an event handler that came from this kind's registry.
    pub(crate) fn event_function(
        &self,
        spec: &Arc<HandlerSpec>,
    ) -> Option<(&dyn EventFunction, &HandlerMetrics)> {
        let callee = self.entry(spec)?;
        match &callee.function {
            Function::Event(function) => Some((&**function, &callee.metrics)),
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
}
