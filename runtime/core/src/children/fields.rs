//! Whose fields they are: the entries of `managedFields`, held against what is applied.
//!
//! A client that updates a field takes it out of our entry. So as long as our entries cover all
//! that we apply, and the annotation with the digest is ours, the child is as we applied it, and no
//! request is needed to know that.

use std::borrow::Cow;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};

/// Members of the metadata that no entry names: they are the identity.
const IDENTITY: [&str; 4] = ["name", "namespace", "uid", "resourceVersion"];

/// The fields of a child, by their managers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldOwnership {
    ours: Value,
    others: Vec<Value>,
}

/// One entry of `managedFields`.
#[derive(Deserialize)]
struct ManagedEntry<'a> {
    #[serde(borrow)]
    manager: Option<Cow<'a, str>>,
    subresource: Option<IgnoredAny>,
    #[serde(rename = "fieldsV1")]
    fields: Option<Value>,
}

// === impl FieldOwnership ===

impl FieldOwnership {
    /// Reads `metadata.managedFields` as JSON. Entries of subresources are those of other writers.
    ///
    /// A webhook that rewrites our request leaves its fields in an entry of ours with the operation
    /// `Update`: these are ours, too.
    #[must_use]
    pub fn read(managed_fields: Option<&str>, manager: &str) -> Self {
        let mut ownership = Self {
            ours: Value::Object(Map::new()),
            others: Vec::new(),
        };
        let entries = managed_fields.map(serde_json::from_str::<Vec<ManagedEntry<'_>>>);
        for entry in entries.and_then(Result::ok).into_iter().flatten() {
            let Some(fields) = entry.fields else {
                continue;
            };
            if entry.manager.as_deref() != Some(manager) || entry.subresource.is_some() {
                ownership.others.push(fields);
            } else if ownership.ours.as_object().is_some_and(Map::is_empty) {
                ownership.ours = fields;
            } else {
                merge(&mut ownership.ours, &fields);
            }
        }
        ownership
    }

    /// All fields that are ours.
    #[must_use]
    pub fn ours(&self) -> &Value {
        &self.ours
    }

    /// Whether our entries cover everything that a body sets.
    #[must_use]
    pub fn covers(&self, body: &Value) -> bool {
        let others: Vec<&Value> = self.others.iter().collect();
        let members = body.as_object().into_iter().flatten();
        members
            .filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind"))
            .all(|(key, value)| {
                let name = format!("f:{key}");
                let others: Vec<&Value> = descend(&others, &name);
                if key == "metadata" {
                    self.covers_metadata(value, &others)
                } else {
                    covers_member(self.ours.get(&name), value, &others)
                }
            })
    }

    fn covers_metadata(&self, metadata: &Value, others: &[&Value]) -> bool {
        let ours = self.ours.get("f:metadata");
        let members = metadata.as_object().into_iter().flatten();
        members
            .filter(|(key, _)| !IDENTITY.contains(&key.as_str()))
            .all(|(key, value)| {
                let name = format!("f:{key}");
                let ours = ours.and_then(|ours| ours.get(&name));
                // An empty entry of a map of texts is that of the map, not of its texts.
                let is_map = matches!(key.as_str(), "labels" | "annotations");
                let ours =
                    ours.filter(|ours| !is_map || !ours.as_object().is_none_or(Map::is_empty));
                covers_member(ours, value, &descend(others, &name))
            })
    }
}

/// Whether a member is ours; one that the API server leaves out, being empty, must not be of others.
fn covers_member(ours: Option<&Value>, value: &Value, others: &[&Value]) -> bool {
    match ours {
        Some(ours) => covers_value(ours, value, others),
        None => is_empty(value) && others.is_empty(),
    }
}

fn covers_value(ours: &Value, value: &Value, others: &[&Value]) -> bool {
    let is_leaf = ours.as_object().is_none_or(Map::is_empty);
    if is_leaf {
        return true;
    }
    match value {
        Value::Object(members) => members.iter().all(|(key, value)| {
            let name = format!("f:{key}");
            covers_member(ours.get(&name), value, &descend(others, &name))
        }),
        Value::Array(items) => items.iter().all(|item| covers_item(ours, item, others)),
        _ => true,
    }
}

/// Whether an item of a list is ours: by its keys, or by its value in a set.
fn covers_item(ours: &Value, item: &Value, others: &[&Value]) -> bool {
    let entries = ours.as_object().into_iter().flatten();
    let mut fitting = entries.filter(|(name, _)| names_item(name, item));
    fitting.any(|(name, fields)| covers_value(fields, item, &descend(others, name)))
}

fn names_item(name: &str, item: &Value) -> bool {
    if let Some(value) = name.strip_prefix("v:") {
        return serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item);
    }
    let keys = name.strip_prefix("k:");
    let keys = keys.and_then(|keys| serde_json::from_str::<Map<String, Value>>(keys).ok());
    keys.is_some_and(|keys| {
        // A key that the item leaves out has its default value.
        keys.iter()
            .all(|(key, value)| item.get(key).is_none_or(|own| own == value))
    })
}

