//! The context of `reconcile`: the object, its children, and what happened since the last call.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kopf_core::children::options::{ChildContents, ChildOptions};
use kopf_core::children::reasons::ReconcileReasons;
use kopf_core::handler::HandlerId;
use serde::Serialize;
use serde_json::Value;

use super::accessors::{
    adoption_accessors, attempt_accessors, event_accessors, existing_object_accessors,
    handler_accessors, object_accessors,
};
use super::blocking::blocking_accessors;
use super::change::HandlerEffects;
use super::draft::{DraftSlot, DraftSource, draft_accessors};
use super::hierarchy::Child;
use crate::children::owner::OwnerChildren;
use crate::client::resource::KindName;
use crate::handler::error::HandlerResult;
use crate::process::execute::handler_scope::HandlerScope;

/// A type whose objects can be children: of any scope.
pub trait ChildKind:
    Child + Clone + fmt::Debug + Send + Sync + 'static + kube::Resource<DynamicType = ()>
{
}

impl<T> ChildKind for T where
    T: Child + Clone + fmt::Debug + Send + Sync + 'static + kube::Resource<DynamicType = ()>
{
}

/// A kind that objects own. `C` is a marker that generated code declares for their kind, and for
/// each kind under `children:` it implements this trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not declared as a child",
    note = "add its kind to `children:` in kopf.yaml, and run `kopf-gen generate`"
)]
pub trait ChildOf<C>: ChildKind {
    /// The options of its entry in the manifest.
    const OPTIONS: ChildOptions;
}

/// The context of `reconcile`: one object with its children.
pub struct ReconcileContext<K, C> {
    call: ReconcileCall<K>,
    declared: PhantomData<fn() -> C>,
}

/// One call of `reconcile`.
pub struct ReconcileCall<K> {
    object: K,
    pub(crate) inputs: ReconcileInputs,
    pub(crate) draft: DraftSlot<K>,
    pub(crate) effects: HandlerEffects,
}

/// The inputs of one call of `reconcile`.
pub(crate) struct ReconcileInputs {
    pub(crate) raw: Arc<Value>,
    pub(crate) scope: HandlerScope,
    pub(crate) reasons: ReconcileReasons,
    pub(crate) children: Arc<OwnerChildren>,
    pub(crate) handler: HandlerId,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) retry: u32,
    pub(crate) started: Timestamp,
    pub(crate) runtime: Duration,
}

/// A child as the watch of its kind has it.
#[derive(Debug, Clone)]
pub struct ChildView<T> {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// The whole child, if the manifest asks for bodies and it fits its type.
    pub body: Option<T>,
}

// === impl ReconcileContext ===

impl<K, C> ReconcileContext<K, C> {
    pub(crate) fn new(object: K, inputs: ReconcileInputs) -> Self {
        let call = ReconcileCall {
            object,
            inputs,
            draft: DraftSlot::default(),
            effects: HandlerEffects::default(),
        };
        let declared = PhantomData;
        Self { call, declared }
    }

    pub(crate) fn into_effects(self) -> HandlerEffects {
        self.call.effects
    }

    // These are methods of `ReconcileCall`, too. The trait of all contexts has them with other
    // types, and its methods would be found first.

    /// The object as it is now.
    pub fn object(&self) -> &K {
        self.call.object()
    }

    /// The object as the API server sent it.
    pub fn raw(&self) -> &Value {
        self.call.raw()
    }

    /// Applies a child. Returns it as the API server has it if a request was sent; otherwise as the
    /// watch of its kind has it with `bodies: true`, or else as it was applied, without a status.
    ///
    /// What the child leaves out is filled in: an owner reference to this object where Kubernetes
    /// allows one, its name, its namespace and its labels. A child that is as it should be costs no
    /// request. Fields that an earlier call has set and this one leaves out are removed, and fields of the
    /// call that other clients have updated get their values again; all other fields are not
    /// touched. What earlier calls have applied and this one does not is deleted once this call has
    /// succeeded.
    ///
    /// # Errors
    /// If an object of that name exists that this object does not own, if another client applies
    /// the same fields, or if the API server rejects the child.
    pub async fn apply<T: ChildOf<C>>(&self, child: T) -> HandlerResult<T> {
        let body = serde_json::to_value(&child)?;
        let applied = self.inputs.children.apply(&kind_name::<T>(), body).await?;
        Ok(applied.parse()?)
    }

    /// The children of this kind, from the watch of their kind; those that are not applied any more
    /// and still exist are among them.
    #[must_use]
    pub fn children<T: ChildOf<C>>(&self) -> Vec<ChildView<T>> {
        let children = self.inputs.children.list(&kind_name::<T>()).into_iter();
        let views = children.filter_map(|child| {
            let metadata = serde_json::from_value(child["metadata"].clone()).ok()?;
            let body = match T::OPTIONS.contents {
                ChildContents::Bodies => serde_json::from_value(child).ok(),
                ChildContents::Metadata => None,
            };
            Some(ChildView { metadata, body })
        });
        views.collect()
    }

    /// The children that a unit test's handler applied, in their order; see
    /// [`TestContext::reconcile`](crate::TestContext::reconcile).
    #[must_use]
    pub fn applied(&self) -> Vec<Value> {
        self.inputs.children.call().noted.clone()
    }

    /// What happened since the last call.
    #[must_use]
    pub fn reasons(&self) -> &ReconcileReasons {
        &self.inputs.reasons
    }

    /// Asks for another call after this time, if nothing happens before.
    pub fn call_again_after(&self, delay: Duration) {
        self.inputs.children.call_again_after(delay);
    }

    /// The time after which the handler asked for another call so far. Unit tests compare it.
    #[must_use]
    pub fn next_call_after(&self) -> Option<Duration> {
        self.inputs.children.call().again
    }
}

impl<K, C> Deref for ReconcileContext<K, C> {
    type Target = ReconcileCall<K>;

    fn deref(&self) -> &ReconcileCall<K> {
        &self.call
    }
}

impl<K, C> DerefMut for ReconcileContext<K, C> {
    fn deref_mut(&mut self) -> &mut ReconcileCall<K> {
        &mut self.call
    }
}

// === impl ReconcileCall ===

impl<K> ReconcileCall<K> {
    /// The object as it is now.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// The object as the API server sent it.
    pub fn raw(&self) -> &Value {
        &self.inputs.raw
    }

    /// Sets the result of the handler. The runtime writes it to `status.<handler id>` if the
    /// handler succeeds.
    ///
    /// # Errors
    /// If the value cannot be expressed in JSON.
    pub fn set_result(&self, result: &impl Serialize) -> Result<(), serde_json::Error> {
        self.effects.result.put(result)
    }
}

impl DraftSource for ReconcileInputs {
    fn drafted(&self) -> Value {
        Value::clone(&self.raw)
    }

    fn generation(&self) -> Option<i64> {
        self.raw["metadata"]["generation"].as_i64()
    }
}

/// The `apiVersion` and `kind` of a type.
pub(crate) fn kind_name<T: kube::Resource<DynamicType = ()>>() -> KindName {
    KindName {
        api_version: T::api_version(&()).into_owned(),
        kind: T::kind(&()).into_owned(),
    }
}

object_accessors!(ReconcileCall, inputs.scope);
existing_object_accessors!(ReconcileCall, inputs.scope);
handler_accessors!(ReconcileCall, inputs);
attempt_accessors!(ReconcileCall, inputs);
adoption_accessors!(ReconcileCall, inputs.scope);
blocking_accessors!(ReconcileCall);
draft_accessors!(ReconcileCall, effects.patch, inputs);
event_accessors!(ReconcileCall, inputs.scope);
