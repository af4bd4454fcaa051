//! The context of validating webhooks.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::HeaderMap;
use kopf_core::admission::Operation;
use kopf_core::admission::certificate::Certificate;
use kopf_core::admission::review::{ReviewRequest, UserInfo};
use kopf_core::handler::HandlerId;
use kopf_core::object::diff::{Diff, diff};
use kopf_core::selection::DiscoveredResource;
use kube::Client;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Old;
use super::accessors::{ObjectScope, handler_accessors, object_accessors};
use super::blocking::blocking_accessors;
use crate::handler::memo::AnyMemo;
use crate::index::Indices;

/// The context of a validating webhook: one admission review of a request to the API server.
///
/// The memo of an object that is being created is not kept after the review; that of an object
/// which the operator does not watch, only for a while. While the operator is paused, the indices
/// stay as they were when it paused.
pub struct ValidationContext<K> {
    object: K,
    old: OnceLock<Old<K>>,
    inputs: ReviewInputs,
    texts: OnceLock<ReviewedStates>,
    diff: OnceLock<Diff>,
    /// Behind a lock only so that `warn` takes a shared borrow of the context; it is never
    /// contended.
    pub(crate) warnings: Mutex<Vec<String>>,
}

/// The inputs of one call of a webhook.
#[derive(Clone)]
pub(crate) struct ReviewInputs {
    pub(crate) request: Arc<ReviewRequest>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) client: Client,
    pub(crate) indices: Indices,
    pub(crate) handler: HandlerId,
    pub(crate) param: Option<Arc<Value>>,
    /// The object before and after, if the filters of the webhook had to read it.
    pub(crate) states: Option<Arc<ReviewedStates>>,
    /// None if the kind has no memos.
    pub(crate) memo: Option<AnyMemo>,
    pub(crate) resource: Arc<DiscoveredResource>,
}

/// The sender of an admission review: usually an API server.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The headers of its request.
    pub headers: HeaderMap,
    /// Its verified client certificate, if it sent one.
    pub certificate: Option<Arc<Certificate>>,
}

/// The object before and after a request, decoded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReviewedStates {
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
}

// === impl ReviewInputs ===

impl ObjectScope for ReviewInputs {
    fn client(&self) -> &Client {
        &self.client
    }

    fn indices(&self) -> &Indices {
        &self.indices
    }

    fn memo(&self) -> Option<&AnyMemo> {
        self.memo.as_ref()
    }

    fn resource(&self) -> &DiscoveredResource {
        &self.resource
    }

    fn namespace(&self) -> Option<&str> {
        self.request.namespace.as_deref()
    }
}

// === impl ReviewedStates ===

impl ReviewedStates {
    pub(crate) fn read(request: &ReviewRequest) -> Self {
        // An object that is nested too deeply to be decoded counts as absent for filters.
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

    /// The same object as the API server sent it.
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

    /// All differences that the request makes, including metadata and status.
    pub fn diff(&self) -> &Diff {
        let states = self.states();
        self.diff
            .get_or_init(|| diff(states.old.as_ref(), states.new.as_ref()))
    }

    /// The operation of the request.
    pub fn operation(&self) -> Operation {
        self.inputs.request.operation
    }

    /// The subresource of the request, such as `status` or `scale`; none for the object itself.
    pub fn subresource(&self) -> Option<&str> {
        self.inputs.request.subresource()
    }

    /// Returns true if the request is a dry run: the webhook must not have side effects then.
    pub fn is_dry_run(&self) -> bool {
        self.inputs.request.dry_run == Some(true)
    }

    /// The user that made the request.
    pub fn user(&self) -> &UserInfo {
        &self.inputs.request.user_info
    }

    /// The options of the request, such as those of a deletion.
    pub fn options(&self) -> Option<&RawValue> {
        self.inputs.request.options.as_deref()
    }

    /// The HTTP headers of the admission review.
    pub fn headers(&self) -> &HeaderMap {
        &self.inputs.caller.headers
    }

    /// The verified client certificate of the API server, if it sent one.
    pub fn client_certificate(&self) -> Option<&Certificate> {
        self.inputs.caller.certificate.as_deref()
    }

    /// Adds a warning to the answer, which `kubectl` shows to the user, whether or not the request
    /// is allowed.
    pub fn warn(&self, warning: impl Into<String>) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.push(warning.into());
    }

    /// The name of the object; none if the API server is going to generate one.
    pub fn name(&self) -> Option<&str> {
        self.inputs.request.name.as_deref()
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

blocking_accessors!(ValidationContext);
object_accessors!(ValidationContext, inputs);
handler_accessors!(ValidationContext, inputs);

impl<K: DeserializeOwned> ValidationContext<K> {
    /// The object before the request: absent for creations, unknown if it cannot be decoded.
    pub fn old(&self) -> Old<&K> {
        let read = || match self.inputs.request.old_object.as_deref() {
            None => Old::Absent,
            Some(text) => serde_json::from_str(text.get()).map_or(Old::Unknown, Old::Known),
        };
        self.old.get_or_init(read).as_ref()
    }
}
