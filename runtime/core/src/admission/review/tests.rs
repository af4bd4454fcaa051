//! Reviews of any content are read or rejected, and patches fit the sent object.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::object::{
    diff::tests::{any_json, any_state},
    patch::tests::applied,
};

fn review(request: &Value) -> Vec<u8> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request,
    });
    review.to_string().into_bytes()
}

fn request() -> Value {
    json!({
        "uid": "1ca13837", "operation": "UPDATE",
        "kind": {"group": "kopf.dev", "version": "v1", "kind": "KopfExample"},
        "resource": {"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
        "subResource": "status", "name": "one", "namespace": "default",
        "userInfo": {"username": "admin", "groups": ["system:masters"], "extra": {"a": ["b"]}},
        "object": {"spec": {"size": 2}}, "oldObject": {"spec": {"size": 1}}, "dryRun": true,
    })
}

#[test]
fn a_review_is_read_as_it_was_sent() {
    let review = AdmissionReview::parse(&review(&request())).expect("a review");
    assert_eq!(review.version, ReviewVersion::V1);
    let request = review.request;
    assert_eq!(request.operation, Operation::Update);
    assert_eq!(request.subresource(), Some("status"));
    assert_eq!(request.user_info.username, "admin");
    assert_eq!(request.user_info.extra["a"], ["b"]);
    assert_eq!(
        request.body().map(RawValue::get),
        Some(r#"{"spec":{"size":2}}"#)
    );
    assert_eq!(request.dry_run, Some(true));
}

#[test]
fn a_deletion_reviews_the_old_object() {
    let mut request = request();
    request["operation"] = json!("DELETE");
    request["object"] = Value::Null;
    request["subResource"] = json!("");
    let review = AdmissionReview::parse(&review(&request)).expect("a review");
    assert_eq!(review.request.subresource(), None);
    assert_eq!(
        review.request.body().map(RawValue::get),
        Some(r#"{"spec":{"size":1}}"#)
    );
}

#[test]
fn a_missing_field_is_named() {
    let without = |key: &str| {
        let mut request = request();
        request.as_object_mut().expect("a map").remove(key);
        AdmissionReview::parse(&review(&request))
            .map(drop)
            .map_err(|error| error.to_string())
    };
    for key in ["uid", "resource", "operation", "userInfo"] {
        let error = without(key).expect_err("it is needed");
        assert!(error.contains(&format!("missing field `{key}`")), "{error}");
    }
    assert!(without("object").is_ok());
    let neither = {
        let mut request = request();
        request["object"] = Value::Null;
        request["oldObject"] = Value::Null;
        AdmissionReview::parse(&review(&request)).expect_err("there is no object")
    };
    assert!(matches!(neither, Malformed::NoObject));
    let other = br#"{"apiVersion": "admission.k8s.io/v1", "kind": "Pod"}"#;
    assert!(matches!(AdmissionReview::parse(other), Err(Malformed::Kind(kind)) if kind == "Pod"));
    let empty = br#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#;
    assert!(matches!(
        AdmissionReview::parse(empty),
        Err(Malformed::NoRequest)
    ));
}

#[test]
fn a_response_has_no_unneeded_fields() {
    let review = AdmissionReview::parse(&review(&request())).expect("a review");
    let read = |answer: &ReviewAnswer| -> Value {
        serde_json::from_slice(&review.answer(answer)).expect("JSON")
    };
    assert_eq!(
        read(&ReviewAnswer::allowed()),
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": "1ca13837", "allowed": true},
        })
    );
    let denied = ReviewAnswer {
        denial: Some(Denial {
            message: "no".to_owned(),
            code: 499,
        }),
        warnings: vec!["careful".to_owned()],
        patch: plain_json_patch(&json!({}), &json!({"a": 1})),
    };
    assert_eq!(
        read(&denied)["response"],
        json!({
            "uid": "1ca13837", "allowed": false, "warnings": ["careful"],
            "status": {"message": "no", "code": 499},
        })
    );
    let mutated = ReviewAnswer {
        denial: None,
        ..denied
    };
    let response = &read(&mutated)["response"];
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = STANDARD
        .decode(response["patch"].as_str().expect("text"))
        .expect("base64");
    let patch: Value = serde_json::from_slice(&patch).expect("JSON");
    assert_eq!(patch, json!([{"op": "add", "path": "/a", "value": 1}]));
}

#[test]
fn a_mutation_adds_missing_maps_and_removes_only_present_fields() {
    let sent = json!({"spec": {"size": 1, "a/b": 1}});
    let mut patch = ObjectPatch::new();
    patch.merge(json!({
        "metadata": {"labels": {"tier": "gold"}}, "spec": {"size": null, "other": null, "a/b": 2},
    }));
    patch.edit(|body| body["spec"]["list"] = json!([1]));
    let ops = mutation(&sent, patch).expect("a change").to_json();
    assert_eq!(
        ops,
        json!([
            {"op": "remove", "path": "/spec/size"},
            {"op": "replace", "path": "/spec/a~1b", "value": 2},
            {"op": "add", "path": "/spec/list", "value": [1]},
            {"op": "add", "path": "/metadata", "value": {"labels": {"tier": "gold"}}},
        ])
    );
    let mut same = ObjectPatch::new();
    same.merge(json!({"spec": {"size": 1, "other": null}}));
    assert_eq!(mutation(&sent, same), None);
}

proptest! {
    #[test]
    fn any_bytes_are_rejected_or_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = AdmissionReview::parse(&bytes);
    }

    #[test]
    fn a_damaged_review_is_rejected_or_read(
        at in 0usize..600, byte in any::<u8>(), cut in prop::option::of(0usize..600),
    ) {
        let mut text = review(&request());
        let length = text.len();
        text[at % length] = byte;
        if let Some(cut) = cut {
            text.truncate(cut % length);
        }
        if let Ok(review) = AdmissionReview::parse(&text) {
            let answer = review.answer(&ReviewAnswer::allowed());
            let _: Value = serde_json::from_slice(&answer).expect("JSON");
        }
    }

    #[test]
    fn any_json_as_a_request_is_rejected_or_read(request in any_json()) {
        if let Ok(review) = AdmissionReview::parse(&review(&request)) {
            prop_assert!(review.request.body().is_some());
        }
    }

    #[test]
    fn a_mutation_has_the_effect_of_its_patch(
        sent in any_state(), merge in any_state(),
    ) {
        let mut patch = ObjectPatch::new();
        patch.merge(merge.clone());
        let mut expected = sent.clone();
        apply_merge(&mut expected, &merge);
        let made = match mutation(&sent, patch) {
            Some(patch) => applied(&sent, &patch),
            None => sent,
        };
        prop_assert_eq!(made, expected);
    }
}
