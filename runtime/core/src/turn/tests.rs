//! Decisions about events, and turns that do not end with success.

use serde_json::{Map, json};

use super::*;
use crate::{
    cause::detect::{EventKind, ObjectHistory},
    handler::filter::{FieldFilter, Filters, TextTest},
    lifecycle::Lifecycle,
    object::{finalizer::KOPF_FINALIZER, patch::apply_merge},
    outcome::{Consequence, HandlerFailure, Outcome},
};

const KOPF: &str = "kopf.zalando.org";
const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

fn now() -> Timestamp {
    "2020-01-01T00:00:00Z".parse().expect("valid")
}

fn input(specs: Vec<HandlerSpec>, body: Value, event: EventKind) -> TurnInput {
    let registry = Arc::new(Registry::new(specs).expect("declarations are valid"));
    let persistence = Arc::new(Persistence::default());
    let history = ObjectHistory::begin(event);
    let change = persistence.observe_change(ObjectView::new(&body), event, history, &registry);
    TurnInput::new(Arc::new(body), Arc::new(change), registry, persistence)
}

fn handle(input: &TurnInput) -> Turn {
    match decide(input, false, now()) {
        Decision::Handle(cycle) => *cycle,
        other => panic!("expected a cycle, not {other:?}"),
    }
}

fn concluded(cycle: Turn) -> (TurnOutcome, Value) {
    let mut body = (*cycle.input().body).clone();
    let mut patch = ObjectPatch::new();
    let conclusion = cycle.conclude(now(), &ObjectPatch::new(), &mut patch);
    apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
    (conclusion, body)
}

/// The names of the annotations of an object.
fn annotations(body: &Value) -> Vec<&String> {
    let annotations = body["metadata"]["annotations"].as_object();
    annotations.into_iter().flat_map(Map::keys).collect()
}

fn error(message: &str) -> Outcome {
    Outcome::Error(HandlerFailure::Other {
        message: message.to_owned(),
    })
}

const BACKOFF: Duration = Duration::from_secs(60);

#[test]
fn objects_that_match_no_handler_get_no_writes() {
    let mut spec = HandlerSpec::new("create", Trigger::Create);
    spec.filters.labels = vec![("on".to_owned(), TextTest::Present.into())];
    let input = input(vec![spec], json!({"spec": 1}), EventKind::Changed);
    assert!(matches!(decide(&input, false, now()), Decision::Leave(_)));
}

#[test]
fn deleted_and_released_objects_get_no_writes() {
    let specs = || vec![HandlerSpec::new("create", Trigger::Create)];
    let gone = input(specs(), json!({"spec": 1}), EventKind::Deleted);
    assert!(matches!(decide(&gone, true, now()), Decision::Leave(_)));
    let body = json!({"metadata": {"deletionTimestamp": "now", "finalizers": ["other"]}});
    let free = input(specs(), body, EventKind::Changed);
    assert!(matches!(decide(&free, true, now()), Decision::Leave(_)));
}

#[test]
fn the_finalizer_comes_before_the_handlers() {
    let specs = vec![
        HandlerSpec::new("create", Trigger::Create),
        HandlerSpec::new("delete", Trigger::Delete { optional: false }),
    ];
    let input = input(specs, json!({"metadata": {}}), EventKind::Changed);
    let decision = decide(&input, false, now());
    assert!(matches!(decision, Decision::Finalizer(FinalizerNeed::Add)));
}

#[test]
fn a_deletion_supersedes_an_unfinished_creation() {
    let create = r#"{"started":"2020-01-01T00:00:00.000000+00:00","purpose":"create","retries":2,"success":false,"failure":false}"#;
    let body = json!({"metadata": {
        "deletionTimestamp": "now",
        "finalizers": ["kopf.zalando.org/KopfFinalizerMarker"],
        "annotations": {format!("{KOPF}/create"): create},
    }});
    let specs = vec![
        HandlerSpec::new("create", Trigger::Create),
        HandlerSpec::new("delete", Trigger::Delete { optional: false }),
    ];
    let input = input(specs, body, EventKind::Changed);
    let mut cycle = handle(&input);
    assert_eq!(cycle.superseded(), [Reason::Create]);
    let due = cycle.due(&Lifecycle::Asap, 0, now());
    assert_eq!(due.len(), 1);
    cycle.finish(&due[0].id, error("oops"), BACKOFF, now());
    let (conclusion, body) = concluded(cycle);
    assert_eq!(conclusion.remaining, RemainingWork::Handlers(Some(BACKOFF)));
    let annotations = &body["metadata"]["annotations"];
    assert_eq!(annotations.get(format!("{KOPF}/create")), None);
    assert_eq!(
        annotations[format!("{KOPF}/delete")],
        concat!(
            r#"{"started":"2020-01-01T00:00:00.000000+00:00","#,
            r#""delayed":"2020-01-01T00:01:00.000000+00:00","purpose":"delete","retries":1,"#,
            r#""success":false,"failure":false,"message":"oops"}"#
        )
    );
}

