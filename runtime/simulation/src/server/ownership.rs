//! The fields that webhooks have written: no client owns them.
//!
//! The real server stores the owners of fields with an object. So a write that a webhook reverts
//! changes something that no client sees: its first time takes a version and sends an event.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::object_view::{member, same};

/// The paths of fields that no client owns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnownedFields(BTreeSet<String>);

// === impl UnownedFields ===

impl UnownedFields {
    /// The fields without an owner after a write: the client has sent `sent` instead of `old`, and
    /// webhooks have made `new` of it.
    pub(crate) fn after(&self, old: &Value, sent: &Value, new: &Value) -> Self {
        let mut unowned = self.clone();
        let mut path = String::new();
        if !unowned.0.is_empty() {
            changed_fields(&mut path, old, sent, &mut |path: &str| {
                unowned.0.remove(path);
            });
        }
        changed_fields(&mut path, sent, new, &mut |path: &str| {
            unowned.0.insert(path.to_owned());
        });
        unowned.0.retain(|path| has_field(new, path));
        unowned
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Calls back for each field that differs.
fn changed_fields(path: &mut String, one: &Value, other: &Value, found: &mut impl FnMut(&str)) {
    if same(one, other) {
        return;
    }
    match (NestedFields::of(path, one), NestedFields::of(path, other)) {
        (Some(ones), Some(others)) => {
            ones.each(path, |path, name, value| {
                let other = others.get(name).unwrap_or(&Value::Null);
                changed_fields(path, value, other, found);
            });
            others.each(path, |path, name, value| {
                if ones.get(name).is_none() {
                    changed_fields(path, &Value::Null, value, found);
                }
            });
        }
        // What is nested on one side only consists of fields, too.
        sides => {
            for (value, members) in [(one, sides.0), (other, sides.1)] {
                match members {
                    Some(members) => members.each(path, |path, _, value| {
                        changed_fields(path, &Value::Null, value, found);
                    }),
                    None if value.is_null() => {}
                    None => found(path),
                }
            }
        }
    }
}

/// Whether a value has a field with this path.
fn has_field(value: &Value, wanted: &str) -> bool {
    fn is_below(path: &mut String, value: &Value, wanted: &str) -> bool {
        if path == wanted {
            return !value.is_null();
        }
        let mut found = false;
        if let Some(members) = NestedFields::of(path, value) {
            members.each(path, |path, _, value| {
                found |= wanted.starts_with(path.as_str()) && is_below(path, value, wanted);
            });
        }
        found
    }
    is_below(&mut String::new(), value, wanted)
}

/// The fields that a value consists of; finalizers are a set, other lists are one value.
#[derive(Clone, Copy)]
enum NestedFields<'a> {
    Fields(&'a Map<String, Value>),
    Items(&'a [Value]),
}

// === impl NestedFields ===

impl<'a> NestedFields<'a> {
    fn of(path: &str, value: &'a Value) -> Option<Self> {
        match value {
            Value::Object(fields) => Some(Self::Fields(fields)),
            Value::Array(items) if path == "/metadata/finalizers" => Some(Self::Items(items)),
            _ => None,
        }
    }

    /// Calls back for each member, with its path and its name.
    fn each(self, path: &mut String, mut found: impl FnMut(&mut String, &str, &'a Value)) {
        let length = path.len();
        let mut member = |name: &str, value: &'a Value| {
            path.push('/');
            path.push_str(name);
            found(path, name, value);
            path.truncate(length);
        };
        match self {
            Self::Fields(fields) => fields.iter().for_each(|(name, it)| member(name, it)),
            Self::Items(items) => items.iter().for_each(|it| member(&it.to_string(), it)),
        }
    }

    fn get(self, name: &str) -> Option<&'a Value> {
        match self {
            Self::Fields(fields) => member(fields, name),
            Self::Items(items) => items.iter().find(|it| {
                let text = it.to_string();
                text == name
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reverted_write_costs_the_field_its_owner_once() {
        let old = json!({"metadata": {"finalizers": ["a", "b"]}, "spec": {"size": 1}});
        let sent = json!({"metadata": {"finalizers": ["b"]}, "spec": {"size": 2}});
        let none = UnownedFields::default();
        let once = none.after(&old, &sent, &old);
        assert_eq!(once.0.len(), 2, "{once:?}");
        assert_eq!(
            once.after(&old, &sent, &old),
            once,
            "the second time changes nothing"
        );
        let owned = once.after(&old, &sent, &sent);
        assert!(owned.is_empty(), "{owned:?}");
    }
}
