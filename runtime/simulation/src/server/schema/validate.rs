//! Validation against a schema, in the words of the API server.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{StructuralSchema, ValueLimits, ValueType};
use crate::server::answer::FieldError;

// === impl StructuralSchema ===

impl StructuralSchema {
    /// The errors of a whole object; its metadata has rules of its own.
    pub(crate) fn validate_object(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(fields) = object.as_object() {
            self.validate_fields(fields, "", &mut errors);
        }
        errors
    }

    /// The errors of the status alone: the paths in their messages begin there.
    pub(crate) fn validate_status(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let (Some(schema), Some(status)) = (self.properties.get("status"), object.get("status"))
        {
            schema.validate(status, "", &mut errors);
        }
        for error in &mut errors {
            error.field = join("status", &error.field);
        }
        errors
    }

    fn validate(&self, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
        if value.is_null() && self.nullable {
            return;
        }
        let fits = self.value_type.accepts(value);
        if !fits {
            let (actual, wanted) = (type_name(value), self.value_type.name());
            let message = format!(
                "Invalid value: \"{actual}\": {path} in body must be of type {wanted}: \"{actual}\""
            );
            errors.push(FieldError::new("FieldValueTypeInvalid", path, message));
            if self.value_type == ValueType::Integer && value.is_number() && self.limits.has_range()
            {
                let message = format!(
                    "Invalid value: \"\": Checked value must be of type integer (default format) \
                     in {path}"
                );
                errors.push(FieldError::invalid("<nil>", message));
            }
        }
        if !self.allowed.is_empty() && !self.allowed.contains(value) {
            let allowed: Vec<String> = self.allowed.iter().map(Value::to_string).collect();
            let message = format!(
                "Unsupported value: {value}: supported values: {}",
                allowed.join(", ")
            );
            errors.push(FieldError::new("FieldValueNotSupported", path, message));
        }
        if !fits {
            return;
        }
        match value {
            Value::Object(fields) => self.validate_fields(fields, path, errors),
            Value::Array(items) => self.validate_items(items, path, errors),
            Value::Number(number) => self.validate_number(number.as_f64(), value, path, errors),
            Value::String(text) => self.validate_text(text, path, errors),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn validate_fields(
        &self,
        fields: &Map<String, Value>,
        path: &str,
        errors: &mut Vec<FieldError>,
    ) {
        for name in &self.required {
            if !fields.contains_key(name) {
                let path = join(path, name);
                errors.push(FieldError::new(
                    "FieldValueRequired",
                    path,
                    "Required value",
                ));
            }
        }
        for (name, value) in fields {
            if path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            if let Some(schema) = self.properties.get(name).or(self.additional.as_deref()) {
                schema.validate(value, &join(path, name), errors);
            }
        }
    }

    fn validate_items(&self, items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
        if let Some(limit) = self.limits.max_items
            && items.len() as u64 > limit
        {
            let noun = if limit == 1 { "item" } else { "items" };
            let message = format!(
                "Too many: {}: must have at most {limit} {noun}",
                items.len()
            );
            errors.push(FieldError::new("FieldValueTooMany", path, message));
        }
        if let Some(schema) = &self.items {
            for (index, item) in items.iter().enumerate() {
                schema.validate(item, &format!("{path}[{index}]"), errors);
            }
        }
    }

    fn validate_number(
        &self,
        number: Option<f64>,
        value: &Value,
        path: &str,
        errors: &mut Vec<FieldError>,
    ) {
        let number = number.unwrap_or_default();
        let mut limit = |words: &str, limit: f64| {
            let message =
                format!("Invalid value: {value}: {path} in body should be {words} to {limit}");
            errors.push(FieldError::invalid(path, message));
        };
        match (self.limits.minimum, self.limits.maximum) {
            (Some(minimum), _) if number < minimum => limit("greater than or equal", minimum),
            (_, Some(maximum)) if number > maximum => limit("less than or equal", maximum),
            _ => {}
        }
    }

    fn validate_text(&self, text: &str, path: &str, errors: &mut Vec<FieldError>) {
        let length = text.chars().count() as u64;
        if let Some(limit) = self.limits.max_length
            && length > limit
        {
            let message = format!("Too long: may not be more than {limit} bytes");
            errors.push(FieldError::new("FieldValueTooLong", path, message));
        }
        if let Some(limit) = self.limits.min_length
            && length < limit
        {
            let mut message = format!("Invalid value: {}: ", Value::from(text));
            let _ = write!(
                message,
                "{path} in body should be at least {limit} chars long"
            );
            errors.push(FieldError::invalid(path, message));
        }
    }

    /// The first value that a built-in kind cannot hold: its path and the type that it should have.
    pub(crate) fn first_mismatch(&self, value: &Value, path: &str) -> Option<(String, &str)> {
        if value.is_null() {
            return None;
        }
        if !self.value_type.accepts(value) {
            return Some((path.to_owned(), self.value_type.name()));
        }
        match value {
            Value::Object(fields) => fields.iter().find_map(|(name, value)| {
                let schema = self.properties.get(name).or(self.additional.as_deref())?;
                schema.first_mismatch(value, &join(path, name))
            }),
            Value::Array(items) => {
                let schema = self.items.as_ref()?;
                let mut items = items.iter();
                items.find_map(|item| schema.first_mismatch(item, path))
            }
            _ => None,
        }
    }
}

// === impl ValueLimits ===

impl ValueLimits {
    fn has_range(&self) -> bool {
        self.minimum.is_some() || self.maximum.is_some()
    }
}

// === impl ValueType ===

impl ValueType {
    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::String => value.is_string(),
            Self::MicroTime => value.as_str().is_some_and(is_micro_time),
            Self::Integer => is_integer(value),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::IntOrString => value.is_string() || is_integer(value),
        }
    }
}

/// Whether a text is a time with six digits after the seconds, as a Lease needs them.
fn is_micro_time(text: &str) -> bool {
    let fraction = text
        .split_once('.')
        .map(|(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
    fraction == Some(6) && text.parse::<jiff::Timestamp>().is_ok()
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
