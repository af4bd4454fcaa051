//! What all contexts of an object have in common, as one trait for helpers of several handlers.

use std::borrow::Cow;
use std::ops::Deref;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kopf_core::selection::DiscoveredResource;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::change::ChangeContext;
use super::child::ChildContext;
use super::daemon::DaemonContext;
use super::event::EventContext;
use super::field::FieldContext;
use super::hierarchy::{self, Adoption, AppliedChild, Child, Existing, Naming, OwnerFlags};
use super::memo_context::MemoContext;
use super::reconcile::ReconcileContext;
use super::timer::TimerContext;
use crate::events::recorder::EventRecorder;
use crate::handler::error::HandlerResult;
use crate::index::{Index, IndexView};

/// The methods that the contexts of change handlers, field handlers, event handlers, daemons and
/// timers have in common, for functions that several handlers call:
///
/// ```
/// use kopf_runtime::prelude::*;
///
/// fn announce<K>(cx: &impl ObjectContext<K>) {
///     cx.recorder().info("Seen", format!("{} was seen", cx.name()));
/// }
/// ```
///
/// On the contexts themselves, they are methods of their own, which need no import.
pub trait ObjectContext<K>: MemoContext<K> + Send + Sync {
    /// The object; for daemons, its newest state.
    fn object(&self) -> impl Deref<Target = K>;

    /// The object as the API server sent it.
    fn raw(&self) -> Cow<'_, Value>;

    /// The name of the object.
    fn name(&self) -> &str;

    /// The namespace of the object; none for cluster-scoped kinds.
    fn namespace(&self) -> Option<&str>;

    /// The uid of the object.
    fn uid(&self) -> &str;

    /// The resource of the object as the API server describes it.
    fn resource(&self) -> &DiscoveredResource;

    /// The client of the operator.
    fn client(&self) -> &Client;

    /// The objects of a kind in the namespace of this object.
    fn api<T>(&self) -> Api<T>
    where
        T: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>;

    /// An index of the operator.
    fn index<I: Index>(&self, index: I) -> IndexView<I>;

    /// A recorder of Kubernetes events on the object.
    fn recorder(&self) -> EventRecorder;

    /// An owner reference to this object as the controller.
    fn owner_reference(&self) -> OwnerReference;

    /// Makes another object the child of this one: it gets an owner reference, a generated name
    /// that begins with this object's name, and this object's namespace and labels.
    ///
    /// # Errors
    /// If the child cannot be turned into JSON and back.
    fn adopt<T: Child>(&self, child: &mut T) -> Result<(), serde_json::Error> {
        self.adopt_as(child, &Adoption::default())
    }

    /// As [`adopt`](Self::adopt), with other rules for the name, the labels or the owner reference.
    ///
    /// # Errors
    /// If the child cannot be turned into JSON and back.
    fn adopt_as<T: Child>(
        &self,
        child: &mut T,
        adoption: &Adoption,
    ) -> Result<(), serde_json::Error>;

    /// Adds an owner reference to this object, unless the other object has it.
    ///
    /// # Errors
    /// If the child cannot be turned into JSON and back.
    fn append_owner_reference<T: Child>(
        &self,
        child: &mut T,
        flags: OwnerFlags,
    ) -> Result<(), serde_json::Error> {
        hierarchy::append_owner_reference(child, &self.raw(), flags)
    }

    /// Removes an owner reference to this object, if the other object has it.
    ///
    /// # Errors
    /// If the child cannot be turned into JSON and back.
    fn remove_owner_reference<T: Child>(&self, child: &mut T) -> Result<(), serde_json::Error> {
        hierarchy::remove_owner_reference(child, &self.raw())
    }

    /// Gives the labels of this object to another one, and to the templates nested in it.
    ///
    /// # Errors
    /// If the child cannot be turned into JSON and back.
    fn label<T: Child>(
        &self,
        child: &mut T,
        existing: Existing,
        nested: &[&str],
    ) -> Result<(), serde_json::Error> {
        hierarchy::label_as(child, &self.raw(), existing, nested)
    }

