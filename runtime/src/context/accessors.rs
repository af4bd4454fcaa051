//! The accessors that several handler contexts have in common, each written once.
//!
//! They are macros, so that every context has them as methods of its own: users need to import
//! nothing to call them, and docs.rs shows them on the page of the context.

use kopf_core::selection::DiscoveredResource;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client};

use crate::handler::memo::AnyMemo;
use crate::index::Indices;
use crate::process::execute::handler_scope::HandlerScope;

/// The data of a context that [`object_accessors!`] reads.
pub(crate) trait ObjectScope {
    fn client(&self) -> &Client;
    fn indices(&self) -> &Indices;
    /// None if the kind has no memos.
    fn memo(&self) -> Option<&AnyMemo>;
    fn resource(&self) -> &DiscoveredResource;
    fn namespace(&self) -> Option<&str>;

    fn api<T>(&self) -> Api<T>
    where
        T: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let client = self.client().clone();
        match self.namespace() {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::default_namespaced(client),
        }
    }
}

impl ObjectScope for HandlerScope {
    fn client(&self) -> &Client {
        &self.services.client
    }

    fn indices(&self) -> &Indices {
        &self.services.indices
    }

    fn memo(&self) -> Option<&AnyMemo> {
        self.memo.as_ref()
    }

    fn resource(&self) -> &DiscoveredResource {
        &self.resource
    }

    fn namespace(&self) -> Option<&str> {
        self.subject.namespace()
    }
}

/// The methods of every context that is about an object; its field is an [`ObjectScope`].
macro_rules! object_accessors {
    ($context:ident, $($scope:ident).+) => {
        impl<K> $context<K> {
            /// The namespace of the object; none for cluster-scoped kinds.
            pub fn namespace(&self) -> Option<&str> {
                $crate::context::accessors::ObjectScope::namespace(&self.$($scope).+)
            }

            /// The resource of the object as the API server describes it: its names, categories
            /// and verbs.
            ///
            /// Until discovery has read it, it is what the operator was generated for.
            pub fn resource(&self) -> &$crate::DiscoveredResource {
                $crate::context::accessors::ObjectScope::resource(&self.$($scope).+)
            }

            /// The memo of the object: state in memory that its handlers share while the operator
            /// runs. `memo` in the manifest names the type.
            pub fn memo<M: $crate::Memo<K>>(&self) -> &M {
                let memo = $crate::context::accessors::ObjectScope::memo(&self.$($scope).+);
                $crate::handler::memo::typed::<K, M>(memo)
            }

            /// The client of the operator, for requests about any other object.
            pub fn client(&self) -> &kube::Client {
                $crate::context::accessors::ObjectScope::client(&self.$($scope).+)
            }

            /// The objects of a kind in the namespace of this object, or in the default namespace
            /// of the client if this object is cluster-scoped.
            pub fn api<T>(&self) -> kube::Api<T>
            where
                T: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
            {
                $crate::context::accessors::ObjectScope::api(&self.$($scope).+)
            }

            /// An index of the operator. Each lookup reads the current entries.
            pub fn index<I: $crate::Index>(&self, index: I) -> $crate::IndexView<I> {
                $crate::context::accessors::ObjectScope::indices(&self.$($scope).+).get(index)
            }
        }
    };
}

/// The methods of contexts whose object exists in the cluster; their field is a `HandlerScope`.
macro_rules! existing_object_accessors {
    ($context:ident, $($scope:ident).+) => {
        impl<K> $context<K> {
            /// The name of the object.
            pub fn name(&self) -> &str {
                self.$($scope).+.subject.name()
            }

            /// The uid of the object. An object that is deleted and created again under the same
            /// name has another one.
            pub fn uid(&self) -> &str {
                self.$($scope).+.subject.uid()
            }
        }
    };
}

/// The methods that say which handler is called; the field has its `handler` and `param`.
macro_rules! handler_accessors {
    ($context:ident, $inputs:ident) => {
        impl<K> $context<K> {
            /// The id of the handler, as in logs, in `status.<handler id>` and in the progress on
            /// the object.
            pub fn handler_id(&self) -> &str {
                self.$inputs.handler.as_str()
            }

            /// The value of `param` in the manifest.
            pub fn param(&self) -> Option<&serde_json::Value> {
                self.$inputs.param.as_deref()
            }
        }
    };
}

/// The methods about the attempts of a handler; the field has `retry`, `started` and `runtime`.
macro_rules! attempt_accessors {
    ($context:ident, $inputs:ident) => {
        impl<K> $context<K> {
            /// The number of attempts before this one.
            pub fn retry(&self) -> u32 {
                self.$inputs.retry
            }

            /// When the first attempt was due.
            pub fn started(&self) -> jiff::Timestamp {
                self.$inputs.started
            }

            /// The time from [`started`](Self::started) to the start of this attempt, including
            /// the time in which the operator did not run.
            pub fn runtime(&self) -> std::time::Duration {
                self.$inputs.runtime
            }
        }
    };
}

