//! Applies children of the handled object in one call.

use kopf_core::object::ObjectView;
use kopf_core::object::hierarchy::{self, Adoption, Naming};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;

use super::hierarchy::AppliedChild;
use crate::handler::error::{HandlerError, HandlerResult};

/// The inputs of an application beside the child.
pub(super) struct ApplyInputs<'a> {
    pub(super) client: &'a Client,
    pub(super) field_manager: &'a str,
    pub(super) owner: &'a Value,
}

impl ApplyInputs<'_> {
    /// Applies a child of the owner on the server, and returns it as the server has it then.
    pub(super) async fn apply<T: AppliedChild>(&self, child: &T) -> HandlerResult<T> {
        let mut child = serde_json::to_value(child)?;
        let owner = ObjectView::new(self.owner);
        let adoption = Adoption {
            naming: Naming::Strict,
            ..Adoption::default()
        };
        hierarchy::adopt(&mut child, owner, &adoption);
        let kind = T::kind(&());
        let view = ObjectView::new(&child);
        let (Some(name), Some(namespace)) = (view.name(), view.namespace()) else {
            let message = format!("a {kind} to be applied needs a name and a namespace");
            return Err(HandlerError::permanent(message));
        };
        let (name, namespace) = (name.to_owned(), namespace.to_owned());
        let api: Api<T> = Api::namespaced(self.client.clone(), &namespace);
        if let Some(existing) = api.get_metadata_opt(&name).await? {
            let owners = existing.owner_references();
            if !owners.iter().any(|it| Some(it.uid.as_str()) == owner.uid()) {
                let message = format!("the {kind} {name} exists, and this object does not own it");
                return Err(HandlerError::arbitrary(message));
            }
            // If it is replaced by another one meanwhile, that one is not touched.
            child["metadata"]["uid"] = existing.uid().into();
        }
        child["apiVersion"] = T::api_version(&()).into();
        child["kind"] = kind.into();
        let parameters = PatchParams::apply(self.field_manager).force();
        Ok(api.patch(&name, &parameters, &Patch::Apply(child)).await?)
    }
}