#[test]
fn a_deletion_keeps_its_records_until_daemons_have_stopped() {
    let body = json!({"metadata": {
        "deletionTimestamp": "now",
        "finalizers": ["kopf.zalando.org/KopfFinalizerMarker"],
    }});
    let specs = || {
        vec![
            HandlerSpec::new("delete", Trigger::Delete { optional: false }),
            HandlerSpec::new("daemon", Trigger::Daemon),
        ]
    };
    let Decision::Handle(mut cycle) = decide(
        &input(specs(), body.clone(), EventKind::Changed),
        true,
        now(),
    ) else {
        panic!("delete handlers run while daemons stop");
    };
    let due = cycle.due(&Lifecycle::Asap, 0, now());
    cycle.finish(&due[0].id, Outcome::Success(Value::Null), BACKOFF, now());
    let (mut held, mut patch) = (body, ObjectPatch::new());
    let conclusion = cycle.hold(now(), &mut patch);
    assert_eq!(conclusion.remaining, RemainingWork::Handlers(None));
    apply_merge(&mut held, &Value::Object(patch.merge_patch().clone()));

    let later = handle(&input(specs(), held, EventKind::Changed));
    assert!(later.due(&Lifecycle::Asap, 0, now()).is_empty());
    let (conclusion, _) = concluded(later);
    assert!(conclusion.has_ended());
}

#[test]
fn handlers_wait_for_their_delay() {
    let record = r#"{"started":"2020-01-01T00:00:00+00:00","delayed":"2020-01-01T00:00:30+00:00","purpose":"create","retries":1}"#;
    let body = json!({"metadata": {"annotations": {format!("{KOPF}/create"): record}}});
    let specs = vec![HandlerSpec::new("create", Trigger::Create)];
    let cycle = handle(&input(specs, body, EventKind::Changed));
    assert!(cycle.due(&Lifecycle::AllAtOnce, 0, now()).is_empty());
    let later = crate::time::after(now(), Duration::from_secs(30));
    assert_eq!(cycle.due(&Lifecycle::AllAtOnce, 0, later).len(), 1);
    let mut patch = ObjectPatch::new();
    let conclusion = cycle.conclude(now(), &ObjectPatch::new(), &mut patch);
    assert_eq!(
        conclusion.remaining,
        RemainingWork::Handlers(Some(Duration::from_secs(30)))
    );
    assert!(patch.is_empty());
}

