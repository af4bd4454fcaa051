//! The exact bytes of progress annotations.

use serde_json::{Value, json};

use super::*;
use crate::{cause::Reason, object::patch::apply_merge};

const LONG: &str = "update_fn_with_a_very_long_name_that_surely_exceeds_limits/sub-handler-one";

fn record() -> Record {
    let now = "2020-01-01T00:00:00Z".parse().expect("valid");
    Record::begin(Reason::Create, now)
}

fn written(change: impl FnOnce(ObjectView<'_>, &mut ObjectPatch), body: &Value) -> Value {
    let mut patch = ObjectPatch::new();
    change(ObjectView::new(body), &mut patch);
    let mut body = body.clone();
    apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
    body
}

#[test]
fn records_are_written_in_both_forms_without_a_newline() {
    let storage = AnnotationsProgress::default();
    let body = written(
        |view, patch| storage.store(&LONG.into(), &record(), view, patch),
        &json!({}),
    );
    let text = r#"{"started":"2020-01-01T00:00:00.000000+00:00","purpose":"create","retries":0,"success":false,"failure":false}"#;
    assert_eq!(
        body["metadata"]["annotations"],
        json!({
            "kopf.zalando.org/update_fn_with_a_very_long_name_that_surely_exceeds_limi-DEik8Q": text,
            "kopf.zalando.org/update_fn_with_a_very_long_name_that_su-vAhU7g": text,
        })
    );
    assert_eq!(
        storage.fetch(&LONG.into(), ObjectView::new(&body)),
        Some(record())
    );
    let purged = written(
        |view, patch| storage.purge(&LONG.into(), view, patch),
        &body,
    );
    assert_eq!(purged["metadata"]["annotations"], json!({}));
}

#[test]
fn a_record_in_the_first_form_alone_is_read() {
    let storage = AnnotationsProgress::default();
    let body = json!({"metadata": {"annotations": {
        "kopf.zalando.org/update_fn_with_a_very_long_name_that_su-vAhU7g": r#"{"retries": 3}"#,
    }}});
    let record = storage.fetch(&LONG.into(), ObjectView::new(&body));
    assert_eq!(record.map(|record| record.retries), Some(3));
}

#[test]
fn unreadable_records_are_no_records() {
    let storage = AnnotationsProgress::default();
    let body = json!({"metadata": {"annotations": {"kopf.zalando.org/fn": "{"}}});
    assert_eq!(storage.fetch(&"fn".into(), ObjectView::new(&body)), None);
}

#[test]
fn other_prefixes_are_marked_and_invisible() {
    let storage = AnnotationsProgress::new("example.com");
    let body = written(
        |view, patch| {
            storage.store(&"fn".into(), &record(), view, patch);
            storage.touch(Some("now"), view, patch);
            storage.store_handled_states(Some("notes"), view, patch);
        },
        &json!({"metadata": {"annotations": {"mine": "1"}}}),
    );
    assert_eq!(
        body["metadata"]["annotations"]["example.com/kopf-managed"],
        "yes"
    );
    assert_eq!(
        body["metadata"]["annotations"]["example.com/touch-dummy"],
        "now"
    );
    assert_eq!(
        storage
            .fetch_handled_states(ObjectView::new(&body))
            .as_deref(),
        Some("notes")
    );
    let mut essence = Essence::from_value(body);
    storage.clear(&mut essence);
    assert_eq!(
        essence.into_value(),
        json!({"metadata": {"annotations": {"mine": "1"}}})
    );
}

#[test]
fn notes_get_the_space_that_other_annotations_leave() {
    let storage = AnnotationsProgress::default();
    let patch = ObjectPatch::new();
    let empty = storage.handled_states_budget(ObjectView::new(&json!({})), &patch);
    assert_eq!(empty, 64 * 1024);
    let body = json!({"metadata": {"annotations": {"big": "x".repeat(300 * 1024)}}});
    assert_eq!(
        storage.handled_states_budget(ObjectView::new(&body), &patch),
        0
    );
}
