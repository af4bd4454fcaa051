//! Each answer of the API server to each request of a write, and what follows.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{merge::MOST_CONFLICTS, *};
use crate::{
    cause::Reason,
    handled_states::{HandledStates, RecordStamp},
    handler::HandlerId,
    machine::answer::RequestFailure,
    object::{diff::Baseline, essence::Essence},
    progress::{record::Record, status::StatusProgress},
};

/// What the write did, one line each.
struct Played {
    lines: Vec<String>,
    result: Result<WriteResult, Error>,
}

/// The rules of most writes.
const RULES: WriteRules = WriteRules {
    status_endpoint: true,
    on_conflict: OnConflict::Repeat,
    on_forbidden: OnForbidden::Reject,
    read_back: ReadBack::Always,
};

/// The rules of writes that no call led to.
const REPORTING: WriteRules = WriteRules {
    on_conflict: OnConflict::Report,
    ..RULES
};

fn object(version: u32, rest: &Value) -> Value {
    let mut object = json!({"metadata": {"uid": "u", "resourceVersion": version.to_string()}});
    apply_merge(&mut object, rest);
    object
}

fn known() -> Arc<Value> {
    Arc::new(object(5, &json!({})))
}

fn accepted(version: u32, rest: &Value) -> Answer {
    Answer::Object(Arc::new(object(version, rest)))
}

fn status(code: u16) -> Answer {
    Answer::Failed(RequestFailure::Status {
        code,
        message: "no".to_owned(),
        retry_after: None,
    })
}

fn lost() -> Answer {
    Answer::Failed(RequestFailure::ConnectionLost("reset".to_owned()))
}

fn merge(patch: Value) -> ObjectPatch {
    let mut merge = ObjectPatch::new();
    merge.merge(patch);
    merge
}

/// Counts how often it is made.
fn counting_edit() -> ObjectPatch {
    let mut patch = ObjectPatch::new();
    patch.edit(|body| {
        let count = body["spec"]["count"].as_u64().unwrap_or(0);
        body["spec"]["count"] = (count + 1).into();
    });
    patch
}

fn start() -> Now {
    Now {
        wall: Timestamp::UNIX_EPOCH,
        steady: Duration::ZERO,
        seed: u64::MAX,
        stopping: false,
        running: true,
        epoch: 0,
    }
}

fn play(
    patch: ObjectPatch,
    rules: WriteRules,
    answers: impl IntoIterator<Item = Answer>,
) -> Played {
    let write = ObjectWrite::new("u", &known(), patch, rules, &start());
    play_write(write.with_progress(&Persistence::default()), answers)
}

/// Plays a write with progress in these storages.
fn play_with(
    persistence: &Persistence,
    patch: ObjectPatch,
    answers: impl IntoIterator<Item = Answer>,
) -> Played {
    let write = ObjectWrite::new("u", &known(), patch, RULES, &start());
    play_write(write.with_progress(persistence), answers)
}

fn play_write(mut write: ObjectWrite<'_>, answers: impl IntoIterator<Item = Answer>) -> Played {
    let mut answers = answers.into_iter();
    let mut now = start();
    let mut lines = Vec::new();
    let mut answer = None;
    loop {
        answer = match write.step(answer, &now) {
            RequestEffect::Send => {
                lines.push(line(&write.request()));
                Some(
                    answers
                        .next()
                        .expect("another request needs another answer"),
                )
            }
            RequestEffect::Wait(pause) => {
                lines.push(format!("wait {} ms", pause.pause.as_millis()));
                now.steady += pause.pause;
                None
            }
            RequestEffect::Report(report) => {
                lines.push(format!("{report:?}"));
                None
            }
            RequestEffect::Done(result) => {
                assert!(answers.next().is_none(), "fewer requests: {lines:#?}");
                return Played { lines, result };
            }
        };
    }
}

fn line(request: &ObjectRequest<'_>) -> String {
    match request {
        ObjectRequest::Get => "get".to_owned(),
        ObjectRequest::GetMetadata => "get metadata".to_owned(),
        ObjectRequest::NextState { after } => format!("next after {after}"),
        ObjectRequest::Patch {
            endpoint, content, ..
        } => match content {
            PatchContent::Merge(patch) => format!("{endpoint:?} {patch}"),
            PatchContent::Json(patch) => format!("{endpoint:?} {patch}"),
        },
    }
}

