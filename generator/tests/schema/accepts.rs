//! A validator for those keywords of JSON Schema that the schema of the manifest uses.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

use regex::Regex;
use serde_json::Value;

/// Whether a value fits a schema; a keyword that the schema of the manifest does not use fails the
/// test.
pub(crate) fn accepts(root: &Value, schema: &Value, value: &Value) -> bool {
    let Some(schema) = schema.as_object() else {
        return schema
            .as_bool()
            .expect("a schema is an object or a boolean");
    };
    schema
        .iter()
        .all(|(keyword, wanted)| match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" => true,
            "$ref" => {
                let pointer = wanted
                    .as_str()
                    .and_then(|it| it.strip_prefix('#'))
                    .expect("a local reference");
                accepts(root, root.pointer(pointer).expect("a definition"), value)
            }
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|wanted| is(value, wanted)),
                wanted => is(value, wanted),
            },
            "const" => value == wanted,
            "enum" => list(wanted).contains(value),
            "anyOf" => list(wanted)
                .iter()
                .any(|schema| accepts(root, schema, value)),
            "oneOf" => {
                list(wanted)
                    .iter()
                    .filter(|schema| accepts(root, schema, value))
                    .count()
                    == 1
            }
            "not" => !accepts(root, wanted, value),
            "required" => value.as_object().is_none_or(|object| {
                list(wanted)
                    .iter()
                    .all(|key| object.contains_key(key.as_str().expect("a key")))
            }),
            "properties" => value.as_object().is_none_or(|object| {
                object.iter().all(|(key, value)| {
                    wanted
                        .get(key)
                        .is_none_or(|schema| accepts(root, schema, value))
                })
            }),
            "additionalProperties" => value.as_object().is_none_or(|object| {
                let declared = |key: &String| {
                    schema
                        .get("properties")
                        .is_some_and(|all| all.get(key).is_some())
                };
                object
                    .iter()
                    .filter(|(key, _)| !declared(key))
                    .all(|(_, value)| accepts(root, wanted, value))
            }),
            "items" => value
                .as_array()
                .is_none_or(|items| items.iter().all(|item| accepts(root, wanted, item))),
            "minItems" => value
                .as_array()
                .is_none_or(|items| items.len() as u64 >= wanted.as_u64().expect("a length")),
            "minimum" => value
                .as_f64()
                .is_none_or(|number| number >= wanted.as_f64().expect("a number")),
            "maximum" => value
                .as_f64()
                .is_none_or(|number| number <= wanted.as_f64().expect("a number")),
            "maxLength" => value.as_str().is_none_or(|text| {
                text.chars().count() as u64 <= wanted.as_u64().expect("a length")
            }),
            "pattern" => value
                .as_str()
                .is_none_or(|text| pattern(wanted.as_str().expect("a pattern")).is_match(text)),
            other => panic!("the test does not know `{other}`"),
        })
}

/// A pattern, compiled once.
fn pattern(text: &str) -> Regex {
    static KNOWN: LazyLock<Mutex<BTreeMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().expect("no thread panicked with the lock");
    let make = || Regex::new(text).expect("valid");
    known.entry(text.to_owned()).or_insert_with(make).clone()
}

fn is(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str().expect("the name of a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("the test does not know the type `{other}`"),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}
