//! Records as Kopf writes them, and reading them back.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::json::to_ascii;

fn instant() -> impl Strategy<Value = Timestamp> {
    (0i64..4_000_000_000_000_000)
        .prop_map(|micros| Timestamp::from_microsecond(micros).expect("within the calendar"))
}

fn any_record() -> impl Strategy<Value = Record> {
    let reason = prop_oneof![
        Just(Reason::Create),
        Just(Reason::Update),
        Just(Reason::Delete),
        Just(Reason::Resume),
    ];
    (
        (
            instant(),
            prop::option::of(instant()),
            prop::option::of(instant()),
        ),
        (
            prop::option::of(reason),
            any::<u32>(),
            any::<bool>(),
            any::<bool>(),
        ),
        prop::option::of(".*"),
        prop::collection::btree_set("[a-z]{1,5}/[a-z]{1,5}", 0..3),
    )
        .prop_map(|(times, facts, message, subrefs)| Record {
            started: times.0,
            stopped: times.1,
            delayed: times.2,
            purpose: facts.0,
            retries: facts.1,
            success: facts.2,
            failure: facts.3,
            message,
            subrefs: subrefs.iter().map(|id| HandlerId::new(id)).collect(),
        })
}

#[test]
fn entries_are_in_the_order_of_kopf() {
    let now: Timestamp = "2020-01-01T00:00:00.5Z".parse().expect("valid");
    let record = Record {
        retries: 1,
        message: Some("é".to_owned()),
        subrefs: vec!["a/b".into()],
        ..Record::begin(Reason::Create, now)
    };
    assert_eq!(
        to_ascii(&record.to_json()),
        concat!(
            r#"{"started":"2020-01-01T00:00:00.500000+00:00","purpose":"create","retries":1,"#,
            r#""success":false,"failure":false,"message":"\u00e9","subrefs":["a/b"]}"#
        )
    );
    assert_eq!(
        to_ascii(&Record::begin(Reason::Create, now).to_json_with_nulls()),
        concat!(
            r#"{"started":"2020-01-01T00:00:00.500000+00:00","stopped":null,"delayed":null,"#,
            r#""purpose":"create","retries":0,"success":false,"failure":false,"message":null,"#,
            r#""subrefs":null}"#
        )
    );
}

#[test]
fn missing_entries_have_defaults() {
    let record =
        Record::from_json(&json!({"retries": null, "purpose": "strange"})).expect("a record");
    assert_eq!(record.retries, 0);
    assert_eq!(record.purpose, None);
    assert!(!record.is_finished());
    assert_eq!(Record::from_json(&json!("text")), None);
}

proptest! {
    #[test]
    fn records_survive_storage(record in any_record()) {
        for json in [record.to_json(), record.to_json_with_nulls()] {
            let text = to_ascii(&json);
            let json: Value = serde_json::from_str(&text).expect("valid JSON");
            prop_assert_eq!(Record::from_json(&json), Some(record.clone()));
        }
    }

    #[test]
    fn a_handler_is_due_when_its_delay_is_over(record in any_record(), now in instant()) {
        let sleeping = record.is_sleeping(now);
        prop_assert_eq!(sleeping, !record.is_finished() && record.delay(now) > Duration::ZERO);
        if let Some(delayed) = record.delayed {
            let later = time::after(now, record.delay(now));
            prop_assert!(later >= delayed);
            prop_assert!(!record.is_sleeping(later));
        }
    }
}

#[test]
fn a_clock_that_was_ahead_does_not_prolong_a_wait() {
    let second = |second| Timestamp::from_second(second).expect("a time");
    let record = |started, delayed| Record {
        delayed: Some(second(delayed)),
        ..Record::begin(Reason::Create, second(started))
    };
    let corrected = |mut record: Record, ahead| {
        record.correct_clock(Duration::from_secs(ahead), second(1000));
        (record.started, record.delayed)
    };
    let times = |started, delayed| (second(started), Some(second(delayed)));
    assert_eq!(corrected(record(900, 4660), 3600), times(900, 1060));
    assert_eq!(corrected(record(4500, 4660), 3600), times(1000, 1060));
    assert_eq!(corrected(record(4600, 4660), 0), times(1000, 1060));
    assert_eq!(corrected(record(900, 4660), 0), times(900, 4660));
    assert_eq!(corrected(record(1004, 4660), 0), times(1004, 4660));
    assert_eq!(corrected(record(4660, 4660), 0), times(4660, 4660));
}
