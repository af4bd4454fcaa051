//! The tree that YAML and JSON texts are read into.

use serde::{Serialize, Serializer};

use crate::diagnostic::Span;

/// A value with its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// The bytes that it came from.
    pub span: Span,
}

/// The value of a YAML node, with tags, anchors and merge keys resolved.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Any other number; always finite.
    Float(f64),
    /// A string.
    String(String),
    /// A sequence.
    Seq(Vec<Node>),
    /// A mapping, in the order of the text.
    Map(Vec<MapEntry>),
}

/// A key of a mapping and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    /// The key.
    pub key: MapKey,
    /// The value.
    pub value: Node,
}

/// A key of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct MapKey {
    /// The key as a string.
    pub name: String,
    /// The bytes that it came from.
    pub span: Span,
}

/// The rules for scalars without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// As kubectl and the API server read it: YAML 1.1 booleans and octal numbers.
    Kubernetes,
    /// YAML 1.2, in which `on` and `no` are strings.
    Core,
}

// === impl Node ===

impl Node {
    /// The value under a key, if this is a mapping that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The entry of a key, if this is a mapping that has it.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&MapEntry> {
        self.as_map()?.iter().find(|entry| entry.key.name == key)
    }

    /// The string, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean, if it is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The whole number, if it is one.
    #[must_use]
    pub fn as_int(&self) -> Option<i128> {
        match self.value {
            Value::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The items, if it is a sequence.
    #[must_use]
    pub fn as_seq(&self) -> Option<&[Self]> {
        match &self.value {
            Value::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// The entries, if it is a mapping.
    #[must_use]
    pub fn as_map(&self) -> Option<&[MapEntry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    /// The name of its type in a sentence: `a string`, `a mapping`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a number",
            Value::String(_) => "a string",
            Value::Seq(_) => "a sequence",
            Value::Map(_) => "a mapping",
        }
    }

    /// The value as compact JSON.
    #[must_use]
    pub fn to_json_text(&self) -> String {
        serde_json::to_string(self).expect("the keys of a node are strings")
    }

    /// The same value as JSON, without spans.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => json_integer(*value),
            Value::Float(value) => Json::from(*value),
            Value::String(text) => Json::String(text.clone()),
            Value::Seq(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| (entry.key.name.clone(), entry.value.to_json()))
                .collect(),
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => json_integer(*value).serialize(serializer),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::String(text) => serializer.serialize_str(text),
            Value::Seq(items) => serializer.collect_seq(items),
            Value::Map(entries) => {
                serializer.collect_map(entries.iter().map(|entry| (&entry.key.name, &entry.value)))
            }
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "integers beyond 64 bits are floats for every JSON reader of Kubernetes"
)]
fn json_integer(value: i128) -> serde_json::Value {
    if let Ok(value) = i64::try_from(value) {
        value.into()
    } else if let Ok(value) = u64::try_from(value) {
        value.into()
    } else {
        (value as f64).into()
    }
}
