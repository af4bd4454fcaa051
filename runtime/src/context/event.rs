//! The context of event handlers, which are called for whatever is seen and leave no trace.

use std::sync::Arc;

use kopf_core::selection::DiscoveredResource;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client};
use serde::Serialize;
use serde_json::Value;

use super::change::ResultSlot;
use crate::context::hierarchy::{self, Adoption, Child};
use crate::context::recorder::reporting;
use crate::handler::memo::{self, Memo};
use crate::handler::patch::Patch;
use crate::index::{Index, IndexView};
use crate::process::execute::scope::HandlerScope;
use crate::watch::WatchEventType;

/// One event of an object.
pub struct EventContext<K> {
    object: K,
    raw: Arc<Value>,
    scope: HandlerScope,
    event_type: WatchEventType,
    pub(crate) patch: Patch,
    pub(crate) result: ResultSlot,
}

impl<K> EventContext<K> {
    pub(crate) fn new(
        object: K,
        raw: Arc<Value>,
        scope: HandlerScope,
        event_type: WatchEventType,
    ) -> Self {
        Self {
            object,
            raw,
            scope,
            event_type,
            patch: Patch::default(),
            result: ResultSlot::default(),
        }
    }

    /// What happened to the object.
    pub fn event_type(&self) -> WatchEventType {
        self.event_type
    }

    /// The object.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// The object as the server sent it.
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    /// The resource of the object as the server describes it: its names, categories and verbs.
    ///
    /// Before the server has been asked, it is what the operator was made for.
    pub fn resource(&self) -> &DiscoveredResource {
        &self.scope.resource
    }

    /// The objects of a kind in the namespace of this object, or in that of the client if this one
    /// is cluster-wide.
    pub fn api<T>(&self) -> Api<T>
    where
        T: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        self.scope.api()
    }

    /// An index of the operator, always as it is now.
    pub fn index<I: Index>(&self, index: I) -> IndexView<I> {
        self.scope.services.indices.get(index)
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        self.scope.subject.name()
    }

    /// The namespace of the object; none for cluster-wide kinds.
    pub fn namespace(&self) -> Option<&str> {
        self.scope.subject.namespace()
    }

    /// The identity of the object, which a namesake does not share.
    pub fn uid(&self) -> &str {
        self.scope.subject.uid()
    }

    /// What is remembered of the object while the operator runs; `memo` in the manifest names the
    /// type.
    pub fn memo<M: Memo<K>>(&self) -> &M {
        memo::typed::<K, M>(self.scope.memo.as_ref())
    }

    /// A client for everything else in the cluster.
    pub fn client(&self) -> &Client {
        &self.scope.services.client
    }

    /// What is to be written to the object.
    pub fn patch(&self) -> &Patch {
        &self.patch
    }

    /// Delivers a result into `status.<handler id>`.
    ///
    /// # Errors
    /// If the value cannot be expressed in JSON.
    pub fn set_result(&self, result: &impl Serialize) -> Result<(), serde_json::Error> {
        self.result.put(result)
    }

    /// Makes another object the child of this one: owned by it, named after it with a suffix of
    /// the server's choice, in its namespace, with its labels.
    ///
    /// # Errors
    /// If the child cannot be turned into JSON and back.
    pub fn adopt<T: Child>(&self, child: &mut T) -> Result<(), serde_json::Error> {
        self.adopt_as(child, &Adoption::default())
    }

    /// The same for a child with a name, labels or templates of its own mind.
    ///
    /// # Errors
    /// If the child cannot be turned into JSON and back.
    pub fn adopt_as<T: Child>(
        &self,
        child: &mut T,
        adoption: &Adoption,
    ) -> Result<(), serde_json::Error> {
        hierarchy::adopt(child, &self.raw, adoption)
    }
}

reporting!(EventContext, scope);
