//! Makes objects children of others: owner references, names, namespaces and labels.
//!
//! The functions take any type that serde can read and write: types of k8s-openapi, generated
//! types, and raw JSON; and several objects at once, as a list or a tuple. The owner is raw JSON,
//! as `raw()` of the handler contexts returns it. For the handled object as the owner, all
//! of them are methods of these contexts.

use std::fmt;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kopf_core::object::ObjectView;
use kopf_core::object::hierarchy as raw;
pub use kopf_core::object::hierarchy::{Adoption, Existing, Naming, OwnerFlags};
use kopf_core::object::path::FieldPath;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::handler::patch::field_path;

/// An object or several objects that can be turned into JSON and back.
pub trait Child: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> Child for T {}

/// A child that can be applied: an object of a namespaced kind.
pub trait AppliedChild:
    Child
    + Clone
    + fmt::Debug
    + Send
    + Sync
    + kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
{
}

impl<T> AppliedChild for T where
    T: Child
        + Clone
        + fmt::Debug
        + Send
        + Sync
        + kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
{
}

/// Makes an object the child of another: with an owner reference to it, a name after its name, its
/// namespace and its labels.
///
/// # Errors
/// If the child cannot be turned into JSON and back.
pub fn adopt<T: Child>(
    child: &mut T,
    owner: &Value,
    adoption: &Adoption,
) -> Result<(), serde_json::Error> {
    edit(child, &mut |child| {
        raw::adopt(child, ObjectView::new(owner), adoption);
    })
}

/// A reference to any object, such as a child that the status names.
#[must_use]
pub fn object_reference(object: &Value) -> ObjectReference {
    let reference = raw::object_reference(ObjectView::new(object));
    // All of its parts are texts.
    serde_json::from_value(reference).unwrap_or_default()
}

/// An owner reference to any object.
#[must_use]
pub fn owner_reference(owner: &Value, flags: OwnerFlags) -> OwnerReference {
    let view = ObjectView::new(owner);
    let text = |part: Option<&str>| part.unwrap_or_default().to_owned();
    OwnerReference {
        api_version: text(view.api_version()),
        kind: text(view.kind()),
        name: text(view.name()),
        uid: text(view.uid()),
        controller: flags.controller,
        block_owner_deletion: flags.block_owner_deletion,
    }
}

/// Adds an owner reference, unless the child has it.
///
/// # Errors
/// If the child cannot be turned into JSON and back.
pub fn append_owner_reference<T: Child>(
    child: &mut T,
    owner: &Value,
    flags: OwnerFlags,
) -> Result<(), serde_json::Error> {
    edit(child, &mut |child| {
        raw::append_owner_reference(child, ObjectView::new(owner), flags);
    })
}

/// Removes an owner reference, if the child has it.
///
/// # Errors
/// If the child cannot be turned into JSON and back.
pub fn remove_owner_reference<T: Child>(
    child: &mut T,
    owner: &Value,
) -> Result<(), serde_json::Error> {
    edit(child, &mut |child| {
        raw::remove_owner_reference(child, ObjectView::new(owner));
    })
}

/// Sets labels of an object, and of the templates nested in it, such as `spec.template`, where they
/// exist.
///
/// # Errors
/// If the object cannot be turned into JSON and back.
pub fn label<T: Child>(
    object: &mut T,
    labels: &[(&str, &str)],
    existing: Existing,
    nested: &[&str],
) -> Result<(), serde_json::Error> {
    let nested: Vec<FieldPath> = nested.iter().map(|path| field_path(path)).collect();
    edit(object, &mut |object| {
        raw::label(object, labels, existing, &nested);
    })
}

/// Gives the labels of the owner to an object, and to the templates nested in it.
pub(super) fn label_as<T: Child>(
    object: &mut T,
    owner: &Value,
    existing: Existing,
    nested: &[&str],
) -> Result<(), serde_json::Error> {
    let labels = owner["metadata"]["labels"].as_object();
    let labels = labels.into_iter().flatten();
    let labels: Vec<(&str, &str)> = labels
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect();
    label(object, &labels, existing, nested)
}

