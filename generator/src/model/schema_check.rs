//! Checks whether the schema of a field allows a value.
//!
//! CEL rules, formats, `not` and patterns that cannot be parsed are ignored: in doubt, a value is
//! allowed.

use std::fmt;

use regex::bytes::RegexBuilder;
use serde_json::Value as Json;

use crate::load::schema::{AdditionalProperties, Schema, SchemaType};
use crate::rust::{PathRoot, RustType};

/// The part of a value that the schema does not allow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SchemaViolation {
    /// The path into the value, such as `.ports[0]`; empty for the value itself.
    pub(crate) at: String,
    /// The reason.
    pub(crate) reason: ViolationReason,
}

/// The reason why a schema does not allow a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ViolationReason {
    /// The field holds this type.
    Type(JsonType),
    /// The value is none of these.
    Enumeration(Vec<Json>),
    /// The value violates a keyword that has this value.
    Limit(&'static str, Json),
    /// A required property is missing.
    Missing(String),
    /// The API server prunes this property; these are declared.
    Unknown(String, Vec<String>),
    /// No branch of `anyOf` or `oneOf` allows the value.
    NoBranch,
}

/// The JSON type that a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonType {
    Boolean,
    Integer,
    IntegerOrString,
    List,
    Mapping,
    Number,
    String,
}

/// The role of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaReading {
    /// It describes the structure: the API server prunes undeclared properties.
    Structure,
    /// It is a branch of `allOf`, `anyOf` or `oneOf`, which only restricts values.
    Restriction,
}

/// The schema of the field at a path, if all schemas on the path declare it.
pub(crate) fn field<'s>(root: &'s Schema, keys: &[String]) -> Option<&'s Schema> {
    // Kubernetes defines the metadata, whatever the CRD declares.
    if matches!(
        keys.first().map(String::as_str),
        Some("metadata" | "apiVersion" | "kind")
    ) {
        return None;
    }
    keys.iter()
        .try_fold(root, |schema, key| member(schema, key))
}

/// The reason why no object can have this value in a field with this schema.
pub(crate) fn violation(schema: &Schema, value: &Json) -> Option<SchemaViolation> {
    check(schema, value, SchemaReading::Structure).err()
}

fn member<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    schema.property(name).or(match &schema.additional {
        Some(AdditionalProperties::Schema(values)) => Some(values),
        Some(AdditionalProperties::Any | AdditionalProperties::None) | None => None,
    })
}

