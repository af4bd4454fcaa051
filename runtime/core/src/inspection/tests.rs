//! What objects show, state by state.

use serde_json::json;

use super::*;
use crate::{diffbase::annotations::AnnotationsDiffBase, object::patch::apply_merge};

const PREFIX: &str = "kopf.zalando.org";

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("it is a time")
}

fn inspect(body: &Value) -> Inspection {
    inspect_with(body, &[])
}

fn inspect_with(body: &Value, handlers: &[HandlerId]) -> Inspection {
    let inspector = Inspector {
        persistence: &Persistence::default(),
        handlers,
        rules: &EssenceRules::default(),
        now: now(),
    };
    inspector.inspect(ObjectView::new(body))
}

/// An object with these annotations under Kopf's prefix.
fn object(annotations: &Value) -> Value {
    let annotations = annotations.as_object().expect("it is a map");
    let annotations = annotations.iter().map(|(name, value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        (format!("{PREFIX}/{name}"), Value::from(text))
    });
    json!({
        "metadata": {
            "name": "it",
            "creationTimestamp": "2026-01-01T11:00:00Z",
            "annotations": annotations.collect::<serde_json::Map<_, _>>(),
        },
        "spec": {"size": 2},
    })
}

fn base(size: u32) -> Value {
    json!({"spec": {"size": size}})
}

#[test]
fn an_object_without_traces_is_new_since_its_creation() {
    let inspection = inspect(&object(&json!({})));
    assert_eq!(inspection.state, HandlingState::New);
    assert_eq!(
        inspection.since.map(|it| it.to_string()).as_deref(),
        Some("2026-01-01T11:00:00Z")
    );
    assert!(!inspection.has_traces());
}

#[test]
fn an_object_is_handled_until_it_changes() {
    let handled = inspect(&object(&json!({"last-handled-configuration": base(2)})));
    assert_eq!(handled.state, HandlingState::Handled);
    assert!(handled.has_traces());
    let changed = inspect(&object(&json!({"last-handled-configuration": base(1)})));
    assert_eq!(changed.state, HandlingState::Changed);
    let changes: Vec<String> = changed.changes.iter().map(ToString::to_string).collect();
    assert_eq!(changes, ["change spec.size: 1 -> 2"]);
    // The last handled state is not the record of a handler.
    assert_eq!(changed.handlers, []);
}

#[test]
fn records_say_which_handlers_are_left_and_when() {
    let waiting = json!({
        "started": "2026-01-01T11:50:00Z", "delayed": "2026-01-01T12:05:00Z",
        "retries": 3, "success": false, "failure": false, "message": "not yet",
    });
    let done = json!({"started": "2026-01-01T11:40:00Z", "retries": 1, "success": true});
    let inspection = inspect(&object(&json!({"deploy": waiting, "check": done})));
    assert_eq!(inspection.state, HandlingState::Waiting);
    let states: Vec<_> = inspection
        .handlers
        .iter()
        .map(|it| (it.id.as_str(), it.state))
        .collect();
    assert_eq!(
        states,
        [
            ("check", HandlerState::Succeeded),
            ("deploy", HandlerState::Waiting)
        ]
    );
    let at = |time: Option<Timestamp>| time.map(|it| it.to_string());
    assert_eq!(
        at(inspection.next_attempt()).as_deref(),
        Some("2026-01-01T12:05:00Z")
    );
    assert_eq!(
        at(inspection.since).as_deref(),
        Some("2026-01-01T11:40:00Z")
    );
    let due = json!({"started": "2026-01-01T11:50:00Z"});
    let inspection = inspect(&object(&json!({"deploy": waiting, "other": due})));
    assert_eq!(inspection.state, HandlingState::Handling);
}

#[test]
fn a_finished_record_that_stays_is_no_open_work() {
    let done =
        json!({"started": "2026-01-01T11:40:00Z", "success": true, "subrefs": ["v1/ConfigMap"]});
    let inspection = inspect(&object(&json!({"reconcile": done})));
    assert_eq!(inspection.state, HandlingState::Handled);
    let changed = json!({"reconcile": done, "last-handled-configuration": base(1)});
    assert_eq!(inspect(&object(&changed)).state, HandlingState::Changed);
    let failed =
        json!({"started": "2026-01-01T11:40:00Z", "failure": true, "message": "never again"});
    let inspection = inspect(&object(&json!({"deploy": failed})));
    assert_eq!(inspection.handlers[0].state, HandlerState::Failed);
}

#[test]
fn sub_handlers_have_the_names_that_their_parent_gives() {
    let parent = json!({"started": "2026-01-01T11:40:00Z", "subrefs": ["deploy/first"]});
    let sub = json!({"started": "2026-01-01T11:40:00Z", "success": true});
    let inspection = inspect(&object(&json!({"deploy": parent, "deploy.first": sub})));
    let ids: Vec<_> = inspection
        .handlers
        .iter()
        .map(|it| it.id.as_str())
        .collect();
    assert_eq!(ids, ["deploy", "deploy/first"]);
}

