//! Tells whether a write had no other effect than the one that was asked for.
//!
//! The answer to a write is the whole object. Mostly it says nothing new: it is the object that
//! was known, with the patch on it. That is found out while reading the text, without building
//! the object again.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, map};

/// The version of an object that is what it was, changed by a merge patch and by nothing else.
///
/// What the server itself keeps about changes, the versions and the managers of fields, may
/// differ. None if anything else does, and also if that cannot be told.
#[must_use]
pub fn version_if_expected<'t>(text: &'t str, known: &Value, patch: &Value) -> Option<&'t str> {
    let object = Members {
        level: Level::Object,
        known: known.as_object(),
        patch: patch.as_object(),
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let version = object.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    version
}

/// Where members are, as some of them are the server's own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Object,
    Metadata,
    Inner,
}

/// An object in the text: the known members, changed by the patch.
#[derive(Clone, Copy)]
struct Members<'e> {
    level: Level,
    known: Option<&'e Map<String, Value>>,
    patch: Option<&'e Map<String, Value>>,
}

/// What is expected in one place of the text.
#[derive(Clone, Copy)]
enum ExpectedValue<'e> {
    Members(Members<'e>),
    Value(&'e Value),
}

/// A member of an object in the text, by its name.
enum KnownMember<'e> {
    Version,
    ServerManaged,
    Expected(ExpectedValue<'e>),
}

/// Finds the member that is named in the text.
struct MemberName<'a, 'e> {
    members: Members<'e>,
    /// Mostly members come in the order in which they are known.
    next: &'a mut Option<map::Iter<'e>>,
}

/// A value in the text that no patch touches.
struct Same<'e>(&'e Value);

// === impl Level ===

impl Level {
    fn below(self, name: &str) -> Self {
        match self {
            Self::Object if name == "metadata" => Self::Metadata,
            Self::Object | Self::Metadata | Self::Inner => Self::Inner,
        }
    }

    fn is_server_managed(self, name: &str) -> bool {
        self == Self::Metadata && matches!(name, "resourceVersion" | "managedFields" | "generation")
    }
}

// === impl Members ===

impl<'e> Members<'e> {
    fn count(&self) -> usize {
        let counts = |name: &str| !self.level.is_server_managed(name);
        let known = self.known.into_iter().flatten();
        let kept = known.filter(|(name, _)| counts(name) && self.patched(name).is_none());
        let patch = self.patch.into_iter().flatten();
        let set = patch.filter(|(name, value)| counts(name) && !value.is_null());
        kept.count() + set.count()
    }

    fn patched(&self, name: &str) -> Option<&'e Value> {
        self.patch?.get(name)
    }

    fn expected(&self, name: &str, known: Option<&'e Value>) -> Option<ExpectedValue<'e>> {
        let level = self.level.below(name);
        match (self.patched(name), known) {
            (Some(Value::Null), _) | (None, None) => None,
            (Some(Value::Object(patch)), known) => Some(ExpectedValue::Members(Members {
                level,
                known: known.and_then(Value::as_object),
                patch: Some(patch),
            })),
            (None, Some(Value::Object(known))) if level == Level::Metadata => {
                Some(ExpectedValue::Members(Members {
                    level,
                    known: Some(known),
                    patch: None,
                }))
            }
            (Some(value), _) | (None, Some(value)) => Some(ExpectedValue::Value(value)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Option<&'de str>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the known members, changed by the patch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut text: A) -> Result<Self::Value, A::Error> {
        let mut next = self.known.map(Map::iter);
        let mut version = None;
        let mut found = 0;
        while let Some(member) = text.next_key_seed(MemberName {
            members: self,
            next: &mut next,
        })? {
            match member {
                KnownMember::Version => version = Some(text.next_value()?),
                KnownMember::ServerManaged => drop(text.next_value::<IgnoredAny>()?),
                KnownMember::Expected(expected) => {
                    found += 1;
                    match expected {
                        ExpectedValue::Members(members) => {
                            version = version.or(text.next_value_seed(members)?);
                        }
                        ExpectedValue::Value(value) => text.next_value_seed(Same(value))?,
                    }
                }
            }
        }
        if found == self.count() {
            Ok(version)
        } else {
            Err(unexpected())
        }
    }
}

// === impl MemberName ===

impl<'de, 'e> DeserializeSeed<'de> for MemberName<'_, 'e> {
    type Value = KnownMember<'e>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'e> Visitor<'_> for MemberName<'_, 'e> {
    type Value = KnownMember<'e>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a known or a patched member")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        let known = find(self.members.known, self.next, name);
        if self.members.level.is_server_managed(name) {
            return Ok(match name {
                "resourceVersion" => KnownMember::Version,
                _ => KnownMember::ServerManaged,
            });
        }
        match self.members.expected(name, known) {
            Some(expected) => Ok(KnownMember::Expected(expected)),
            None => Err(unexpected()),
        }
    }
}

// === impl Same ===

impl<'de> DeserializeSeed<'de> for Same<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Same<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the known value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        expect(self.0.as_bool() == Some(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        expect(self.0.as_i64() == Some(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        expect(self.0.as_u64() == Some(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        expect(self.0.is_f64() && *self.0 == value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        expect(self.0.as_str() == Some(value))
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        expect(self.0.is_null())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut text: A) -> Result<(), A::Error> {
        let items = self.0.as_array().ok_or_else(unexpected)?;
        for item in items {
            text.next_element_seed(Same(item))?.ok_or_else(unexpected)?;
        }
        expect(text.next_element::<IgnoredAny>()?.is_none())
    }

    fn visit_map<A: MapAccess<'de>>(self, text: A) -> Result<(), A::Error> {
        let members = Members {
            level: Level::Inner,
            known: Some(self.0.as_object().ok_or_else(unexpected)?),
            patch: None,
        };
        members.visit_map(text).map(drop)
    }
}

/// Looks at the next known member first, then among all of them.
fn find<'e>(
    known: Option<&'e Map<String, Value>>,
    next: &mut Option<map::Iter<'e>>,
    name: &str,
) -> Option<&'e Value> {
    match next.as_mut().and_then(Iterator::next) {
        Some((candidate, value)) if candidate == name => Some(value),
        _ => known?.get(name),
    }
}

fn expect<E: Error>(same: bool) -> Result<(), E> {
    if same { Ok(()) } else { Err(unexpected()) }
}

fn unexpected<E: Error>() -> E {
    E::custom("not what the write was meant to leave")
}

#[cfg(test)]
mod tests;
