//! The context of functions that put objects into an index.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::handler::HandlerId;
use kopf_core::selection::DiscoveredResource;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client};
use serde_json::Value;

use crate::handler::memo::{self, Memo};
use crate::index::{Index, IndexView};
use crate::process::execute::scope::HandlerScope;

/// One object that is about to be found in an index.
pub struct IndexContext<K> {
    object: K,
    inputs: IndexInputs,
}

/// What is known before the function is called.
pub(crate) struct IndexInputs {
    pub(crate) scope: HandlerScope,
    pub(crate) raw: Arc<Value>,
    pub(crate) handler: HandlerId,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) retry: u32,
    pub(crate) started: Timestamp,
    pub(crate) runtime: Duration,
}

impl<K> IndexContext<K> {
    pub(crate) fn new(object: K, inputs: IndexInputs) -> Self {
        Self { object, inputs }
    }

    /// The object.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// The object as the server sent it.
    pub fn raw(&self) -> &Value {
        &self.inputs.raw
    }

    /// The resource of the object as the server describes it: its names, categories and verbs.
    ///
    /// Before the server has been asked, it is what the operator was made for.
    pub fn resource(&self) -> &DiscoveredResource {
        &self.inputs.scope.resource
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        self.inputs.scope.subject.name()
    }

    /// The namespace of the object; none for cluster-wide kinds.
    pub fn namespace(&self) -> Option<&str> {
        self.inputs.scope.subject.namespace()
    }

    /// The identity of the object, which a namesake does not share.
    pub fn uid(&self) -> &str {
        self.inputs.scope.subject.uid()
    }

    /// How many attempts failed in a row before this one.
    pub fn retry(&self) -> u32 {
        self.inputs.retry
    }

    /// When the first of these attempts was made.
    pub fn started(&self) -> Timestamp {
        self.inputs.started
    }

    /// How long that is ago.
    pub fn runtime(&self) -> Duration {
        self.inputs.runtime
    }

    /// What the manifest says in `param`.
    pub fn param(&self) -> Option<&Value> {
        self.inputs.param.as_deref()
    }

    /// The name of the index.
    pub fn handler_id(&self) -> &str {
        self.inputs.handler.as_str()
    }

    /// What is remembered of the object while the operator runs; `memo` in the manifest names the
    /// type.
    pub fn memo<M: Memo<K>>(&self) -> &M {
        memo::typed::<K, M>(self.inputs.scope.memo.as_ref())
    }

    /// A client for everything else in the cluster. Mind that handlers wait for the indices.
    pub fn client(&self) -> &Client {
        &self.inputs.scope.services.client
    }

    /// The objects of a kind in the namespace of this object, or in that of the client if this one
    /// is cluster-wide.
    pub fn api<T>(&self) -> Api<T>
    where
        T: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        self.inputs.scope.api()
    }

    /// An index as far as it has come: here, none is known to be complete.
    pub fn index<I: Index>(&self, index: I) -> IndexView<I> {
        self.inputs.scope.services.indices.get(index)
    }
}
