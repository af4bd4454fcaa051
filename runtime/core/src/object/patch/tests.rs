//! Patches: accumulation, splitting, and application.

use proptest::prelude::*;

use super::*;
use crate::object::diff::{same, tests::any_state};

/// Applies a JSON patch by another implementation of RFC 6902.
pub(crate) fn applied(body: &Value, patch: &JsonPatch) -> Value {
    let patch: json_patch::Patch = serde_json::from_value(patch.to_json()).expect("RFC 6902");
    let mut body = body.clone();
    json_patch::patch(&mut body, &patch).expect("the patch fits the body");
    body
}

#[test]
fn merge_patches_accumulate_and_keep_deletions() {
    let mut patch = ObjectPatch::new();
    assert!(patch.is_empty());
    patch.merge(json!({"spec": {"a": 1, "b": 1}}));
    patch.merge(json!({"spec": {"a": null}}));
    patch.set(&FieldPath::from("spec.c.d"), json!(2));
    assert_eq!(
        Value::Object(patch.merge_patch().clone()),
        json!({"spec": {"a": null, "b": 1, "c": {"d": 2}}})
    );
}

#[test]
fn purging_removes_present_fields_and_drops_pending_writes() {
    let body = json!({"metadata": {"annotations": {"there": "1"}}});
    let mut patch = ObjectPatch::new();
    patch.set_annotation("planned", "1");
    patch.purge(&annotation("there"), ObjectView::new(&body));
    patch.purge(&annotation("planned"), ObjectView::new(&body));
    patch.purge(&annotation("neither"), ObjectView::new(&body));
    assert_eq!(
        Value::Object(patch.merge_patch().clone()),
        json!({"metadata": {"annotations": {"there": null}}})
    );
}

#[test]
fn the_size_of_annotations_is_that_after_the_patch() {
    let body = json!({"metadata": {"annotations": {"a": "12", "b": "12", "c": "12"}}});
    let view = ObjectView::new(&body);
    let mut patch = ObjectPatch::new();
    assert_eq!(patch.annotations_size(view, |_| false), 9);
    patch.set_annotation("a", "1234");
    patch.set_annotation("d", "1");
    patch.purge(&annotation("b"), view);
    assert_eq!(patch.annotations_size(view, |_| false), 5 + 3 + 2);
    assert_eq!(patch.annotations_size(view, |key| key == "a"), 3 + 2);
}

#[test]
fn results_go_to_the_status_under_the_raw_id() {
    let mut patch = ObjectPatch::new();
    patch.store_result("fn/spec.x", &json!({"a": 1}));
    patch.store_result("fn/spec.x", &json!({"b": 2}));
    patch.store_result("other", &json!("text"));
    patch.store_result("none", &Value::Null);
    assert_eq!(
        Value::Object(patch.merge_patch().clone()),
        json!({"status": {"fn/spec.x": {"a": 1, "b": 2}, "other": "text"}})
    );
}

#[test]
fn the_status_goes_first_where_it_is_a_subresource() {
    let mut patch = ObjectPatch::new();
    patch.merge(json!({"metadata": {"annotations": {"a": "1"}}, "status": {"x": 1}}));
    let whole = patch.clone().into_requests(false);
    assert_eq!(whole.status, None);
    assert_eq!(
        whole.body,
        Some(json!({"metadata": {"annotations": {"a": "1"}}, "status": {"x": 1}}))
    );
    let split = patch.into_requests(true);
    assert_eq!(split.status, Some(json!({"status": {"x": 1}})));
    assert_eq!(
        split.body,
        Some(json!({"metadata": {"annotations": {"a": "1"}}}))
    );
}

#[test]
fn a_json_patch_tests_the_resource_version_first() {
    let body =
        json!({"metadata": {"resourceVersion": "7"}, "spec": {"list": [1, 2, 3]}, "status": {}});
    let mut edited = body.clone();
    edited["spec"]["list"] = json!([1, 3]);
    edited["status"]["a/b~c"] = json!(1);
    assert_eq!(
        json_patch(&body, &edited).map(|patch| patch.to_json()),
        Some(json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "remove", "path": "/spec/list/1"},
            {"op": "add", "path": "/status/a~1b~0c", "value": 1},
        ]))
    );
    assert_eq!(json_patch(&body, &body), None);
}

proptest! {
    #[test]
    fn a_merge_patch_turns_the_old_state_into_the_new_one(
        a in any_state(), b in any_state(),
    ) {
        let mut moved = a.clone();
        apply_merge(&mut moved, &merge_between(&a, &b));
        prop_assert!(same(Some(&moved), Some(&b)), "{} is not {}", moved, b);
        let mut fresh = Value::Null;
        apply_merge(&mut fresh, &merge_between(&Value::Null, &b));
        prop_assert!(same(Some(&fresh), Some(&b)));
    }

    #[test]
    fn a_json_patch_turns_the_old_body_into_the_new_one(
        a in any_state(), b in any_state(),
    ) {
        match json_patch(&a, &b) {
            Some(patch) => prop_assert_eq!(applied(&a, &patch), b),
            None => prop_assert_eq!(a, b),
        }
    }

    #[test]
    fn of_accumulated_patches_the_later_one_wins(
        body in any_state(), a in any_state(), b in any_state(),
    ) {
        let mut patch = ObjectPatch::new();
        patch.merge(a);
        patch.merge(b.clone());
        let mut patched = body;
        apply_merge(&mut patched, &Value::Object(patch.merge_patch().clone()));
        let mut again = patched.clone();
        apply_merge(&mut again, &b);
        prop_assert_eq!(again, patched);
    }
}
