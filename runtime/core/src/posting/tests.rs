//! The correlator: examples, and properties of any history.

use proptest::prelude::*;

use super::*;
use crate::message::LONGEST_MESSAGE;

fn note(reason: &str, message: &str) -> EventContent {
    EventContent {
        r#type: "Normal".to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        at: Timestamp::UNIX_EPOCH,
    }
}

fn correlator() -> EventCorrelator<&'static str> {
    EventCorrelator::new(EventLimits::default())
}

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn repeats_become_a_count_of_the_same_event() {
    let mut correlator = correlator();
    correlator.add("one", note("Said", "hello"), at(0));
    let created = correlator.next(at(0)).unwrap();
    assert_eq!((created.count, &created.update), (1, &None));
    correlator.sent(&created.key, "event-1");
    for _ in 0..9_999 {
        correlator.add("one", note("Said", "hello"), at(0));
    }
    assert_eq!(correlator.next(at(0)), None);
    assert_eq!(correlator.wait(at(0)), Some(at(1)));
    let updated = correlator.next(at(1)).unwrap();
    assert_eq!(updated.count, 10_000);
    assert_eq!(updated.update.as_deref(), Some("event-1"));
    assert_eq!(correlator.next(at(2)), None);
}

#[test]
fn a_repeat_during_a_request_updates_the_event_later() {
    let mut correlator = correlator();
    correlator.add("one", note("Said", "hello"), at(0));
    let created = correlator.next(at(0)).unwrap();
    correlator.add("one", note("Said", "hello"), at(0));
    correlator.sent(&created.key, "event-1");
    let updated = correlator.next(at(1)).unwrap();
    assert_eq!(
        (updated.count, updated.update.as_deref()),
        (2, Some("event-1"))
    );
}

#[test]
fn many_similar_events_become_one() {
    let mut correlator = correlator();
    for number in 0..1_000 {
        correlator.add("one", note("Said", &format!("number {number}")), at(0));
    }
    let sent: Vec<DueEvent<&str>> = std::iter::from_fn(|| correlator.next(at(0))).collect();
    assert_eq!(sent.len(), 11);
    assert_eq!(
        sent[10].message,
        "(combined from similar events): number 999"
    );
    assert_eq!(sent[10].count, 990);
    // Later they have their own messages again.
    correlator.add("one", note("Said", "number 2000"), at(601));
    assert_eq!(correlator.next(at(601)).unwrap().message, "number 2000");
}

#[test]
fn an_object_with_many_events_does_not_use_up_the_budget_of_others() {
    let mut correlator = correlator();
    for number in 0..100 {
        correlator.add("loud", note(&format!("Reason{number}"), "hello"), at(0));
    }
    correlator.add("quiet", note("Said", "hello"), at(0));
    let sent: Vec<&str> = std::iter::from_fn(|| correlator.next(at(0)))
        .map(|due| due.key.subject)
        .collect();
    assert_eq!(
        sent.iter().filter(|subject| **subject == "loud").count(),
        25
    );
    assert_eq!(sent.last(), Some(&"quiet"));
    let wait = correlator.wait(at(0)).unwrap();
    assert!(wait > at(299) && wait < at(301), "{wait:?}");
    assert!(correlator.next(wait).is_some());
    assert!(correlator.next(wait).is_none());
}

#[test]
fn an_expired_event_is_created_again_with_its_count() {
    let mut correlator = correlator();
    correlator.add("one", note("Said", "hello"), at(0));
    let created = correlator.next(at(0)).unwrap();
    correlator.sent(&created.key, "event-1");
    correlator.add("one", note("Said", "hello"), at(5000));
    let update = correlator.next(at(5000)).unwrap();
    correlator.recreate(&update.key);
    let renewed = correlator.next(at(5000)).unwrap();
    assert_eq!((renewed.count, renewed.update), (2, None));
}

