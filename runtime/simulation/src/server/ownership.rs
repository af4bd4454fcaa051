//! The fields that webhooks have written: no client owns them.
//!
//! The real server stores the owners of fields with an object. So a write that a webhook reverts
//! changes something that no client sees: its first time takes a version and sends an event.

use std::collections::BTreeSet;

use serde_json::Value;

/// The paths of fields that no client owns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnownedFields(BTreeSet<String>);

// === impl UnownedFields ===

impl UnownedFields {
    /// The fields without an owner after a write: the client has sent `sent` instead of `old`, and
    /// webhooks have made `new` of it.
    pub(crate) fn after(&self, old: &Value, sent: &Value, new: &Value) -> Self {
        let mut unowned = self.clone();
        changed_fields("", old, sent, &mut |path: &str| {
            unowned.0.remove(path);
        });
        changed_fields("", sent, new, &mut |path: &str| {
            unowned.0.insert(path.to_owned());
        });
        unowned.0.retain(|path| has_field("", new, path));
        unowned
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Calls back for each field that differs.
fn changed_fields(path: &str, one: &Value, other: &Value, found: &mut impl FnMut(&str)) {
    if one == other {
        return;
    }
    if is_nested(path, one) && is_nested(path, other) {
        let names = members(one).chain(members(other)).map(|(name, _)| name);
        let names: BTreeSet<String> = names.collect();
        for name in names {
            let path = format!("{path}/{name}");
            let (one, other) = (member(one, &name), member(other, &name));
            changed_fields(&path, one, other, found);
        }
        return;
    }
    // What is nested on one side only consists of fields, too.
    for value in [one, other] {
        if is_nested(path, value) {
            for (name, value) in members(value) {
                changed_fields(&format!("{path}/{name}"), &Value::Null, value, found);
            }
        } else if !value.is_null() {
            found(path);
        }
    }
}

fn has_field(path: &str, value: &Value, wanted: &str) -> bool {
    if path == wanted {
        return !value.is_null();
    }
    is_nested(path, value)
        && members(value).any(|(name, value)| {
            let path = format!("{path}/{name}");
            wanted.starts_with(&path) && has_field(&path, value, wanted)
        })
}

/// Objects consist of fields, and so do finalizers, which are a set; other lists are one value.
fn is_nested(path: &str, value: &Value) -> bool {
    value.is_object() || (path == "/metadata/finalizers" && value.is_array())
}

fn members(value: &Value) -> Box<dyn Iterator<Item = (String, &Value)> + '_> {
    match value {
        Value::Object(fields) => Box::new(fields.iter().map(|(name, it)| (name.clone(), it))),
        Value::Array(items) => Box::new(items.iter().map(|it| (it.to_string(), it))),
        _ => Box::new(std::iter::empty()),
    }
}

fn member<'a>(value: &'a Value, name: &str) -> &'a Value {
    match value {
        Value::Object(fields) => fields.get(name).unwrap_or(&Value::Null),
        Value::Array(items) => {
            let mut named = items.iter().map(|it| (it.to_string(), it));
            let found = named.find(|(text, _)| text == name);
            found.map_or(&Value::Null, |(_, it)| it)
        }
        _ => &Value::Null,
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
