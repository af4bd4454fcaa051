//! Drafts: what a handler did not change stays as it is, and no smaller patch would do.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A field that the type of these tests does not know.
const UNKNOWN: &str = "c";
/// A field that it fills in.
const DEFAULTED: &str = "d";

/// Any value, with known and unknown fields, nulls, lists, and items with names.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        (0..3).prop_map(Value::from),
        "[xy]".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            any_map(inner),
        ]
    })
}

fn any_map(inner: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abcd]|name", inner, 0..5)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn any_object() -> impl Strategy<Value = Value> {
    any_map(any_value())
}

/// What a type makes of a value: unknown fields and nulls are gone, defaults filled in.
fn typed(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let known = map
                .iter()
                .filter(|(key, value)| *key != UNKNOWN && !value.is_null())
                .map(|(key, value)| (key.clone(), typed(value)));
            let mut known: Map<String, Value> = known.collect();
            known.entry(DEFAULTED).or_insert_with(|| json!(0));
            Value::Object(known)
        }
        Value::Array(items) => items.iter().map(typed).collect(),
        other => other.clone(),
    }
}

fn patched(object: &Value, patch: Option<&Value>) -> Value {
    let mut object = object.clone();
    if let Some(patch) = patch {
        apply_merge(&mut object, patch);
    }
    object
}

/// All fields that are equal before and after, or unknown, are as they were.
fn is_untouched(object: &Value, before: &Value, after: &Value, now: &Value) -> bool {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else {
        return before != after || object == now;
    };
    let keys = [object, now].into_iter().filter_map(Value::as_object);
    keys.flat_map(Map::keys).all(|key| {
        let (was, is) = (before.get(key), after.get(key));
        match (was, is, object.get(key), now.get(key)) {
            (was, is, old, new) if was == is => old == new,
            (Some(was), Some(is), Some(old), Some(new)) => is_untouched(old, was, is, new),
            _ => true,
        }
    })
}

/// All patches that lack one value of this one.
fn smaller(patch: &Value) -> Vec<Value> {
    let Some(map) = patch.as_object() else {
        return Vec::new();
    };
    let mut patches = Vec::new();
    for (key, value) in map {
        let mut without = map.clone();
        without.shift_remove(key);
        let inner = smaller(value);
        if inner.is_empty() {
            patches.push(Value::Object(without));
            continue;
        }
        for value in inner {
            let mut smaller = without.clone();
            if value != json!({}) {
                smaller.insert(key.clone(), value);
            }
            patches.push(Value::Object(smaller));
        }
    }
    patches
}

#[test]
fn only_changed_fields_are_written() {
    let object = json!({
        "spec": {"size": "1Gi", "other": null, "unknown": {"a": 1}, "labels": {"x": "1", "y": "2"}},
        "status": {"phase": "New"},
    });
    let before = json!({
        "spec": {"size": "1Gi", "mode": "default", "labels": {"x": "1", "y": "2"}},
        "status": {"phase": "New"},
    });
    let mut after = before.clone();
    assert_eq!(draft_patch(&object, &before, &after), None);
    after["spec"]["size"] = json!("2Gi");
    after["spec"]["labels"] = json!({"y": "2", "z": "3"});
    after["status"] = json!(null);
    assert_eq!(
        draft_patch(&object, &before, &after),
        Some(json!({
            "status": null,
            "spec": {"size": "2Gi", "labels": {"x": null, "z": "3"}},
        }))
    );
}

#[test]
fn items_of_a_changed_list_keep_what_the_type_does_not_know() {
    let object = json!({"list": [
        {"name": "a", "unknown": 1, "nothing": null},
        {"name": "b", "unknown": 2, "size": 1},
        {"name": "c", "unknown": 3},
    ]});
    let before = json!({"list": [{"name": "a"}, {"name": "b", "size": 1}, {"name": "c"}]});
    for (after, expected) in [
        (
            json!([{"name": "a"}, {"name": "b", "size": 2}, {"name": "c"}]),
            json!([
                {"name": "a", "unknown": 1, "nothing": null},
                {"name": "b", "unknown": 2, "size": 2},
                {"name": "c", "unknown": 3},
            ]),
        ),
        (
            json!([{"name": "c"}, {"name": "new"}, {"name": "b"}]),
            json!([{"name": "c", "unknown": 3}, {"name": "new"}, {"name": "b", "unknown": 2}]),
        ),
        (
            json!([{"name": "b", "size": 1}]),
            json!([{"name": "b", "unknown": 2, "size": 1}]),
        ),
    ] {
        let patch = draft_patch(&object, &before, &json!({ "list": after }));
        assert_eq!(patch, Some(json!({ "list": expected })));
    }
}

#[test]
fn items_without_identity_are_recognised_by_their_place() {
    let object = json!([{"path": "/a", "unknown": 1}, {"path": "/b", "unknown": 2}, [1], 3]);
    let before = json!([{"path": "/a"}, {"path": "/b"}, [1], 3]);
    let moved = json!([{"path": "/c"}, {"path": "/b"}, [1], 4]);
    assert_eq!(
        draft_patch(&object, &before, &moved),
        Some(json!([{"path": "/c", "unknown": 1}, {"path": "/b", "unknown": 2}, [1], 4]))
    );
    let longer = json!([{"path": "/x"}, {"path": "/y"}, {"path": "/b"}, [1], 3]);
    assert_eq!(
        draft_patch(&object, &before, &longer),
        Some(json!([{"path": "/x"}, {"path": "/y"}, {"path": "/b", "unknown": 2}, [1], 3])),
    );
}

proptest! {
    #[test]
    fn the_patch_makes_the_change(object in any_object(), other in any_object()) {
        let (before, after) = (typed(&object), typed(&other));
        let patch = draft_patch(&object, &before, &after);
        let now = patched(&object, patch.as_ref());
        prop_assert_eq!(typed(&now), after, "{:?}", patch);
    }

    #[test]
    fn what_did_not_change_is_untouched(object in any_object(), other in any_object()) {
        let (before, after) = (typed(&object), typed(&other));
        let patch = draft_patch(&object, &before, &after);
        let now = patched(&object, patch.as_ref());
        prop_assert!(is_untouched(&object, &before, &after, &now), "{:?} -> {}", patch, now);
        prop_assert_eq!(patch.is_none(), before == after);
    }

    #[test]
    fn no_smaller_patch_has_the_same_effect(object in any_object(), other in any_object()) {
        let (before, after) = (typed(&object), typed(&other));
        let patch = draft_patch(&object, &before, &after);
        let now = patched(&object, patch.as_ref());
        for smaller in patch.iter().flat_map(smaller) {
            let other = patched(&object, Some(&smaller));
            prop_assert_ne!(&other, &now, "{:?} is more than {}", patch, smaller);
        }
    }
}
