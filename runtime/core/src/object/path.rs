//! Paths to fields of an object, through maps only, not into lists.

use std::{fmt, str::FromStr};

use serde_json::{Map, Value};

use crate::object::member;

/// A path such as `spec.size`; empty means the whole object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<String>);

// === impl FieldPath ===

impl FieldPath {
    /// The whole object.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// A path from its parts, which may themselves hold dots.
    pub fn new<I: IntoIterator<Item = S>, S: Into<String>>(parts: I) -> Self {
        Self(parts.into_iter().map(Into::into).collect())
    }

    /// Reads a path such as `spec.size` or `metadata.labels["app.kubernetes.io/name"]`; none if
    /// a bracket is not closed, or a part is empty.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts: Vec<String> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (part, after) = if let Some(quoted) = rest.strip_prefix("[\"") {
                quoted.split_once("\"]")?
            } else {
                let start = match parts.is_empty() {
                    true => rest,
                    false => rest.strip_prefix('.')?,
                };
                start.split_at(start.find(['.', '[']).unwrap_or(start.len()))
            };
            if part.is_empty() {
                return None;
            }
            parts.push(part.to_owned());
            rest = after;
        }
        Some(Self(parts))
    }

    /// The path as [`parse`](Self::parse) reads it.
    #[must_use]
    pub fn quoted(&self) -> String {
        let mut text = String::new();
        for part in &self.0 {
            if part.contains(['.', '[']) {
                text.push_str(&format!("[\"{part}\"]"));
            } else {
                text.push_str(if text.is_empty() { "" } else { "." });
                text.push_str(part);
            }
        }
        text
    }

    /// The parts from the top.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.0
    }

    /// This path with one more part.
    #[must_use]
    pub fn child(&self, part: &str) -> Self {
        let mut parts = self.0.clone();
        parts.push(part.to_owned());
        Self(parts)
    }

    /// This path with another last part.
    #[must_use]
    pub fn sibling(&self, part: &str) -> Self {
        let parents = self.0.split_last().map_or(&[][..], |(_, parents)| parents);
        Self(parents.to_vec()).child(part)
    }

    /// The value at the path; null counts as none.
    #[must_use]
    pub fn resolve<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0
            .iter()
            .try_fold(value, |value, part| member(value.as_object()?, part))
            .filter(|value| !value.is_null())
    }

    /// Sets the value at the path; anything but a map on the way is replaced by a map.
    pub fn ensure(&self, target: &mut Value, value: Value) {
        let mut slot = target;
        for part in &self.0 {
            if !slot.is_object() {
                *slot = Value::Object(Map::new());
            }
            slot = match slot {
                Value::Object(map) => map.entry(part.clone()).or_insert(Value::Null),
                _ => return,
            };
        }
        *slot = value;
    }

    /// Removes the value, with the maps that become empty.
    pub fn remove(&self, target: &mut Value) -> Option<Value> {
        remove_at(target, &self.0)
    }
}

fn remove_at(target: &mut Value, parts: &[String]) -> Option<Value> {
    let map = target.as_object_mut()?;
    match parts {
        [] => None,
        [last] => map.shift_remove(last),
        [first, rest @ ..] => {
            let child = map.get_mut(first)?;
            let removed = remove_at(child, rest)?;
            if child.as_object().is_some_and(Map::is_empty) {
                map.shift_remove(first);
            }
            Some(removed)
        }
    }
}

impl FromStr for FieldPath {
    type Err = std::convert::Infallible;

    fn from_str(dotted: &str) -> Result<Self, Self::Err> {
        Ok(Self::from(dotted))
    }
}

impl From<&str> for FieldPath {
    fn from(dotted: &str) -> Self {
        if dotted.is_empty() {
            Self::root()
        } else {
            Self::new(dotted.split('.'))
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_is_absent_and_lists_are_not_entered() {
        let body = json!({"a": {"b": null, "c": [{"d": 1}], "e": 5}});
        assert_eq!(FieldPath::from("a.b").resolve(&body), None);
        assert_eq!(FieldPath::from("a.c.0").resolve(&body), None);
        assert_eq!(FieldPath::from("a.e").resolve(&body), Some(&json!(5)));
        assert_eq!(FieldPath::root().resolve(&body), Some(&body));
    }

    #[test]
    fn keys_with_dots_are_in_brackets() {
        for (text, parts) in [
            ("spec.size", &["spec", "size"][..]),
            (
                r#"metadata.labels["app.kubernetes.io/name"]"#,
                &["metadata", "labels", "app.kubernetes.io/name"],
            ),
            (r#"spec["a.b"]["c.d"].e"#, &["spec", "a.b", "c.d", "e"]),
            (r#"["a.b"]"#, &["a.b"]),
            ("", &[]),
        ] {
            let path = FieldPath::parse(text).expect("it is a path");
            assert_eq!(path.parts(), parts, "{text}");
            assert_eq!(path.quoted(), text);
        }
        for text in [
            "a..b",
            ".a",
            "a.",
            "a[b]",
            r#"a["b"#,
            r#"a[""]"#,
            r#"["a"]b"#,
        ] {
            assert_eq!(FieldPath::parse(text), None, "{text}");
        }
    }

    #[test]
    fn removal_leaves_no_empty_maps_behind() {
        let mut body = json!({"a": {"b": {"c": 1}}, "z": 0});
        assert_eq!(FieldPath::from("a.b.c").remove(&mut body), Some(json!(1)));
        assert_eq!(body, json!({"z": 0}));
        assert_eq!(FieldPath::from("a.b.c").remove(&mut body), None);
    }

    #[test]
    fn a_value_replaces_whatever_is_on_its_path() {
        let mut body = json!({"a": "text"});
        FieldPath::from("a.b").ensure(&mut body, json!(1));
        assert_eq!(body, json!({"a": {"b": 1}}));
        assert_eq!(FieldPath::from("a.b").to_string(), "a.b");
    }
}
