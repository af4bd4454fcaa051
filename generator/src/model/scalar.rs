//! Facts about scalar schemas: nullability, integer width, and int-or-string.

use serde_json::Value as Json;

use super::generated_types::IntType;
use crate::load::schema::{Schema, SchemaType};

pub(super) fn nullable(schema: &Schema) -> bool {
    schema.nullable
        || schema.values.as_ref().is_some_and(|values| {
            values.iter().any(Json::is_null)
                && schema.kind.is_none_or(|kind| kind == SchemaType::String)
        })
}

pub(super) fn is_int_or_string(schema: &Schema) -> bool {
    if schema.int_or_string {
        return true;
    }
    let kinds = |branches: &[Schema]| {
        let kinds: Vec<_> = branches.iter().map(|branch| branch.kind).collect();
        kinds == [Some(SchemaType::Integer), Some(SchemaType::String)]
            || kinds == [Some(SchemaType::String), Some(SchemaType::Integer)]
    };
    schema.kind.is_none()
        && (kinds(&schema.any_of)
            || kinds(&schema.one_of)
            || schema.format.as_deref() == Some("int-or-string"))
}

pub(super) fn integer(schema: &Schema) -> IntType {
    let int = match schema.format.as_deref() {
        Some("int8") => IntType::I8,
        Some("int16") => IntType::I16,
        Some("int32") => IntType::I32,
        Some("uint8") => IntType::U8,
        Some("uint16") => IntType::U16,
        Some("uint32") => IntType::U32,
        Some("uint64" | "uint") => IntType::U64,
        _ => IntType::I64,
    };
    // A limit or default outside the range of the format shows that the format is wrong.
    let (least, most) = int.range();
    let beyond = ["minimum", "maximum"]
        .iter()
        .filter_map(|keyword| schema.limit(keyword))
        .chain(&schema.default)
        .filter_map(|value| value.as_i64())
        .any(|value| i128::from(value) < least || i128::from(value) > most);
    if beyond { IntType::I64 } else { int }
}