fn descend<'a>(entries: &[&'a Value], name: &str) -> Vec<&'a Value> {
    entries.iter().filter_map(|entry| entry.get(name)).collect()
}

/// Whether the API server may leave a value out: built-in kinds do not keep empty ones.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
    }
}

fn merge(target: &mut Value, fields: &Value) {
    let (Some(target), Some(fields)) = (target.as_object_mut(), fields.as_object()) else {
        return;
    };
    for (name, fields) in fields {
        let slot = target
            .entry(name.clone())
            .or_insert_with(|| Value::Object(Map::new()));
        merge(slot, fields);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "fieldsV1": fields})
    }

    fn covers(entries: &Value, body: &Value) -> bool {
        FieldOwnership::read(Some(&entries.to_string()), "op").covers(body)
    }

    fn config_map() -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "one", "labels": {"a": "b"}, "ownerReferences": [{"uid": "u"}]},
            "data": {"x": "1", "y": "2"},
        })
    }

    fn config_map_fields() -> Value {
        json!({
            "f:metadata": {
                "f:labels": {"f:a": {}},
                "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}},
            },
            "f:data": {"f:x": {}, "f:y": {}},
        })
    }

    #[test]
    fn a_field_that_another_client_updated_is_not_covered() {
        let ours = entry("op", "Apply", &config_map_fields());
        assert!(covers(&json!([ours]), &config_map()));
        for lost in ["/f:data/f:x", "/f:metadata/f:labels/f:a"] {
            let mut fields = config_map_fields();
            let (parent, name) = lost.rsplit_once('/').unwrap();
            fields
                .pointer_mut(parent)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .shift_remove(name);
            let theirs = entry("kubectl", "Update", &json!({"f:data": {"f:x": {}}}));
            assert!(
                !covers(
                    &json!([entry("op", "Apply", &fields), theirs]),
                    &config_map()
                ),
                "{lost}"
            );
        }
        let mut fields = config_map_fields();
        fields["f:metadata"]["f:ownerReferences"] = json!({"k:{\"uid\":\"other\"}": {}});
        assert!(!covers(
            &json!([entry("op", "Apply", &fields)]),
            &config_map()
        ));
        assert!(!covers(&json!([]), &config_map()));
    }

    #[test]
    fn fields_of_others_beside_ours_do_not_count() {
        let theirs = entry("kubectl", "Update", &json!({"f:data": {"f:theirs": {}}}));
        let ours = entry("op", "Apply", &config_map_fields());
        assert!(covers(&json!([theirs, ours]), &config_map()));
    }

    #[test]
    fn fields_that_a_webhook_rewrote_in_our_request_are_ours() {
        let mut fields = config_map_fields();
        fields["f:data"] = json!({"f:y": {}});
        let ours = entry("op", "Apply", &fields);
        let rewritten = entry("op", "Update", &json!({"f:data": {"f:x": {}}}));
        assert!(covers(&json!([ours, rewritten]), &config_map()));
    }

    #[test]
    fn an_entry_of_a_subresource_is_not_ours() {
        let mut status = entry("op", "Update", &config_map_fields());
        status["subresource"] = "status".into();
        assert!(!covers(&json!([status]), &config_map()));
    }

    #[test]
    fn items_of_lists_are_found_by_their_keys_and_values() {
        let body = json!({"spec": {
            "ports": [{"containerPort": 80, "name": "http"}],
            "finalizers": ["x"],
            "args": ["a", "b"],
        }});
        let fields = json!({"f:spec": {
            "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                ".": {}, "f:containerPort": {}, "f:name": {},
            }},
            "f:finalizers": {"v:\"x\"": {}},
            "f:args": {},
        }});
        assert!(covers(&json!([entry("op", "Apply", &fields)]), &body));
        let mut other = fields.clone();
        other["f:spec"]["f:finalizers"] = json!({"v:\"y\"": {}});
        assert!(!covers(&json!([entry("op", "Apply", &other)]), &body));
        let mut other = fields;
        other["f:spec"]["f:ports"] = json!({"k:{\"containerPort\":81,\"protocol\":\"TCP\"}": {}});
        assert!(!covers(&json!([entry("op", "Apply", &other)]), &body));
    }

    #[test]
    fn an_empty_value_that_the_api_server_leaves_out_is_covered_unless_another_client_sets_it() {
        let body = json!({"spec": {"hostNetwork": false, "tolerations": [], "name": "x"}});
        let ours = entry("op", "Apply", &json!({"f:spec": {"f:name": {}}}));
        assert!(covers(&json!([ours]), &body));
        let theirs = entry(
            "kubectl",
            "Update",
            &json!({"f:spec": {"f:hostNetwork": {}}}),
        );
        assert!(!covers(&json!([ours, theirs]), &body));
    }
}
