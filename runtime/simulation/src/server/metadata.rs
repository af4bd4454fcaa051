//! `metadata`: how the API server reads it, and which values it accepts.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::answer::FieldError;
use crate::server::object_view::{member, metadata, text_of};

/// The bytes that the annotations of an object may have together.
const LONGEST_ANNOTATIONS: usize = 256 * 1024;

const LONGEST_LABEL: usize = 63;
const LONGEST_NAME: usize = 253;

/// The value of a field that has another type: the field, and the types of JSON and of Go.
#[derive(Debug)]
pub(crate) struct TypeMismatch {
    pub(crate) field: String,
    pub(crate) actual: &'static str,
    pub(crate) wanted: &'static str,
}

/// Reads `metadata` as the API server does: unknown and empty fields are dropped.
pub(crate) fn normalise(object: &mut Map<String, Value>) -> Result<(), TypeMismatch> {
    let Some(value) = object.get_mut("metadata") else {
        object.insert("metadata".to_owned(), json!({}));
        return Ok(());
    };
    if value.is_null() {
        *value = json!({});
    }
    let Value::Object(fields) = value else {
        return Err(mismatch("metadata", value, "v1.ObjectMeta"));
    };
    let mut failed = None;
    fields.retain(|name, value| match read_field(name, value) {
        Ok(keep) => keep,
        Err(error) => {
            failed.get_or_insert(error);
            true
        }
    });
    failed.map_or(Ok(()), Err)
}

/// Whether a field is known and not empty.
fn read_field(name: &str, value: &mut Value) -> Result<bool, TypeMismatch> {
    match name {
        "name" | "generateName" | "namespace" | "uid" | "resourceVersion" | "selfLink"
        | "creationTimestamp" | "deletionTimestamp" => match value {
            Value::Null => Ok(false),
            Value::String(text) => Ok(!text.is_empty()),
            other => Err(mismatch(name, other, "string")),
        },
        "generation" | "deletionGracePeriodSeconds" => match value {
            Value::Null => Ok(false),
            Value::Number(number) if number.is_i64() => Ok(true),
            other => Err(mismatch(name, other, "int64")),
        },
        "labels" | "annotations" => read_texts(name, value),
        "finalizers" => read_finalizers(value),
        "ownerReferences" => match value {
            Value::Null => Ok(false),
            Value::Array(items) => Ok(!items.is_empty()),
            other => Err(mismatch(name, other, "[]v1.OwnerReference")),
        },
        _ => Ok(false),
    }
}

fn read_texts(name: &str, value: &mut Value) -> Result<bool, TypeMismatch> {
    match value {
        Value::Null => Ok(false),
        Value::Object(texts) => {
            for text in texts.values_mut() {
                match text {
                    Value::String(_) => {}
                    Value::Null => *text = json!(""),
                    other => return Err(mismatch(name, other, "string")),
                }
            }
            Ok(!texts.is_empty())
        }
        other => Err(mismatch(name, other, "map[string]string")),
    }
}

fn read_finalizers(value: &mut Value) -> Result<bool, TypeMismatch> {
    match value {
        Value::Null => Ok(false),
        Value::Array(items) => {
            for item in items.iter_mut() {
                match item {
                    Value::String(_) => {}
                    Value::Null => *item = json!(""),
                    other => return Err(mismatch("finalizers", other, "string")),
                }
            }
            Ok(!items.is_empty())
        }
        other => Err(mismatch("finalizers", other, "[]string")),
    }
}

fn mismatch(field: &str, value: &Value, wanted: &'static str) -> TypeMismatch {
    let actual = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    TypeMismatch {
        field: field.to_owned(),
        actual,
        wanted,
    }
}

/// The errors of the metadata of a new object.
pub(crate) fn validate(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text_of(object, "name");
    if name.is_empty() {
        let message = "Required value: name or generateName is required";
        let field = "metadata.name";
        errors.push(FieldError::new("FieldValueRequired", field, message));
    } else if !is_subdomain(name) {
        let message = format!("Invalid value: {}: {SUBDOMAIN}", Value::from(name));
        errors.push(FieldError::invalid("metadata.name", message));
    }
    validate_fields(object, &mut errors);
    errors
}

