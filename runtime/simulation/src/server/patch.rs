//! Merge patches and JSON patches, as the API server applies them.
//!
//! Its library removes nulls from what a merge patch adds, even inside lists, and lets a JSON
//! patch test that a missing field is null, and replace a member that does not exist.

use serde_json::Value;

use super::answer::Failure;
use super::request::SimulatedPatch;

/// The operations that one JSON patch may have.
const MOST_OPERATIONS: usize = 10_000;

/// Applies a patch to an object.
pub(crate) fn apply(object: &mut Value, patch: &SimulatedPatch) -> Result<(), Failure> {
    match patch {
        SimulatedPatch::Merge(patch) if patch.is_object() => {
            merge(object, patch);
            Ok(())
        }
        SimulatedPatch::Merge(_) => Err(Failure::bad_request("error decoding patch")),
        SimulatedPatch::Json(patch) => apply_operations(object, patch),
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let (Value::Object(fields), Value::Object(changes)) = (&mut *target, patch) else {
        *target = match patch {
            // Only what replaces something else than an object is cleaned.
            Value::Object(_) | Value::Array(_) if !target.is_object() => without_nulls(patch),
            _ => patch.clone(),
        };
        return;
    };
    for (name, change) in changes {
        if change.is_null() {
            fields.shift_remove(name);
            continue;
        }
        match fields.get_mut(name) {
            Some(field) if !field.is_null() => merge(field, change),
            _ => {
                fields.insert(name.clone(), without_nulls(change));
            }
        }
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), without_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

fn apply_operations(object: &mut Value, patch: &Value) -> Result<(), Failure> {
    let Value::Array(operations) = patch else {
        return Err(Failure::bad_request("error decoding patch"));
    };
    if operations.len() > MOST_OPERATIONS {
        let message = format!(
            "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
            operations.len()
        );
        return Err(Failure::new(413, "RequestEntityTooLarge", message));
    }
    for operation in operations {
        if operation["op"] == "test" {
            let path = operation["path"].as_str().unwrap_or_default();
            let present = object.pointer(path).unwrap_or(&Value::Null);
            if *present != operation["value"] {
                return Err(Failure::unprocessable());
            }
            continue;
        }
        let mut operation = operation.clone();
        if operation["op"] == "replace" && is_missing_member(object, &operation["path"]) {
            operation["op"] = "add".into();
        }
        let operation = Value::Array(vec![operation]);
        let operation: json_patch::Patch =
            serde_json::from_value(operation).map_err(|_| Failure::unprocessable())?;
        json_patch::patch(object, &operation).map_err(|_| Failure::unprocessable())?;
    }
    Ok(())
}

/// Whether a path leads to a member that an object does not have yet.
fn is_missing_member(object: &Value, path: &Value) -> bool {
    let path = path.as_str().unwrap_or_default();
    let parent = path.rsplit_once('/').map(|(parent, _)| parent);
    object.pointer(path).is_none()
        && parent.is_some_and(|it| object.pointer(it).is_some_and(Value::is_object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(mut object: Value, patch: Value) -> Value {
        apply(&mut object, &SimulatedPatch::Merge(patch)).expect("it is applied");
        object
    }

    #[test]
    fn what_a_merge_patch_adds_has_no_nulls() {
        let object = json!({"a": {"b": 1}, "list": [1]});
        assert_eq!(
            merged(object.clone(), json!({"a": {"b": null}, "c": {"d": null}})),
            json!({"a": {}, "list": [1], "c": {}})
        );
        assert_eq!(
            merged(object, json!({"list": [{"x": null}, null]})),
            json!({"a": {"b": 1}, "list": [{}, null]})
        );
    }

    #[test]
    fn a_missing_field_passes_a_test_for_null() {
        let mut object = json!({"metadata": {}});
        let patch = json!([
            {"op": "test", "path": "/metadata/finalizers", "value": null},
            {"op": "add", "path": "/metadata/finalizers", "value": ["x"]},
        ]);
        let patch = SimulatedPatch::Json(patch);
        apply(&mut object, &patch).expect("the field is missing");
        assert_eq!(object["metadata"]["finalizers"][0], "x");
        let again = apply(&mut object, &patch).expect_err("the field is there");
        assert_eq!(again.code, 422);
    }
}
