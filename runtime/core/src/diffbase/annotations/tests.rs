//! The last handled state in Kopf's annotation, or in ours.

use serde_json::json;

use super::*;
use crate::object::{hashed::HashedState, patch::apply_merge};

fn stored(state: &Baseline, body: &Value) -> Value {
    let mut patch = ObjectPatch::new();
    AnnotationsDiffBase::default().store(state, ObjectView::new(body), &mut patch);
    let mut body = body.clone();
    apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
    body
}

fn known(value: Value) -> Baseline {
    Baseline::Known(Essence::from_value(value))
}

fn fetch(body: &Value) -> Baseline {
    AnnotationsDiffBase::default().fetch(ObjectView::new(body))
}

const KOPF: &str = "kopf.zalando.org/last-handled-configuration";
const OURS: &str = "kopf.zalando.org/last-handled-packed";

#[test]
fn states_are_compact_json_with_a_newline() {
    let state = known(json!({"spec": {"b": "é", "a": [1, 2]}}));
    let body = stored(&state, &json!({}));
    let annotations = &body["metadata"]["annotations"];
    assert_eq!(
        annotations[KOPF],
        "{\"spec\":{\"b\":\"\\u00e9\",\"a\":[1,2]}}\n"
    );
    assert_eq!(annotations.get(OURS), None);
    assert_eq!(fetch(&body), state);
    assert_eq!(fetch(&json!({})), Baseline::Absent);
}

#[test]
fn states_that_do_not_fit_are_compressed_and_then_digested() {
    let long = known(json!({"spec": {"text": "x".repeat(400_000)}}));
    let body = stored(
        &long,
        &json!({"metadata": {"uid": "u", "annotations": {KOPF: "{}"}}}),
    );
    assert_eq!(body["metadata"]["annotations"].get(KOPF), None);
    assert_eq!(fetch(&body), long);

    let mut state = 1_u64;
    let noise: String = (0..400_000)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(b'!' + u8::try_from((state >> 40) % 90).unwrap_or(0))
        })
        .collect();
    let noisy = json!({"spec": {"text": noise, "size": 1}});
    let body = stored(&known(noisy.clone()), &body);
    let digested = fetch(&body);
    assert!(matches!(digested, Baseline::Hashed(_)));
    assert!(
        digested
            .diff(&Essence::from_value(noisy.clone()))
            .is_empty()
    );
    let mut changed = noisy;
    changed["spec"]["size"] = json!(2);
    let diff = digested.diff(&Essence::from_value(changed));
    let paths: Vec<String> = diff.iter().map(|item| item.path.to_string()).collect();
    assert_eq!(paths, ["spec.size"]);

    let small = known(json!({"spec": 1}));
    let body = stored(&small, &body);
    assert_eq!(body["metadata"]["annotations"].get(OURS), None);
    assert_eq!(fetch(&body), small);
}

#[test]
fn all_annotations_together_count_against_the_limit() {
    let state = known(json!({"spec": {"text": "x".repeat(100_000)}}));
    let body = json!({"metadata": {"annotations": {"big": "y".repeat(150_000)}}});
    let body = stored(&state, &body);
    assert_eq!(body["metadata"]["annotations"].get(KOPF), None);
    assert_eq!(fetch(&body), state);
}

#[test]
fn digests_never_go_into_the_annotation_of_kopf() {
    let secret = json!({"data": {"password": "c2VjcmV0"}});
    let hashed = Baseline::Hashed(HashedState::new(&secret, "u", 9));
    let body = stored(
        &hashed,
        &json!({"metadata": {"uid": "u", "annotations": {KOPF: "{}"}}}),
    );
    assert_eq!(body["metadata"]["annotations"].get(KOPF), None);
    assert!(!body.to_string().contains("c2VjcmV0"));
    assert_eq!(fetch(&body), hashed);
}

#[test]
fn the_annotation_of_kopf_comes_first_and_an_unreadable_one_changes_everything() {
    let body = stored(&known(json!({"spec": "x".repeat(400_000)})), &json!({}));
    let mut body = body;
    body["metadata"]["annotations"][KOPF] = "{\"spec\":1}\n".into();
    assert_eq!(fetch(&body), known(json!({"spec": 1})));
    body["metadata"]["annotations"][KOPF] = "{".into();
    assert_eq!(fetch(&body), packed::unreadable());
}

#[test]
fn own_annotations_are_no_changes_under_any_prefix() {
    let storage = AnnotationsDiffBase::new("example.com");
    let mut patch = ObjectPatch::new();
    let empty = json!({});
    storage.store(&known(json!({"a": 1})), ObjectView::new(&empty), &mut patch);
    let mut body = empty;
    apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
    assert_eq!(
        body["metadata"]["annotations"]["example.com/kopf-managed"],
        "yes"
    );
    let mut essence = Essence::from_value(json!({"metadata": {"annotations": {
        "example.com/last-handled-configuration": "", "example.com/last-handled-packed": "",
    }}}));
    storage.clear(&mut essence, ObjectView::new(&body));
    assert_eq!(essence.into_value(), json!({}));
}
