//! Reading and changing the fields of stored objects.

use serde_json::{Map, Value, json};

/// The metadata of an object.
pub(crate) fn metadata(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.as_object()
}

/// A text in the metadata; empty if there is none.
pub(crate) fn text_of<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object)
        .and_then(|it| it.get(field)?.as_str())
        .unwrap_or_default()
}

/// The generation of an object; zero if it has none.
pub(crate) fn generation(object: &Value) -> i64 {
    let generation = metadata(object).and_then(|it| it.get("generation")?.as_i64());
    generation.unwrap_or_default()
}

/// Sets a field of the metadata, or removes it.
pub(crate) fn set(object: &mut Value, field: &str, value: Option<Value>) {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        match value {
            Some(value) => metadata.insert(field.to_owned(), value),
            None => metadata.shift_remove(field),
        };
    }
}

/// Gives a field of the metadata the value that it has in another object.
pub(crate) fn copy(object: &mut Value, field: &str, from: &Value) {
    let value = metadata(from).and_then(|it| it.get(field)).cloned();
    set(object, field, value);
}

/// The object with another resource version.
pub(crate) fn with_version(mut object: Value, revision: u64) -> Value {
    set(
        &mut object,
        "resourceVersion",
        Some(json!(revision.to_string())),
    );
    object
}

/// Whether two objects are equal but for their metadata.
pub(crate) fn same_content(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
        return one == other;
    };
    let within = |one: &Map<String, Value>, other: &Map<String, Value>| {
        one.iter()
            .all(|(key, value)| key == "metadata" || other.get(key) == Some(value))
    };
    within(one, other) && within(other, one)
}
