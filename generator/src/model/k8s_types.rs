//! Finds the type of `k8s-openapi` that can hold every object of a schema.

mod simple;
mod table;

pub(super) use simple::{
    BYTE_STRING, CONDITION, INT_OR_STRING, OBJECT_META, QUANTITY, RAW_EXTENSION, SimpleType, TIME,
    holds_int_or_string,
};
pub(super) use table::{member, named};

use super::generated_types::{ExistingType, PathStep};
use super::type_options::Builtins;
use crate::load::schema::{Schema, SchemaType};

/// The type that can hold every object of a schema, if there is one.
pub(super) fn recognise(
    schema: &Schema,
    steps: &[PathStep],
    builtins: Builtins,
) -> Option<ExistingType> {
    if builtins == Builtins::None || schema.preserve_unknown || schema.embedded_resource {
        return None;
    }
    // Its time drops fractions of a second.
    if builtins == Builtins::Compatible && is_condition(schema) {
        return Some(CONDITION.known());
    }
    table::find(schema, steps, builtins)
}

/// The type for objects of the same form, if it would change some values that the schema allows.
///
/// The name of the field does not matter: schemas of the same form must not become two types.
pub(super) fn counterpart(schema: &Schema) -> Option<ExistingType> {
    let is_open =
        schema.preserve_unknown || schema.embedded_resource || schema.additional.is_some();
    if is_open {
        return None;
    }
    if is_condition(schema) {
        return Some(CONDITION.known());
    }
    table::find(schema, &[], Builtins::Compatible)
}

/// Whether a schema is that of `metav1.Condition`.
fn is_condition(schema: &Schema) -> bool {
    const MEMBERS: [&str; 6] = [
        "lastTransitionTime",
        "message",
        "reason",
        "status",
        "type",
        "observedGeneration",
    ];
    let required = &MEMBERS[..5];
    schema.properties.len() >= required.len()
        && schema
            .properties
            .iter()
            .all(|p| MEMBERS.contains(&p.name.as_str()) && !p.schema.nullable)
        && required.iter().all(|name| schema.requires(name))
        && schema.properties.iter().all(|property| {
            let of = &property.schema;
            match property.name.as_str() {
                "lastTransitionTime" => {
                    of.kind == Some(SchemaType::String) && of.format.as_deref() == Some("date-time")
                }
                "observedGeneration" => of.kind == Some(SchemaType::Integer) && !of.int_or_string,
                _ => of.kind == Some(SchemaType::String) && of.format.is_none(),
            }
        })
}
