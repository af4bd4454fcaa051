//! The context of handlers of changes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kopf_core::cause::Reason;
use kopf_core::cycle::CycleInput;
use kopf_core::cycle::sub::SubCycle;
use kopf_core::handler::{HandlerId, HandlerSpec};
use kopf_core::object::diff::{Baseline, Diff};
use kopf_core::selection::DiscoveredResource;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client};
use serde::Serialize;
use serde_json::Value;

use super::Old;
use super::subhandler::RegisteredSubHandler;
use crate::context::hierarchy::{self, Adoption, Child};
use crate::context::recorder::reporting;
use crate::handler::memo::{self, Memo};
use crate::handler::patch::Patch;
use crate::index::{Index, IndexView};
use crate::process::execute::scope::HandlerScope;
use crate::settings::ExecutionSettings;

/// One change of an object, as one of its handlers sees it.
///
/// The runtime owns it and the handler borrows it: what the handler put into the patch survives
/// an error, a panic and the end of its time.
pub struct ChangeContext<K> {
    object: K,
    pub(super) inputs: ChangeInputs,
    pub(super) registered: Vec<RegisteredSubHandler<K>>,
    pub(crate) effects: HandlerEffects,
}

/// What is known before the handler is called.
#[derive(Clone)]
pub(crate) struct ChangeInputs {
    pub(crate) scope: HandlerScope,
    pub(crate) execution: ExecutionSettings,
    pub(crate) situation: CycleInput,
    /// From which the records of sub-handlers are opened.
    pub(crate) subs: Arc<SubCycle>,
    /// From old to new, within the field that the handler is about.
    pub(crate) diff: Arc<Diff>,
    pub(crate) handler: HandlerId,
    /// Whether the handler runs only if its field changed, and its sub-handlers with it.
    pub(crate) changing: bool,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) retry: u32,
    pub(crate) started: Timestamp,
    pub(crate) runtime: Duration,
}

/// What a handler leaves behind, whatever becomes of it.
#[derive(Debug, Default)]
pub(crate) struct HandlerEffects {
    pub(crate) patch: Patch,
    pub(crate) result: ResultSlot,
    /// The records of its sub-handlers.
    pub(crate) subs: Vec<SubCycle>,
}

/// The result of a handler, behind a lock for the same reason as the patch.
#[derive(Debug, Default)]
pub(crate) struct ResultSlot(Mutex<Option<Value>>);

// === impl ChangeInputs ===

impl ChangeInputs {
    /// The differences as a handler sees them.
    pub(crate) fn diff_for(&self, spec: &HandlerSpec) -> Arc<Diff> {
        let sight = &self.situation.sight;
        match spec.field() {
            Some(field) => Arc::new(sight.old.diff_at(field, &sight.new)),
            None => Arc::clone(&self.diff),
        }
    }
}

// === impl HandlerEffects ===

impl HandlerEffects {
    /// Takes over what a sub-handler wants written.
    pub(super) fn absorb(&mut self, sub: Self) {
        self.patch.lock().absorb(sub.patch.into_writes());
    }

    /// Puts the result of a sub-handler into the status.
    pub(super) fn deliver(&mut self, id: &HandlerId, result: &Value) {
        self.patch.lock().deliver(id.as_str(), result);
    }
}

// === impl ResultSlot ===

impl ResultSlot {
    pub(super) fn put(&self, result: &impl Serialize) -> Result<(), serde_json::Error> {
        let result = serde_json::to_value(result)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        Ok(())
    }

    pub(crate) fn take(&mut self) -> Option<Value> {
        self.0
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

// === impl ChangeContext ===

impl<K> ChangeContext<K> {
    pub(crate) fn new(object: K, inputs: ChangeInputs) -> Self {
        Self {
            object,
            inputs,
            registered: Vec::new(),
            effects: HandlerEffects::default(),
        }
    }

    /// The object as it is now.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// The object as the server sent it.
    pub fn raw(&self) -> &Value {
        &self.inputs.situation.body
    }

    /// Why the handler is called.
    pub fn reason(&self) -> Reason {
        self.inputs.situation.sight.reason
    }

    /// What changed since the object was handled last; for a field handler, within that field.
    pub fn diff(&self) -> &Diff {
        &self.inputs.diff
    }

    /// The part of the object that counts, as it was handled last.
    pub fn old(&self) -> Old<&Value> {
        match &self.inputs.situation.sight.old {
            Baseline::Absent => Old::Absent,
            Baseline::Known(essence) => Old::Known(essence.as_value()),
            Baseline::Hashed(_) => Old::Unknown,
        }
    }

    /// The part of the object that counts, as it is now.
    pub fn new_state(&self) -> &Value {
        self.inputs.situation.sight.new.as_value()
    }

    /// How many attempts were made before this one.
    pub fn retry(&self) -> u32 {
        self.inputs.retry
    }

    /// When the handler was first due for this change.
    pub fn started(&self) -> Timestamp {
        self.inputs.started
    }

    /// How long that is ago, downtime of the operator included.
    pub fn runtime(&self) -> Duration {
        self.inputs.runtime
    }

    /// What the manifest says in `param`.
    pub fn param(&self) -> Option<&Value> {
        self.inputs.param.as_deref()
    }

    /// The id under which the handler is recorded on the object.
    pub fn handler_id(&self) -> &str {
        self.inputs.handler.as_str()
    }

    /// What is to be written to the object.
    pub fn patch(&self) -> &Patch {
        &self.effects.patch
    }

    /// Delivers a result into `status.<handler id>`, if the handler succeeds.
    ///
    /// # Errors
    /// If the value cannot be expressed in JSON.
    pub fn set_result(&self, result: &impl Serialize) -> Result<(), serde_json::Error> {
        self.effects.result.put(result)
    }

    /// What is remembered of the object while the operator runs; `memo` in the manifest names the
    /// type.
    pub fn memo<M: Memo<K>>(&self) -> &M {
        memo::typed::<K, M>(self.inputs.scope.memo.as_ref())
    }

    /// A client for everything else in the cluster.
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

    /// An index of the operator, always as it is now.
    pub fn index<I: Index>(&self, index: I) -> IndexView<I> {
        self.inputs.scope.services.indices.get(index)
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

    /// What a child refers to this object with, as its controller, so that it goes with it.
    pub fn owner_reference(&self) -> OwnerReference {
        let subject = &self.inputs.scope.subject;
        OwnerReference {
            api_version: subject.api_version().to_owned(),
            kind: subject.kind().to_owned(),
            name: subject.name().to_owned(),
            uid: subject.uid().to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
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
        hierarchy::adopt(child, &self.inputs.situation.body, adoption)
    }
}

reporting!(ChangeContext, inputs.scope);
