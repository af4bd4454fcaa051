//! One inspected object in detail.

use std::fmt::Write as _;

use jiff::Timestamp;
use kopf_core::inspection::{HandlerState, HandlingState, InspectedHandler};

use super::InspectedObject;
use super::text::{age, change, printable, until};

/// The text about one object.
pub(super) fn of(object: &InspectedObject, now: Timestamp) -> String {
    let inspection = &object.inspection;
    let mut text = format!("{} {}\n", object.kind, object.full_name());
    let since = inspection
        .since
        .map(|at| format!(" since {} ({} ago)", at, age(at, now)));
    entry(
        &mut text,
        "state",
        &[format!(
            "{}{}",
            meaning(inspection.state),
            since.unwrap_or_default()
        )],
    );
    let handlers = inspection.handlers.iter();
    let handlers: Vec<String> = handlers.map(|it| handler(it, now)).collect();
    entry(&mut text, "handlers", &handlers);
    let changes = inspection.changes.iter();
    let changes: Vec<String> = changes.map(|item| change(inspection, item)).collect();
    entry(&mut text, "changes", &changes);
    let finalizers = inspection.finalizers.iter().map(|it| {
        let owner = if it.is_ours {
            "this operator"
        } else {
            "another program"
        };
        format!("{} ({owner})", printable(&it.name))
    });
    let title = match inspection.state {
        HandlingState::Deleting => "held by",
        _ => "finalizers",
    };
    entry(&mut text, title, &finalizers.collect::<Vec<_>>());
    text
}

fn meaning(state: HandlingState) -> &'static str {
    match state {
        HandlingState::New => "new: no operator has handled it",
        HandlingState::Handled => "handled",
        HandlingState::Changed => "changed: the change is not handled yet",
        HandlingState::Handling => "handling: handlers are due or running",
        HandlingState::Waiting => "waiting for the next attempt",
        HandlingState::Deleting => "being deleted",
    }
}

fn handler(handler: &InspectedHandler, now: Timestamp) -> String {
    let record = &handler.record;
    let mut text = format!(
        "{} {}",
        printable(handler.id.as_str()),
        handler.state.as_str()
    );
    let attempts = match record.retries {
        0 => String::new(),
        1 => ", 1 attempt".to_owned(),
        attempts => format!(", {attempts} attempts"),
    };
    // Writing into a string does not fail.
    let _ = write!(text, "{attempts} since {}", record.started);
    if let (HandlerState::Waiting, Some(at)) = (handler.state, record.delayed) {
        let _ = write!(text, ", next {}", until(at, now));
    }
    if let Some(message) = &record.message {
        let _ = write!(text, ": {}", printable(message));
    }
    text
}

/// Lines under a title; nothing if there are none.
fn entry(text: &mut String, title: &str, lines: &[String]) {
    for (number, line) in lines.iter().enumerate() {
        let title = if number == 0 { title } else { "" };
        let _ = writeln!(text, "  {title:<11} {line}");
    }
}
