//! Whether a state shows a change that may or may not have been written.

use serde_json::Value;

/// Whether a state has everything that differs between two others, as the second one has it.
///
/// Lists count as a whole: an item in the middle of one says nothing about the edit of the list.
#[must_use]
pub fn shows_change(before: &Value, wanted: &Value, state: &Value) -> bool {
    let state = with_emptied_metadata(state.clone(), wanted);
    shows(Some(before), Some(wanted), Some(&state))
}

/// Adds the fields of the metadata that are wanted without content: the API server drops the last
/// label, annotation, finalizer or owner together with its field.
fn with_emptied_metadata(mut state: Value, wanted: &Value) -> Value {
    let is_empty = |field: &Value| match field {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let metadata = state.get_mut("metadata").and_then(Value::as_object_mut);
    if let (Some(metadata), Some(wanted)) = (metadata, wanted["metadata"].as_object()) {
        for (name, field) in wanted.iter().filter(|(_, field)| is_empty(field)) {
            metadata.entry(name).or_insert_with(|| field.clone());
        }
    }
    state
}

fn shows(before: Option<&Value>, wanted: Option<&Value>, state: Option<&Value>) -> bool {
    match (before, wanted, state) {
        (before, wanted, _) if before == wanted => true,
        (Some(Value::Object(before)), Some(Value::Object(wanted)), Some(Value::Object(state))) => {
            let added = wanted.keys().filter(|key| !before.contains_key(*key));
            before
                .keys()
                .chain(added)
                .all(|key| shows(before.get(key), wanted.get(key), state.get(key)))
        }
        // Other clients may have added fields to an object that was not there before.
        (_, Some(Value::Object(wanted)), Some(Value::Object(state))) => wanted
            .iter()
            .all(|(key, wanted)| shows(None, Some(wanted), state.get(key))),
        (_, wanted, state) => wanted == state,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_did_not_change_may_have_any_value() {
        let before = json!({"metadata": {"resourceVersion": "1"}, "spec": {"size": 1}});
        let wanted = json!({"metadata": {"resourceVersion": "1"}, "spec": {"size": 2}});
        let state =
            json!({"metadata": {"resourceVersion": "2", "generation": 2}, "spec": {"size": 2}});
        assert!(shows_change(&before, &wanted, &state));
        assert!(!shows_change(&before, &wanted, &before));
    }

    #[test]
    fn an_object_that_was_added_may_have_got_more_fields_since() {
        let before = json!({"metadata": {}});
        let wanted = json!({"metadata": {"annotations": {"ours": {"a": 1}}}});
        for (annotations, is_shown) in [
            (json!({"ours": {"a": 1}, "stamp": "7"}), true),
            (json!({"ours": {"a": 1, "b": 2}}), true),
            (json!({"ours": {"a": 2}}), false),
            (json!({"stamp": "7"}), false),
            (json!("text"), false),
        ] {
            let state = json!({"metadata": {"annotations": annotations}});
            assert_eq!(shows_change(&before, &wanted, &state), is_shown, "{state}");
        }
    }

    #[test]
    fn the_api_server_drops_the_last_label_together_with_the_labels() {
        let before = json!({"metadata": {"labels": {"on": "yes"}, "finalizers": ["ours"]},
            "spec": {"map": {"a": 1}}});
        let wanted = json!({"metadata": {"labels": {}, "finalizers": []},
            "spec": {"map": {"a": 1}}});
        let dropped = json!({"metadata": {}, "spec": {"map": {"a": 1}}});
        assert!(shows_change(&before, &wanted, &dropped));
        let other = json!({"metadata": {"finalizers": ["ours"]}, "spec": {"map": {"a": 1}}});
        assert!(!shows_change(&before, &wanted, &other));
        let newer = json!({"metadata": {"labels": {"new": "1"}}, "spec": {"map": {"a": 1}}});
        assert!(shows_change(&before, &wanted, &newer));
        // Other fields are kept as they are, even if they are empty.
        let wanted = json!({"metadata": {"labels": {}}, "spec": {"map": {}}});
        assert!(!shows_change(
            &before,
            &wanted,
            &json!({"metadata": {}, "spec": {}})
        ));
    }

    #[test]
    fn added_removed_and_listed_values_are_compared() {
        let before = json!({"labels": {"old": "1", "kept": "2"}, "seen": [1]});
        let wanted = json!({"labels": {"kept": "2", "new": "3"}, "seen": [1, 2]});
        for (state, is_shown) in [
            (
                json!({"labels": {"kept": "0", "new": "3"}, "seen": [1, 2]}),
                true,
            ),
            (
                json!({"labels": {"old": "1", "new": "3"}, "seen": [1, 2]}),
                false,
            ),
            (json!({"labels": {"new": "4"}, "seen": [1, 2]}), false),
            (json!({"labels": {"new": "3"}, "seen": [1, 2, 3]}), false),
            (json!({"seen": [1, 2]}), false),
        ] {
            assert_eq!(shows_change(&before, &wanted, &state), is_shown, "{state}");
        }
    }
}
