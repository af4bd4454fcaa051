//! Edits that make an object the child of another: owner reference, name, namespace, labels.

use serde_json::{Map, Value, json};

use crate::object::{ObjectView, path::FieldPath};

/// The flags of an owner reference; both are set by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerFlags {
    /// Whether the owner is the managing controller; only one owner may be.
    pub controller: Option<bool>,
    /// Whether the owner's foreground deletion waits for the child.
    pub block_owner_deletion: Option<bool>,
}

/// The treatment of values that the child already has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// They stay.
    #[default]
    Kept,
    /// They are overwritten.
    Replaced,
}

/// The way a child is named after its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// The name is a prefix that the API server completes.
    #[default]
    Generated,
    /// The name is used as it is.
    Strict,
}

/// The options of an adoption.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adoption {
    /// The flags of the owner reference.
    pub flags: OwnerFlags,
    /// The treatment of names, namespaces and labels that the child has.
    pub existing: Existing,
    /// The way the child is named.
    pub naming: Naming,
    /// Templates inside of the child that get the labels, too, such as `spec.template`.
    pub nested: Vec<FieldPath>,
}

// === impl OwnerFlags ===

impl Default for OwnerFlags {
    fn default() -> Self {
        Self {
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}

/// The reference to an owner in its children.
#[must_use]
pub fn owner_reference(owner: ObjectView<'_>, flags: OwnerFlags) -> Value {
    let mut reference = json!({
        "controller": flags.controller,
        "blockOwnerDeletion": flags.block_owner_deletion,
        "apiVersion": owner.api_version(),
        "kind": owner.kind(),
        "name": owner.name(),
        "uid": owner.uid(),
    });
    if let Some(reference) = reference.as_object_mut() {
        reference.retain(|_, value| !value.is_null());
    }
    reference
}

/// A reference to an object, without the parts that it does not have.
#[must_use]
pub fn object_reference(object: ObjectView<'_>) -> Value {
    let mut reference = json!({
        "apiVersion": object.api_version(),
        "kind": object.kind(),
        "name": object.name(),
        "uid": object.uid(),
        "namespace": object.namespace(),
    });
    if let Some(reference) = reference.as_object_mut() {
        reference.retain(|_, value| value.as_str().is_some_and(|text| !text.is_empty()));
    }
    reference
}

/// Whether Kubernetes allows this owner for this child: it deletes a child whose owner is in another
/// namespace.
#[must_use]
pub fn can_own(owner: ObjectView<'_>, child: ObjectView<'_>) -> bool {
    let namespace = owner.namespace();
    namespace.is_none() || namespace == child.namespace()
}

/// Adds an owner, unless the child has it.
pub fn append_owner_reference(child: &mut Value, owner: ObjectView<'_>, flags: OwnerFlags) {
    let Some(references) = owner_references(child) else {
        return;
    };
    let uid = owner.uid();
    if !references.iter().any(|reference| uid_of(reference) == uid) {
        references.push(owner_reference(owner, flags));
    }
}

/// Removes an owner, if the child has it.
pub fn remove_owner_reference(child: &mut Value, owner: ObjectView<'_>) {
    let uid = owner.uid();
    let meta = child.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(meta) = meta
        && let Some(references) = meta
            .get_mut("ownerReferences")
            .and_then(Value::as_array_mut)
    {
        references.retain(|reference| uid_of(reference) != uid);
        if references.is_empty() {
            meta.shift_remove("ownerReferences");
        }
    }
}

/// Labels an object, and the templates nested in it where they exist.
pub fn label(
    object: &mut Value,
    labels: &[(&str, &str)],
    existing: Existing,
    nested: &[FieldPath],
) {
    label_one(object, labels, existing);
    for path in nested {
        let template = path
            .parts()
            .iter()
            .try_fold(&mut *object, |value, part| value.get_mut(part));
        if let Some(template) = template.filter(|template| template.is_object()) {
            label_one(template, labels, existing);
        }
    }
}

/// Names an object that has no name yet, or any object if forced.
pub fn harmonize_naming(object: &mut Value, name: &str, existing: Existing, naming: Naming) {
    let Some(meta) = metadata(object) else {
        return;
    };
    let named = meta.contains_key("name") || meta.contains_key("generateName");
    if named && existing == Existing::Kept {
        return;
    }
    let (set, unset, value) = match naming {
        Naming::Strict => ("name", "generateName", name.to_owned()),
        Naming::Generated => ("generateName", "name", format!("{name}-")),
    };
    meta.insert(set.to_owned(), value.into());
    meta.shift_remove(unset);
}

/// Sets or removes the namespace of an object that has none yet, or of any object if forced.
pub fn adjust_namespace(object: &mut Value, namespace: Option<&str>, existing: Existing) {
    let Some(meta) = metadata(object) else {
        return;
    };
    let has_namespace = meta.get("namespace").is_some_and(|name| !name.is_null());
    if has_namespace && existing == Existing::Kept {
        return;
    }
    match namespace {
        Some(namespace) => {
            meta.insert("namespace".to_owned(), namespace.into());
        }
        None => {
            meta.shift_remove("namespace");
        }
    }
}

/// Makes an object the child of another: with its owner reference, name, namespace and labels.
pub fn adopt(child: &mut Value, owner: ObjectView<'_>, adoption: &Adoption) {
    append_owner_reference(child, owner, adoption.flags);
    if let Some(name) = owner.name() {
        harmonize_naming(child, name, adoption.existing, adoption.naming);
    }
    adjust_namespace(child, owner.namespace(), adoption.existing);
    let labels: Vec<(&str, &str)> = owner
        .labels()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect();
    if !labels.is_empty() {
        label(child, &labels, adoption.existing, &adoption.nested);
    }
}

fn label_one(object: &mut Value, labels: &[(&str, &str)], existing: Existing) {
    let present = metadata(object).and_then(|meta| stanza(meta, "labels"));
    if let Some(present) = present {
        for (key, value) in labels {
            if existing == Existing::Replaced || !present.contains_key(*key) {
                present.insert((*key).to_owned(), (*value).into());
            }
        }
    }
}

fn uid_of(reference: &Value) -> Option<&str> {
    reference.get("uid")?.as_str()
}

fn metadata(object: &mut Value) -> Option<&mut Map<String, Value>> {
    stanza(object.as_object_mut()?, "metadata")
}

fn stanza<'a>(
    parent: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    let slot = parent.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut()
}

fn owner_references(child: &mut Value) -> Option<&mut Vec<Value>> {
    let slot = metadata(child)?
        .entry("ownerReferences")
        .or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Array(Vec::new());
    }
    slot.as_array_mut()
}

#[cfg(test)]
mod tests;