#[test]
fn a_long_id_is_one_handler_although_it_has_two_keys() {
    let id = HandlerId::new(&"a_handler_with_a_very_long_name/".repeat(3));
    let record = Record::begin(crate::cause::Reason::Create, now());
    let persistence = Persistence::default();
    let mut body = object(&json!({}));
    let mut patch = ObjectPatch::default();
    let view = ObjectView::new(&body);
    persistence.progress.store(&id, &record, view, &mut patch);
    let merge = Value::Object(patch.merge_patch().clone());
    apply_merge(&mut body, &merge);
    let annotations = ObjectView::new(&body)
        .annotations()
        .expect("there are some");
    assert_eq!(annotations.len(), 2);
    assert_eq!(inspect(&body).handlers.len(), 1);
    assert_eq!(
        inspect_with(&body, std::slice::from_ref(&id)).handlers[0].id,
        id
    );
}

#[test]
fn records_in_the_status_are_found() {
    let mut body = object(&json!({}));
    body["status"] = json!({"kopf": {"progress": {"deploy": {"started": "2026-01-01T11:40:00Z"}}}});
    assert_eq!(inspect(&body).handlers[0].id.as_str(), "deploy");
}

#[test]
fn a_deletion_is_held_by_finalizers() {
    let mut body = object(&json!({"last-handled-configuration": base(2)}));
    body["metadata"]["deletionTimestamp"] = "2026-01-01T11:30:00Z".into();
    body["metadata"]["finalizers"] = json!(["other/one", finalizer::KOPF_FINALIZER]);
    let inspection = inspect(&body);
    assert_eq!(inspection.state, HandlingState::Deleting);
    let ours: Vec<_> = inspection.finalizers.iter().map(|it| it.is_ours).collect();
    assert_eq!(ours, [false, true]);
}

#[test]
fn the_writer_of_our_annotations_shows_when_an_object_was_handled() {
    let entry =
        |time: &str, fields: Value| json!({"manager": "m", "time": time, "fieldsV1": fields});
    let ours = json!({"f:metadata": {"f:annotations": {"f:kopf.zalando.org/last-handled-configuration": {}}}});
    let others = json!({"f:spec": {"f:size": {}}});
    let managed = json!([
        entry("2026-01-01T11:10:00Z", ours),
        entry("2026-01-01T11:20:00Z", others)
    ]);
    let since = |size: u32| {
        let mut body = object(&json!({"last-handled-configuration": base(size)}));
        body["metadata"]["managedFields"] = managed.clone();
        inspect(&body).since.map(|it| it.to_string())
    };
    assert_eq!(since(2).as_deref(), Some("2026-01-01T11:10:00Z"));
    assert_eq!(since(1).as_deref(), Some("2026-01-01T11:20:00Z"));
}

#[test]
fn values_of_secrets_are_not_shown() {
    let mut body = object(&json!({}));
    let persistence = Persistence {
        diffbase: std::sync::Arc::new(AnnotationsDiffBase::default()),
        ..Persistence::default()
    };
    body["apiVersion"] = "v1".into();
    body["kind"] = "Secret".into();
    let inspector = Inspector {
        persistence: &persistence,
        handlers: &[],
        rules: &EssenceRules::default(),
        now: now(),
    };
    let inspection = inspector.inspect(ObjectView::new(&body));
    let secret = Value::from("secret");
    let old = OldValue::Known(secret.clone());
    assert_eq!(inspection.shown_values(&old, Some(&secret)), (None, None));
}

#[test]
fn a_release_removes_our_finalizer_and_records_and_nothing_else() {
    let record = json!({"started": "2026-01-01T11:40:00Z"});
    let mut body = object(&json!({
        "deploy": record, "last-seen-states": "x", "last-handled-configuration": base(2),
    }));
    body["metadata"]["annotations"]["other/deploy"] = record.to_string().into();
    body["metadata"]["finalizers"] = json!(["other/one", finalizer::KOPF_FINALIZER]);
    let persistence = Persistence::default();
    let inspector = Inspector {
        persistence: &persistence,
        handlers: &[],
        rules: &EssenceRules::default(),
        now: now(),
    };
    let released = inspector.released(&body).expect("there are traces");
    assert_eq!(released["metadata"]["finalizers"], json!(["other/one"]));
    let kept: Vec<_> = ObjectView::new(&released)
        .annotations()
        .expect("some are kept")
        .keys()
        .cloned()
        .collect();
    assert_eq!(
        kept,
        [
            "kopf.zalando.org/last-handled-configuration",
            "other/deploy"
        ]
    );
    assert_eq!(inspector.released(&released), None);
}
