//! The rules that make a schema structural: each value has one type, and branches only restrict it.

use std::fmt;

use super::Rejections;
use super::keywords::{
    ADDITIONAL, Additional, BRANCHES, DEFAULT, EMBEDDED, INT_OR_STRING, ITEMS, Keywords,
    LIST_MAP_KEYS, LIST_TYPE, MAP_TYPE, NULLABLE, PRESERVE_UNKNOWN, PROPERTIES, RULES, TYPE,
};
use crate::load::schema::UNSUPPORTED;
use crate::load::yaml::Node;

/// The place of a schema in the schema around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPosition {
    Root,
    Item,
    Field,
}

/// The path of a schema, as the API server prints it.
#[derive(Clone, Copy)]
struct SchemaPath<'p> {
    parent: Option<&'p SchemaPath<'p>>,
    step: SchemaPathStep<'p>,
}

#[derive(Clone, Copy)]
enum SchemaPathStep<'p> {
    Text(&'p str),
    Property(&'p str),
    Branch(&'p str, usize),
}

/// Keywords that a branch may not have, each with the reason.
const NOT_IN_BRANCHES: [(&str, &str); 12] = [
    (TYPE, "must be empty to be structural"),
    (DEFAULT, "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    (NULLABLE, "must be false to be structural"),
    (PRESERVE_UNKNOWN, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    (LIST_MAP_KEYS, "must be empty to be structural"),
    (LIST_TYPE, "must be undefined to be structural"),
    (MAP_TYPE, "must be undefined to be structural"),
    (RULES, "must be empty to be structural"),
];

/// Checks the schema of a version, which is at `path` in the definition.
pub(super) fn check(root: Keywords<'_>, path: &str, found: &mut Rejections) {
    // The API server reports these alone, and so does other code here.
    let is_unsupported = |schema: Keywords<'_>| {
        let preserves = schema.get(PRESERVE_UNKNOWN).and_then(Node::as_bool);
        preserves == Some(false) || UNSUPPORTED.iter().any(|key| schema.is_set(key))
    };
    if root.any(&is_unsupported) {
        return;
    }
    invariants(root, SchemaPosition::Root, found);
    let path = SchemaPath {
        parent: None,
        step: SchemaPathStep::Text(path),
    };
    completeness(root, root, &path, found);
}

fn invariants(schema: Keywords<'_>, level: SchemaPosition, found: &mut Rejections) {
    if schema.kind() == "array" && schema.get(ITEMS).is_none() {
        found.add(schema.at(TYPE), "items: Required value: must be specified");
    }
    if let Some(items) = schema.items() {
        invariants(items, SchemaPosition::Item, found);
    }
    for entry in schema.properties() {
        invariants(Keywords(&entry.value), SchemaPosition::Field, found);
    }
    let additional = schema.additional();
    if additional.is_some() && level == SchemaPosition::Root {
        found.add(schema.at(ADDITIONAL), "must not be used at the root");
    }
    if let Some(Additional::Schema(values)) = additional {
        invariants(values, SchemaPosition::Field, found);
    }
    for excluded in [PRESERVE_UNKNOWN, EMBEDDED] {
        if schema.flag(INT_OR_STRING) && schema.flag(excluded) {
            let reason = "must be false if x-kubernetes-int-or-string is true";
            found.add(schema.at(excluded), reason);
        }
    }
    branches(
        schema,
        is_int_or_string(schema),
        begins_with_int_or_string(schema),
        found,
    );
    kind(schema, level, found);
    if schema.flag(EMBEDDED) && additional.is_some() {
        let reason = "must not be used if x-kubernetes-embedded-resource is set";
        found.add(schema.at(ADDITIONAL), reason);
    }
    metadata(schema, level, found);
}

/// The type of a schema that is no branch.
fn kind(schema: Keywords<'_>, level: SchemaPosition, found: &mut Rejections) {
    let is_open = schema.flag(INT_OR_STRING) || schema.flag(PRESERVE_UNKNOWN);
    if schema.flag(EMBEDDED) && schema.kind() != "object" {
        let reason = "must be object if x-kubernetes-embedded-resource is true";
        found.add(schema.at(EMBEDDED), reason);
    } else if schema.kind().is_empty() && !is_open && !schema.has_unreadable_type() {
        let reason = match level {
            SchemaPosition::Root => "must not be empty at the root",
            SchemaPosition::Item => "must not be empty for specified array items",
            SchemaPosition::Field => "must not be empty for specified object fields",
        };
        found.add(schema.start(), format!("type: Required value: {reason}"));
    }
    if level == SchemaPosition::Root && !matches!(schema.kind(), "" | "object") {
        found.add(schema.at(TYPE), "must be object at the root");
    }
    if schema.flag(EMBEDDED) && !schema.flag(PRESERVE_UNKNOWN) && schema.properties().is_empty() {
        let reason = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        found.add(schema.at(EMBEDDED), reason);
    }
}

/// The properties that Kubernetes defines.
fn metadata(schema: Keywords<'_>, level: SchemaPosition, found: &mut Rejections) {
    if level != SchemaPosition::Root && !schema.flag(EMBEDDED) {
        return;
    }
    for name in ["kind", "apiVersion"] {
        let property = schema.property(name);
        if let Some(property) = property.filter(|property| property.kind() != "string") {
            found.add(property.at(TYPE), "must be string");
        }
    }
    let Some(metadata) = schema.property("metadata") else {
        return;
    };
    if metadata.kind() != "object" {
        found.add(metadata.at(TYPE), "must be object");
    }
    let is_name = |name: &str| matches!(name, "name" | "generateName");
    let mut names = metadata.properties().iter().map(|it| it.key.name.as_str());
    let is_minimal = metadata.has_only(&[TYPE, DEFAULT, PROPERTIES]) && names.all(is_name);
    if level == SchemaPosition::Root && !is_minimal {
        let reason = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        found.add(metadata.start(), reason);
    }
}

/// Whether `anyOf` is how an int-or-string may be written.
fn is_int_or_string(schema: Keywords<'_>) -> bool {
    let kinds: Vec<&str> = schema
        .branches("anyOf")
        .map(|branch| match branch.has_only(&[TYPE]) {
            true => branch.kind(),
            false => "",
        })
        .collect();
    kinds == ["integer", "string"]
}

/// Whether the first schema of `allOf` is how an int-or-string may be written.
fn begins_with_int_or_string(schema: Keywords<'_>) -> bool {
    schema
        .branches("allOf")
        .next()
        .is_some_and(is_int_or_string)
}

/// Checks the branches of a schema; those that declare an int-or-string may have types.
fn branches(
    schema: Keywords<'_>,
    skips_any_of: bool,
    skips_in_first_all_of: bool,
    found: &mut Rejections,
) {
    for key in BRANCHES {
        for (place, inner) in schema.branches(key).enumerate() {
            if key == "anyOf" && skips_any_of {
                continue;
            }
            branch(
                inner,
                key == "allOf" && place == 0 && skips_in_first_all_of,
                found,
            );
        }
    }
    if let Some(not) = schema.not() {
        branch(not, false, found);
    }
}

fn branch(schema: Keywords<'_>, skips_any_of: bool, found: &mut Rejections) {
    branches(schema, skips_any_of, false, found);
    if let Some(items) = schema.items() {
        branch(items, false, found);
    }
    for entry in schema.properties() {
        branch(Keywords(&entry.value), false, found);
    }
    for (key, reason) in NOT_IN_BRANCHES {
        if schema.is_set(key) || key == DEFAULT && schema.get(key).is_some() {
            found.add(schema.at(key), format!("{key}: Forbidden: {reason}"));
        }
    }
    let allows = !matches!(schema.additional(), None | Some(Additional::Allowed(false)));
    if allows {
        let reason = "additionalProperties: Forbidden: must be undefined to be structural";
        found.add(schema.at(ADDITIONAL), reason);
    }
    let mut properties = schema.properties().iter();
    if let Some(entry) = properties.find(|it| it.key.name == "metadata") {
        found.add(entry.key.span, "must not be specified in a nested context");
    }
}

/// Checks that the schema declares what its branches restrict. The API server does so for those of
/// the root.
fn completeness(
    restricting: Keywords<'_>,
    declaring: Keywords<'_>,
    path: &SchemaPath<'_>,
    found: &mut Rejections,
) {
    for key in BRANCHES {
        for (place, branch) in restricting.branches(key).enumerate() {
            let path = path.child(SchemaPathStep::Branch(key, place));
            declared(branch, declaring, &path, found);
        }
    }
    if let Some(not) = restricting.not() {
        declared(
            not,
            declaring,
            &path.child(SchemaPathStep::Text("not")),
            found,
        );
    }
}

fn declared(
    branch: Keywords<'_>,
    declaring: Keywords<'_>,
    path: &SchemaPath<'_>,
    found: &mut Rejections,
) {
    completeness(branch, declaring, path, found);
    if let Some(items) = branch.items() {
        let path = path.child(SchemaPathStep::Text(ITEMS));
        match declaring.items() {
            Some(declaring) => declared(items, declaring, &path, found),
            None => found.add(branch.at(ITEMS), path.undeclared()),
        }
    }
    for entry in branch.properties() {
        let path = path.child(SchemaPathStep::Property(&entry.key.name));
        match declaring.property(&entry.key.name) {
            Some(declaring) => declared(Keywords(&entry.value), declaring, &path, found),
            None => found.add(entry.key.span, path.undeclared()),
        }
    }
}

// === impl SchemaPath ===

impl<'p> SchemaPath<'p> {
    fn child(&'p self, step: SchemaPathStep<'p>) -> Self {
        Self {
            parent: Some(self),
            step,
        }
    }

    fn undeclared(&self) -> String {
        format!("Required value: because it is defined in {self}")
    }
}

impl fmt::Display for SchemaPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}.")?;
        }
        match self.step {
            SchemaPathStep::Text(text) => f.write_str(text),
            SchemaPathStep::Property(name) => write!(f, "properties[{name}]"),
            SchemaPathStep::Branch(key, place) => write!(f, "{key}[{place}]"),
        }
    }
}
