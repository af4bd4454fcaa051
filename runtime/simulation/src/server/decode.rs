//! Bodies of requests become objects: types are checked, unknown fields are dropped.

use serde_json::{Map, Value, json};

use super::answer::{Failure, FieldError};
use super::kind::{KindDefinition, WriteStrategy};
use super::metadata::{self, TypeMismatch};
use super::object_view::text_of;

/// The bytes that a request may have.
const LARGEST_BODY: usize = 3 * 1024 * 1024;

/// A body that cannot be read.
#[derive(Debug)]
pub(crate) enum DecodeFailure {
    /// The type of a field is wrong.
    Type(TypeMismatch),
    /// The type of the whole object is wrong.
    Refused(Failure),
}

// === impl DecodeFailure ===

impl DecodeFailure {
    /// The answer to a body.
    pub(crate) fn of_body(self, definition: &KindDefinition) -> Failure {
        match self {
            Self::Type(mismatch) => {
                let KindDefinition { kind, version, .. } = definition;
                let message = format!(
                    "{kind} in version \"{version}\" cannot be handled as a {kind}: {}",
                    go_message(&mismatch)
                );
                Failure::bad_request(message)
            }
            Self::Refused(failure) => failure,
        }
    }

    /// The answer to a patch, whose result is unreadable.
    pub(crate) fn of_patch(self) -> Failure {
        match self {
            Self::Type(mismatch) => {
                let message = format!("Invalid value: {}", go_message(&mismatch));
                let error = FieldError::invalid("patch", message);
                Failure::invalid("", "", "", vec![error])
            }
            Self::Refused(failure) => failure,
        }
    }
}

/// Reads the body of a creation or an update.
pub(crate) fn body(definition: &KindDefinition, new: &mut Value) -> Result<(), DecodeFailure> {
    let refused = |message: String| DecodeFailure::Refused(Failure::bad_request(message));
    if !new.is_object() {
        return Err(refused(
            "couldn't get version/kind; json parse error".to_owned(),
        ));
    }
    let custom = definition.strategy == WriteStrategy::Custom;
    match new["kind"].as_str().unwrap_or_default() {
        "" if custom => {
            let body = new.to_string().replace('"', "\\\"");
            let message = format!(
                "the object provided is unrecognized (must be of type {}): Object 'Kind' is \
                 missing in '{body}'",
                definition.kind
            );
            return Err(refused(message));
        }
        "" => new["kind"] = json!(definition.kind),
        _ => {}
    }
    let expected = definition.api_version();
    match new["apiVersion"].as_str().unwrap_or_default() {
        "" if !custom => new["apiVersion"] = json!(expected),
        given if given == expected => {}
        given => {
            let message = format!(
                "the API version in the data ({given}) does not match the expected API version \
                 ({expected})"
            );
            return Err(refused(message));
        }
    }
    patched(definition, new)
}

/// Reads the result of a patch or a webhook.
pub(crate) fn patched(definition: &KindDefinition, new: &mut Value) -> Result<(), DecodeFailure> {
    if definition.strategy != WriteStrategy::Custom
        && let Some((field, wanted)) = definition.schema.first_mismatch(new, "")
    {
        let wanted = if wanted == "integer" {
            "int32"
        } else {
            "string"
        };
        return Err(DecodeFailure::Type(TypeMismatch {
            field,
            actual: "value",
            wanted,
        }));
    }
    if new["kind"].as_str().unwrap_or_default().is_empty() {
        return Err(DecodeFailure::Type(TypeMismatch {
            field: "kind".to_owned(),
            actual: "null",
            wanted: "string",
        }));
    }
    write_whole_numbers(new);
    if let Some(fields) = new.as_object_mut() {
        metadata::normalise(fields).map_err(DecodeFailure::Type)?;
        fill_structs(definition.strategy, fields);
        definition.schema.prune_object(fields);
    }
    Ok(())
}

/// Built-in kinds are structs: a text is never null, an empty map is none, a struct always there.
fn fill_structs(strategy: WriteStrategy, fields: &mut Map<String, Value>) {
    match strategy {
        WriteStrategy::Custom | WriteStrategy::Namespace => {}
        WriteStrategy::ConfigMap => {
            for name in ["data", "binaryData"] {
                if let Some(Value::Object(texts)) = fields.get_mut(name) {
                    for text in texts.values_mut().filter(|it| it.is_null()) {
                        *text = json!("");
                    }
                    if texts.is_empty() {
                        fields.shift_remove(name);
                    }
                }
            }
        }
        WriteStrategy::Lease => {
            let spec = fields.entry("spec").or_insert(Value::Null);
            if spec.is_null() {
                *spec = json!({});
            }
        }
    }
}

/// Writes 2.0 as 2, as the API server does.
fn write_whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            // A number of this size is a whole one, which fits.
            let whole = number
                .as_f64()
                .filter(|it| it.fract() == 0.0 && it.abs() < 1e15);
            if let Some(whole) = whole {
                *value = json!(whole as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(write_whole_numbers),
        _ => {}
    }
}

/// The kind of an object must be that of the path.
pub(crate) fn check_kind(definition: &KindDefinition, new: &Value) -> Result<(), Failure> {
    let kind = new["kind"].as_str().unwrap_or_default();
    if kind == definition.kind {
        return Ok(());
    }
    let message = format!("Invalid value: \"{kind}\": must be {}", definition.kind);
    let error = FieldError::invalid("kind", message);
    let group = &definition.group;
    Err(Failure::invalid(
        group,
        kind,
        text_of(new, "name"),
        vec![error],
    ))
}

/// Rejects a body that is too long to be read.
pub(crate) fn check_length(body: &Value) -> Result<(), Failure> {
    if rough_length(body) <= LARGEST_BODY {
        return Ok(());
    }
    let message = format!("Request entity too large: limit is {LARGEST_BODY}");
    Err(Failure::new(413, "RequestEntityTooLarge", message))
}

/// The bytes of the texts in a value: enough to notice a body of megabytes.
pub(crate) fn rough_length(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.iter().map(|(k, v)| k.len() + rough_length(v)).sum(),
        Value::Array(items) => items.iter().map(rough_length).sum(),
        Value::String(text) => text.len(),
        _ => 4,
    }
}

fn go_message(mismatch: &TypeMismatch) -> String {
    let TypeMismatch {
        field,
        actual,
        wanted,
    } = mismatch;
    format!(
        "json: cannot unmarshal {actual} into Go struct field ObjectMeta.{field} of type {wanted}"
    )
}