#[test]
fn a_handler_whose_note_is_for_another_base_is_called_again() {
    let record = r#"{"started":"2020-01-01T00:00:00+00:00","stopped":"2020-01-01T00:00:05+00:00","purpose":"create","retries":2,"success":true}"#;
    // Another operator has ended the creation, for which this record and this note are.
    let of_creation = |retries: u32| {
        json!({"base": "", "states": [{"merge": {"spec": {"x": 0}}}],
            "handlers": {"field/spec.x": ["2020-01-01T00:00:05+00:00", retries, 0, false]}})
        .to_string()
    };
    let due = |notes: String, base: Option<&str>| {
        let mut body = json!({"spec": {"x": 1}, "metadata": {"annotations": {
            format!("{KOPF}/field.spec.x"): record,
            format!("{KOPF}/last-seen-states"): notes,
        }}});
        if let Some(base) = base {
            let annotations = &mut body["metadata"]["annotations"];
            annotations[format!("{KOPF}/last-handled-configuration")] = base.into();
        }
        let specs = vec![HandlerSpec::for_field(
            "field",
            Trigger::Field,
            "spec.x".into(),
        )];
        let cycle = handle(&input(specs, body, EventKind::Changed));
        cycle.due(&Lifecycle::AllAtOnce, 0, now()).len()
    };
    let base = Some(r#"{"spec":{"x":0}}"#);
    assert_eq!(due(of_creation(2), base), 1);
    // Kopf has called the handler since the note.
    assert_eq!(due(of_creation(1), base), 0);
    assert_eq!(due(of_creation(2), None), 0, "the note is for this base");
    let of_update = of_creation(2).replace(r#""base":"""#, r#""base":"other""#);
    assert_eq!(due(of_update, None), 1, "only the notes were written");
}

#[test]
fn a_sub_handler_whose_note_is_for_another_base_is_called_again_with_its_parent() {
    let record = |subs: &[&str]| {
        json!({"started": "2020-01-01T00:00:00+00:00", "stopped": "2020-01-01T00:00:05+00:00",
            "purpose": "update", "retries": 1, "success": true, "subrefs": subs})
        .to_string()
    };
    let entry = json!(["2020-01-01T00:00:05+00:00", 1, 0, false]);
    let notes = json!({"base": "other", "states": [{"merge": {"spec": {"x": 0}}}],
        "handlers": {"parent": entry, "parent/one": entry}});
    let body = json!({"spec": {"x": 1}, "metadata": {"annotations": {
        format!("{KOPF}/parent"): record(&["parent/one"]),
        format!("{KOPF}/parent.one"): record(&[]),
        format!("{KOPF}/last-seen-states"): notes.to_string(),
        LAST_HANDLED: r#"{"spec":{"x":0}}"#,
    }}});
    let specs = vec![HandlerSpec::new("parent", Trigger::Update)];
    let cycle = handle(&input(specs, body, EventKind::Changed));
    let due = cycle.due(&Lifecycle::AllAtOnce, 0, now());
    assert_eq!(due.len(), 1);
    let any = Trigger::Sub { changing: false };
    let one = HandlerSpec::new(due[0].id.sub("one"), any);
    let sub = cycle.sub(&due[0].id, [one], now());
    assert_eq!(sub.due(&Lifecycle::AllAtOnce, 0, now()).len(), 1);
}

/// Whether a sub-handler is called in two turns of its parent, whose record does not name it.
fn calls_of_unnamed_sub(notes: &Value) -> [bool; 2] {
    let parent = json!({"started": "2020-01-01T00:00:00+00:00", "purpose": "update", "retries": 1});
    calls_of_sub(&json!({
        format!("{KOPF}/parent"): parent.to_string(),
        format!("{KOPF}/last-seen-states"): notes.to_string(),
    }))
}

/// Whether a sub-handler that has a finished record is called in two turns of its parent.
fn calls_of_sub(annotations: &Value) -> [bool; 2] {
    let sub = json!({"started": "2020-01-01T00:00:00+00:00", "stopped": "2020-01-01T00:00:05+00:00",
        "purpose": "update", "retries": 1, "success": true});
    let mut body = json!({"spec": {"x": 1}, "metadata": {"annotations": {
        format!("{KOPF}/parent.one"): sub.to_string(),
        LAST_HANDLED: r#"{"spec":{"x":0}}"#,
    }}});
    apply_merge(&mut body["metadata"]["annotations"], annotations);
    [1, 2].map(|_| {
        let specs = vec![HandlerSpec::new("parent", Trigger::Update)];
        let Decision::Handle(mut cycle) = decide(
            &input(specs, body.clone(), EventKind::Changed),
            false,
            now(),
        ) else {
            return false;
        };
        let [parent] = &cycle.due(&Lifecycle::AllAtOnce, 0, now())[..] else {
            panic!("the parent is due");
        };
        let success = || Outcome::Success(Value::Null);
        let one = HandlerSpec::new("parent/one", Trigger::Sub { changing: false });
        let mut sub = cycle.sub(&parent.id, [one], now());
        let due = sub.due(&Lifecycle::AllAtOnce, 0, now());
        for spec in &due {
            sub.finish(&spec.id, success(), Duration::ZERO, now());
        }
        cycle.absorb(sub);
        cycle.finish(&parent.id, success(), Duration::ZERO, now());
        body = concluded(*cycle).1;
        !due.is_empty()
    })
}

#[test]
fn a_record_of_a_sub_handler_without_one_of_its_parent_does_not_count() {
    // Another operator has ended the cycle, and did not know of the sub-handler.
    assert_eq!(calls_of_sub(&json!({})), [true, false]);
}

#[test]
fn a_sub_handler_that_only_notes_of_another_operator_name_is_called_again() {
    let notes = json!({"base": "other", "states": [{"merge": {"spec": {"x": 0}}}],
        "handlers": {"parent/one": ["2020-01-01T00:00:05+00:00", 1, 0, false]}});
    assert_eq!(calls_of_unnamed_sub(&notes), [false, true]);
}

#[test]
fn a_handler_whose_note_is_for_another_base_is_called_again_though_the_change_was_reverted() {
    let record = |is_finished: bool| {
        json!({"started": "2020-01-01T00:00:00+00:00", "stopped": "2020-01-01T00:00:05+00:00",
            "purpose": "update", "retries": 2, "success": is_finished})
        .to_string()
    };
    let due = |is_finished, event| {
        let notes = json!({"base": "other", "states": [{"merge": {}}],
            "handlers": {"field/spec.x": ["2020-01-01T00:00:05+00:00", 2, 0, false]}});
        let mut body = json!({"spec": {"x": 1}, "metadata": {"uid": "u", "annotations": {
            format!("{KOPF}/field.spec.x"): record(is_finished),
            format!("{KOPF}/last-seen-states"): notes.to_string(),
            format!("{KOPF}/last-handled-configuration"): r#"{"spec":{"x":1}}"#,
        }}});
        let specs = || {
            vec![
                HandlerSpec::for_field("field", Trigger::Field, "spec.x".into()),
                HandlerSpec::for_field("other", Trigger::Field, "spec.y".into()),
            ]
        };
        let reverted = input(specs(), body.clone(), event);
        let Decision::CloseReverted(patch) = decide(&reverted, false, now()) else {
            panic!("there is no difference");
        };
        apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
        let again = input(specs(), body, EventKind::Changed);
        match decide(&again, false, now()) {
            Decision::Handle(cycle) => {
                let due = cycle.due(&Lifecycle::AllAtOnce, 0, now());
                due.iter().map(|spec| spec.id.to_string()).collect()
            }
            _ => Vec::new(),
        }
    };
    for event in [EventKind::Changed, EventKind::Listed] {
        // Only the notes of a write were written, or another operator has ended the cycle.
        assert_eq!(due(true, event), ["field/spec.x"]);
        // The same, and the handler was to be called in an update.
        assert_eq!(due(false, event), ["field/spec.x"]);
    }
}

#[test]
fn a_handler_whose_note_is_for_another_base_is_called_again_though_an_update_does_not_concern_it() {
    let record = json!({"started": "2020-01-01T00:00:00+00:00", "stopped": "2020-01-01T00:00:05+00:00",
        "purpose": "update", "retries": 2, "success": true});
    let notes = json!({"base": "other", "states": [{"merge": {}}],
        "handlers": {"field/spec.x": ["2020-01-01T00:00:05+00:00", 2, 0, false]}});
    let mut body = json!({"spec": {"x": 1, "y": 1}, "metadata": {"uid": "u", "annotations": {
        format!("{KOPF}/field.spec.x"): record.to_string(),
        format!("{KOPF}/last-seen-states"): notes.to_string(),
        format!("{KOPF}/last-handled-configuration"): r#"{"spec":{"x":1}}"#,
    }}});
    let mut called = Vec::new();
    for _ in 0..2 {
        let specs = vec![
            HandlerSpec::for_field("field", Trigger::Field, "spec.x".into()),
            HandlerSpec::for_field("other", Trigger::Field, "spec.y".into()),
        ];
        let mut cycle = handle(&input(specs, body.clone(), EventKind::Changed));
        for spec in cycle.due(&Lifecycle::AllAtOnce, 0, now()) {
            let success = Outcome::Success(Value::Null);
            cycle.finish(&spec.id, success, Duration::ZERO, now());
            called.push(spec.id.to_string());
        }
        let mut patch = ObjectPatch::new();
        cycle.conclude(now(), &ObjectPatch::new(), &mut patch);
        apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
    }
    assert_eq!(called, ["other/spec.y", "field/spec.x"]);
}

/// What is on an object if the first request of a write was executed, which ends the creation with
/// a follow-up, and the second one with the last handled state was not.
fn half_ended_creation(required: bool) -> Value {
    let parent = json!({"started": "2020-01-01T00:00:06+00:00", "stopped": "2020-01-01T00:00:05+00:00",
        "purpose": "update", "retries": 0, "success": false, "subrefs": ["field/spec.x/sub"]});
    let sub = json!({"started": "2020-01-01T00:00:00+00:00", "stopped": "2020-01-01T00:00:05+00:00",
        "purpose": "create", "retries": 1, "success": true});
    let notes = json!({"base": "other", "states": [{"merge": {}}], "handlers": {
        "field/spec.x": ["2020-01-01T00:00:05+00:00", 0, 0, required],
        "field/spec.x/sub": ["2020-01-01T00:00:05+00:00", 1, 0, false]}});
    json!({"spec": {"y": 1}, "metadata": {"uid": "u", "annotations": {
        format!("{KOPF}/field.spec.x"): parent.to_string(),
        format!("{KOPF}/field.spec.x.sub"): sub.to_string(),
        format!("{KOPF}/last-seen-states"): notes.to_string(),
    }}})
}

#[test]
fn a_handler_whose_field_is_gone_is_called_though_the_end_of_the_creation_was_written_by_half() {
    for required in [true, false] {
        let mut body = half_ended_creation(required);
        let mut called = Vec::new();
        for _ in 0..4 {
            let specs = vec![
                HandlerSpec::new("create", Trigger::Create),
                HandlerSpec::for_field("field", Trigger::Field, "spec.x".into()),
            ];
            let input = input(specs, body.clone(), EventKind::Changed);
            let Decision::Handle(mut cycle) = decide(&input, false, now()) else {
                break;
            };
            for spec in cycle.due(&Lifecycle::AllAtOnce, 0, now()) {
                let success = Outcome::Success(Value::Null);
                let outcome = match called.is_empty() {
                    true => error("not yet"),
                    false => success,
                };
                cycle.finish(&spec.id, outcome, Duration::ZERO, now());
                called.push(spec.id.to_string());
            }
            let mut patch = ObjectPatch::new();
            cycle.conclude(now(), &ObjectPatch::new(), &mut patch);
            apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
        }
        assert_eq!(called, ["create", "create", "field/spec.x"], "{body:#}");
        assert_eq!(annotations(&body), [LAST_HANDLED]);
    }
}

#[test]
fn limits_are_checked_before_a_call_and_shown_to_the_handler() {
    let record = r#"{"started":"2019-12-31T23:59:00+00:00","purpose":"create","retries":2}"#;
    let body = json!({"metadata": {"annotations": {format!("{KOPF}/create"): record}}});
    let cycle = |timeout| {
        let mut spec = HandlerSpec::new("create", Trigger::Create);
        spec.policy.timeout = Some(Duration::from_secs(timeout));
        handle(&input(vec![spec], body.clone(), EventKind::Changed))
    };
    let id = HandlerId::new("create");
    let attempt = cycle(100).begin(&id, now()).expect("time is left");
    assert_eq!(attempt.retry, 2);
    assert_eq!(attempt.runtime, Duration::from_secs(60));
    assert_eq!(attempt.time_left, Some(Duration::from_secs(40)));

    let mut late = cycle(60);
    let limit = late.begin(&id, now()).expect_err("time is over");
    let outcome = Outcome::Error(HandlerFailure::Exhausted(limit));
    let consequence = late.finish(&id, outcome, BACKOFF, now());
    assert!(matches!(consequence, Consequence::Failed { .. }));
    let (conclusion, body) = concluded(late);
    assert_eq!(conclusion.remaining, RemainingWork::Nothing);
    assert_eq!(
        body["metadata"]["annotations"]
            .as_object()
            .map(|map| map.len()),
        Some(1)
    );
}

#[test]
fn the_record_of_a_sub_handler_is_written_with_that_of_its_parent() {
    let parent = HandlerId::new("create");
    let child = parent.sub("child");
    let turn = |body: Value| {
        let specs = vec![HandlerSpec::new("create", Trigger::Create)];
        let mut cycle = handle(&input(specs, body, EventKind::Changed));
        let spec = HandlerSpec::new(child.clone(), Trigger::Sub { changing: false });
        let mut sub = cycle.sub(&parent, [spec], now());
        sub.finish(&child, error("oops"), BACKOFF, now());
        let outcome = sub.outcome(Value::Null, now());
        cycle.absorb(sub);
        cycle.finish(&parent, outcome, BACKOFF, now());
        cycle
    };
    let (_, body) = concluded(turn(json!({"spec": 1})));
    let mut patch = ObjectPatch::new();
    turn(body).conclude(now(), &ObjectPatch::new(), &mut patch);
    let written = &patch.merge_patch()["metadata"]["annotations"];
    assert!(written[format!("{KOPF}/create.child")].is_string());
    assert!(written[format!("{KOPF}/create")].is_string(), "{written}");
}

#[test]
fn nested_sub_handlers_are_named_in_the_records_of_all_ancestors() {
    let specs = vec![HandlerSpec::new("create", Trigger::Create)];
    let mut cycle = handle(&input(specs, json!({"metadata": {}}), EventKind::Changed));
    let parent = HandlerId::new("create");
    let child = parent.sub("child");
    let grandchild = child.sub("grandchild");
    let any = Trigger::Sub { changing: false };
    let mut sub = cycle.sub(&parent, [HandlerSpec::new(child.clone(), any)], now());
    let mut subsub = sub.sub(&child, [HandlerSpec::new(grandchild.clone(), any)], now());
    subsub.finish(&grandchild, error("oops"), BACKOFF, now());
    let outcome = subsub.outcome(Value::Null, now());
    assert_eq!(
        outcome,
        Outcome::Waiting {
            delay: Some(BACKOFF)
        }
    );
    sub.absorb(subsub);
    sub.finish(&child, outcome, BACKOFF, now());
    let outcome = sub.outcome(Value::Null, now());
    cycle.absorb(sub);
    cycle.finish(&parent, outcome, BACKOFF, now());
    let record = cycle.record(&parent).expect("selected");
    assert_eq!(record.subrefs, [child.clone(), grandchild.clone()]);
    assert_eq!(record.retries, 0);
    let (conclusion, body) = concluded(cycle);
    assert_eq!(conclusion.remaining, RemainingWork::Handlers(Some(BACKOFF)));
    let stored: Value = body["metadata"]["annotations"][format!("{KOPF}/create.child.grandchild")]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    assert_eq!(stored["retries"], 1);
}

#[test]
fn legacy_progress_in_the_status_is_continued_and_purged() {
    let body = json!({"metadata": {}, "status": {"kopf": {"progress": {"create": {
        "started": "2020-01-01T00:00:00+00:00", "purpose": "create", "retries": 4,
    }}}}});
    let specs = vec![HandlerSpec::new("create", Trigger::Create)];
    let mut cycle = handle(&input(specs, body, EventKind::Changed));
    let id = HandlerId::new("create");
    assert_eq!(cycle.begin(&id, now()).map(|attempt| attempt.retry), Ok(4));
    cycle.finish(&id, Outcome::Success(Value::Null), BACKOFF, now());
    let (conclusion, body) = concluded(cycle);
    assert!(conclusion.has_ended());
    assert_eq!(body["status"]["kopf"]["progress"], json!({}));
}

#[test]
fn a_cycle_that_wrote_only_results_leaves_nothing_to_do() {
    let remaining = |specs: Vec<HandlerSpec>, writes: Value| {
        let mut body = json!({"metadata": {"finalizers": [KOPF_FINALIZER]}, "spec": {"x": 1}});
        if !specs.iter().any(|spec| spec.trigger.needs_finalizer()) {
            body["metadata"] = json!({});
        }
        let mut cycle = handle(&input(specs, body, EventKind::Changed));
        let id = HandlerId::new("create");
        cycle.finish(&id, Outcome::Success(Value::Null), BACKOFF, now());
        let mut patch = ObjectPatch::new();
        patch.merge(writes);
        cycle
            .conclude(now(), &patch, &mut ObjectPatch::new())
            .remaining
    };
    let create = || HandlerSpec::new("create", Trigger::Create);
    let delete = |filters| HandlerSpec {
        filters,
        ..HandlerSpec::new("delete", Trigger::Delete { optional: false })
    };
    let field = |path: &str| HandlerSpec::for_field("field", Trigger::Update, path.into());
    let by_field = Filters {
        field: Some(FieldFilter::any("spec.x".into())),
        ..Filters::default()
    };
    let result = || json!({"status": {"create": 1}});

    assert_eq!(remaining(vec![create()], result()), RemainingWork::Nothing);
    assert_eq!(
        remaining(vec![create(), field("spec.x")], result()),
        RemainingWork::Nothing
    );
    assert_eq!(
        remaining(vec![create(), delete(Filters::default())], result()),
        RemainingWork::Nothing
    );

    assert_eq!(
        remaining(vec![create()], json!({"spec": {"x": 2}})),
        RemainingWork::Recheck
    );
    assert_eq!(
        remaining(vec![create(), field("status.create")], result()),
        RemainingWork::Recheck
    );
    assert_eq!(
        remaining(vec![create(), field("metadata.labels")], result()),
        RemainingWork::Recheck
    );
    assert_eq!(
        remaining(vec![create(), delete(by_field)], result()),
        RemainingWork::Recheck
    );
}

/// The handlers that are due on `{"x": 0}` after the handler `resume` has finished on `{"x": 1}`,
/// or on the same state, in an update that was reverted.
fn due_after_revert(resume: Vec<HandlerSpec>, seen: u32) -> (Vec<String>, Value) {
    let mut specs = resume;
    specs.push(HandlerSpec::new("update", Trigger::Update));
    let mut body = json!({"spec": {"x": 1}, "metadata": {"annotations": {
        format!("{KOPF}/last-handled-configuration"): r#"{"spec":{"x":0}}"#,
    }}});
    let mut cycle = handle(&input(specs.clone(), body, EventKind::Listed));
    let id = HandlerId::new("resume");
    cycle.finish(&id, Outcome::Success(Value::Null), BACKOFF, now());
    cycle.finish(&HandlerId::new("update"), error("oops"), BACKOFF, now());
    (_, body) = concluded(cycle);
    if seen == 0 {
        let notes = &mut body["metadata"]["annotations"][format!("{KOPF}/last-seen-states")];
        let text = notes.as_str().expect("the states are noted");
        *notes = text.replace(r#""x":1"#, r#""x":0"#).into();
    }
    body["spec"]["x"] = json!(0);
    let reverted = input(specs.clone(), body.clone(), EventKind::Listed);
    let Decision::CloseReverted(patch) = decide(&reverted, false, now()) else {
        panic!("the change was reverted");
    };
    apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
    let cycle = handle(&input(specs, body, EventKind::Listed));
    let due = cycle.due(&Lifecycle::AllAtOnce, 0, now());
    let due = due.iter().map(|spec| spec.id.to_string()).collect();
    (due, concluded(cycle).1)
}

#[test]
fn a_resume_handler_that_is_done_is_not_called_again_when_a_change_is_reverted() {
    let resume = HandlerSpec::new("resume", Trigger::Resume { deleted: false });
    let (due, body) = due_after_revert(vec![resume], 1);
    assert_eq!(due, [""; 0]);
    let annotations = body["metadata"]["annotations"].as_object();
    let keys: Vec<&String> = annotations.into_iter().flat_map(|it| it.keys()).collect();
    assert_eq!(keys, ["kopf.zalando.org/last-handled-configuration"]);
}

#[test]
fn a_resume_handler_that_handles_updates_is_called_for_the_reverted_state() {
    let resume = || {
        vec![
            HandlerSpec::new("resume", Trigger::Resume { deleted: false }),
            HandlerSpec::new("resume", Trigger::Update),
        ]
    };
    assert_eq!(due_after_revert(resume(), 1).0, ["resume"]);
    assert_eq!(due_after_revert(resume(), 0).0, [""; 0], "it has seen it");
}

/// How the second call of a handler ends, and whether it registers its sub-handler again.
fn ends_of_the_last_call() -> [(Outcome, bool); 3] {
    let permanent = || {
        let message = "no".to_owned();
        Outcome::Error(HandlerFailure::Permanent { message })
    };
    [
        (Outcome::Success(Value::Null), false),
        (permanent(), false),
        (permanent(), true),
    ]
}

#[test]
fn a_sub_handler_that_is_not_called_any_more_does_not_call_its_parent_again() {
    for (end, registers) in ends_of_the_last_call() {
        let mut body = json!({"spec": {"x": 1}, "metadata": {"uid": "u", "annotations": {
            format!("{KOPF}/last-handled-configuration"): r#"{"spec":{"x":0}}"#,
        }}});
        let mut called = Vec::new();
        for round in 0..8_u64 {
            let now = now() + Duration::from_secs(round);
            let specs = vec![
                HandlerSpec::new("other", Trigger::Update),
                HandlerSpec::for_field("field", Trigger::Field, "spec.x".into()),
            ];
            let input = input(specs, body.clone(), EventKind::Changed);
            let Decision::Handle(mut cycle) = decide(&input, false, now) else {
                break;
            };
            for spec in cycle.due(&Lifecycle::AllAtOnce, 0, now) {
                let is_parent = spec.id.as_str() != "other";
                called.push(spec.id.to_string());
                if is_parent && (round == 0 || registers) {
                    let child = HandlerSpec::new(spec.id.sub("one"), Trigger::Update);
                    let mut sub = cycle.sub(&spec.id, [child], now);
                    if round == 0 {
                        let success = Outcome::Success(Value::Null);
                        sub.finish(&spec.id.sub("one"), success, Duration::ZERO, now);
                    }
                    cycle.absorb(sub);
                }
                let outcome = match round {
                    0 if !is_parent => error("not yet"),
                    0 => Outcome::Success(Value::Null),
                    _ if is_parent => end.clone(),
                    _ => Outcome::Success(Value::Null),
                };
                cycle.finish(&spec.id, outcome, Duration::ZERO, now);
            }
            let mut patch = ObjectPatch::new();
            cycle.conclude(now, &ObjectPatch::new(), &mut patch);
            apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
            body["spec"]["x"] = 2.into();
        }
        let expected = ["other", "field/spec.x", "other", "field/spec.x"];
        assert_eq!(called, expected, "{end:?}, registered: {registers}");
        assert_eq!(annotations(&body), [LAST_HANDLED]);
    }
}

/// The turns of an update handler with a sub-handler that has two sub-handlers of its own.
struct NestedRounds {
    body: Value,
    called: Vec<String>,
}

impl NestedRounds {
    fn new() -> Self {
        let body = json!({"spec": {"x": 1}, "metadata": {"uid": "u", "annotations": {
            format!("{KOPF}/last-handled-configuration"): r#"{"spec":{"x":0}}"#,
        }}});
        let called = Vec::new();
        Self { body, called }
    }

    /// Plays a turn; returns whether there was anything to do.
    fn turn(&mut self, round: u64, ends: impl Fn(&str) -> Outcome) -> bool {
        let now = now() + Duration::from_secs(round);
        let specs = vec![HandlerSpec::new("family", Trigger::Update)];
        let input = input(specs, self.body.clone(), EventKind::Changed);
        let Decision::Handle(mut cycle) = decide(&input, false, now) else {
            return false;
        };
        for spec in cycle.due(&Lifecycle::AllAtOnce, 0, now) {
            let level = cycle.sub(&spec.id, [], now);
            let sub = self.call(&level, &spec.id, &["child"], now, &ends);
            let outcome = sub.outcome(Value::Null, now);
            cycle.absorb(sub);
            cycle.finish(&spec.id, outcome, Duration::ZERO, now);
        }
        let mut patch = ObjectPatch::new();
        cycle.conclude(now, &ObjectPatch::new(), &mut patch);
        apply_merge(&mut self.body, &Value::Object(patch.merge_patch().clone()));
        true
    }

    fn call(
        &mut self,
        level: &SubTurn,
        parent: &HandlerId,
        names: &[&str],
        now: Timestamp,
        ends: &impl Fn(&str) -> Outcome,
    ) -> SubTurn {
        let any = Trigger::Sub { changing: false };
        let specs = names.iter().map(|it| HandlerSpec::new(parent.sub(it), any));
        let mut sub = level.sub(parent, specs, now);
        for spec in sub.due(&Lifecycle::AllAtOnce, 0, now) {
            self.called.push(spec.id.to_string());
            let outcome = match spec.id.as_str() {
                "family/child" => {
                    let nested = self.call(level, &spec.id, &["one", "two"], now, ends);
                    let outcome = nested.outcome(Value::Null, now);
                    sub.absorb(nested);
                    outcome
                }
                id => ends(id),
            };
            sub.finish(&spec.id, outcome, Duration::ZERO, now);
        }
        sub
    }
}

#[test]
fn a_nested_sub_handler_that_saw_an_older_state_is_called_again() {
    let success = || Outcome::Success(Value::Null);
    let mut rounds = NestedRounds::new();
    rounds.turn(0, |id| match id.ends_with("one") {
        true => success(),
        false => error("not yet"),
    });
    rounds.body["spec"]["x"] = 2.into();
    rounds.called.clear();
    let mut round = 1;
    while round < 9 && rounds.turn(round, |_| success()) {
        round += 1;
    }
    let called = [
        "family/child",
        "family/child/two",
        "family/child",
        "family/child/one",
    ];
    assert_eq!(rounds.called, called);
    assert_eq!(annotations(&rounds.body), [LAST_HANDLED]);
}

#[test]
fn a_sub_handler_that_does_not_match_any_more_does_not_call_its_parent_again() {
    let label = |value: Value| json!({"metadata": {"labels": {"on": value}}});
    let mut body = json!({"spec": 1, "metadata": {"uid": "u", "labels": {"on": "yes"}}});
    let mut called = Vec::new();
    for round in 0..8_u64 {
        let now = now() + Duration::from_secs(round);
        let specs = vec![
            HandlerSpec::new("parent", Trigger::Create),
            HandlerSpec::new("parent", Trigger::Update),
        ];
        let input = input(specs, body.clone(), EventKind::Changed);
        let Decision::Handle(mut cycle) = decide(&input, false, now) else {
            break;
        };
        for spec in cycle.due(&Lifecycle::AllAtOnce, 0, now) {
            let any = Trigger::Sub { changing: false };
            let mut labelled = HandlerSpec::new(spec.id.sub("labelled"), any);
            labelled.filters.labels = vec![("on".to_owned(), TextTest::Present.into())];
            let plain = HandlerSpec::new(spec.id.sub("plain"), any);
            let mut sub = cycle.sub(&spec.id, [labelled, plain], now);
            called.push(spec.id.to_string());
            for spec in sub.due(&Lifecycle::AllAtOnce, 0, now) {
                called.push(spec.id.to_string());
                let outcome = match round == 0 && spec.id.as_str().ends_with("plain") {
                    true => error("not yet"),
                    false => Outcome::Success(Value::Null),
                };
                sub.finish(&spec.id, outcome, Duration::ZERO, now);
            }
            let outcome = sub.outcome(Value::Null, now);
            cycle.absorb(sub);
            cycle.finish(&spec.id, outcome, Duration::ZERO, now);
        }
        let mut patch = ObjectPatch::new();
        cycle.conclude(now, &ObjectPatch::new(), &mut patch);
        apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
        apply_merge(&mut body, &label(Value::Null));
    }
    let expected = [
        "parent",
        "parent/labelled",
        "parent/plain",
        "parent",
        "parent/plain",
    ];
    assert_eq!(called, expected);
    assert_eq!(annotations(&body), [LAST_HANDLED]);
}

#[test]
fn a_sub_handler_that_saw_an_older_state_is_called_again_though_only_others_have_missed_an_edit() {
    let mut body = json!({"spec": {"x": 1, "y": 0}, "metadata": {"uid": "u", "annotations": {
        format!("{KOPF}/last-handled-configuration"): r#"{"spec":{"x":0,"y":0}}"#,
    }}});
    let mut called = Vec::new();
    for round in 0..9_u64 {
        let now = now() + Duration::from_secs(round);
        let specs = vec![
            HandlerSpec::for_field("parent", Trigger::Field, FieldPath::from("spec.x")),
            HandlerSpec::new("whole", Trigger::Update),
        ];
        let input = input(specs, body.clone(), EventKind::Changed);
        let Decision::Handle(mut cycle) = decide(&input, false, now) else {
            break;
        };
        let state = body["spec"].to_string();
        for spec in cycle.due(&Lifecycle::AllAtOnce, 0, now) {
            called.push(format!("{} {state}", spec.id));
            let mut outcome = Outcome::Success(Value::Null);
            if spec.id.as_str() != "whole" {
                let any = Trigger::Sub { changing: false };
                let subs = ["one", "two"].map(|it| HandlerSpec::new(spec.id.sub(it), any));
                let mut sub = cycle.sub(&spec.id, subs, now);
                for spec in sub.due(&Lifecycle::AllAtOnce, 0, now) {
                    called.push(format!("{} {state}", spec.id));
                    let is_ready = round > 1 || round == 1 && spec.id.as_str().ends_with("one");
                    let outcome = match is_ready {
                        true => Outcome::Success(Value::Null),
                        false => error("not yet"),
                    };
                    sub.finish(&spec.id, outcome, Duration::ZERO, now);
                }
                outcome = sub.outcome(Value::Null, now);
                cycle.absorb(sub);
            }
            cycle.finish(&spec.id, outcome, Duration::ZERO, now);
        }
        let mut patch = ObjectPatch::new();
        cycle.conclude(now, &ObjectPatch::new(), &mut patch);
        apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
        body["spec"] = match round {
            0 => json!({"x": 2, "y": 0}),
            _ => json!({"x": 1, "y": 1}),
        };
    }
    let expected = [
        r#"parent/spec.x {"x":1,"y":0}"#,
        r#"parent/spec.x/one {"x":1,"y":0}"#,
        r#"parent/spec.x/two {"x":1,"y":0}"#,
        r#"whole {"x":1,"y":0}"#,
        r#"parent/spec.x {"x":2,"y":0}"#,
        r#"parent/spec.x/one {"x":2,"y":0}"#,
        r#"parent/spec.x/two {"x":2,"y":0}"#,
        r#"parent/spec.x {"x":1,"y":1}"#,
        r#"parent/spec.x/two {"x":1,"y":1}"#,
        r#"whole {"x":1,"y":1}"#,
        r#"parent/spec.x {"x":1,"y":1}"#,
        r#"parent/spec.x/one {"x":1,"y":1}"#,
    ];
    assert_eq!(called, expected);
    assert_eq!(annotations(&body), [LAST_HANDLED]);
}