#[test]
fn a_failed_event_is_retried_and_then_dropped() {
    let mut correlator = correlator();
    correlator.add("one", note("Said", "hello"), at(0));
    let mut now = at(0);
    for _ in 0..8 {
        let due = correlator.next(now).unwrap();
        assert!(correlator.failed(&due.key, now));
        now += correlator.wait(now).unwrap();
    }
    let due = correlator.next(now).unwrap();
    assert!(!correlator.failed(&due.key, now));
    assert_eq!(correlator.wait(now), None);
    assert_eq!(now, at(54));
}

#[test]
fn without_delays_no_event_waits_for_repeats() {
    let mut correlator = correlator();
    correlator.add("one", note("Said", "hello"), at(0));
    let created = correlator.next(at(0)).unwrap();
    correlator.sent(&created.key, "event-1");
    correlator.add("one", note("Said", "hello"), at(0));
    assert_eq!(correlator.next(at(0)), None);
    correlator.skip_delays();
    assert_eq!(correlator.next(at(0)).unwrap().count, 2);
}

/// A history: object, reason, message, and the time that passes before.
fn history() -> impl Strategy<Value = Vec<(u8, u8, u8, u16)>> {
    prop::collection::vec((0_u8..3, 0_u8..3, 0_u8..20, 0_u16..50), 1..300)
}

proptest! {
    /// Every event is counted once, none is lost, and the budget is kept.
    #[test]
    fn every_event_is_counted_once_and_the_budget_is_kept(history in history()) {
        let limits = EventLimits::default();
        let mut correlator = EventCorrelator::new(limits.clone());
        let mut now = Duration::ZERO;
        let mut requests: HashMap<u8, u32> = HashMap::new();
        let mut counts: HashMap<EventKey<u8>, u32> = HashMap::new();
        let mut drain = |correlator: &mut EventCorrelator<u8>, now: Duration, requests: &mut HashMap<u8, u32>| {
            while let Some(due) = correlator.next(now) {
                *requests.entry(due.key.subject).or_default() += 1;
                let known = counts.insert(due.key.clone(), due.count);
                assert_eq!(due.update.is_some(), known.is_some());
                assert!(known.is_none_or(|known| known < due.count));
                assert!(due.message.len() <= LONGEST_MESSAGE);
                correlator.sent(&due.key, "name");
            }
            counts.values().map(|&count| u64::from(count)).sum::<u64>()
        };
        for (noted, &(subject, reason, message, pause)) in history.iter().enumerate() {
            now += at(pause.into());
            correlator.add(subject, note(&reason.to_string(), &message.to_string()), now);
            let sent = drain(&mut correlator, now, &mut requests);
            prop_assert!(sent <= noted as u64 + 1);
            let refilled = now.as_secs() / limits.refill.as_secs();
            let most = requests.values().copied().max().unwrap_or_default();
            prop_assert!(u64::from(most) <= u64::from(limits.burst) + refilled);
        }
        for _ in 0..history.len() {
            let Some(wait) = correlator.wait(now) else { break };
            now += wait;
            drain(&mut correlator, now, &mut requests);
        }
        prop_assert_eq!(correlator.wait(now), None);
        prop_assert_eq!(drain(&mut correlator, now, &mut requests), history.len() as u64);
    }

    #[test]
    fn the_numbers_of_waiting_and_remembered_events_are_limited(history in history()) {
        let limits = EventLimits { waiting: 5, remembered: 10, ..EventLimits::default() };
        let mut correlator = EventCorrelator::new(limits);
        let mut dropped = 0;
        for (step, (subject, reason, message, pause)) in history.into_iter().enumerate() {
            let now = at(u64::from(pause));
            correlator.add(subject, note(&reason.to_string(), &message.to_string()), now);
            if step % 3 == 0 && let Some(due) = correlator.next(now) {
                correlator.sent(&due.key, "name");
            }
            prop_assert!(correlator.queue.len() <= 5);
            prop_assert!(correlator.entries.len() <= 10);
            dropped += correlator.dropped();
        }
        prop_assert!(dropped <= 300);
    }
}