fn check(schema: &Schema, value: &Json, reading: SchemaReading) -> Result<(), SchemaViolation> {
    if value.is_null() && schema.nullable {
        return Ok(());
    }
    if let Some(expected) = JsonType::of(schema)
        && !expected.can_hold(value)
    {
        return Err(ViolationReason::Type(expected).into());
    }
    if let Some(values) = &schema.values
        && !values.iter().any(|allowed| same(allowed, value))
    {
        return Err(ViolationReason::Enumeration(values.clone()).into());
    }
    check_limits(schema, value)?;
    match value {
        Json::Object(members) => check_members(schema, members, reading)?,
        Json::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                if let Some(of) = &schema.items {
                    check(of, item, reading).map_err(|it| it.below(&format!("[{place}]")))?;
                }
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
    for branch in &schema.all_of {
        check(branch, value, SchemaReading::Restriction)?;
    }
    for branches in [&schema.any_of, &schema.one_of] {
        let fits = |branch: &Schema| check(branch, value, SchemaReading::Restriction).is_ok();
        if !branches.is_empty() && !branches.iter().any(fits) {
            return Err(ViolationReason::NoBranch.into());
        }
    }
    Ok(())
}

fn check_members(
    schema: &Schema,
    members: &serde_json::Map<String, Json>,
    reading: SchemaReading,
) -> Result<(), SchemaViolation> {
    let missing = schema
        .required
        .iter()
        .find(|name| !members.contains_key(*name));
    if let Some(name) = missing {
        return Err(ViolationReason::Missing(name.clone()).into());
    }
    for (name, value) in members {
        let implied =
            schema.embedded_resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
        match member(schema, name) {
            Some(of) => check(of, value, reading).map_err(|it| it.below(&format!(".{name}")))?,
            None if implied || reading == SchemaReading::Restriction || schema.preserve_unknown => {
            }
            None if schema.additional == Some(AdditionalProperties::Any) => {}
            None => {
                let known = schema.properties.iter().map(|it| it.name.clone()).collect();
                return Err(ViolationReason::Unknown(name.clone(), known).into());
            }
        }
    }
    Ok(())
}

fn check_limits(schema: &Schema, value: &Json) -> Result<(), SchemaViolation> {
    let is_set = |keyword| schema.limit(keyword) == Some(&Json::Bool(true));
    for (keyword, limit) in &schema.limits.keywords {
        let bound = limit.as_f64();
        let holds = |test: fn(f64, f64) -> bool, measure: Option<f64>| match (measure, bound) {
            (Some(measure), Some(bound)) => test(measure, bound),
            _ => true,
        };
        let length = value.as_str().map(|text| count(text.chars().count()));
        let items = value.as_array().map(|items| count(items.len()));
        let members = value.as_object().map(|members| count(members.len()));
        let keeps = match *keyword {
            "minimum" if is_set("exclusiveMinimum") => holds(|it, min| it > min, value.as_f64()),
            "minimum" => holds(|it, min| it >= min, value.as_f64()),
            "maximum" if is_set("exclusiveMaximum") => holds(|it, max| it < max, value.as_f64()),
            "maximum" => holds(|it, max| it <= max, value.as_f64()),
            "multipleOf" => holds(is_multiple, value.as_f64()),
            "minLength" => holds(|it, min| it >= min, length),
            "maxLength" => holds(|it, max| it <= max, length),
            "minItems" => holds(|it, min| it >= min, items),
            "maxItems" => holds(|it, max| it <= max, items),
            "minProperties" => holds(|it, min| it >= min, members),
            "maxProperties" => holds(|it, max| it <= max, members),
            "pattern" => match (limit.as_str(), value.as_str()) {
                (Some(pattern), Some(text)) => could_match(pattern, text),
                _ => true,
            },
            _ => true,
        };
        if !keeps {
            return Err(ViolationReason::Limit(keyword, limit.clone()).into());
        }
    }
    Ok(())
}

/// A count, in the number type that schemas use for limits.
fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

fn is_multiple(number: f64, step: f64) -> bool {
    step == 0.0 || (number / step).fract().abs() < 1e-9
}

/// Classes such as `\d` match ASCII only, as in the API server; a text beyond ASCII is not checked.
fn could_match(pattern: &str, text: &str) -> bool {
    let regex = RegexBuilder::new(pattern).unicode(false).build();
    !text.is_ascii() || regex.map_or(true, |regex| regex.is_match(text.as_bytes()))
}

/// Whether two values are equal; `1` equals `1.0`.
fn same(left: &Json, right: &Json) -> bool {
    left == right || matches!((left.as_f64(), right.as_f64()), (Some(a), Some(b)) if a == b)
}

// === impl JsonType ===

impl JsonType {
    /// The type that a field with this schema holds, if there is exactly one.
    fn of(schema: &Schema) -> Option<Self> {
        if schema.int_or_string {
            return Some(Self::IntegerOrString);
        }
        schema.kind.map(|kind| match kind {
            SchemaType::Array => Self::List,
            SchemaType::Boolean => Self::Boolean,
            SchemaType::Integer => Self::Integer,
            SchemaType::Number => Self::Number,
            SchemaType::Object => Self::Mapping,
            SchemaType::String => Self::String,
        })
    }

    /// The JSON type of a Rust type, if there is exactly one.
    pub(crate) fn of_rust_type(rust: &RustType) -> Option<Self> {
        let path = rust.path()?;
        match (path.root(), path.name()) {
            (PathRoot::Local, "bool") => Some(Self::Boolean),
            (PathRoot::Local, "f64") => Some(Self::Number),
            (PathRoot::Local, "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64") => {
                Some(Self::Integer)
            }
            _ if path.is("std::string::String") => Some(Self::String),
            _ if path.is("std::vec::Vec") => Some(Self::List),
            _ if path.is("std::collections::BTreeMap") => Some(Self::Mapping),
            _ => None,
        }
    }

    /// Whether a field of this type can hold this value.
    pub(crate) fn can_hold(self, value: &Json) -> bool {
        let is_integer = value.is_i64() || value.is_u64();
        match self {
            Self::Boolean => value.is_boolean(),
            Self::Integer => is_integer,
            Self::IntegerOrString => is_integer || value.is_string(),
            Self::List => value.is_array(),
            Self::Mapping => value.is_object(),
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
        }
    }
}

impl fmt::Display for JsonType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "a boolean",
            Self::Integer => "a whole number",
            Self::IntegerOrString => "a whole number or a string",
            Self::List => "a list",
            Self::Mapping => "a mapping",
            Self::Number => "a number",
            Self::String => "a string",
        })
    }
}

// === impl SchemaViolation ===

impl SchemaViolation {
    fn below(self, step: &str) -> Self {
        Self {
            at: format!("{step}{}", self.at),
            ..self
        }
    }
}

impl From<ViolationReason> for SchemaViolation {
    fn from(reason: ViolationReason) -> Self {
        Self {
            at: String::new(),
            reason,
        }
    }
}

// === impl ViolationReason ===

impl fmt::Display for ViolationReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(expected) => write!(f, "the field holds {expected}"),
            Self::Enumeration(_) => f.write_str("not one of the values that the schema allows"),
            Self::Limit(keyword, limit) => write!(f, "the schema says `{keyword}: {limit}`"),
            Self::Missing(name) => write!(f, "the schema requires `{name}`"),
            Self::Unknown(name, _) => write!(f, "the schema has no `{name}`"),
            Self::NoBranch => f.write_str("no alternative of the schema allows this"),
        }
    }
}

#[cfg(test)]
mod tests;
