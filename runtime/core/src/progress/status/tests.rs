//! Progress in the status, empty entries included.

use serde_json::json;

use super::*;
use crate::{cause::Reason, object::patch::apply_merge};

#[test]
fn records_are_plain_objects_under_the_raw_id() {
    let storage = StatusProgress::default();
    let now = "2020-01-01T00:00:00Z".parse().expect("valid");
    let record = Record::begin(Reason::Create, now);
    let id = HandlerId::new("fn/spec.x");
    let mut patch = ObjectPatch::new();
    storage.store(&id, &record, ObjectView::new(&json!({})), &mut patch);
    storage.touch(Some("now"), ObjectView::new(&json!({})), &mut patch);
    let merge = Value::Object(patch.merge_patch().clone());
    assert_eq!(
        merge["status"]["kopf"]["progress"]["fn/spec.x"],
        record.to_json_with_nulls()
    );
    assert_eq!(merge["status"]["kopf"]["dummy"], "now");

    let mut body = json!({});
    apply_merge(&mut body, &merge);
    assert_eq!(storage.fetch(&id, ObjectView::new(&body)), Some(record));

    let mut purge = ObjectPatch::new();
    storage.purge(&id, ObjectView::new(&body), &mut purge);
    assert_eq!(
        Value::Object(purge.merge_patch().clone()),
        json!({"status": {"kopf": {"progress": {"fn/spec.x": null}}}})
    );

    let mut essence = Essence::from_value(body);
    storage.clear(&mut essence);
    assert_eq!(essence.into_value(), json!({}));
}