    /// Names another object after this one.
    ///
    /// # Errors
    /// If the child cannot be turned into JSON and back.
    fn harmonize_naming<T: Child>(
        &self,
        child: &mut T,
        existing: Existing,
        naming: Naming,
    ) -> Result<(), serde_json::Error> {
        hierarchy::harmonize_naming(child, self.name(), existing, naming)
    }

    /// Puts another object into the namespace of this one.
    ///
    /// # Errors
    /// If the child cannot be turned into JSON and back.
    fn adjust_namespace<T: Child>(
        &self,
        child: &mut T,
        existing: Existing,
    ) -> Result<(), serde_json::Error> {
        hierarchy::adjust_namespace(child, self.namespace(), existing)
    }

    /// Applies a child of this object on the server, and returns it as it is then.
    ///
    /// # Errors
    /// As `apply` of the contexts.
    fn apply<T: AppliedChild>(&self, child: T) -> impl Future<Output = HandlerResult<T>> + Send;
}

/// Implements the trait by the context's own methods, on what `$own` makes of a reference to it.
macro_rules! object_context {
    ($context:ty, [$($generics:tt)*], |$cx:ident| $own:expr) => {
        impl<K: DeserializeOwned + Send + Sync, $($generics)*> ObjectContext<K> for $context {
            fn object(&self) -> impl Deref<Target = K> {
                let $cx = self;
                $own.object()
            }

            fn raw(&self) -> Cow<'_, Value> {
                let $cx = self;
                RawObject::into_cow($own.raw())
            }

            fn name(&self) -> &str {
                let $cx = self;
                $own.name()
            }

            fn namespace(&self) -> Option<&str> {
                let $cx = self;
                $own.namespace()
            }

            fn uid(&self) -> &str {
                let $cx = self;
                $own.uid()
            }

            fn resource(&self) -> &DiscoveredResource {
                let $cx = self;
                $own.resource()
            }

            fn client(&self) -> &Client {
                let $cx = self;
                $own.client()
            }

            fn api<T>(&self) -> Api<T>
            where
                T: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
            {
                let $cx = self;
                $own.api()
            }

            fn index<I: Index>(&self, index: I) -> IndexView<I> {
                let $cx = self;
                $own.index(index)
            }

            fn recorder(&self) -> EventRecorder {
                let $cx = self;
                $own.recorder()
            }

            fn owner_reference(&self) -> OwnerReference {
                let $cx = self;
                $own.owner_reference()
            }

            fn adopt_as<T: Child>(
                &self,
                child: &mut T,
                adoption: &Adoption,
            ) -> Result<(), serde_json::Error> {
                let $cx = self;
                $own.adopt_as(child, adoption)
            }

            async fn apply<T: AppliedChild>(&self, child: T) -> HandlerResult<T> {
                let $cx = self;
                $own.apply(child).await
            }
        }
    };
}

/// What `raw()` of a context returns.
trait RawObject<'a> {
    fn into_cow(self) -> Cow<'a, Value>;
}

impl<'a> RawObject<'a> for &'a Value {
    fn into_cow(self) -> Cow<'a, Value> {
        Cow::Borrowed(self)
    }
}

impl RawObject<'static> for Value {
    fn into_cow(self) -> Cow<'static, Value> {
        Cow::Owned(self)
    }
}

object_context!(ChangeContext<K>, [], |cx| cx);
object_context!(FieldContext<K, F>, [F: DeserializeOwned + Send + Sync], |cx| (**cx));
object_context!(EventContext<K>, [], |cx| cx);
object_context!(DaemonContext<K>, [], |cx| cx);
object_context!(TimerContext<K>, [], |cx| cx);
object_context!(ReconcileContext<K, C>, [C], |cx| (**cx));
object_context!(ChildContext<K, T0>, [T0: Send + Sync], |cx| (**cx));