/// The methods that make other objects children of this one, by its `raw()`; the field is a
/// `HandlerScope`.
macro_rules! adoption_accessors {
    ($context:ident, $($scope:ident).+) => {
        impl<K> $context<K> {
            /// Applies a child of this object on the server, and returns it as it is then.
            ///
            /// What the child leaves out is filled in: an owner reference to this object, its
            /// name, its namespace and its labels. Fields that an earlier call has set and this
            /// one leaves out are removed, and fields of the call that other clients have updated
            /// get their values again; all other fields are not touched. The field manager is the
            /// name of the operator.
            ///
            /// # Errors
            /// If an object of that name exists that this object does not own, if another client
            /// applies the same fields with other values, or if the API server rejects the child.
            pub async fn apply<T>(&self, child: T) -> $crate::HandlerResult<T>
            where
                T: $crate::hierarchy::AppliedChild,
            {
                let inputs = $crate::context::apply::ApplyInputs {
                    services: &self.$($scope).+.services,
                    owner: &self.raw(),
                };
                inputs.apply(&child).await
            }

            /// An owner reference to this object as the controller: Kubernetes deletes an object
            /// that has it together with this one.
            pub fn owner_reference(
                &self,
            ) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
                let subject = &self.$($scope).+.subject;
                k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
                    api_version: subject.api_version().to_owned(),
                    kind: subject.kind().to_owned(),
                    name: subject.name().to_owned(),
                    uid: subject.uid().to_owned(),
                    controller: Some(true),
                    block_owner_deletion: Some(true),
                }
            }

            /// Makes another object the child of this one: it gets an owner reference, a
            /// generated name that begins with this object's name, and this object's namespace
            /// and labels.
            ///
            /// # Errors
            /// If the child cannot be turned into JSON and back.
            pub fn adopt<T: $crate::hierarchy::Child>(
                &self,
                child: &mut T,
            ) -> Result<(), serde_json::Error> {
                self.adopt_as(child, &$crate::hierarchy::Adoption::default())
            }

            /// As [`adopt`](Self::adopt), with other rules for the name, the labels or the owner
            /// reference.
            ///
            /// # Errors
            /// If the child cannot be turned into JSON and back.
            pub fn adopt_as<T: $crate::hierarchy::Child>(
                &self,
                child: &mut T,
                adoption: &$crate::hierarchy::Adoption,
            ) -> Result<(), serde_json::Error> {
                $crate::hierarchy::adopt(child, &self.raw(), adoption)
            }

            /// Adds an owner reference to this object, unless the other object has it.
            ///
            /// # Errors
            /// If the child cannot be turned into JSON and back.
            pub fn append_owner_reference<T: $crate::hierarchy::Child>(
                &self,
                child: &mut T,
                flags: $crate::hierarchy::OwnerFlags,
            ) -> Result<(), serde_json::Error> {
                $crate::hierarchy::append_owner_reference(child, &self.raw(), flags)
            }

            /// Removes an owner reference to this object, if the other object has it.
            ///
            /// # Errors
            /// If the child cannot be turned into JSON and back.
            pub fn remove_owner_reference<T: $crate::hierarchy::Child>(
                &self,
                child: &mut T,
            ) -> Result<(), serde_json::Error> {
                $crate::hierarchy::remove_owner_reference(child, &self.raw())
            }

            /// Gives the labels of this object to another one, and to the templates nested in it,
            /// such as `spec.template`, where they exist.
            ///
            /// # Errors
            /// If the child cannot be turned into JSON and back.
            pub fn label<T: $crate::hierarchy::Child>(
                &self,
                child: &mut T,
                existing: $crate::hierarchy::Existing,
                nested: &[&str],
            ) -> Result<(), serde_json::Error> {
                $crate::context::hierarchy::label_as(child, &self.raw(), existing, nested)
            }

            /// Names another object after this one.
            ///
            /// # Errors
            /// If the child cannot be turned into JSON and back.
            pub fn harmonize_naming<T: $crate::hierarchy::Child>(
                &self,
                child: &mut T,
                existing: $crate::hierarchy::Existing,
                naming: $crate::hierarchy::Naming,
            ) -> Result<(), serde_json::Error> {
                $crate::hierarchy::harmonize_naming(child, self.name(), existing, naming)
            }

            /// Puts another object into the namespace of this one.
            ///
            /// # Errors
            /// If the child cannot be turned into JSON and back.
            pub fn adjust_namespace<T: $crate::hierarchy::Child>(
                &self,
                child: &mut T,
                existing: $crate::hierarchy::Existing,
            ) -> Result<(), serde_json::Error> {
                $crate::hierarchy::adjust_namespace(child, self.namespace(), existing)
            }
        }
    };
}

/// The methods that post Kubernetes events; the field is a `HandlerScope`.
macro_rules! event_accessors {
    ($context:ident, $($scope:ident).+) => {
        impl<K> $context<K> {
            /// Posts a Kubernetes event of the type `Normal` on the object.
            pub fn info(&self, reason: &str, message: impl Into<String>) {
                self.recorder().info(reason, message);
            }

            /// Posts a Kubernetes event of the type `Warning` on the object.
            pub fn warn(&self, reason: &str, message: impl Into<String>) {
                self.recorder().warn(reason, message);
            }

            /// Posts a Kubernetes event of the type `Error` on the object; its message ends with
            /// the error.
            pub fn exception(&self, reason: &str, message: &str, error: impl std::fmt::Display) {
                self.recorder().exception(reason, message, error);
            }

            /// Posts a Kubernetes event of any type on the object.
            pub fn event(
                &self,
                severity: impl Into<$crate::EventSeverity>,
                reason: &str,
                message: impl Into<String>,
            ) {
                self.recorder().event(severity, reason, message);
            }

            /// A recorder of Kubernetes events on the object, for tasks that outlive this call; its
            /// method `on` makes one for any other object.
            pub fn recorder(&self) -> $crate::EventRecorder {
                self.$($scope).+.recorder()
            }
        }
    };
}

pub(super) use {
    adoption_accessors, attempt_accessors, event_accessors, existing_object_accessors,
    handler_accessors, object_accessors,
};
