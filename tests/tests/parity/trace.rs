//! The trace of a scenario: states, calls and events, without what differs from run to run.

use std::fmt::Write as _;

use k8s_openapi::api::core::v1::Event;
use kopf_tests::child_process::ChildProcess;
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

/// The annotation with the states that finished handlers were called with, which Kopf does not have.
pub(crate) const SEEN_STATES: &str = "kopf.zalando.org/last-seen-states";

/// The records of one run, in order.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Trace {
    /// States of objects at named moments.
    pub(crate) states: Vec<(String, Value)>,
    /// All calls of handlers.
    pub(crate) calls: Vec<Value>,
    /// All events posted, in order per object.
    pub(crate) events: Vec<Value>,
}

// === impl Trace ===

impl Trace {
    fn lines(&self) -> Vec<String> {
        let states = self.states.iter().flat_map(|(moment, state)| {
            let text = format!("{moment}: {state:#}");
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        });
        let calls = self.calls.iter().map(|call| format!("call: {call}"));
        let events = self.events.iter().map(|event| format!("event: {event}"));
        states.chain(calls).chain(events).collect()
    }
}

/// Asserts that both traces are equal.
#[track_caller]
pub(crate) fn assert_same(scenario: &str, kopf: &Trace, ours: &Trace) {
    if kopf == ours {
        return;
    }
    let (kopf, ours) = (kopf.lines(), ours.lines());
    let mut text = String::new();
    // Writing to a string cannot fail.
    for line in &ours {
        let mark = if kopf.contains(line) { ' ' } else { '+' };
        let _ = writeln!(text, "{mark} {line}");
    }
    for line in kopf.iter().filter(|line| !ours.contains(line)) {
        let _ = writeln!(text, "- {line}");
    }
    if text.lines().all(|line| line.starts_with(' ')) {
        let _ = write!(text, "not in the order of Kopf:\n{}", kopf.join("\n"));
    }
    panic!("{scenario}: ours, with + what Kopf does not have and - what only Kopf has\n{text}");
}

/// The compared parts of an object: everything that an operator or a user may have written.
pub(crate) fn state(object: &DynamicObject) -> Value {
    let metadata = &object.metadata;
    let mut annotations: Map<String, Value> = metadata
        .annotations
        .iter()
        .flatten()
        .map(|(key, value)| (key.clone(), timeless(value).into()))
        .collect();
    annotations.remove(SEEN_STATES);
    json!({
        "annotations": annotations,
        "labels": metadata.labels,
        "finalizers": metadata.finalizers,
        "deleted": metadata.deletion_timestamp.is_some(),
        "spec": object.data["spec"],
        "status": object.data["status"],
    })
}

/// The calls in the log of a program.
pub(crate) fn calls(operator: &ChildProcess) -> Result<Vec<Value>, serde_json::Error> {
    operator
        .log()
        .lines()
        .filter_map(|line| line.strip_prefix("CALL "))
        .map(serde_json::from_str)
        .collect()
}

/// The compared parts of a posted event.
pub(crate) fn event(event: &Event) -> Value {
    let about = &event.involved_object;
    json!({
        "type": event.type_,
        "reason": event.reason,
        "message": event.message.as_deref().map(without_traceback),
        "action": event.action,
        "component": event.reporting_component,
        "instance": event.reporting_instance,
        "source": event.source.as_ref().and_then(|it| it.component.clone()),
        "prefix": event.metadata.generate_name,
        "object": [about.kind, about.name],
        "whole": about.api_version.is_some() && about.namespace.is_some() && about.uid.is_some(),
    })
}

/// Removes Python's traceback, which we do not have.
fn without_traceback(message: &str) -> &str {
    let (message, _) = message.split_once("\nTraceback ").unwrap_or((message, ""));
    message
}

/// The text with every digit of every time stamp replaced, so that only their form is compared.
pub(crate) fn timeless(text: &str) -> String {
    const STAMP: &str = "0000-00-00T00:00:00";
    let mut rest = text;
    let mut out = String::with_capacity(text.len());
    while let Some(first) = rest.chars().next() {
        if begins_like(rest, STAMP) {
            let end = rest
                .find(|it: char| !it.is_ascii_digit() && !"-T:.+Z".contains(it))
                .unwrap_or(rest.len());
            out.extend(
                rest[..end]
                    .chars()
                    .map(|it| if it.is_ascii_digit() { '0' } else { it }),
            );
            rest = &rest[end..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

fn begins_like(text: &str, stamp: &str) -> bool {
    let same = |(it, like): (char, char)| {
        if like == '0' {
            it.is_ascii_digit()
        } else {
            it == like
        }
    };
    text.chars().count() >= stamp.len() && text.chars().zip(stamp.chars()).all(same)
}

#[test]
fn only_the_digits_of_time_stamps_are_ignored() {
    let record =
        r#"{"started":"2026-11-15T02:42:07.123456+00:00","retries":1,"message":"at 12:30"}"#;
    assert_eq!(
        timeless(record),
        r#"{"started":"0000-00-00T00:00:00.000000+00:00","retries":1,"message":"at 12:30"}"#
    );
}
