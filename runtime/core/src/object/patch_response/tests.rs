//! Responses that show just the patch, and all others.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::object::{diff::tests::any_json, patch::apply_merge};

fn known() -> Value {
    json!({
        "apiVersion": "v1",
        "metadata": {
            "annotations": {"old": "1", "other": "2"},
            "generation": 1,
            "managedFields": [{"manager": "other"}],
            "name": "it",
            "resourceVersion": "5",
            "uid": "u",
        },
        "spec": {"size": 1, "sizes": [1, {"x": 1.5}], "big": true, "small": -1, "none": null},
    })
}

fn patch() -> Value {
    json!({
        "metadata": {"annotations": {"old": null, "new": "\u{1F600} \"1\""}, "uid": "u"},
        "status": {"done": {"yes": true, "no": null}},
    })
}

/// The response of the API server, with an additional change by another client.
fn response(additional: impl FnOnce(&mut Value)) -> String {
    let mut object = known();
    apply_merge(&mut object, &patch());
    let metadata = &mut object["metadata"];
    metadata["resourceVersion"] = json!("7");
    metadata["generation"] = json!(2);
    metadata["managedFields"] = json!([{"manager": "other"}, {"manager": "we"}]);
    additional(&mut object);
    object.to_string()
}

#[test]
fn a_response_that_shows_just_the_patch_gives_the_version() {
    let text = response(|_| {});
    assert_eq!(version_if_expected(&text, &known(), &patch()), Some("7"));
}

#[test]
fn the_order_of_members_does_not_matter() {
    let mut text = response(|object| {
        let metadata = object["metadata"].take();
        object.as_object_mut().unwrap().shift_remove("metadata");
        object["metadata"] = metadata;
    });
    assert_eq!(version_if_expected(&text, &known(), &patch()), Some("7"));
    text.push('x');
    assert_eq!(version_if_expected(&text, &known(), &patch()), None);
}

#[test]
fn any_other_change_is_detected() {
    let changes: [fn(&mut Value); 13] = [
        |object| object["metadata"]["deletionTimestamp"] = json!("now"),
        |object| object["metadata"]["annotations"]["foreign"] = json!("1"),
        |object| object["metadata"]["annotations"]["other"] = json!("3"),
        |object| object["metadata"]["annotations"]["old"] = json!("1"),
        |object| object["metadata"]["annotations"]["new"] = json!("2"),
        |object| object["metadata"]["finalizers"] = json!(["f"]),
        |object| object["metadata"]["uid"] = json!("v"),
        |object| drop(object["metadata"]["annotations"].take()),
        |object| object["spec"]["size"] = json!(2),
        |object| object["spec"]["sizes"] = json!([1]),
        |object| object["spec"]["sizes"] = json!([1, {"x": 1.5}, 2]),
        |object| object["status"]["done"] = json!({"yes": true, "no": 1}),
        |object| drop(object.as_object_mut().unwrap().shift_remove("status")),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let text = response(change);
        let version = version_if_expected(&text, &known(), &patch());
        assert_eq!(version, None, "change {index}: {text}");
    }
}

#[test]
fn names_of_server_fields_count_outside_of_metadata() {
    let known = json!({"metadata": {"resourceVersion": "1"}, "spec": {"generation": 1}});
    let response = |generation: u32| {
        json!({"metadata": {"resourceVersion": "2"}, "spec": {"generation": generation}})
            .to_string()
    };
    let none = json!({});
    assert_eq!(version_if_expected(&response(1), &known, &none), Some("2"));
    assert_eq!(version_if_expected(&response(2), &known, &none), None);
}

proptest! {
    #[test]
    fn only_the_patched_object_is_expected(
        spec in any_json(), patch in any_json(), other in any_json(), honest: bool,
    ) {
        let known = json!({"metadata": {"resourceVersion": "1"}, "spec": spec});
        let patch = json!({"spec": patch});
        let mut patched = known.clone();
        apply_merge(&mut patched, &patch);
        let mut response = if honest { patched.clone() } else { known.clone() };
        if !honest {
            response["spec"] = other;
        }
        let text = response.to_string();
        let version = version_if_expected(&text, &known, &patch);
        prop_assert_eq!(version, (response == patched).then_some("1"));
    }
}
