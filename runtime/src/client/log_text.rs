//! Patches and differences as text for the log: short, and without the contents of Secrets.

use kopf_core::machine::request::PatchContent;
use kopf_core::object::diff::{Diff, DiffItem, DiffOp, OldValue};
use serde_json::Value;

use crate::client::resource::KindName;

/// The longest string that is shown in full.
const LONGEST_STRING: usize = 120;

/// The longest text of a line.
const LONGEST_TEXT: usize = 4_000;

/// A patch as it is sent; of a Secret only the names of its fields.
pub(crate) fn patch(kind: &KindName, content: PatchContent<'_>) -> String {
    let (PatchContent::Merge(value) | PatchContent::Json(value)) = content;
    if !is_secret(kind) {
        return limited(shortened(value).to_string());
    }
    let mut fields = Vec::new();
    match content {
        PatchContent::Merge(value) => leaves(value, &mut Vec::new(), &mut fields),
        PatchContent::Json(operations) => {
            let paths = operations.as_array().into_iter().flatten();
            fields.extend(paths.filter_map(|it| it["path"].as_str().map(str::to_owned)));
        }
    }
    limited(fields.join(", "))
}

/// The differences of an object; of a Secret only the names of the fields.
pub(crate) fn diff(kind: &KindName, diff: &Diff) -> String {
    let secret = is_secret(kind);
    let items: Vec<String> = diff.iter().map(|item| difference(item, secret)).collect();
    limited(items.join("; "))
}

fn difference(item: &DiffItem, secret: bool) -> String {
    let path = if item.path.parts().is_empty() {
        "the object".to_owned()
    } else {
        item.path.to_string()
    };
    let verb = match item.op {
        DiffOp::Add => "added",
        DiffOp::Change => "changed",
        DiffOp::Remove => "removed",
    };
    if secret {
        return format!("{path} {verb}");
    }
    let old = match &item.old {
        OldValue::Absent => None,
        OldValue::Known(old) => Some(shortened(old).to_string()),
        OldValue::Unknown => Some("(unknown)".to_owned()),
    };
    let new = item.new.as_ref().map(|new| shortened(new).to_string());
    match (old, new) {
        (Some(old), Some(new)) => format!("{path}: {old} -> {new}"),
        (None, Some(new)) => format!("{path} {verb}: {new}"),
        (Some(old), None) => format!("{path} {verb}: {old}"),
        (None, None) => format!("{path} {verb}"),
    }
}

pub(super) fn is_secret(kind: &KindName) -> bool {
    kind.api_version == "v1" && kind.kind == "Secret"
}

/// A copy in which long strings, such as records in annotations, are cut.
pub(super) fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(text, LONGEST_STRING)),
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(key, it)| (key.clone(), shortened(it)))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

pub(super) fn limited(text: String) -> String {
    if text.len() <= LONGEST_TEXT {
        return text;
    }
    cut(&text, LONGEST_TEXT)
}

fn cut(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let mut ends = (0..=longest).rev();
    let end = ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}… ({} bytes)", &text[..end], text.len())
}

/// The paths of all values of a merge patch that are no maps.
fn leaves(value: &Value, path: &mut Vec<String>, found: &mut Vec<String>) {
    match value.as_object() {
        Some(fields) => {
            for (key, value) in fields {
                path.push(key.clone());
                leaves(value, path, found);
                path.pop();
            }
        }
        None => found.push(path.join(".")),
    }
}

#[cfg(test)]
mod tests {
    use kopf_core::object::diff::diff as difference_of;
    use serde_json::json;

    use super::*;

    fn kind(api_version: &str, kind: &str) -> KindName {
        KindName {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    fn shown(old: &Value, new: &Value, name: &KindName) -> String {
        diff(name, &difference_of(Some(old), Some(new)))
    }

    #[test]
    fn a_difference_has_its_field_with_both_values() {
        let old = json!({"spec": {"size": 1, "former": [1]}});
        let new = json!({"spec": {"size": 2, "name": "x"}});
        assert_eq!(
            shown(&old, &new, &kind("example.com/v1", "Widget")),
            r#"spec.name added: "x"; spec.former removed: [1]; spec.size: 1 -> 2"#
        );
    }

    #[test]
    fn of_secrets_only_fields_are_shown() {
        let secret = kind("v1", "Secret");
        let (old, new) = (
            json!({"data": {"a": "YQ=="}}),
            json!({"data": {"a": "Yg=="}}),
        );
        assert_eq!(shown(&old, &new, &secret), "data.a changed");
        let merge = json!({"metadata": {"uid": "u"}, "data": {"a": "YQ==", "b": null}});
        let text = patch(&secret, PatchContent::Merge(&merge));
        assert_eq!(text, "metadata.uid, data.a, data.b");
        let json = json!([{"op": "add", "path": "/data/a", "value": "YQ=="}]);
        assert_eq!(patch(&secret, PatchContent::Json(&json)), "/data/a");
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let widget = kind("example.com/v1", "Widget");
        let merge = json!({"a": "ä".repeat(500), "b": 1});
        let text = patch(&widget, PatchContent::Merge(&merge));
        assert_eq!(
            text,
            format!(r#"{{"a":"{}… (1000 bytes)","b":1}}"#, "ä".repeat(60))
        );
        let many = Value::Array(vec![json!("x".repeat(100)); 1000]);
        let text = patch(&widget, PatchContent::Json(&many));
        assert!(text.len() < LONGEST_TEXT + 30, "{}", text.len());
    }
}
