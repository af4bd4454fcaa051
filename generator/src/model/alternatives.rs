//! Schemas that describe alternatives rather than restrictions.

use std::collections::BTreeSet;

use super::generated_types::{ShapeBody, ShapeDocs, Ty};
use super::schema_to_type::{SchemaMapper, nullable};
use crate::load::schema::{Kind, Property, Schema};

impl SchemaMapper<'_> {
    /// An enum with one variant per member, if exactly one member is always there.
    pub(super) fn union(&mut self, schema: &Schema) -> Option<Ty> {
        let names: Vec<&str> = schema.properties.iter().map(|p| p.name.as_str()).collect();
        let alternatives: Option<Vec<&str>> = schema.one_of.iter().map(only_required).collect();
        let alternatives: BTreeSet<&str> = alternatives?.into_iter().collect();
        let sound = names.len() > 1
            && schema.one_of.len() == names.len()
            && alternatives == names.iter().copied().collect()
            && schema.required.is_empty()
            && !schema.preserve_unknown
            && !schema.embedded_resource
            && schema.additional.is_none()
            && schema
                .properties
                .iter()
                .all(|p| !nullable(&p.schema) && p.schema.default.is_none());
        if !sound {
            return None;
        }
        let properties: Vec<&Property> = schema.properties.iter().collect();
        let (fields, docs) = self.fields(schema, &properties);
        if fields.iter().any(|field| field.ty == Ty::Json) {
            return None;
        }
        let variants = fields
            .into_iter()
            .map(|field| (field.json, field.ty))
            .collect();
        let docs = ShapeDocs {
            text: schema.description.clone().unwrap_or_default(),
            fields: docs,
        };
        Some(self.intern(ShapeBody::Union(variants), docs))
    }

    /// An enum of the types that `oneOf` or `anyOf` name, if JSON tells them apart.
    pub(super) fn alternatives(&mut self, schema: &Schema) -> Option<Ty> {
        let branches = match (schema.one_of.as_slice(), schema.any_of.as_slice()) {
            ([], branches) | (branches, []) => branches,
            _ => return None,
        };
        let kinds: Option<BTreeSet<u8>> = branches.iter().map(json_kind).collect();
        if branches.len() < 2 || kinds?.len() != branches.len() {
            return None;
        }
        if branches
            .iter()
            .any(|branch| branch.kind == Some(Kind::Object))
        {
            return None;
        }
        let types = branches.iter().map(|branch| self.ty(branch)).collect();
        let text = schema.description.clone().unwrap_or_default();
        Some(self.intern(
            ShapeBody::Untagged(types),
            ShapeDocs {
                text,
                fields: Vec::new(),
            },
        ))
    }
}

/// The one member that a branch requires, if the branch says nothing else.
fn only_required(branch: &Schema) -> Option<&str> {
    let plain = Schema {
        span: branch.span,
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
        Kind::Boolean => 0,
        Kind::Integer | Kind::Number => 1,
        Kind::String => 2,
        Kind::Array => 3,
        Kind::Object => 4,
    })
}
