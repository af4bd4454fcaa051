//! Defaults that the API server rejects, because the schema beside them does not allow them.

use serde_json::Value as Json;

use super::schema_check::{JsonType, ViolationReason, violation};
use crate::diagnostic::Diagnostics;
use crate::load::crd::Crd;
use crate::load::schema::Schema;
use crate::load::server_rules::rejected;

/// Warns about the defaults of a definition for which the API server would reject it.
pub(crate) fn check(crd: &Crd, diagnostics: &mut Diagnostics) {
    for version in &crd.versions {
        check_below(&version.schema, true, crd, diagnostics);
    }
}

/// Like the API server, it does not look for defaults inside of `additionalProperties`; other rules
/// hold for the metadata of resources.
fn check_below(schema: &Schema, is_resource: bool, crd: &Crd, diagnostics: &mut Diagnostics) {
    if let Some(default) = &schema.default
        && let Some(violation) = violation(schema, &whole_numbers(default))
        // The API server does not check the type of an int-or-string.
        && violation.reason != ViolationReason::Type(JsonType::IntegerOrString)
    {
        let place = schema.default_span;
        diagnostics.push(rejected(&reason(&violation.reason)).at(crd.source, place, ""));
    }
    if let Some(items) = &schema.items {
        check_below(items, items.embedded_resource, crd, diagnostics);
    }
    for property in &schema.properties {
        let name = property.name.as_str();
        if is_resource && matches!(name, "metadata" | "apiVersion" | "kind") {
            continue;
        }
        let inner = &property.schema;
        check_below(inner, inner.embedded_resource, crd, diagnostics);
    }
}

/// The value with `3` for `3.0`, which is a whole number for the API server.
fn whole_numbers(value: &Json) -> Json {
    match value {
        Json::Number(number) => {
            let float = number.as_f64().filter(|float| float.fract() == 0.0);
            let text = float.map(|float| format!("{float}"));
            let whole = text.and_then(|text| text.parse::<i64>().ok());
            whole.map_or_else(|| value.clone(), Json::from)
        }
        Json::Array(items) => items.iter().map(whole_numbers).collect(),
        Json::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), whole_numbers(value)))
            .collect(),
        Json::Null | Json::Bool(_) | Json::String(_) => value.clone(),
    }
}

/// The reason in the words of the API server.
fn reason(reason: &ViolationReason) -> String {
    match reason {
        ViolationReason::Type(expected) => format!("must be of type {}", type_name(*expected)),
        ViolationReason::Enumeration(_) => "Unsupported value".to_owned(),
        ViolationReason::Limit(keyword, limit) => limit_reason(keyword, limit),
        ViolationReason::Missing(name) => format!("{name}: Required value"),
        ViolationReason::Unknown(..) => "must not have unknown fields".to_owned(),
        ViolationReason::NoBranch => "must validate".to_owned(),
    }
}

fn limit_reason(keyword: &str, limit: &Json) -> String {
    let number = limit.as_f64().unwrap_or_default();
    let plural = |word: &str| match number == 1.0 {
        true => word.to_owned(),
        false => format!("{word}s"),
    };
    match keyword {
        "minimum" => "should be greater than".to_owned(),
        "maximum" => "should be less than".to_owned(),
        "multipleOf" => format!("should be a multiple of {number}"),
        "minLength" => format!("should be at least {number} chars long"),
        "maxLength" => format!("may not be more than {number} {}", plural("byte")),
        "minItems" => format!("should have at least {number} items"),
        "maxItems" | "maxProperties" => format!("must have at most {number} {}", plural("item")),
        "minProperties" => format!("should have at least {number} properties"),
        "pattern" => format!("should match '{}'", limit.as_str().unwrap_or_default()),
        _ => "Invalid value".to_owned(),
    }
}

const fn type_name(expected: JsonType) -> &'static str {
    match expected {
        JsonType::Boolean => "boolean",
        JsonType::Integer | JsonType::IntegerOrString => "integer",
        JsonType::List => "array",
        JsonType::Mapping => "object",
        JsonType::Number => "number",
        JsonType::String => "string",
    }
}
