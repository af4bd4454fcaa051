//! Each answer of the API server to each request of a write, and what follows.

mod progress;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::machine::{answer::RequestFailure, request::ReadVerb};

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
        ObjectRequest::Read(ReadVerb::Get) => "get".to_owned(),
        ObjectRequest::Read(ReadVerb::List) => "list".to_owned(),
        ObjectRequest::ReadMetadata(verb) => format!("{verb:?} of the metadata"),
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
                    (ObjectRequest::Read(_), _) => accepted(version, &json!({})),
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
fn an_object_that_others_write_all_the_time_is_written_for_its_newest_version() {
    let done = accepted(99, &json!({"spec": {"b": 2}}));
    let answers: Vec<Answer> = conflicts(20).chain([done]).collect();
    let played = play(merge(json!({"spec": {"b": 2}})), RULES, answers);
    for (number, request) in requests(&played, "Object").enumerate() {
        let version = format!(r#""resourceVersion":"{}""#, 5 + number);
        assert!(request.contains(&version), "{request}");
    }
    let waits: Vec<&str> = requests(&played, "wait").collect();
    assert_eq!(waits[..3], ["wait 200 ms", "wait 400 ms", "wait 800 ms"]);
    assert_eq!(waits.last(), Some(&"wait 2000 ms"));
    let reports: Vec<&str> = requests(&played, "Contended").collect();
    assert_eq!(reports, ["Contended(8)", "Contended(16)"]);
    assert!(matches!(played.result, Ok(WriteResult::Written(_))));
}

#[test]
fn conflicts_without_a_newer_state_are_a_rejection_in_the_end() {
    let patches = [
        merge(json!({"spec": {"b": 2}})),
        merge(json!({"status": {"b": 2}})),
        counting_edit(),
    ];
    for patch in patches {
        let answers = (0..5).flat_map(|_| [status(409), accepted(5, &json!({}))]);
        let played = play(patch, RULES, answers);
        assert!(matches!(played.result, Err(Error::Rejected(_))));
    }
}

/// Conflicts, each with a newer state.
fn conflicts(count: u32) -> impl Iterator<Item = Answer> {
    (0..count).flat_map(|round| [status(409), accepted(6 + round, &json!({}))])
}

/// The lines of a write that begin with a word.
fn requests<'a>(played: &'a Played, word: &str) -> impl Iterator<Item = &'a str> {
    let lines = played.lines.iter().map(String::as_str);
    lines.filter(move |line| line.starts_with(word))
}

#[test]
fn an_object_that_may_not_be_got_is_listed() {
    let patches = [
        merge(json!({"spec": {"b": 2}})),
        merge(json!({"status": {"b": 2}})),
        counting_edit(),
    ];
    for patch in patches {
        let newer = || accepted(8, &json!({}));
        let done = accepted(10, &json!({"spec": {"b": 2}}));
        let answers = [
            status(409),
            status(403),
            newer(),
            status(409),
            newer(),
            done,
        ];
        let played = play(patch, RULES, answers);
        let reads: Vec<&str> = played.lines.iter().map(String::as_str).collect();
        assert_eq!(reads[1..4], ["get", r#"ListedInstead("no")"#, "list"]);
        assert_eq!(reads[5..7], ["wait 200 ms", "list"]);
        let is_patch = |line: &&String| line.contains("resourceVersion");
        let last = played.lines.iter().rfind(is_patch).expect("a patch");
        assert!(last.contains(r#""8""#), "{last}");
    }
}

#[test]
fn a_merge_patch_on_a_state_that_cannot_be_read_is_rejected() {
    let answers = [status(409), status(403), status(403)];
    let played = play(merge(json!({"spec": {"b": 2}})), RULES, answers);
    assert!(matches!(played.result, Err(Error::Rejected(_))));
}

#[test]
fn a_status_on_a_state_that_cannot_be_read_waits_for_a_permission() {
    let (newer, done) = (accepted(8, &json!({})), accepted(9, &json!({})));
    let answers = [status(409), status(403), status(403), newer, done];
    let played = play(merge(json!({"status": {"b": 2}})), RULES, answers);
    assert_eq!(
        played.lines[1..5],
        ["get", r#"ListedInstead("no")"#, "list", "wait 200 ms"]
    );
    assert_eq!(played.lines[5], "get");
}

#[test]
fn the_conflicts_of_the_status_do_not_count_for_the_rest() {
    let patch = merge(json!({"status": {"a": 1}, "spec": {"b": 2}}));
    let after_status = accepted(50, &json!({"status": {"a": 1}}));
    let after_both = accepted(51, &json!({"status": {"a": 1}, "spec": {"b": 2}}));
    let answers: Vec<Answer> = conflicts(9).chain([after_status, after_both]).collect();
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
