//! The essence: excluded fields, included fields, and stability.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn essence(body: &Value, watched: &[&str], ignored: &[&str]) -> Value {
    let paths = |list: &[&str]| list.iter().map(|path| FieldPath::from(*path)).collect();
    let rules = EssenceRules {
        watched: paths(watched),
        ignored: paths(ignored),
    };
    Essence::of(ObjectView::new(body), &rules).into_value()
}

fn body() -> Value {
    json!({
        "apiVersion": "v1", "kind": "K",
        "metadata": {
            "name": "n", "uid": "u", "resourceVersion": "1", "finalizers": ["f"],
            "labels": {"l": "1"},
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "kopf.zalando.org/last-handled-configuration": "{}",
                "sub.kopf.zalando.org/x": "1",
                "notkopf.zalando.org/x": "stays",
                "example.com/kopf-managed": "yes", "example.com/other": "1",
                "plain": "stays",
            },
        },
        "spec": {"a": 1, "b": 2}, "data": "d", "status": {"x": 1, "y": 2},
    })
}

#[test]
fn identity_status_and_operator_annotations_do_not_count() {
    assert_eq!(
        crate::json::to_ascii(&essence(&body(), &[], &[])),
        concat!(
            r#"{"spec":{"a":1,"b":2},"data":"d","metadata":{"labels":{"l":"1"},"#,
            r#""annotations":{"notkopf.zalando.org/x":"stays","plain":"stays"}}}"#
        )
    );
}

#[test]
fn fields_of_handlers_always_count() {
    let essence = essence(&body(), &["status.x", "metadata.name", "spec.missing"], &[]);
    assert_eq!(essence["status"], json!({"x": 1}));
    assert_eq!(essence["metadata"]["name"], json!("n"));
    assert_eq!(essence["spec"], json!({"a": 1, "b": 2}));
}

#[test]
fn ignored_fields_never_count() {
    let essence = essence(&body(), &[], &["spec.a", "data", "no.such.field"]);
    assert_eq!(essence["spec"], json!({"b": 2}));
    assert_eq!(essence.get("data"), None);
}

#[test]
fn empty_stanzas_are_removed() {
    let body = json!({"metadata": {"labels": {}, "annotations": {"kopf.zalando.org/x": "1"}}, "status": {}});
    assert_eq!(essence(&body, &["status"], &[]), json!({}));
}

proptest! {
    #[test]
    fn the_essence_of_an_essence_is_itself(
        spec in crate::object::diff::tests::any_json(),
        labels in prop::collection::btree_map("[ab]", "[xy]", 0..3),
        annotations in prop::collection::btree_map("(kopf\\.zalando\\.org/|e\\.com/|)(kopf-managed|b)", "[xy]", 0..4),
    ) {
        let body = json!({"kind": "K", "metadata": {"labels": labels, "annotations": annotations}, "spec": spec});
        let once = essence(&body, &[], &[]);
        prop_assert_eq!(essence(&once, &[], &[]), once);
    }

    #[test]
    fn operator_annotations_never_change_the_essence(
        value in ".{0,20}", name in "[a-z]{1,10}", marked in any::<bool>(),
    ) {
        let prefix = if marked { "example.com" } else { "kopf.zalando.org" };
        let mut noted = body();
        noted["metadata"]["annotations"][format!("{prefix}/{name}")] = value.into();
        noted["metadata"]["resourceVersion"] = json!("2");
        prop_assert_eq!(essence(&noted, &[], &[]), essence(&body(), &[], &[]));
    }
}
