//! Writes of progress that lose against those of another operator.

use super::*;
use crate::{
    cause::Reason,
    handled_states::{HandledStates, RecordStamp},
    handler::HandlerId,
    object::{diff::Baseline, essence::Essence},
    progress::{record::Record, status::StatusProgress},
};

const NOTES: &str = "kopf.zalando.org/last-seen-states";

/// The record of a handler that has finished on a state, with its note.
fn finished(handlers: &[(&str, i64, Value)]) -> Value {
    finished_since(&known(), handlers)
}

/// The same in a cycle that has begun on this state.
fn finished_since(before: &Value, handlers: &[(&str, i64, Value)]) -> Value {
    let persistence = Persistence::default();
    let (mut patch, mut notes) = (ObjectPatch::new(), HandledStates::default());
    let null = Value::Null;
    let (none, view) = (ObjectView::new(&null), ObjectView::new(before));
    for (id, second, state) in handlers {
        let id = HandlerId::new(id);
        let at = Timestamp::from_second(*second).expect("a time");
        let record = Record {
            stopped: Some(at),
            success: true,
            ..Record::begin(Reason::Create, at)
        };
        let stamp = RecordStamp::of(&record).expect("it has finished");
        let state = Baseline::Known(Essence::from_value(state.clone()));
        notes.note(id.clone(), stamp, &state);
        persistence.progress.store(&id, &record, none, &mut patch);
    }
    let notes = notes.encode(&persistence.baseline(view), "u", 10_000);
    let progress = &persistence.progress;
    progress.store_handled_states(Some(&notes), none, &mut patch);
    Value::Object(patch.merge_patch().clone())
}

#[test]
fn notes_of_an_operator_that_was_faster_stay() {
    let (early, late) = (json!({"spec": {"b": 0}}), json!({"spec": {"b": 1}}));
    let ours = finished(&[("ours", 1, early.clone()), ("both", 2, early.clone())]);
    let theirs = finished(&[("theirs", 3, early.clone()), ("both", 4, late.clone())]);
    let mut newer = theirs.clone();
    apply_merge(&mut newer, &late);
    let mut together = theirs;
    apply_merge(&mut together, &ours);
    let all = finished(&[
        ("ours", 1, early.clone()),
        ("both", 2, early.clone()),
        ("theirs", 3, early),
    ]);
    apply_merge(&mut together, &all);
    for patch in [merge(ours.clone()), {
        let mut patch = counting_edit();
        patch.merge(ours);
        patch
    }] {
        let answers = [status(409), accepted(7, &newer), accepted(8, &together)];
        let played = play(patch, RULES, answers);
        let last = played.lines.last().expect("a request");
        let note = all["metadata"]["annotations"][NOTES].to_string();
        assert!(last.contains(&note), "{last} has no {note}");
    }
}

#[test]
fn handlers_whose_notes_cannot_be_read_have_seen_an_unknown_state() {
    let state = json!({"spec": {"b": 0}});
    // The last handled state with which they can be read was rejected.
    let theirs = finished_since(&handled(&state), &[("theirs", 3, state.clone())]);
    let ours = finished(&[("ours", 1, state)]);
    let answers = [status(409), accepted(7, &theirs), accepted(8, &json!({}))];
    let played = play(merge(ours), RULES, answers);
    let last = played.lines.last().expect("a request");
    let (_, patch) = last.split_once(' ').expect("a patch");
    let patch: Value = serde_json::from_str(patch).expect("JSON");
    let notes = &patch["metadata"]["annotations"][NOTES];
    let notes: Value = serde_json::from_str(notes.as_str().expect("notes")).expect("JSON");
    let seen = &notes["states"][notes["handlers"]["theirs"][2].as_u64().expect("a state") as usize];
    assert_eq!(*seen, json!({"digests": ""}));
}

#[test]
fn the_end_of_a_cycle_keeps_the_notes_of_records_that_it_leaves() {
    let record = "kopf.zalando.org/theirs";
    let theirs = finished(&[("theirs", 3, json!({"spec": {"b": 0}}))]);
    let note = theirs["metadata"]["annotations"][NOTES].to_string();
    for (annotations, kept) in [
        (json!({NOTES: null}), note.as_str()),
        (json!({NOTES: null, record: null}), "null"),
    ] {
        let end = json!({"metadata": {"annotations": annotations}});
        let answers = [status(409), accepted(7, &theirs), accepted(8, &json!({}))];
        let played = play(merge(end), RULES, answers);
        let last = played.lines.last().expect("a request");
        assert!(last.contains(&format!("{NOTES:?}:{kept}")), "{last}");
    }
}

