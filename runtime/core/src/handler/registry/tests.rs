//! Selection of handlers, and objects that are ignored.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::handler::watch_selectors::WatchSelectors;
use crate::object::ObjectView;
use crate::{
    cause::{Cause, Reason},
    handler::filter::{Filters, TextTest},
    object::{diff::Baseline, essence::Essence},
};

fn labelled(mut spec: HandlerSpec) -> HandlerSpec {
    spec.filters = Filters {
        labels: vec![("on".to_owned(), TextTest::Present.into())],
        ..spec.filters
    };
    spec
}

fn registry(specs: Vec<HandlerSpec>) -> Registry {
    Registry::new(specs).expect("declarations are valid")
}

fn selected(registry: &Registry, reason: Reason, initial: bool, old: Option<i64>) -> Vec<String> {
    let body = json!({"spec": {"x": 1}});
    let new = Essence::from_value(body.clone());
    let old = old.map_or(Baseline::Absent, |x| {
        Baseline::Known(Essence::from_value(json!({"spec": {"x": x}})))
    });
    let diff = old.diff(&new);
    let cause = Cause {
        reason,
        initial,
        body: ObjectView::new(&body),
        old: &old,
        new: &new,
        diff: &diff,
    };
    let handlers = registry.selected(&Subject::change(&cause));
    handlers.iter().map(|spec| spec.id.to_string()).collect()
}

#[test]
fn triggers_select_by_reason_and_field() {
    let x = FieldPath::from("spec.x");
    let registry = registry(vec![
        HandlerSpec::new("create", Trigger::Create),
        HandlerSpec::new("update", Trigger::Update),
        HandlerSpec::new("delete", Trigger::Delete { optional: false }),
        HandlerSpec::new("resume", Trigger::Resume { deleted: false }),
        HandlerSpec::new("resume_deleted", Trigger::Resume { deleted: true }),
        HandlerSpec::for_field("field", Trigger::Field, x.clone()),
        HandlerSpec::for_field("update_field", Trigger::Update, x),
        HandlerSpec::new("event", Trigger::Event),
        HandlerSpec::new("daemon", Trigger::Daemon),
    ]);
    let select = |reason, initial, old| selected(&registry, reason, initial, old);
    assert_eq!(
        select(Reason::Create, false, None),
        ["create", "field/spec.x"]
    );
    assert_eq!(
        select(Reason::Update, false, Some(0)),
        ["update", "field/spec.x", "update_field/spec.x"]
    );
    assert_eq!(
        select(Reason::Update, true, Some(0)),
        [
            "update",
            "resume",
            "resume_deleted",
            "field/spec.x",
            "update_field/spec.x"
        ]
    );
    assert_eq!(select(Reason::Update, false, Some(1)), ["update"]);
    assert_eq!(
        select(Reason::Resume, true, Some(1)),
        ["resume", "resume_deleted"]
    );
    assert_eq!(
        select(Reason::Delete, true, Some(1)),
        ["delete", "resume_deleted"]
    );
    assert_eq!(
        select(Reason::Delete, false, Some(0)),
        ["delete", "field/spec.x"]
    );
}

#[test]
fn one_function_for_several_causes_is_called_once() {
    let registry = registry(vec![
        HandlerSpec::new("fn", Trigger::Update),
        HandlerSpec::new("fn", Trigger::Resume { deleted: false }),
    ]);
    assert_eq!(selected(&registry, Reason::Update, true, Some(0)), ["fn"]);
    assert_eq!(registry.owned_ids().len(), 1);
}

#[test]
fn invalid_declarations_are_reported() {
    let twice = [
        HandlerSpec::new("fn", Trigger::Delete { optional: false }),
        HandlerSpec::new("fn", Trigger::Delete { optional: true }),
    ];
    let error = Registry::new(twice).expect_err("declared twice");
    assert_eq!(error, Error::Duplicate("fn".into()));
    let error = Registry::new([HandlerSpec::new("fn", Trigger::Field)]).expect_err("no field");
    assert_eq!(error, Error::MissingField("fn".into()));
}

#[test]
fn objects_that_match_no_handler_may_be_tracked() {
    let handlers = vec![labelled(HandlerSpec::new("update", Trigger::Update))];
    let tracked = registry(handlers.clone()).tracking(Tracking::Always);
    let plain = json!({});
    assert!(!tracked.ignores(&Subject::object(ObjectView::new(&plain))));
    assert!(WatchSelectors::derive(&tracked).is_empty());
    assert!(!WatchSelectors::derive(&registry(handlers)).is_empty());
}

#[test]
fn objects_that_match_no_handler_are_ignored() {
    let registry = registry(vec![
        labelled(HandlerSpec::new("create", Trigger::Create)),
        HandlerSpec::new("event", Trigger::Event),
    ]);
    let (plain, on) = (json!({}), json!({"metadata": {"labels": {"on": ""}}}));
    let ignored = |body| registry.ignores(&Subject::object(ObjectView::new(body)));
    assert!(ignored(&plain));
    assert!(!ignored(&on));
    assert_eq!(
        registry
            .event_handlers(&Subject::object(ObjectView::new(&plain)))
            .len(),
        1
    );
}

#[test]
fn fields_of_all_handlers_are_watched_once() {
    let status = FieldPath::from("status.x");
    let registry = registry(vec![
        HandlerSpec::for_field("a", Trigger::Field, status.clone()),
        HandlerSpec::for_field("b", Trigger::Event, status.clone()),
    ]);
    assert_eq!(registry.essence_rules(&[]).watched, [status]);
    assert_eq!(Arc::strong_count(&registry.handlers()[0]), 1);
}