#[test]
fn each_part_tests_the_version_that_the_part_before_it_has_left() {
    let patch = merge(json!({"status": {"a": 1}, "spec": {"b": 2}}));
    let after_status = json!({"status": {"a": 1}});
    let after_both = json!({"status": {"a": 1}, "spec": {"b": 2}});
    let played = play(
        patch,
        RULES,
        [accepted(6, &after_status), accepted(7, &after_both)],
    );
    assert_eq!(
        played.lines,
        [
            r#"Status {"status":{"a":1},"metadata":{"uid":"u","resourceVersion":"5"}}"#,
            r#"Object {"spec":{"b":2},"metadata":{"uid":"u","resourceVersion":"6"}}"#,
        ]
    );
    assert!(matches!(played.result, Ok(WriteResult::Written(_))));
}

#[test]
fn a_write_that_changes_nothing_is_a_success() {
    let same = json!({"spec": {"b": 2}});
    let played = play(merge(same.clone()), RULES, [accepted(5, &same)]);
    assert!(matches!(played.result, Ok(WriteResult::Unchanged)));
}

#[test]
fn annotations_that_were_accepted_and_not_kept_are_named() {
    let patch = merge(json!({"metadata": {"annotations": {"note": "1"}}}));
    let played = play(patch, RULES, [accepted(6, &json!({}))]);
    assert!(matches!(played.result, Ok(WriteResult::Stripped(_, names)) if names == ["note"]));
}

#[test]
fn a_status_that_lost_against_another_writer_is_sent_for_the_newer_version() {
    let patch = merge(json!({"status": {"a": 1}}));
    let newer = accepted(8, &json!({}));
    let newest = accepted(9, &json!({}));
    let done = accepted(10, &json!({"status": {"a": 1}}));
    let played = play(
        patch,
        RULES,
        [status(409), newer, status(409), newest, done],
    );
    assert_eq!(
        played.lines,
        [
            r#"Status {"status":{"a":1},"metadata":{"uid":"u","resourceVersion":"5"}}"#,
            "get",
            r#"Status {"status":{"a":1},"metadata":{"uid":"u","resourceVersion":"8"}}"#,
            "wait 200 ms",
            "get",
            r#"Status {"status":{"a":1},"metadata":{"uid":"u","resourceVersion":"9"}}"#,
        ]
    );
}

#[test]
fn nothing_reaches_another_object_of_the_name() {
    let namesake = || Answer::Object(Arc::new(json!({"metadata": {"uid": "other"}})));
    let with_status = || merge(json!({"status": {"a": 1}}));
    let played = play(with_status(), RULES, [status(409), namesake()]);
    assert!(matches!(played.result, Ok(WriteResult::Gone)));
    let with_spec = || merge(json!({"spec": {"b": 2}}));
    for refusal in [409, 422] {
        let played = play(with_spec(), RULES, [status(refusal), namesake()]);
        assert!(matches!(played.result, Ok(WriteResult::Gone)), "{refusal}");
    }
    let played = play(counting_edit(), RULES, [status(422), namesake()]);
    assert!(matches!(played.result, Ok(WriteResult::Gone)));
}

#[test]
fn a_status_without_an_endpoint_is_written_with_the_rest() {
    let patch = merge(json!({"status": {"a": 1}, "spec": {"b": 2}}));
    let both = json!({"status": {"a": 1}, "spec": {"b": 2}});
    let answers = [status(404), accepted(5, &json!({})), accepted(6, &both)];
    let played = play(patch, RULES, answers);
    assert_eq!(
        played.lines[1..],
        [
            "get",
            "NoStatusEndpoint",
            r#"Object {"spec":{"b":2},"status":{"a":1},"metadata":{"uid":"u","resourceVersion":"5"}}"#,
        ]
    );
    let gone = play(
        merge(json!({"status": {"a": 1}})),
        RULES,
        [status(404), status(404)],
    );
    assert!(matches!(gone.result, Ok(WriteResult::Gone)));
}

