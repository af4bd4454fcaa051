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
use crate::memo::Memos;
use crate::resource::ResourceSpec;
use crate::shim::{ChangeFunction, EventFunction};
use crate::watch::census::Retain;

/// A kind with everything that handling its objects takes.
pub(crate) struct Kind {
    spec: ResourceSpec,
    api: Arc<KindApi>,
    registry: Arc<Registry>,
    persistence: Arc<Persistence>,
    /// The functions of the registry's handlers, in the same order.
    functions: Vec<(Function, Option<Arc<Value>>)>,
    /// Daemons and timers, in the order of the registry.
    duties: Vec<Arc<Duty>>,
    keep: Keep,
    memos: Option<Arc<Memos>>,
}

impl Kind {
    pub(crate) fn new(
        resource: ResourceHandlers,
        client: Client,
        persistence: Arc<Persistence>,
    ) -> Result<Self, Error> {
        let (specs, functions): (Vec<_>, Vec<_>) = resource
            .handlers
            .into_iter()
            .map(|handler| (handler.spec, (handler.function, handler.param)))
            .unzip();
        let shows_events = functions
            .iter()
            .any(|(function, _)| matches!(function, Function::Event(_)));
        let registry = Registry::new(specs)?;
        let selectors = Selectors::derive(&registry);
        let api = Arc::new(KindApi::new(client, resource.spec, selectors));
        let duties = registry.handlers().iter().zip(&functions);
        let duties = duties.filter_map(|(spec, (function, param))| {
            let work = match function {
                Function::Daemon(part) => Work::Daemon(part.clone()),
                Function::Timer(part) => Work::Timer(Arc::new(part.clone())),
                Function::Change(_) | Function::Event(_) => return None,
            };
            Some(Arc::new(Duty {
                spec: Arc::clone(spec),
                param: param.clone(),
                work,
                resource: resource.spec,
                api: Arc::clone(&api),
                memos: resource.memos.clone(),
            }))
        });
        let duties = duties.collect();
        Ok(Self {
            spec: resource.spec,
            api,
            registry: Arc::new(registry),
            persistence,
            functions,
            duties,
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
    pub(crate) fn memos(&self) -> Option<&Memos> {
        self.memos.as_deref()
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
        match self.entry(spec)? {
            (Function::Change(function), param) => Some(ChangeCallee {
                function: &**function,
                param: param.clone(),
            }),
            (Function::Event(_) | Function::Daemon(_) | Function::Timer(_), _) => None,
        }
    }

    /// The function of an event handler that came from this kind's registry.
    pub(crate) fn event_function(&self, spec: &Arc<HandlerSpec>) -> Option<&dyn EventFunction> {
        match self.entry(spec)? {
            (Function::Event(function), _) => Some(&**function),
            (Function::Change(_) | Function::Daemon(_) | Function::Timer(_), _) => None,
        }
    }

    fn entry(&self, spec: &Arc<HandlerSpec>) -> Option<&(Function, Option<Arc<Value>>)> {
        let position = self
            .registry
            .handlers()
            .iter()
            .position(|handler| Arc::ptr_eq(handler, spec))?;
        self.functions.get(position)
    }
}

/// A change handler's function with its parameter.
pub(crate) struct ChangeCallee<'a> {
    pub(crate) function: &'a dyn ChangeFunction,
    pub(crate) param: Option<Arc<Value>>,
}
