//! Finds the parts of a patch that the API server accepted and did not keep.

use serde_json::{Map, Value};

/// Treated apart from fields, as no schema prunes single annotations.
const ANNOTATIONS: &str = "metadata.annotations";

/// The annotations that a merge patch sets and the object that came back does not have.
///
/// No schema prunes annotations: an admission webhook has removed them.
pub(super) fn stripped(patch: &Value, body: &Value) -> Vec<String> {
    let set = patch["metadata"]["annotations"].as_object();
    let kept = &body["metadata"]["annotations"];
    set.into_iter()
        .flatten()
        .filter(|(name, value)| !value.is_null() && kept.get(name.as_str()).is_none())
        .map(|(name, _)| name.clone())
        .collect()
}

/// The paths of values that a patch sets and an object does not have.
///
/// Mostly the schema of the kind lacks a field, and the API server prunes it.
pub(super) fn dropped(patch: &Value, body: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    compare(&mut paths, String::new(), patch, Some(body));
    paths
}

fn compare(paths: &mut Vec<String>, path: String, patch: &Value, body: Option<&Value>) {
    match (patch, body) {
        (Value::Object(patch), Some(Value::Object(body))) => {
            for (key, value) in patch {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                compare(paths, path, value, body.get(key));
            }
        }
        (Value::Null, None) => {}
        (Value::Object(patch), None) if only_removes(patch) => {}
        // Another writer may have been faster, and the API server may normalise values: only a
        // value that is missing altogether is surely not kept.
        (_, Some(_)) => {}
        (_, None) if path.starts_with(ANNOTATIONS) => {}
        (_, None) => paths.push(path),
    }
}

/// True if a patch only removes fields: the whole object may be missing then.
fn only_removes(patch: &Map<String, Value>) -> bool {
    patch.values().all(|value| match value {
        Value::Null => true,
        Value::Object(inner) => only_removes(inner),
        _ => false,
    })
}

/// Whether an object already has a value of a merge patch.
pub(super) fn is_so(merge: &Value, object: &Value) -> bool {
    match merge {
        Value::Object(merge) => are_so(merge, object),
        value => value == object,
    }
}

/// Whether an object already has everything that a merge patch sets, and nothing that it removes.
pub(super) fn are_so(merge: &Map<String, Value>, object: &Value) -> bool {
    merge.iter().all(|(key, wanted)| match object.get(key) {
        None => wanted.is_null() || wanted.as_object().is_some_and(only_removes),
        Some(present) => is_so(wanted, present),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pruned_fields_are_named() {
        let patch = json!({
            "status": {"create_fn": {"message": "hi"}, "phase": "Ready"},
            "metadata": {"annotations": {"gone": null}},
        });
        let body = json!({"status": {"phase": "Ready"}, "metadata": {}});
        assert_eq!(dropped(&patch, &body), ["status.create_fn"]);
    }

    #[test]
    fn annotations_that_were_not_kept_are_named() {
        let patch = json!({"metadata": {"annotations": {"a.b/c": "1", "d": "2", "e": null}}});
        let some = json!({"metadata": {"annotations": {"d": "3"}}});
        assert_eq!(stripped(&patch, &some), ["a.b/c"]);
        let none = json!({"metadata": {}});
        assert_eq!(stripped(&patch, &none), ["a.b/c", "d"]);
        assert!(dropped(&patch, &none).is_empty());
        assert!(stripped(&json!({"spec": {}}), &none).is_empty());
    }

    #[test]
    fn removals_and_values_of_other_writers_are_no_losses() {
        let patch = json!({"spec": {"a": 1, "b": null}, "status": {"x": {"y": null}}});
        let body = json!({"spec": {"a": 2}});
        assert!(dropped(&patch, &body).is_empty());
    }

    #[test]
    fn a_merge_patch_that_changes_nothing_is_recognised() {
        let object = json!({
            "metadata": {"labels": {"a": "1"}, "resourceVersion": "5"},
            "status": {"phase": "Ready", "list": [1, 2]},
        });
        for nothing in [
            json!({}),
            json!({"status": {"phase": "Ready"}}),
            json!({"status": {"list": [1, 2], "gone": null}}),
            json!({"metadata": {"labels": {"a": "1"}, "annotations": {"x": null}}}),
        ] {
            assert!(is_so(&nothing, &object), "{nothing}");
        }
        for change in [
            json!({"status": {"phase": "Failed"}}),
            json!({"status": {"list": [1]}}),
            json!({"status": null}),
            json!({"metadata": {"annotations": {"x": "y"}}}),
        ] {
            assert!(!is_so(&change, &object), "{change}");
        }
    }
}