#[test]
fn an_edited_status_without_an_endpoint_is_written_with_the_rest() {
    let mut patch = ObjectPatch::new();
    patch.edit(|body| body["status"] = json!({"a": 1}));
    let written = json!({"status": {"a": 1}});
    let answers = [status(404), accepted(5, &json!({})), accepted(6, &written)];
    let played = play(patch, RULES, answers);
    let edit = r#"[{"op":"test","path":"/metadata/resourceVersion","value":"5"},{"op":"add","path":"/status","value":{"a":1}}]"#;
    assert_eq!(
        played.lines,
        [
            format!("Status {edit}"),
            "get".to_owned(),
            "NoStatusEndpoint".to_owned(),
            format!("Object {edit}"),
        ]
    );
    assert!(matches!(played.result, Ok(WriteResult::Written(_))));
}

#[test]
fn a_request_without_an_answer_is_sent_again_with_growing_pauses() {
    for failure in [401, 408, 429, 500, 502, 503, 504] {
        let patch = merge(json!({"spec": {"b": 2}}));
        let done = accepted(6, &json!({"spec": {"b": 2}}));
        let played = play(patch, RULES, [status(failure), status(failure), done]);
        let waits: Vec<&String> = played.lines.iter().skip(1).step_by(2).collect();
        assert_eq!(waits, ["wait 200 ms", "wait 400 ms"], "{failure}");
        assert!(matches!(played.result, Ok(WriteResult::Written(_))));
    }
}

#[test]
fn a_rejected_write_ends_unless_the_object_is_gone() {
    for code in [400, 403, 410, 413, 415, 422] {
        let patch = merge(json!({"spec": {"b": 2}}));
        let played = play(patch, RULES, [status(code), accepted(5, &json!({}))]);
        assert!(matches!(played.result, Err(Error::Rejected(_))), "{code}");
    }
}

#[test]
fn a_forbidden_write_of_a_handler_is_sent_again_for_about_a_minute() {
    let rules = WriteRules {
        on_forbidden: OnForbidden::RetryForMinute { ends_at_stop: true },
        ..RULES
    };
    let patch = merge(json!({"spec": {"b": 2}}));
    let forbidden = std::iter::repeat_with(|| status(403)).take(9);
    let played = play(patch, rules, forbidden.chain([accepted(5, &json!({}))]));
    let waited: u64 = played
        .lines
        .iter()
        .filter_map(|line| {
            line.strip_prefix("wait ")?
                .strip_suffix(" ms")?
                .parse::<u64>()
                .ok()
        })
        .sum();
    assert!((50_000..90_000).contains(&waited), "{waited}");
    assert!(matches!(played.result, Err(Error::Rejected(_))));
}

#[test]
fn a_forbidden_write_ends_though_others_change_the_object_meanwhile() {
    let rules = WriteRules {
        on_forbidden: OnForbidden::RetryForMinute { ends_at_stop: true },
        ..RULES
    };
    let patch = merge(json!({"spec": {"b": 2}}));
    let mut now = start();
    let mut write = ObjectWrite::new("u", &known(), patch, rules, &now);
    let (mut answer, mut version) = (None, 5);
    let result = (0..200).find_map(|number| {
        match write.step(answer.take(), &now) {
            RequestEffect::Send => {
                answer = Some(match (write.request(), number % 7) {
                    (ObjectRequest::Get, _) => accepted(version, &json!({})),
                    (_, 0) => {
                        version += 1;
                        status(409)
                    }
                    _ => status(403),
                });
            }
            RequestEffect::Wait(pause) => now.steady += pause.pause,
            RequestEffect::Report(_) => {}
            RequestEffect::Done(result) => return Some(result),
        }
        None
    });
    assert!(matches!(result, Some(Err(Error::Rejected(_)))));
    assert!(now.steady < Duration::from_secs(120), "{:?}", now.steady);
}

#[test]
fn an_edit_whose_answer_was_lost_is_not_made_twice() {
    let edited = json!({"spec": {"count": 1}});
    let landed = play(
        counting_edit(),
        WriteRules {
            status_endpoint: false,
            ..RULES
        },
        [lost(), status(422), accepted(6, &edited)],
    );
    assert_eq!(
        landed
            .lines
            .iter()
            .filter(|it| it.starts_with("Object"))
            .count(),
        2
    );
    assert!(matches!(landed.result, Ok(WriteResult::Written(_))));
}

