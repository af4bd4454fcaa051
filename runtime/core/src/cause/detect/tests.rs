//! Reasons in the order of their rules.

use serde_json::{Value, json};

use super::{
    EventKind::{Changed, Deleted, Listed},
    *,
};

const OURS: &str = "ours";

fn detect(
    event: EventKind,
    meta: &Value,
    old: Option<&Value>,
    history: ObjectHistory,
) -> (Reason, bool) {
    let body = json!({"metadata": meta, "spec": 1});
    let old = old.map_or(Baseline::Absent, |old| {
        Baseline::Known(Essence::from_value(old.clone()))
    });
    let new = Essence::from_value(json!({"spec": 1}));
    let change = ObservedChange::detect(ObjectView::new(&body), event, history, OURS, old, new);
    (change.reason, change.initial)
}

#[test]
fn the_first_rule_that_holds_decides() {
    let listed = ObjectHistory::begin(Listed);
    let watched = ObjectHistory::begin(Changed);
    let handled = ObjectHistory {
        handled_once: true,
        ..listed
    };
    let plain = json!({});
    let deleting = json!({"deletionTimestamp": "now", "finalizers": [OURS, "other"]});
    let released = json!({"deletionTimestamp": "now", "finalizers": ["other"]});
    let (same, other) = (json!({"spec": 1}), json!({"spec": 0}));
    let cases = [
        (Deleted, &deleting, Some(&other), listed, Reason::Gone, true),
        (
            Changed,
            &released,
            Some(&other),
            watched,
            Reason::Free,
            false,
        ),
        (Changed, &deleting, None, watched, Reason::Delete, false),
        (
            Listed,
            &deleting,
            Some(&other),
            listed,
            Reason::Delete,
            true,
        ),
        (Listed, &plain, None, listed, Reason::Create, false),
        (Listed, &plain, Some(&same), listed, Reason::Resume, true),
        (Changed, &plain, Some(&same), handled, Reason::Noop, false),
        (Changed, &plain, Some(&same), watched, Reason::Noop, false),
        (
            Changed,
            &plain,
            Some(&other),
            watched,
            Reason::Update,
            false,
        ),
        (Listed, &plain, Some(&other), listed, Reason::Update, true),
    ];
    for (event, meta, old, history, reason, initial) in cases {
        assert_eq!(
            detect(event, meta, old, history),
            (reason, initial),
            "{reason}"
        );
    }
}

#[test]
fn reasons_are_stored_by_their_words() {
    for word in [
        "create", "update", "delete", "resume", "noop", "free", "gone",
    ] {
        assert_eq!(Reason::from_word(word).map(Reason::as_str), Some(word));
    }
    assert_eq!(Reason::from_word("other"), None);
}
