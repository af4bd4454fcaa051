//! The differences of an object as the page shows them: short, and without what may be secret.

use kopf_core::object::diff::{Diff, DiffOp, OldValue};
use serde::Serialize;
use serde_json::Value;

use super::log_text::{is_secret, limited, shortened};
use super::resource::KindName;

/// The most differences of one change that are shown.
const MOST_CHANGES: usize = 100;

/// The text instead of a value that may be secret.
const HIDDEN: &str = "(hidden)";

/// A field with one of these words in its name may have a secret value.
const SENSITIVE: [&str; 7] = [
    "apikey",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "token",
];

/// One difference, with the values as JSON texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ShownChange {
    path: String,
    op: &'static str,
    old: Option<String>,
    new: Option<String>,
}

/// The differences of an object of this kind; of a Secret only the names of the fields.
pub(crate) fn shown_changes(kind: &KindName, diff: &Diff) -> Vec<ShownChange> {
    let secret = is_secret(kind);
    let items = diff.iter().take(MOST_CHANGES);
    let changes = items.map(|item| {
        let hidden = secret || item.path.parts().iter().any(|part| is_sensitive(part));
        let text = |value: &Value| match hidden {
            true => HIDDEN.to_owned(),
            false => limited(shortened(&without_secrets(value)).to_string()),
        };
        ShownChange {
            path: item.path.to_string(),
            op: match item.op {
                DiffOp::Add => "add",
                DiffOp::Change => "change",
                DiffOp::Remove => "remove",
            },
            old: match &item.old {
                OldValue::Absent => None,
                OldValue::Known(old) => Some(text(old)),
                OldValue::Unknown => Some("(unknown)".to_owned()),
            },
            new: item.new.as_ref().map(text),
        }
    });
    changes.collect()
}

// === impl ShownChange ===

impl ShownChange {
    pub(crate) fn bytes(&self) -> usize {
        let values = [&self.old, &self.new].into_iter().flatten();
        let values = values.map(String::capacity).sum::<usize>();
        size_of::<Self>() + self.path.capacity() + values
    }
}

/// A copy in which values of fields with sensitive names are hidden.
fn without_secrets(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_secrets).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(key, value)| match is_sensitive(key) {
                true => (key.clone(), Value::from(HIDDEN)),
                false => (key.clone(), without_secrets(value)),
            });
            fields.collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn is_sensitive(field: &str) -> bool {
    let letters = field.chars().filter(char::is_ascii_alphanumeric);
    let name = letters.collect::<String>().to_ascii_lowercase();
    SENSITIVE.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use kopf_core::object::diff::diff;
    use serde_json::json;

    use super::*;

    fn changes(api_version: &str, kind: &str, old: &Value, new: &Value) -> Value {
        let kind = KindName {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        };
        let changes = shown_changes(&kind, &diff(Some(old), Some(new)));
        serde_json::to_value(changes).unwrap()
    }

    #[test]
    fn a_change_has_its_field_with_both_values() {
        let (old, new) = (json!({"spec": {"size": 1}}), json!({"spec": {"size": 2}}));
        assert_eq!(
            changes("example.com/v1", "Widget", &old, &new),
            json!([{"path": "spec.size", "op": "change", "old": "1", "new": "2"}])
        );
    }

    #[test]
    fn values_of_secrets_and_of_fields_with_sensitive_names_are_hidden() {
        let (old, new) = (
            json!({"data": {"a": "YQ=="}}),
            json!({"data": {"a": "Yg=="}}),
        );
        let hidden = json!([{"path": "data.a", "op": "change", "old": HIDDEN, "new": HIDDEN}]);
        assert_eq!(changes("v1", "Secret", &old, &new), hidden);
        let (old, new) = (
            json!({"spec": {}}),
            json!({"spec": {"db": {"db-password": "hunter2", "user": "me"}, "apiKey": "k"}}),
        );
        let text = changes("example.com/v1", "Widget", &old, &new).to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("\"k\""),
            "{text}"
        );
        assert!(text.contains("me"), "{text}");
    }
}
