//! The context of webhooks that say yes or no.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::HeaderMap;
use kopf_core::admission::Operation;
use kopf_core::admission::certificate::Certificate;
use kopf_core::admission::review::{ReviewRequest, UserInfo};
use kopf_core::handler::HandlerId;
use kopf_core::object::diff::{Diff, diff};
use kopf_core::selection::DiscoveredResource;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Old;
use crate::handler::memo::{self, AnyMemo, Memo};
use crate::index::{Index, IndexView, Indices};

/// One request to the API server, as a validating webhook sees it.
pub struct ValidationContext<K> {
    object: K,
    old: OnceLock<Old<K>>,
    inputs: ReviewInputs,
    texts: OnceLock<ReviewedStates>,
    diff: OnceLock<Diff>,
    /// Behind a lock only so that the context can be read for what is said; it is never contended.
    pub(crate) warnings: Mutex<Vec<String>>,
}

/// What is known before the webhook is called.
#[derive(Clone)]
pub(crate) struct ReviewInputs {
    pub(crate) request: Arc<ReviewRequest>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) client: Client,
    pub(crate) indices: Indices,
    pub(crate) handler: HandlerId,
    pub(crate) param: Option<Arc<Value>>,
    /// The object before and after, if somebody had to look at them already.
    pub(crate) states: Option<Arc<ReviewedStates>>,
    /// None if the kind has no memos.
    pub(crate) memo: Option<AnyMemo>,
    pub(crate) resource: Arc<DiscoveredResource>,
}

/// Who asks for a review: usually an API server.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The headers of its request.
    pub headers: HeaderMap,
    /// The certificate with which it proved who it is, if it did.
    pub certificate: Option<Arc<Certificate>>,
}

/// The object before and after a request, read from text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReviewedStates {
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
}

// === impl ReviewedStates ===

impl ReviewedStates {
    pub(crate) fn read(request: &ReviewRequest) -> Self {
        // What is nested too deeply to be read is nothing that a condition could be about.
        let read = |text: Option<&RawValue>| serde_json::from_str(text?.get()).ok();
        Self {
            old: read(request.old_object.as_deref()),
            new: read(request.object.as_deref()),
        }
    }

    /// The object as it will be, or as it was if it is being deleted.
    pub(crate) fn body(&self) -> &Value {
        const NOTHING: &Value = &Value::Null;
        self.new.as_ref().or(self.old.as_ref()).unwrap_or(NOTHING)
    }
}

// === impl ValidationContext ===

impl<K> ValidationContext<K> {
    pub(crate) fn new(object: K, inputs: ReviewInputs) -> Self {
        Self {
            object,
            old: OnceLock::new(),
            inputs,
            texts: OnceLock::new(),
            diff: OnceLock::new(),
            warnings: Mutex::default(),
        }
    }

    /// The object as it will be, or as it was if it is being deleted.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// The same as the API server sent it.
    pub fn raw(&self) -> &Value {
        self.states().body()
    }

    /// The object before the request, as the API server sent it; none for creations.
    pub fn old_raw(&self) -> Option<&Value> {
        self.states().old.as_ref()
    }

    /// The object after the request, as the API server sent it; none for deletions.
    pub fn new_raw(&self) -> Option<&Value> {
        self.states().new.as_ref()
    }

    /// All differences that the request makes, those in the metadata and the status included.
    pub fn diff(&self) -> &Diff {
        let states = self.states();
        self.diff
            .get_or_init(|| diff(states.old.as_ref(), states.new.as_ref()))
    }

    /// What is about to happen.
    pub fn operation(&self) -> Operation {
        self.inputs.request.operation
    }

    /// The subresource, such as `status` or `scale`; none if it is about the object itself.
    pub fn subresource(&self) -> Option<&str> {
        self.inputs.request.subresource()
    }

    /// Whether nothing will be stored, so that nothing may be done either.
    pub fn is_dry_run(&self) -> bool {
        self.inputs.request.dry_run == Some(true)
    }

    /// Who wants it to happen.
    pub fn user(&self) -> &UserInfo {
        &self.inputs.request.user_info
    }

    /// The options of the request, such as those of a deletion.
    pub fn options(&self) -> Option<&RawValue> {
        self.inputs.request.options.as_deref()
    }

    /// The HTTP headers with which the API server asks.
    pub fn headers(&self) -> &HeaderMap {
        &self.inputs.caller.headers
    }

    /// The verified certificate of the API server, if it has shown one.
    pub fn client_certificate(&self) -> Option<&Certificate> {
        self.inputs.caller.certificate.as_deref()
    }

    /// Tells something to the person who made the request, whatever comes out of it.
    pub fn warn(&self, warning: impl Into<String>) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.push(warning.into());
    }

    /// The name of the object; none if the API server is going to make one up.
    pub fn name(&self) -> Option<&str> {
        self.inputs.request.name.as_deref()
    }

    /// The namespace of the object; none for cluster-wide kinds.
    pub fn namespace(&self) -> Option<&str> {
        self.inputs.request.namespace.as_deref()
    }

    /// What the manifest says in `param`.
    pub fn param(&self) -> Option<&Value> {
        self.inputs.param.as_deref()
    }

    /// The id of the webhook.
    pub fn handler_id(&self) -> &str {
        self.inputs.handler.as_str()
    }

    /// What is remembered of the object while the operator runs; `memo` in the manifest names the
    /// type. Of an object that is being created nothing is kept, and of one that is not handled not
    /// for long.
    pub fn memo<M: Memo<K>>(&self) -> &M {
        memo::typed::<K, M>(self.inputs.memo.as_ref())
    }

    /// A client for everything else in the cluster.
    pub fn client(&self) -> &Client {
        &self.inputs.client
    }

    /// An index of the operator, always as it is now; as it was when the operator paused, if it
    /// has.
    pub fn index<I: Index>(&self, index: I) -> IndexView<I> {
        self.inputs.indices.get(index)
    }

    /// The resource of the object as the server describes it: its names, categories and verbs.
    ///
    /// Before the server has been asked, it is what the operator was made for.
    pub fn resource(&self) -> &DiscoveredResource {
        &self.inputs.resource
    }

    /// The objects of a kind in the namespace of this object, or in that of the client if this one
    /// is cluster-wide.
    pub fn api<T>(&self) -> Api<T>
    where
        T: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let client = self.inputs.client.clone();
        match self.namespace() {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::default_namespaced(client),
        }
    }

    pub(crate) fn states(&self) -> &ReviewedStates {
        match &self.inputs.states {
            Some(states) => states,
            None => self
                .texts
                .get_or_init(|| ReviewedStates::read(&self.inputs.request)),
        }
    }

    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        let warnings = self.warnings.get_mut();
        std::mem::take(warnings.unwrap_or_else(PoisonError::into_inner))
    }
}

impl<K: DeserializeOwned> ValidationContext<K> {
    /// The object before the request: absent for creations, unknown if it does not fit its type.
    pub fn old(&self) -> Old<&K> {
        let read = || match self.inputs.request.old_object.as_deref() {
            None => Old::Absent,
            Some(text) => serde_json::from_str(text.get()).map_or(Old::Unknown, Old::Known),
        };
        self.old.get_or_init(read).as_ref()
    }
}