#[test]
fn a_handler_that_has_ended_for_an_operator_that_was_faster_is_not_begun_again() {
    stays_ended("both", "kopf.zalando.org/both");
    stays_ended("field/spec.b", "kopf.zalando.org/field.spec.b");
}

/// The handler with this id, whose record has this key.
fn stays_ended(id: &str, key: &str) {
    let state = json!({"spec": {"b": 0}});
    let theirs = finished(&[(id, 3, state.clone())]);
    let record = theirs["metadata"]["annotations"][key].to_string();
    let last_request = |ours: Value| {
        let answers = [status(409), accepted(7, &theirs), accepted(8, &theirs)];
        let played = play(merge(ours), RULES, answers);
        played.lines.last().expect("a request").clone()
    };
    let begun = json!({"started": "2020-01-01T00:00:00Z", "purpose": "create", "retries": 0});
    let begun = json!({"metadata": {"annotations": {key: begun.to_string()}}});
    assert!(last_request(begun).contains(&record));
    // If it has ended here, too, the other end may be the earlier one.
    let ours = finished(&[(id, 2, state)]);
    assert!(!last_request(ours).contains(&record));
}

#[test]
fn a_handler_whose_end_was_known_is_begun_again_though_another_operator_has_its_record() {
    let key = "kopf.zalando.org/both";
    let annotations = "/metadata/annotations";
    let mut ended = finished(&[("both", 3, json!({"spec": {"b": 0}}))]);
    let mut before = (*known()).clone();
    apply_merge(&mut before, &ended);
    let before = Arc::new(before);
    // The other operator goes on with the record in an update.
    let annotation = ended.pointer_mut(annotations).expect("annotations");
    let record = annotation[key].as_str().expect("a record");
    annotation[key] = record.replace(r#""create""#, r#""update""#).into();
    let record = annotation[key].to_string();
    assert!(record.contains("update"), "{record}");
    let mut newer = (*before).clone();
    apply_merge(&mut newer, &ended);
    let begun = json!({"started": "2020-01-01T00:00:00Z", "stopped": "1970-01-01T00:00:03Z"});
    let begun = merge(json!({"metadata": {"annotations": {key: begun.to_string()}}}));
    let last_request = |before: &Arc<Value>| {
        let write = ObjectWrite::new("u", before, begun.clone(), RULES, &start());
        let answers = [status(409), accepted(7, &newer), accepted(8, &newer)];
        let played = play_write(write.with_progress(&Persistence::default()), answers);
        played.lines.last().expect("a request").clone()
    };
    assert!(!last_request(&before).contains(&record));
    assert!(last_request(&known()).contains(&record), "its end is news");
}

#[test]
fn sub_handlers_of_an_operator_that_was_faster_are_named_by_their_parent() {
    names_sub_handlers("parent");
    names_sub_handlers("parent/spec.a");
}

#[test]
fn a_record_of_an_operator_that_was_faster_is_not_written_after_it_has_ended_the_cycle() {
    let annotation = |id: &str| format!("kopf.zalando.org/{}", id.replace('/', "."));
    let record = |subs: &[&str]| {
        let record = json!({"started": "2020-01-01T00:00:00Z", "retries": 2, "subrefs": subs});
        Value::String(record.to_string())
    };
    let theirs = json!({"metadata": {"annotations": {
        annotation("parent"): record(&["parent/one"]), annotation("parent/one"): record(&[]),
    }}});
    let ours = json!({"metadata": {"annotations": {annotation("parent"): null}}});
    let newer = [accepted(7, &theirs), status(409), accepted(8, &json!({}))];
    let answers = [status(409)].into_iter().chain(newer);
    let played = play(merge(ours), RULES, answers.chain([accepted(9, &json!({}))]));
    let requests: Vec<_> = played
        .lines
        .iter()
        .filter(|it| it.contains("annotations"))
        .collect();
    assert!(requests[1].contains("parent/one"), "{requests:?}");
    assert!(!requests[2].contains("parent/one"), "{requests:?}");
}

fn names_sub_handlers(parent: &str) {
    let annotation = |id: &str| format!("kopf.zalando.org/{}", id.replace('/', "."));
    let record = |retries: u32, subs: &[&str]| {
        let subs = json!({"started": "2020-01-01T00:00:00Z", "retries": retries, "subrefs": subs});
        Value::String(subs.to_string())
    };
    let sub = |name: &str| format!("{parent}/{name}");
    let theirs = json!({"metadata": {"annotations": {
        annotation(parent): record(7, &[&sub("one"), &sub("two")]),
        annotation(&sub("two")): record(1, &[]),
        annotation("reconcile"): record(1, &["example.com/v1/Part"]),
    }}});
    let written = |ours: Value| {
        let ours = json!({"metadata": {"annotations": ours}});
        let answers = [status(409), accepted(7, &theirs), accepted(8, &json!({}))];
        let played = play(merge(ours), RULES, answers);
        let last = played.lines.last().expect("a request");
        let (_, patch) = last.split_once(' ').expect("a patch");
        let patch: Value = serde_json::from_str(patch).expect("JSON");
        patch["metadata"]["annotations"].clone()
    };
    let record_in = |written: &Value, id: &str| {
        let text = written[annotation(id)].as_str().expect("a record");
        Record::from_json(&serde_json::from_str(text).expect("JSON")).expect("a record")
    };
    let two = [HandlerId::new(&sub("two"))];

    // Ours names its own sub-handlers, and the one that has a record.
    let ours = written(json!({annotation(parent): record(2, &[])}));
    let kept = record_in(&ours, parent);
    assert_eq!((kept.retries, &kept.subrefs[..]), (2, &two[..]));
    // The end of a cycle leaves the record that names a record which it does not know.
    let ours = written(json!({annotation(parent): null}));
    assert_eq!(record_in(&ours, parent).retries, 7);
    // It removes all of them, if it knows them.
    let all = json!({annotation(parent): null, annotation(&sub("two")): null});
    assert_eq!(written(all.clone()), all);
    // The kinds of children are no sub-handlers.
    let ours = json!({annotation("reconcile"): record(2, &[])});
    assert_eq!(written(ours.clone()), ours);
}

#[test]
fn the_end_of_a_cycle_can_be_read_with_notes_for_the_state_that_it_stores() {
    let state = json!({"spec": {"b": 0}});
    let ended_on = |theirs: Value| {
        let theirs = finished(&[("theirs", 3, theirs)]);
        let answers = [status(409), accepted(7, &theirs), accepted(8, &json!({}))];
        let played = play(merge(handled(&state)), RULES, answers);
        played.lines.last().expect("a request").clone()
    };
    let note_for = |ended: &Value| {
        let notes = finished_since(&handled(&state), &[("theirs", 3, ended.clone())]);
        notes["metadata"]["annotations"][NOTES].to_string()
    };
    let (last, note) = (ended_on(state.clone()), note_for(&state));
    assert!(last.contains(&note), "{last} has no {note}");
    // Which call was the last one is not known.
    let other = json!({"spec": {"b": 1}});
    let (last, note) = (ended_on(other.clone()), note_for(&other));
    assert!(!last.contains(&note), "{last} has {note}");
}

/// The object with a last handled state.
fn handled(state: &Value) -> Value {
    let persistence = Persistence::default();
    let (null, mut patch) = (Value::Null, ObjectPatch::new());
    let state = Baseline::Known(Essence::from_value(state.clone()));
    let diffbase = &persistence.diffbase;
    diffbase.store(&state, ObjectView::new(&null), &mut patch);
    Value::Object(patch.merge_patch().clone())
}

#[test]
fn notes_of_the_cycle_after_the_own_one_stay() {
    let (early, late) = (json!({"spec": {"b": 0}}), json!({"spec": {"b": 1}}));
    let ours = finished(&[("ours", 1, early.clone())]);
    // The other operator has ended the cycle, and has called a handler in the next one.
    let mut newer = handled(&early);
    let theirs = [("theirs", 3, late.clone())];
    apply_merge(&mut newer, &finished_since(&handled(&early), &theirs));
    let both = [("ours", 1, early.clone()), ("theirs", 3, late)];
    let both = finished_since(&handled(&early), &both);
    let answers = [status(409), accepted(7, &newer), accepted(8, &both)];
    let played = play(merge(ours), RULES, answers);
    let last = played.lines.last().expect("a request");
    let note = both["metadata"]["annotations"][NOTES].to_string();
    assert!(last.contains(&note), "{last} has no {note}");
}

#[test]
fn notes_are_readable_with_the_last_handled_state_of_a_late_write() {
    let (early, late) = (json!({"spec": {"b": 0}}), json!({"spec": {"b": 1}}));
    let ours = [("ours", 1, late)];
    // A request of an earlier process has ended that process' cycle.
    let newer = handled(&early);
    let wanted = finished_since(&newer, &ours);
    let answers = [status(409), accepted(7, &newer), accepted(8, &wanted)];
    let played = play(merge(finished(&ours)), RULES, answers);
    let last = played.lines.last().expect("a request");
    let note = wanted["metadata"]["annotations"][NOTES].to_string();
    assert!(last.contains(&note), "{last} has no {note}");
}

#[test]
fn notes_that_were_rejected_are_readable_with_the_last_handled_state_of_a_late_write() {
    let (early, late) = (json!({"spec": {"b": 0}}), json!({"spec": {"b": 1}}));
    let ours = [("ours", 1, late)];
    let newer = object(7, &handled(&early));
    let wanted = finished_since(&newer, &ours);
    let persistence = Persistence::default();
    let write = ObjectWrite::new(
        "u",
        &Arc::new(newer),
        merge(finished(&ours)),
        RULES,
        &start(),
    );
    let write = write.with_progress(&persistence).made_for(&known());
    let played = play_write(write, [accepted(8, &wanted)]);
    let last = played.lines.last().expect("a request");
    let note = wanted["metadata"]["annotations"][NOTES].to_string();
    assert!(last.contains(&note), "{last} has no {note}");
}

/// The notes of both operators stay though our write loses against two writes of the other one,
/// which has these last handled states then.
fn loses_twice(cycles: [&Value; 2]) {
    let (early, late) = (json!({"spec": {"b": 0}}), json!({"spec": {"b": 2}}));
    let all = [
        ("ours", 1, early),
        ("theirs", 3, late.clone()),
        ("then", 4, late),
    ];
    let after = |cycle: &Value, handlers: &[(&str, i64, Value)]| {
        let mut state = handled(cycle);
        apply_merge(&mut state, &finished_since(&handled(cycle), handlers));
        state
    };
    let wanted = after(cycles[1], &all);
    let answers = [
        status(409),
        accepted(7, &after(cycles[0], &all[1..2])),
        status(409),
        accepted(8, &after(cycles[1], &all[1..])),
        accepted(9, &wanted),
    ];
    let played = play(merge(finished(&all[..1])), RULES, answers);
    let last = played.lines.last().expect("a request");
    let note = wanted["metadata"]["annotations"][NOTES].to_string();
    assert!(last.contains(&note), "{last} has no {note}");
}

#[test]
fn notes_stay_though_a_write_loses_twice_against_the_cycle_after_its_own() {
    let next = json!({"spec": {"b": 0}});
    loses_twice([&next, &next]);
}

#[test]
fn notes_stay_though_a_write_loses_against_each_of_the_two_cycles_after_its_own() {
    loses_twice([&json!({"spec": {"b": 0}}), &json!({"spec": {"b": 1}})]);
}

/// The end of a cycle, with progress in the status, that calls for another handler: its notes are
/// in the status, and the last handled state in an annotation.
fn end_with_follow_up() -> (Persistence, Value) {
    let persistence = Persistence {
        progress: Arc::new(StatusProgress::default()),
        ..Persistence::default()
    };
    let (null, mut patch) = (Value::Null, ObjectPatch::new());
    let notes = r#"{"base": "x", "states": [], "handlers": {}}"#;
    let progress = &persistence.progress;
    progress.store_handled_states(Some(notes), ObjectView::new(&null), &mut patch);
    let mut end = handled(&json!({"spec": {"b": 0}}));
    apply_merge(&mut end, &Value::Object(patch.merge_patch().clone()));
    (persistence, end)
}

#[test]
fn a_last_handled_state_is_not_written_without_the_notes_that_belong_to_it() {
    let (persistence, mut end) = end_with_follow_up();
    let status_written = accepted(6, &json!({"status": end["status"].clone()}));
    let effect = json!({"metadata": {"labels": {"on": "no"}}});
    let answers = [status_written, status(409), accepted(8, &json!({}))];
    let played = play_with(&persistence, merge(end.clone()), answers);
    assert!(matches!(played.result, Ok(WriteResult::Outdated(_))));

    apply_merge(&mut end, &effect);
    let status_written = accepted(6, &json!({"status": end["status"].clone()}));
    let newer = accepted(8, &json!({}));
    let answers = [status_written, status(409), newer, accepted(9, &effect)];
    let played = play_with(&persistence, merge(end), answers);
    let last = played.lines.last().expect("a request");
    let effects = r#"{"metadata":{"labels":{"on":"no"},"uid":"u","resourceVersion":"8"}}"#;
    assert_eq!(last, &format!("Object {effects}"));
}

#[test]
fn a_last_handled_state_whose_notes_are_left_is_written_on_top_of_other_changes() {
    let (persistence, end) = end_with_follow_up();
    let status_only = json!({"status": end["status"].clone()});
    let answers = [
        accepted(6, &status_only),
        status(409),
        accepted(8, &status_only),
        accepted(9, &end),
    ];
    let played = play_with(&persistence, merge(end), answers);
    let last = played.lines.last().expect("a request");
    assert!(last.contains("last-handled-configuration"), "{last}");
}

#[test]
fn the_end_of_a_cycle_whose_answer_was_lost_counts_as_written() {
    let end = handled(&json!({"spec": {"b": 0}}));
    let answers = [lost(), status(409), accepted(6, &end), accepted(6, &end)];
    let played = play(merge(end), RULES, answers);
    assert!(matches!(played.result, Ok(WriteResult::Written(_))));
    let last = played.lines.last().expect("a request");
    assert!(last.contains("last-handled-configuration"), "{last}");
}

#[test]
fn a_last_handled_state_that_others_remove_is_written_again() {
    let end = handled(&json!({"spec": {"b": 0}}));
    let answers = [status(409), accepted(7, &json!({})), accepted(8, &end)];
    let played = play(merge(end), RULES, answers);
    let last = played.lines.last().expect("a request");
    assert!(last.contains("last-handled-configuration"), "{last}");
}

/// A write on an object that says that a handler has finished on this state: it gives the record
/// another purpose, and leaves the notes as they are.
fn play_another_purpose(state: &Value, answers: impl IntoIterator<Item = Answer>) -> Played {
    let id = HandlerId::new("ours");
    let before = object(5, &finished(&[("ours", 1, state.clone())]));
    let persistence = Persistence::default();
    let (progress, view) = (&persistence.progress, ObjectView::new(&before));
    let record = Record {
        purpose: Some(Reason::Update),
        ..progress.fetch(&id, view).expect("a record")
    };
    let mut patch = ObjectPatch::new();
    progress.store(&id, &record, view, &mut patch);
    let write = ObjectWrite::new("u", &Arc::new(before.clone()), patch, RULES, &start());
    play_write(write.with_progress(&persistence), answers)
}

#[test]
fn a_record_has_its_note_though_an_operator_that_was_faster_has_removed_both() {
    let (state, theirs) = (json!({"spec": {"b": 0}}), json!({"spec": {"b": 1}}));
    // The other operator has ended the cycle, and has called a handler in the next one.
    let mut newer = handled(&state);
    let all = [("ours", 1, state.clone()), ("theirs", 3, theirs)];
    apply_merge(&mut newer, &finished_since(&handled(&state), &all[1..]));
    let wanted = finished_since(&handled(&state), &all);
    let answers = [status(409), accepted(7, &newer), accepted(8, &wanted)];
    let played = play_another_purpose(&state, answers);
    let last = played.lines.last().expect("a request");
    let note = wanted["metadata"]["annotations"][NOTES].to_string();
    assert!(last.contains(&note), "{last} has no {note}");
}

#[test]
fn notes_that_are_still_there_are_not_written_again() {
    let state = json!({"spec": {"b": 0}});
    let same = finished(&[("ours", 1, state.clone())]);
    let answers = [status(409), accepted(7, &same), accepted(8, &same)];
    let played = play_another_purpose(&state, answers);
    let last = played.lines.last().expect("a request");
    assert!(!last.contains(NOTES), "{last}");
}
