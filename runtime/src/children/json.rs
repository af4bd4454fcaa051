//! The JSON of children, read and written without a copy of the whole object.

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;

use serde::de::{Deserialize, DeserializeOwned};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::resource::KindName;

/// The body of a request with one more member of its metadata, which the API server compares.
#[derive(Debug)]
pub(super) struct ComparedBody<'a> {
    pub(super) body: &'a Value,
    pub(super) member: &'static str,
    pub(super) value: &'a str,
}

/// A child, parsed or not: only its handler knows its type.
pub(crate) enum ChildJson {
    Text(String),
    Value(Value),
}

/// A text, which is borrowed if nothing in it is escaped.
#[derive(serde::Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(transparent)]
struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of an object, whose values are not parsed.
pub(super) struct RawMembers<'a>(BTreeMap<JsonText<'a>, &'a RawValue>);

/// An object as it is kept: without its managed fields, and with its body only if bodies are kept.
pub(super) struct KeptChild<'a> {
    pub(super) name: &'a KindName,
    pub(super) object: &'a RawMembers<'a>,
    pub(super) metadata: &'a RawMembers<'a>,
    pub(super) has_body: bool,
}

/// The metadata of a body with another member.
struct ComparedMetadata<'a> {
    metadata: &'a Value,
    member: (&'static str, &'a str),
}

/// Metadata without managed fields.
struct KeptMetadata<'a>(&'a RawMembers<'a>);

// === impl ChildJson ===

impl ChildJson {
    pub(crate) fn parse<T: DeserializeOwned>(self) -> serde_json::Result<T> {
        match self {
            Self::Text(text) => serde_json::from_str(&text),
            Self::Value(value) => serde_json::from_value(value),
        }
    }

    /// A copy of the child.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => serde_json::from_str(text).unwrap_or_default(),
            Self::Value(value) => value.clone(),
        }
    }
}

// === impl JsonText ===

impl Borrow<str> for JsonText<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

// === impl RawMembers ===

impl<'a> RawMembers<'a> {
    /// The members of an object; none if the text is not one.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// The text of a member.
    pub(super) fn raw(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|value| value.get())
    }

    /// The members of a member.
    pub(super) fn members(&self, name: &str) -> Option<Self> {
        Self::read(self.raw(name)?)
    }

    /// A member that is a text.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        let text = self.raw(name)?;
        JsonText::deserialize(&mut serde_json::Deserializer::from_str(text))
            .ok()
            .map(|text| text.0)
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (&*name.0, *value))
    }
}

// === impl ComparedBody ===

impl Serialize for ComparedBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.body.as_object().into_iter().flatten() {
            if key == "metadata" {
                let metadata = ComparedMetadata {
                    metadata: value,
                    member: (self.member, self.value),
                };
                map.serialize_entry(key, &metadata)?;
            } else {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

// === impl ComparedMetadata ===

impl Serialize for ComparedMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (name, value) = self.member;
        let mut map = serializer.serialize_map(None)?;
        let members = self.metadata.as_object().into_iter().flatten();
        for (key, value) in members.filter(|(key, _)| *key != name) {
            map.serialize_entry(key, value)?;
        }
        map.serialize_entry(name, value)?;
        map.end()
    }
}

// === impl KeptChild ===

impl Serialize for KeptChild<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("apiVersion", &self.name.api_version)?;
        map.serialize_entry("kind", &self.name.kind)?;
        map.serialize_entry("metadata", &KeptMetadata(self.metadata))?;
        let is_body = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata");
        let body = self.object.iter().filter(|(name, _)| is_body(name));
        for (name, value) in body.filter(|_| self.has_body) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

// === impl KeptMetadata ===

impl Serialize for KeptMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kept = self.0.iter().filter(|(name, _)| *name != "managedFields");
        serializer.collect_map(kept)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_compared_member_replaces_that_of_the_body() {
        let body = json!({"kind": "A", "metadata": {"uid": "old", "name": "x"}, "data": {}});
        let compared = ComparedBody {
            body: &body,
            member: "uid",
            value: "u",
        };
        let expected = json!({"kind": "A", "metadata": {"name": "x", "uid": "u"}, "data": {}});
        assert_eq!(serde_json::to_value(compared).unwrap(), expected);
    }

    #[test]
    fn an_object_is_kept_without_managed_fields_and_perhaps_without_its_body() {
        let object = json!({
            "kind": "Odd", "data": {"a": "b"},
            "metadata": {"name": "x", "managedFields": [{}], "labels": {"a\n": "\"", "b": null}},
        });
        let object = object.to_string();
        let object = RawMembers::read(&object).unwrap();
        let metadata = object.members("metadata").unwrap();
        assert_eq!(metadata.text("name").as_deref(), Some("x"));
        let labels = metadata.members("labels").unwrap();
        assert_eq!(labels.text("a\n").as_deref(), Some("\""));
        assert_eq!((labels.text("b"), labels.text("c")), (None, None));
        let name = KindName {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
        };
        let kept = |has_body| {
            let kept = KeptChild {
                name: &name,
                object: &object,
                metadata: &metadata,
                has_body,
            };
            serde_json::to_value(kept).unwrap()
        };
        let mut expected = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x", "labels": {"a\n": "\"", "b": null}},
        });
        assert_eq!(kept(false), expected);
        expected["data"] = json!({"a": "b"});
        assert_eq!(kept(true), expected);
    }
}
