//! Decides whether the response to a write shows the effect of our patch and nothing else.
//!
//! The API server responds with the whole object. Usually that is the known object with the patch
//! applied. This is checked while the text is read, without building the object again.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, map};

/// The resource version in a response that shows the known object with a merge patch applied.
///
/// The fields that the API server itself maintains may differ: resource version, generation, and
/// managed fields. None if anything else differs, or if the text is not valid.
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

/// The level of members: the API server maintains some of those in `metadata`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Object,
    Metadata,
    Inner,
}

/// An object in the text, expected to have the known members with the patch applied.
#[derive(Clone, Copy)]
struct Members<'e> {
    level: Level,
    known: Option<&'e Map<String, Value>>,
    patch: Option<&'e Map<String, Value>>,
}

/// The expected value of a member.
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
    /// Usually members come in the order of the known object.
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

/// Tries the next known member first, then all of them.
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
    E::custom("not the expected effect of the write")
}

#[cfg(test)]
mod tests;
