//! Changes that are observed on bodies, and states that are stored on them.

use serde_json::{Value, json};

use super::*;
use crate::{
    cause::Reason,
    handler::{HandlerSpec, Trigger},
    object::patch::apply_merge,
};

fn registry() -> Registry {
    Registry::new([HandlerSpec::new("fn", Trigger::Update)]).expect("declarations are valid")
}

fn observe(persistence: &Persistence, body: &Value) -> ObservedChange {
    let history = ObjectHistory::begin(EventKind::Changed);
    persistence.observe_change(
        ObjectView::new(body),
        EventKind::Changed,
        history,
        &registry(),
    )
}

#[test]
fn a_stored_state_is_not_a_change() {
    let persistence = Persistence::default();
    let mut body =
        json!({"metadata": {"uid": "u", "labels": {"a": "1"}}, "spec": {"x": null, "y": [1]}});
    let first = observe(&persistence, &body);
    assert_eq!(first.reason, Reason::Create);
    let mut patch = ObjectPatch::new();
    let state = persistence.storable(&first.new, ObjectView::new(&body));
    persistence
        .diffbase
        .store(&state, ObjectView::new(&body), &mut patch);
    apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
    assert_eq!(observe(&persistence, &body).reason, Reason::Noop);
    body["spec"]["y"] = json!([2]);
    assert_eq!(observe(&persistence, &body).reason, Reason::Update);
}

#[test]
fn secrets_are_kept_as_digests_only() {
    let persistence = Persistence::default();
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"uid": "u"}, "data": {"p": "c2VjcmV0"}});
    let state = persistence.storable(&observe(&persistence, &body).new, ObjectView::new(&body));
    assert!(matches!(state, Baseline::Hashed(_)));
}

#[test]
fn the_next_write_removes_the_touch_annotation() {
    let persistence = Persistence::default();
    let mut body = json!({"metadata": {}});
    let mut patch = ObjectPatch::new();
    let progress = &persistence.progress;
    progress.touch(Some("now"), ObjectView::new(&body), &mut patch);
    apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
    let key = "kopf.zalando.org/touch-dummy";
    assert_eq!(body["metadata"]["annotations"][key], "now");

    let mut nothing = ObjectPatch::new();
    persistence.purge_touch(ObjectView::new(&body), &mut nothing);
    assert!(nothing.is_empty());
    let mut something = ObjectPatch::new();
    something.merge(json!({"spec": {"x": 1}}));
    persistence.purge_touch(ObjectView::new(&body), &mut something);
    apply_merge(&mut body, &Value::Object(something.merge_patch().clone()));
    assert_eq!(body["metadata"]["annotations"].get(key), None);
}

/// Written by Kopf 1.45.2 for the body below and handlers of the fields below.
const STORED_BY_KOPF: &str = concat!(
    r#"{"spec":{"a":1,"b":2.5,"n":null},"data":"d","metadata":{"labels":{"l":"1"},"#,
    r#""annotations":{"notkopf.zalando.org/x":"stays","plain":"st\u00e4ys"},"name":"n"},"#,
    r#""status":{"x":1}}"#,
    "\n"
);

#[test]
fn the_state_is_stored_to_the_byte_as_kopf_stores_it() {
    let body = json!({
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
                "plain": "stäys",
            },
        },
        "spec": {"a": 1, "b": 2.5, "n": null}, "data": "d", "status": {"x": 1, "y": 2},
    });
    let fields = ["status.x", "metadata.name", "spec.missing", "spec.n"];
    let specs = fields.map(|field| HandlerSpec::for_field("fn", Trigger::Field, field.into()));
    let registry = Registry::new(specs).expect("declarations are valid");
    let persistence = Persistence::default();
    let view = ObjectView::new(&body);
    let essence = persistence.essence(view, &registry.essence_rules(&[]));
    let mut patch = ObjectPatch::new();
    let state = persistence.storable(&essence, view);
    persistence.diffbase.store(&state, view, &mut patch);
    let key = "kopf.zalando.org/last-handled-configuration";
    let stored = patch.get(&crate::object::patch::annotation(key));
    assert_eq!(stored, Some(&STORED_BY_KOPF.into()));
}
