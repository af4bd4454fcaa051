//! Reading from all storages, writing to some.

use serde_json::{Value, json};

use super::*;
use crate::cause::Reason;

fn body() -> Value {
    json!({"status": {"kopf": {"progress": {"fn": {"retries": 5}}, "dummy": "x"}}})
}

#[test]
fn the_default_reads_and_purges_the_status_but_writes_annotations() {
    let storage = MultiProgress::default();
    let body = body();
    let view = ObjectView::new(&body);
    let record = storage
        .fetch(&"fn".into(), view)
        .expect("a record in the status");
    assert_eq!(record.retries, 5);

    let mut patch = ObjectPatch::new();
    storage.store(&"fn".into(), &record, view, &mut patch);
    assert!(patch.merge_patch().contains_key("metadata"));
    assert!(!patch.merge_patch().contains_key("status"));

    let mut patch = ObjectPatch::new();
    storage.purge(&"fn".into(), view, &mut patch);
    storage.touch(None, view, &mut patch);
    assert_eq!(
        Value::Object(patch.merge_patch().clone()),
        json!({"status": {"kopf": {"progress": {"fn": null}, "dummy": null}}})
    );
}

#[test]
fn annotations_come_before_the_status() {
    let storage = MultiProgress::default();
    let mut body = body();
    body["metadata"]["annotations"]["kopf.zalando.org/fn"] = r#"{"retries":7}"#.into();
    let record = storage.fetch(&"fn".into(), ObjectView::new(&body));
    assert_eq!(record.map(|record| record.retries), Some(7));
}

#[test]
fn all_of_several_equal_storages_are_written() {
    let storage = MultiProgress::new(vec![
        Arc::new(AnnotationsProgress::default()),
        Arc::new(StatusProgress::default()),
    ]);
    let now = "2020-01-01T00:00:00Z".parse().expect("valid");
    let mut patch = ObjectPatch::new();
    let empty = json!({});
    let view = ObjectView::new(&empty);
    storage.store(
        &"fn".into(),
        &Record::begin(Reason::Create, now),
        view,
        &mut patch,
    );
    storage.store_handled_states(Some("notes"), view, &mut patch);
    assert!(patch.merge_patch().contains_key("metadata"));
    assert!(patch.merge_patch().contains_key("status"));
    assert!(storage.handled_states_budget(view, &patch) > 0);
}