#[test]
fn an_edit_that_was_written_and_changed_again_is_found_by_the_state_after_it() {
    let first = json!({"spec": {"count": 1}});
    let newest = json!({"spec": {"count": 7}});
    let rules = WriteRules {
        status_endpoint: false,
        ..RULES
    };
    let answers = [
        lost(),
        status(422),
        accepted(9, &newest),
        accepted(6, &first),
    ];
    let found = play(counting_edit(), rules, answers);
    assert_eq!(found.lines.last().map(String::as_str), Some("next after 5"));
    assert!(matches!(found.result, Ok(WriteResult::Written(_))));

    // The permission to watch may come back.
    let answers = [
        lost(),
        status(422),
        accepted(9, &newest),
        status(403),
        accepted(6, &first),
    ];
    let found = play(counting_edit(), rules, answers);
    assert_eq!(found.lines.last().map(String::as_str), Some("next after 5"));
    assert!(matches!(found.result, Ok(WriteResult::Written(_))));

    let other = json!({"spec": {"count": 4}});
    let again = json!({"spec": {"count": 8}});
    let answers = [
        lost(),
        status(422),
        accepted(9, &newest),
        accepted(6, &other),
        accepted(10, &again),
    ];
    let repeated = play(counting_edit(), rules, answers);
    let last = repeated.lines.last().map(String::as_str);
    assert!(
        last.is_some_and(|last| last.contains(r#""value":8"#)),
        "{last:?}"
    );

    let answers = [
        lost(),
        status(422),
        accepted(9, &newest),
        status(410),
        accepted(10, &again),
    ];
    let forgotten = play(counting_edit(), rules, answers);
    assert!(
        forgotten
            .lines
            .iter()
            .any(|it| it.starts_with("EditUnconfirmed"))
    );
}

#[test]
fn a_finalizer_is_not_written_on_top_of_a_newer_state() {
    let rules = WriteRules {
        status_endpoint: false,
        on_conflict: OnConflict::Report,
        ..RULES
    };
    let played = play(
        counting_edit(),
        rules,
        [status(422), accepted(9, &json!({}))],
    );
    assert!(matches!(played.result, Ok(WriteResult::Outdated(_))));
}

#[test]
fn a_patch_that_reports_conflicts_is_not_written_on_top_of_a_newer_state() {
    for patch in [json!({"spec": {"a": 1}}), json!({"status": {"b": 1}})] {
        let refused = [status(409), accepted(9, &json!({}))];
        let played = play(merge(patch), REPORTING, refused);
        let Ok(WriteResult::Outdated(newer)) = played.result else {
            panic!("{:#?}: {:?}", played.lines, played.result);
        };
        assert_eq!(version(&newer), Some("9"));
    }
}

#[test]
fn a_patch_that_reports_conflicts_is_completed_if_its_first_part_may_be_written() {
    let both = || merge(json!({"spec": {"a": 1}, "status": {"b": 1}}));
    let first = json!({"status": {"b": 1}});
    let all = json!({"spec": {"a": 1}, "status": {"b": 1}});
    let written = [
        accepted(6, &first),
        status(409),
        accepted(9, &first),
        accepted(10, &all),
    ];
    let unanswered = [
        lost(),
        status(409),
        accepted(9, &first),
        accepted(9, &first),
        accepted(10, &all),
    ];
    let (written, unanswered) = (
        play(both(), REPORTING, written),
        play(both(), REPORTING, unanswered),
    );
    for played in [written, unanswered] {
        let Ok(WriteResult::Written(object)) = played.result else {
            panic!("{:#?}: {:?}", played.lines, played.result);
        };
        assert_eq!(version(&object), Some("10"));
    }
}

#[test]
fn a_conflict_without_a_newer_state_is_no_reason_to_decide_again() {
    for patch in [
        counting_edit(),
        merge(json!({"spec": {"a": 1}})),
        merge(json!({"status": {"b": 1}})),
    ] {
        let played = play(patch, REPORTING, [status(409), accepted(5, &json!({}))]);
        assert!(
            matches!(played.result, Err(Error::Rejected(_))),
            "{:#?}: {:?}",
            played.lines,
            played.result
        );
    }
}

#[test]
fn writes_that_lose_again_and_again_wait_before_they_read_the_newer_state() {
    let rules = WriteRules {
        status_endpoint: false,
        ..RULES
    };
    let newer = |version| accepted(version, &json!({}));
    for (patch, refusal) in [
        (counting_edit(), 422),
        (merge(json!({"spec": {"count": 1}})), 409),
    ] {
        let answers = [
            status(refusal),
            newer(6),
            status(refusal),
            newer(7),
            accepted(8, &json!({"spec": {"count": 1}})),
        ];
        let played = play(patch, rules, answers);
        let words = played.lines.iter().filter_map(|it| it.split(' ').next());
        let words: Vec<&str> = words.collect();
        let expected = ["Object", "get", "Object", "wait", "get", "Object"];
        assert_eq!(words, expected, "{:#?}", played.lines);
    }
}

#[test]
fn an_edit_that_another_client_makes_first_ends_with_the_state_of_that_client() {
    for refused in [403, 409] {
        let mut patch = ObjectPatch::new();
        patch.edit(|body| body["spec"]["size"] = 1.into());
        let theirs = accepted(6, &json!({"spec": {"size": 1}}));
        let played = play(patch, RULES, [status(refused), theirs]);
        let Ok(WriteResult::Outdated(newest)) = played.result else {
            panic!("{refused}: {:?}", played.result);
        };
        assert_eq!(version(&newest), Some("6"));
    }
}

#[test]
fn an_edit_that_panics_is_an_error_of_the_handler() {
    let mut patch = ObjectPatch::new();
    patch.edit(|_| panic!("no such field"));
    let played = play(patch, RULES, []);
    let error = played.result.expect_err("it panicked");
    assert_eq!(error.of_handler(), "its patch panicked: no such field");
}

#[test]
fn the_end_of_the_lease_ends_the_write() {
    let played = play(
        merge(json!({"spec": {"b": 2}})),
        RULES,
        [Answer::LeaseEnded],
    );
    assert!(matches!(played.result, Ok(WriteResult::LeaseEnded)));
}

#[test]
fn an_edit_that_is_undone_at_once_is_not_taken_for_one_that_was_not_needed() {
    let played = play(counting_edit(), RULES, [accepted(5, &json!({}))]);
    assert!(matches!(played.result, Ok(WriteResult::Written(_))));
}

#[test]
fn a_merge_patch_that_lost_against_another_writer_is_written_on_top_of_its_state() {
    let done = accepted(9, &json!({"spec": {"b": 2}}));
    let answers = [status(409), accepted(8, &json!({})), done];
    let played = play(merge(json!({"spec": {"b": 2}})), RULES, answers);
    assert_eq!(
        played.lines,
        [
            r#"Object {"spec":{"b":2},"metadata":{"uid":"u","resourceVersion":"5"}}"#,
            "get",
            r#"Object {"spec":{"b":2},"metadata":{"uid":"u","resourceVersion":"8"}}"#,
        ]
    );
}

#[test]
fn an_object_that_others_write_all_the_time_is_written_in_the_end() {
    let answers: Vec<Answer> = most_conflicts()
        .chain([accepted(99, &json!({"spec": {"b": 2}}))])
        .collect();
    let played = play(merge(json!({"spec": {"b": 2}})), RULES, answers);
    let last = played.lines.last().expect("a request");
    assert_eq!(last, r#"Object {"spec":{"b":2},"metadata":{"uid":"u"}}"#);
    assert!(matches!(played.result, Ok(WriteResult::Written(_))));
}

/// The conflicts after which the version is not compared any more.
fn most_conflicts() -> impl Iterator<Item = Answer> {
    (0..MOST_CONFLICTS).flat_map(|round| {
        let newer = accepted(6 + round, &json!({}));
        [status(409), newer]
    })
}

#[test]
fn the_conflicts_of_the_status_do_not_count_for_the_rest() {
    let patch = merge(json!({"status": {"a": 1}, "spec": {"b": 2}}));
    let after_status = accepted(50, &json!({"status": {"a": 1}}));
    let after_both = accepted(51, &json!({"status": {"a": 1}, "spec": {"b": 2}}));
    let answers: Vec<Answer> = most_conflicts().chain([after_status, after_both]).collect();
    let played = play(patch, RULES, answers);
    let last = played.lines.last().expect("a request");
    let tested = r#"Object {"spec":{"b":2},"metadata":{"uid":"u","resourceVersion":"50"}}"#;
    assert_eq!(last, tested);
}

#[test]
fn an_edit_without_an_answer_was_not_made_if_the_version_is_the_same() {
    let unchanged = accepted(5, &json!({}));
    let done = accepted(6, &json!({"spec": {"count": 1}}));
    let played = play(
        counting_edit(),
        RULES,
        [lost(), status(409), unchanged, done],
    );
    assert!(played.lines.iter().all(|line| !line.contains("next")));
    assert!(matches!(played.result, Ok(WriteResult::Written(_))));
}

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
        let note = all["metadata"]["annotations"]["kopf.zalando.org/last-seen-states"].to_string();
        assert!(last.contains(&note), "{last} has no {note}");
    }
}

#[test]
fn notes_that_may_replace_those_of_another_operator_say_so() {
    let state = json!({"spec": {"b": 0}});
    let mut record = finished(&[("ours", 1, state.clone())]);
    let notes = "kopf.zalando.org/last-seen-states";
    let last_request = |patch: &Value, answers: Vec<Answer>| {
        let newest = [accepted(9, &json!({}))];
        let played = play(
            merge(patch.clone()),
            RULES,
            answers.into_iter().chain(newest),
        );
        played.lines.last().expect("a request").clone()
    };
    let newer = || accepted(7, &finished(&[("theirs", 3, state.clone())]));
    let conflicts = |number| (0..number).flat_map(|_| [status(409), newer()]).collect();
    let is_marked = |patch: &Value, answers| {
        let request = last_request(patch, answers);
        let is_tested = request.contains("resourceVersion");
        assert_ne!(is_tested, request.contains("unchecked"), "{request}");
        !is_tested
    };
    assert!(!is_marked(&record, conflicts(1)));
    // The object may not be read, or others write it all the time.
    assert!(is_marked(&record, vec![status(409), status(403)]));
    assert!(is_marked(&record, conflicts(5)));

    let annotations = record["metadata"]["annotations"].as_object_mut();
    annotations.expect("annotations").shift_remove(notes);
    let request = last_request(&record, vec![status(409), status(403)]);
    assert!(!request.contains("unchecked"), "it replaces no notes");
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
    let notes = &patch["metadata"]["annotations"]["kopf.zalando.org/last-seen-states"];
    let notes: Value = serde_json::from_str(notes.as_str().expect("notes")).expect("JSON");
    let seen = &notes["states"][notes["handlers"]["theirs"][2].as_u64().expect("a state") as usize];
    assert_eq!(*seen, json!({"digests": ""}));
}

#[test]
fn the_end_of_a_cycle_keeps_the_notes_of_records_that_it_leaves() {
    let (notes, record) = (
        "kopf.zalando.org/last-seen-states",
        "kopf.zalando.org/theirs",
    );
    let theirs = finished(&[("theirs", 3, json!({"spec": {"b": 0}}))]);
    let note = theirs["metadata"]["annotations"][notes].to_string();
    for (annotations, kept) in [
        (json!({notes: null}), note.as_str()),
        (json!({notes: null, record: null}), "null"),
    ] {
        let end = json!({"metadata": {"annotations": annotations}});
        let answers = [status(409), accepted(7, &theirs), accepted(8, &json!({}))];
        let played = play(merge(end), RULES, answers);
        let last = played.lines.last().expect("a request");
        assert!(last.contains(&format!("{notes:?}:{kept}")), "{last}");
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
        notes["metadata"]["annotations"]["kopf.zalando.org/last-seen-states"].to_string()
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
    let note = both["metadata"]["annotations"]["kopf.zalando.org/last-seen-states"].to_string();
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
    let note = wanted["metadata"]["annotations"]["kopf.zalando.org/last-seen-states"].to_string();
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
    let note = wanted["metadata"]["annotations"]["kopf.zalando.org/last-seen-states"].to_string();
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
    let note = wanted["metadata"]["annotations"]["kopf.zalando.org/last-seen-states"].to_string();
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
