//! What the journal keeps of reports.

use kopf_core::handler::HandlerSpec;
use serde_json::Value;

use super::*;

fn subject() -> JournalSubject<'static> {
    JournalSubject {
        api_version: "example.com/v1",
        kind: "Widget",
        namespace: Some("default"),
        name: "one",
        uid: "u-1",
    }
}

fn view(journal: &PageJournal) -> Value {
    serde_json::to_value(journal.history("u-1")).unwrap()
}

fn work() -> HandlerSpec {
    HandlerSpec::new("work", Trigger::Create)
}

#[test]
fn without_a_page_nothing_is_kept() {
    let journal = PageJournal::default();
    journal.handling_begun(&subject());
    journal.call_begun(&subject(), &work(), 0).end("succeeded");
    assert!(!journal.is_kept());
    assert_eq!(journal.revision(), 0);
    assert!(journal.calls(10).is_empty());
    assert_eq!(view(&journal), Value::Null);
}

#[test]
fn a_call_is_running_until_it_ends_and_is_in_the_timeline_afterwards() {
    let journal = PageJournal::keeping();
    journal.handling_begun(&subject());
    let call = journal.call_begun(&subject(), &work(), 1);
    let running = view(&journal);
    assert_eq!(running["state"], "running");
    assert_eq!(running["handlers"][0]["progress"], "running");
    assert_eq!(running["handlers"][0]["attempts"], 2);
    call.end("succeeded");
    let ended = view(&journal);
    assert_eq!(ended["handlers"][0]["progress"], "succeeded");
    assert_eq!(ended["calls"][0]["outcome"], "succeeded");
    assert_eq!(ended["calls"][0]["object"], "Widget default/one");
}

#[test]
fn a_call_that_is_dropped_was_interrupted() {
    let journal = PageJournal::keeping();
    drop(journal.call_begun(&subject(), &work(), 0));
    assert_eq!(journal.calls(1)[0].outcome, "interrupted");
    assert_eq!(view(&journal)["handlers"][0]["progress"], "pending");
}

#[test]
fn a_failure_is_reported_with_its_message_and_the_time_of_the_next_attempt() {
    let journal = PageJournal::keeping();
    let (spec, at) = (work(), Timestamp::now());
    journal.call_begun(&subject(), &spec, 0).end("temporary");
    let consequence = Consequence::Retry {
        message: "not yet".to_owned(),
        delay: Some(std::time::Duration::from_secs(60)),
    };
    let call = ReportedCall {
        spec: &spec,
        consequence: &consequence,
        record: None,
        at,
    };
    journal.call_reported(&subject(), &call);
    let shown = view(&journal);
    assert_eq!(shown["state"], "waiting");
    assert_eq!(shown["message"], "not yet");
    let until = time::after(at, std::time::Duration::from_secs(60));
    assert_eq!(shown["handlers"][0]["until"], until.as_millisecond());
}

#[test]
fn log_lines_reach_the_journal_that_knows_the_object() {
    let journal = PageJournal::keeping();
    let other = PageJournal::keeping();
    let of_lines = JournalSubject {
        uid: "u-of-lines",
        ..subject()
    };
    journal.handling_begun(&of_lines);
    assert!(log_lines::is_listening());
    log_lines::keep("u-of-lines", "info", Some("work"), "made");
    log_lines::keep("u-unknown", "info", None, "other");
    let history = journal.history("u-of-lines").unwrap();
    assert_eq!(history.lines.len(), 1);
    assert_eq!(&*history.lines[0].message, "made");
    assert_eq!(other.revision(), 1);
}

#[test]
fn an_object_that_is_forgotten_is_not_shown() {
    let journal = PageJournal::keeping();
    journal.handling_begun(&subject());
    journal.rested(&subject(), NextCall::Forget);
    assert_eq!(view(&journal), Value::Null);
}

#[test]
#[expect(clippy::print_stdout, reason = "figures for the documentation")]
fn the_first_view_of_ten_thousand_objects_is_small() {
    let journal = PageJournal::keeping();
    for number in 0..10_000 {
        let (name, uid) = (format!("widget-{number:05}"), format!("{number:036}"));
        let widget = JournalSubject {
            name: &name,
            uid: &uid,
            ..subject()
        };
        journal.handling_begun(&widget);
        journal.call_begun(&widget, &work(), 0).end("succeeded");
    }
    let begun = Instant::now();
    let query = ObjectQuery {
        size: 50,
        ..ObjectQuery::default()
    };
    let page = serde_json::to_vec(&journal.page(&query)).unwrap();
    let counts = serde_json::to_vec(&journal.counts()).unwrap();
    let time = begun.elapsed();
    println!(
        "{} bytes of objects, {} of counts, in {time:?}",
        page.len(),
        counts.len()
    );
    assert!(page.len() < 20_000, "{}", page.len());
}