/// Sets the name of an object.
///
/// # Errors
/// If the object cannot be turned into JSON and back.
pub fn harmonize_naming<T: Child>(
    object: &mut T,
    name: &str,
    existing: Existing,
    naming: Naming,
) -> Result<(), serde_json::Error> {
    edit(object, &mut |object| {
        raw::harmonize_naming(object, name, existing, naming);
    })
}

/// Sets or removes the namespace of an object.
///
/// # Errors
/// If the object cannot be turned into JSON and back.
pub fn adjust_namespace<T: Child>(
    object: &mut T,
    namespace: Option<&str>,
    existing: Existing,
) -> Result<(), serde_json::Error> {
    edit(object, &mut |object| {
        raw::adjust_namespace(object, namespace, existing);
    })
}

fn edit<T: Child>(
    object: &mut T,
    change: &mut dyn FnMut(&mut Value),
) -> Result<(), serde_json::Error> {
    let mut json = serde_json::to_value(&*object)?;
    edit_each(&mut json, change);
    *object = serde_json::from_value(json)?;
    Ok(())
}

fn edit_each(json: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    match json {
        Value::Array(objects) => {
            for object in objects {
                edit_each(object, change);
            }
        }
        object => change(object),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
    use k8s_openapi::api::core::v1::PersistentVolumeClaim;
    use serde_json::json;

    use super::*;

    fn owner() -> Value {
        json!({
            "apiVersion": "kopf.dev/v1",
            "kind": "KopfExample",
            "metadata": {
                "name": "one",
                "namespace": "here",
                "uid": "u",
                "labels": {"app": "x"},
            },
        })
    }

    #[test]
    fn typed_and_raw_children_are_adopted_alike() -> Result<(), serde_json::Error> {
        let mut typed = PersistentVolumeClaim::default();
        adopt(&mut typed, &owner(), &Adoption::default())?;
        let mut untyped = json!({});
        adopt(&mut untyped, &owner(), &Adoption::default())?;
        let meta = &typed.metadata;
        assert_eq!(meta.generate_name.as_deref(), Some("one-"));
        assert_eq!(meta.namespace.as_deref(), Some("here"));
        assert_eq!(serde_json::to_value(meta)?, untyped["metadata"]);
        Ok(())
    }

    #[test]
    fn several_children_of_several_types_are_adopted_at_once() -> Result<(), serde_json::Error> {
        let raw = json!({"metadata": {"name": "own"}});
        let mut children = (
            vec![PersistentVolumeClaim::default(); 2],
            Deployment::default(),
            raw,
        );
        children.1.spec = DeploymentSpec::default();
        let adoption = Adoption {
            existing: Existing::Replaced,
            naming: Naming::Strict,
            flags: OwnerFlags {
                controller: None,
                block_owner_deletion: Some(false),
            },
            nested: vec![field_path("spec.template")],
        };
        adopt(&mut children, &owner(), &adoption)?;
        let (claims, deployment, raw) = children;
        let metas = claims.iter().map(|claim| &claim.metadata);
        for meta in metas.chain([&deployment.metadata]) {
            assert_eq!(meta.name.as_deref(), Some("one"));
            let owners = meta.owner_references.as_deref().unwrap_or_default();
            assert_eq!((owners.len(), owners[0].controller), (1, None));
            assert_eq!(serde_json::to_value(meta)?, raw["metadata"]);
        }
        let template = deployment.spec.template;
        let labels = template.metadata.and_then(|meta| meta.labels);
        assert_eq!(labels, Some([("app".to_owned(), "x".to_owned())].into()));
        Ok(())
    }

    #[test]
    fn an_added_owner_reference_can_be_removed() -> Result<(), serde_json::Error> {
        let mut child = PersistentVolumeClaim::default();
        append_owner_reference(&mut child, &owner(), OwnerFlags::default())?;
        assert_eq!(
            child.metadata.owner_references.as_ref().map(Vec::len),
            Some(1)
        );
        remove_owner_reference(&mut child, &owner())?;
        assert_eq!(child.metadata.owner_references, None);
        Ok(())
    }
}
