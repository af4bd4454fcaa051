//! Validates values against a schema as the API server does, without rules in CEL.

use std::fmt;

use serde_json::Value;

use crate::schema::{Bounds, ItemIdentity, NodeType, SchemaNode, UndeclaredMembers, UnionMode};
use crate::{format, pattern};

/// The first violation of a schema by a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidValue {
    /// The JSON path.
    pub path: String,
    /// The keyword that is not satisfied.
    pub keyword: &'static str,
}

/// Whether the value satisfies the schema.
#[must_use]
pub fn accepts(schema: &SchemaNode, value: &Value) -> bool {
    check(schema, value).is_ok()
}

/// Finds the first violation.
///
/// # Errors
/// The violation.
pub fn check(schema: &SchemaNode, value: &Value) -> Result<(), InvalidValue> {
    if value.is_null() && schema.nullable && schema.values.is_none() {
        return Ok(());
    }
    kind(schema, value)?;
    if let Some(values) = &schema.values
        && !values.iter().any(|allowed| same(allowed, value))
    {
        return violation("enum");
    }
    match value {
        Value::Object(_) => object(schema, value)?,
        Value::Array(items) => array(schema, items)?,
        Value::String(text) => string(schema, text)?,
        Value::Number(number) => {
            if !number
                .as_f64()
                .is_some_and(|number| in_bounds(&schema.bounds, number))
            {
                return violation("minimum or maximum");
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
    unions(schema, value)
}

/// Whether a number lies within the bounds.
#[must_use]
pub fn in_bounds(bounds: &Bounds, number: f64) -> bool {
    bounds.number.contains(number)
        && !(bounds.above && bounds.number.min == Some(number))
        && !(bounds.below && bounds.number.max == Some(number))
        && bounds
            .multiple_of
            .is_none_or(|step| (number / step).fract().abs() < 1e-9)
}

/// Whether two values are equal, numbers by value.
#[must_use]
pub fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || (left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

fn kind(schema: &SchemaNode, value: &Value) -> Result<(), InvalidValue> {
    let fits = if schema.int_or_string {
        value.is_i64() || value.is_u64() || value.is_string()
    } else {
        match schema.kind {
            _ if value.is_null() && schema.nullable => true,
            None => !value.is_null() || schema.keeps_unknown() || schema.values.is_some(),
            Some(NodeType::Object) => value.is_object(),
            Some(NodeType::Array) => value.is_array(),
            Some(NodeType::String) => value.is_string(),
            Some(NodeType::Boolean) => value.is_boolean(),
            Some(NodeType::Number) => value.is_number(),
            Some(NodeType::Integer) => match value.as_number() {
                Some(number) if number.is_f64() => {
                    number.as_f64().is_some_and(|number| number.fract() == 0.0)
                }
                number => number.is_some(),
            },
        }
    };
    if fits { Ok(()) } else { violation("type") }
}

fn object(schema: &SchemaNode, value: &Value) -> Result<(), InvalidValue> {
    let members = value.as_object().expect("the caller matched an object");
    if let Some(missing) = schema
        .required
        .iter()
        .find(|name| !members.contains_key(*name))
    {
        return violation("required").map_err(|violation: InvalidValue| violation.below(missing));
    }
    if !schema.bounds.members.contains(members.len() as u64) {
        return violation("minProperties or maxProperties");
    }
    for (name, member) in members {
        match schema.member(name) {
            Some(of) => check(of, member).map_err(|violation| violation.below(name))?,
            None if schema.additional == Some(UndeclaredMembers::None) => {
                return violation("additionalProperties");
            }
            None => {}
        }
    }
    Ok(())
}

fn array(schema: &SchemaNode, items: &[Value]) -> Result<(), InvalidValue> {
    if !schema.bounds.items.contains(items.len() as u64) {
        return violation("minItems or maxItems");
    }
    if let Some(of) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            check(of, item).map_err(|violation| violation.below(&index.to_string()))?;
        }
    }
    for (index, item) in items.iter().enumerate() {
        if items[..index]
            .iter()
            .any(|other| identical(&schema.identity, other, item))
        {
            return violation("uniqueItems");
        }
    }
    Ok(())
}

/// Whether two items of an array are duplicates.
#[must_use]
pub fn identical(identity: &ItemIdentity, left: &Value, right: &Value) -> bool {
    match identity {
        ItemIdentity::Position => false,
        ItemIdentity::Value => same(left, right),
        ItemIdentity::Keys(keys) => keys
            .iter()
            .all(|key| match (left.get(key), right.get(key)) {
                (Some(left), Some(right)) => same(left, right),
                (None, None) => true,
                _ => false,
            }),
    }
}

fn string(schema: &SchemaNode, text: &str) -> Result<(), InvalidValue> {
    if !schema.bounds.length.contains(text.chars().count() as u64) {
        return violation("minLength or maxLength");
    }
    // A pattern that this engine does not support is left to the API server.
    let matches = |pattern: &String| pattern::matches(pattern, text).unwrap_or(true);
    if !schema.patterns.iter().all(matches) {
        return violation("pattern");
    }
    if schema
        .format
        .as_deref()
        .is_some_and(|format| !format::holds(format, text))
    {
        return violation("format");
    }
    Ok(())
}

fn unions(schema: &SchemaNode, value: &Value) -> Result<(), InvalidValue> {
    for union in &schema.unions {
        let matching = union
            .branches
            .iter()
            .filter(|branch| accepts(branch, value))
            .count();
        match (union.mode, matching) {
            (UnionMode::One, 1) | (UnionMode::Any, 1..) => {}
            (UnionMode::One, _) => return violation("oneOf"),
            (UnionMode::Any, _) => return violation("anyOf"),
        }
    }
    if schema.nots.iter().any(|not| accepts(not, value)) {
        return violation("not");
    }
    Ok(())
}

fn violation(keyword: &'static str) -> Result<(), InvalidValue> {
    Err(InvalidValue {
        path: String::new(),
        keyword,
    })
}

// === impl InvalidValue ===

impl InvalidValue {
    fn below(self, name: &str) -> Self {
        Self {
            path: format!(".{name}{}", self.path),
            ..self
        }
    }
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`: {}", self.path, self.keyword)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(schema: &Value, value: &Value) -> String {
        match check(&SchemaNode::from_json(schema), value) {
            Ok(()) => "ok".to_owned(),
            Err(violation) => violation.to_string(),
        }
    }

    #[test]
    fn the_first_violation_has_a_path_and_a_keyword() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"type": "integer", "maximum": 3}}},
        });
        assert_eq!(
            result(&schema, &json!({"a": [1, 4]})),
            "`.a.1`: minimum or maximum"
        );
        assert_eq!(result(&schema, &json!({"a": ["x"]})), "`.a.0`: type");
        assert_eq!(result(&schema, &json!({"b": null})), "ok");
    }

    #[test]
    fn exactly_one_branch_of_one_of_must_match() {
        let schema = json!({
            "type": "object",
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        });
        assert_eq!(result(&schema, &json!({"a": 1})), "ok");
        assert_eq!(result(&schema, &json!({"a": 1, "b": 1})), "``: oneOf");
        assert_eq!(result(&schema, &json!({})), "``: oneOf");
    }

    #[test]
    fn sets_and_maps_reject_duplicate_items() {
        let set = json!({"type": "array", "x-kubernetes-list-type": "set"});
        assert_eq!(result(&set, &json!([1, 1.0])), "``: uniqueItems");
        let map = json!({
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "port"],
        });
        assert_eq!(
            result(
                &map,
                &json!([{"name": "a", "port": 1}, {"name": "a", "port": 2}])
            ),
            "ok"
        );
        assert_eq!(
            result(&map, &json!([{"name": "a"}, {"name": "a"}])),
            "``: uniqueItems"
        );
    }

    #[test]
    fn numbers_are_equal_by_value() {
        assert!(same(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(!same(
            &json!(9_007_199_254_740_993_i64),
            &json!(9_007_199_254_740_992_i64)
        ));
        assert!(!same(&json!(1), &json!("1")));
    }
}