/// The errors of the metadata of a changed object.
pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_finalizers(new, &mut errors);
    for field in ["name", "namespace", "uid"] {
        let (before, after) = (text_of(old, field), text_of(new, field));
        if before != after {
            let message = format!("Invalid value: {}: field is immutable", Value::from(after));
            errors.push(FieldError::invalid(format!("metadata.{field}"), message));
        }
    }
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = |object| metadata(object).and_then(|it| member(it, field));
        if let (None, Some(given)) = (value(old), value(new)) {
            let message = format!("Invalid value: {given}: field is immutable");
            errors.push(FieldError::invalid(format!("metadata.{field}"), message));
        }
    }
    if !text_of(old, "deletionTimestamp").is_empty() {
        let added: Vec<String> = finalizers(new)
            .filter(|name| finalizers(old).all(|it| it != *name))
            .map(|name| Value::from(name).to_string())
            .collect();
        if !added.is_empty() {
            let message = format!(
                "Forbidden: no new finalizers can be added if the object is being deleted, found \
                 new finalizers []string{{{}}}",
                added.join(", ")
            );
            let field = "metadata.finalizers";
            errors.push(FieldError::new("FieldValueForbidden", field, message));
        }
    }
    validate_texts(new, &mut errors);
    errors
}

fn validate_fields(object: &Value, errors: &mut Vec<FieldError>) {
    validate_texts(object, errors);
    validate_finalizers(object, errors);
}

fn validate_texts(object: &Value, errors: &mut Vec<FieldError>) {
    for (key, value) in entries(object, "labels") {
        if let Some(problem) = qualified_name_problem(key) {
            let problem = if problem == QUALIFIED_NAME {
                LABEL_KEY
            } else {
                problem
            };
            let message = format!("Invalid value: {}: {problem}", Value::from(key));
            errors.push(FieldError::invalid("metadata.labels", message));
        }
        if value.len() > LONGEST_LABEL {
            let message = format!(
                "Invalid value: {}: must be no more than 63 bytes",
                Value::from(value)
            );
            errors.push(FieldError::invalid("metadata.labels", message));
        }
        if !value.is_empty() && !is_name_part(value) {
            let message = format!("Invalid value: {}: {LABEL_VALUE}", Value::from(value));
            errors.push(FieldError::invalid("metadata.labels", message));
        }
    }
    let mut bytes = 0;
    for (key, value) in entries(object, "annotations") {
        bytes += key.len() + value.len();
        let is_lower = key
            .bytes()
            .all(|it| it.is_ascii() && !it.is_ascii_uppercase());
        let lower = match is_lower {
            true => Cow::Borrowed(key),
            false => Cow::Owned(key.to_lowercase()),
        };
        if let Some(problem) = qualified_name_problem(&lower) {
            let message = format!("Invalid value: {}: {problem}", Value::from(key));
            errors.push(FieldError::invalid("metadata.annotations", message));
        }
    }
    if bytes > LONGEST_ANNOTATIONS {
        let message = format!("Too long: may not be more than {LONGEST_ANNOTATIONS} bytes");
        let field = "metadata.annotations";
        errors.push(FieldError::new("FieldValueTooLong", field, message));
    }
}

fn validate_finalizers(object: &Value, errors: &mut Vec<FieldError>) {
    for name in finalizers(object) {
        if let Some(problem) = qualified_name_problem(name) {
            let message = format!("Invalid value: {}: {problem}", Value::from(name));
            errors.push(FieldError::invalid("metadata.finalizers", message));
        }
    }
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let list = metadata(object).and_then(|it| member(it, "finalizers")?.as_array());
    list.into_iter().flatten().filter_map(Value::as_str)
}

fn entries<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = metadata(object).and_then(|it| member(it, field)?.as_object());
    map.into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// The reason for which a key of labels or annotations, or a finalizer, is no qualified name.
fn qualified_name_problem(name: &str) -> Option<&'static str> {
    let (prefix, part) = match name.split_once('/') {
        Some((prefix, part)) => (Some(prefix), part),
        None => (None, name),
    };
    match prefix {
        Some("") => return Some("prefix part must be non-empty"),
        Some(_) if part.contains('/') => return Some(QUALIFIED_NAME),
        Some(prefix) if !is_subdomain(prefix) => return Some(PREFIX),
        _ => {}
    }
    if part.is_empty() {
        return Some("name part must be non-empty");
    }
    if part.len() > LONGEST_LABEL {
        return Some("name part must be no more than 63 bytes");
    }
    (!is_name_part(part)).then_some(NAME_PART)
}

fn is_name_part(text: &str) -> bool {
    let inner = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
    let bytes = text.as_bytes();
    let end = |it: Option<&u8>| it.is_some_and(u8::is_ascii_alphanumeric);
    end(bytes.first()) && end(bytes.last()) && bytes.iter().all(|it| inner(*it))
}

pub(crate) fn is_subdomain(text: &str) -> bool {
    let lower = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    !text.is_empty()
        && text.len() <= LONGEST_NAME
        && text.split('.').all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(|it| lower(*it))
                && bytes.last().is_some_and(|it| lower(*it))
                && bytes.iter().all(|it| lower(*it) || *it == b'-')
        })
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const PREFIX: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const QUALIFIED_NAME: &str = "a qualified name must consist of alphanumeric characters, '-', '_' \
    or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  \
    or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with \
    an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";

const LABEL_KEY: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an \
    optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
