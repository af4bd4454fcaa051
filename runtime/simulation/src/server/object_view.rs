//! Reading and changing the fields of stored objects.

use serde_json::{Map, Value, json};

/// A member of a map: most are small, and comparing a few names costs less than hashing one.
pub(crate) fn member<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    map.iter().find(|(key, _)| *key == name).map(|(_, it)| it)
}

/// The metadata of an object.
pub(crate) fn metadata(object: &Value) -> Option<&Map<String, Value>> {
    member(object.as_object()?, "metadata")?.as_object()
}

/// A text in the metadata; empty if there is none.
pub(crate) fn text_of<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object)
        .and_then(|it| member(it, field)?.as_str())
        .unwrap_or_default()
}

/// The version of an object of this server, which are numbers.
pub(crate) fn version(object: &Value) -> u64 {
    text_of(object, "resourceVersion")
        .parse()
        .unwrap_or_default()
}

/// The generation of an object; zero if it has none.
pub(crate) fn generation(object: &Value) -> i64 {
    let generation = metadata(object).and_then(|it| member(it, "generation")?.as_i64());
    generation.unwrap_or_default()
}

/// Sets a field of the metadata, or removes it.
pub(crate) fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let Value::Object(fields) = object else {
        return;
    };
    let metadata = match fields.get_mut("metadata") {
        Some(metadata) => metadata,
        None => fields.entry("metadata").or_insert(Value::Null),
    };
    if !metadata.is_object() {
        *metadata = json!({});
    }
    if let Value::Object(metadata) = metadata {
        put(metadata, field, value);
    }
}

/// Gives fields of the metadata the values that they have in another object.
pub(crate) fn copy<'a>(
    object: &mut Value,
    fields: impl IntoIterator<Item = &'a str>,
    from: &Value,
) {
    let from = metadata(from);
    let to = object.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(to) = to else {
        return;
    };
    for field in fields {
        let value = from.and_then(|it| member(it, field));
        // Most fields are as they were.
        if member(to, field) != value {
            put(to, field, value.cloned());
        }
    }
}

fn put(metadata: &mut Map<String, Value>, field: &str, value: Option<Value>) {
    match (value, metadata.get_mut(field)) {
        (Some(value), Some(present)) => *present = value,
        (Some(value), None) => {
            metadata.insert(field.to_owned(), value);
        }
        (None, Some(_)) => {
            metadata.shift_remove(field);
        }
        (None, None) => {}
    }
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
    let content = |it: &&(&String, &Value)| it.0 != "metadata";
    let has = |map: &Map<String, Value>, (key, value): (&String, &Value)| {
        member(map, key).is_some_and(|it| same(it, value))
    };
    one.iter()
        .filter(|it| content(&it))
        .all(|it| has(other, it))
        && other
            .iter()
            .filter(|it| content(&it))
            .all(|(key, _)| member(one, key).is_some())
}

/// Whether two values are equal.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else {
        return one == other;
    };
    // States of one object mostly have the same members in the same order.
    let mut next = other.iter();
    one.len() == other.len()
        && one.iter().all(|(key, value)| match next.next() {
            Some((present, other)) if present == key => same(value, other),
            _ => member(other, key).is_some_and(|it| same(value, it)),
        })
}
