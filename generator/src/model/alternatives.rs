//! Recognises schemas whose `oneOf` or `anyOf` describes alternatives rather than restrictions.

use std::collections::BTreeSet;

use super::scalar::nullable;
use crate::load::schema::{Schema, SchemaType};

/// Whether exactly one of the declared members is always present.
pub(super) fn is_union(schema: &Schema) -> bool {
    let names: BTreeSet<&str> = schema.properties.iter().map(|p| p.name.as_str()).collect();
    let alternatives: Option<BTreeSet<&str>> = schema.one_of.iter().map(only_required).collect();
    schema.properties.len() > 1
        && schema.one_of.len() == schema.properties.len()
        && alternatives == Some(names)
        && schema.required.is_empty()
        && !schema.preserve_unknown
        && !schema.embedded_resource
        && schema.additional.is_none()
        && schema
            .properties
            .iter()
            .all(|p| !nullable(&p.schema) && p.schema.default.is_none())
}

/// The branches of `oneOf` or `anyOf`, if the JSON type of a value tells which one it matches.
pub(super) fn distinct_branches(schema: &Schema) -> Option<&[Schema]> {
    let branches = match (schema.one_of.as_slice(), schema.any_of.as_slice()) {
        ([], branches) | (branches, []) => branches,
        _ => return None,
    };
    let kinds: Option<BTreeSet<u8>> = branches.iter().map(json_kind).collect();
    let has_object = branches
        .iter()
        .any(|branch| branch.kind == Some(SchemaType::Object));
    (branches.len() >= 2 && kinds?.len() == branches.len() && !has_object).then_some(branches)
}

/// The one member that a branch requires, if the branch says nothing else.
fn only_required(branch: &Schema) -> Option<&str> {
    let plain = Schema {
        span: branch.span,
        is_reported: branch.is_reported,
        required: branch.required.clone(),
        ..Schema::default()
    };
    match branch.required.as_slice() {
        [name] if *branch == plain => Some(name),
        _ => None,
    }
}

/// A number per kind of JSON value; integers and numbers are of one kind.
fn json_kind(schema: &Schema) -> Option<u8> {
    Some(match schema.kind? {
        SchemaType::Boolean => 0,
        SchemaType::Integer | SchemaType::Number => 1,
        SchemaType::String => 2,
        SchemaType::Array => 3,
        SchemaType::Object => 4,
    })
}
