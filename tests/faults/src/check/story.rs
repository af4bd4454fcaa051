//! What happened to one object for a while, for the people who read a report: on a real control
//! plane the same seed may not show it again.

use std::fmt::Write as _;

use super::Evidence;
use super::calls::life_of;
use crate::clock::SECOND;
use crate::journal::LoggedStep;
use crate::operators::{OperatorLife, OperatorRole};
use crate::state::DigestedState;
use crate::watch_log::ObjectVersion;

/// The time before the first event and after the last one that is shown, too.
const MARGIN: u64 = SECOND;

/// The lines about an object between two times, each with the seconds since the first one.
pub(super) fn lines(evidence: &Evidence, uid: &str, from: u64, to: u64) -> String {
    let (from, to) = (from.saturating_sub(MARGIN), to.saturating_add(MARGIN));
    let mut events: Vec<(u64, String)> = Vec::new();
    let mut add = |at: u64, line: String| {
        if (from..=to).contains(&at) {
            events.push((at, line));
        }
    };
    for life in &evidence.lives {
        let name = name(life);
        add(life.started, format!("{name} starts"));
        life.ended
            .iter()
            .for_each(|at| add(*at, format!("{name} ends")));
        for (stopped, continued) in &life.stops {
            add(*stopped, format!("{name} stands still"));
            add(*continued, format!("{name} goes on"));
        }
    }
    for version in evidence.watch.versions.iter().filter(|it| it.uid == uid) {
        add(version.at, described(version));
    }
    for call in evidence.journal.calls().filter(|it| it.uid == uid) {
        let process = life_of(call, &evidence.lives);
        let process = process.map_or_else(|| call.pid.to_string(), name);
        let (handler, step) = (&call.handler, call.step);
        add(
            call.at,
            match step {
                LoggedStep::Begin => format!(
                    "{process} calls {handler}, attempt {}, for edit {} at version {}",
                    call.retry + 1,
                    call.state.edit,
                    call.version
                ),
                end => format!("{process}: the end of {handler} is {end:?}"),
            },
        );
    }
    events.sort_by_key(|(at, _)| *at);
    let mut text = String::new();
    for (at, line) in events {
        let (seconds, rest) = ((at - from) / SECOND, (at - from) % SECOND / 1_000);
        // A text in memory takes all that is written.
        let _ = write!(text, "\n    {seconds:>4}.{rest:03} {line}");
    }
    text
}

fn name(life: &OperatorLife) -> String {
    let role = match life.role {
        OperatorRole::Main => "operator",
        OperatorRole::Rival => "rival",
    };
    format!("{role} {}", life.pid)
}

/// The edit of a state, with enough of its digest to tell states of one edit apart.
fn edit(state: &DigestedState) -> String {
    let digest = state.whole.get(..6).unwrap_or(&state.whole);
    format!("edit {} ({digest})", state.edit)
}

fn described(version: &ObjectVersion) -> String {
    let state = &version.state;
    let mut text = format!(
        "version {}: {}, size {}",
        version.version,
        edit(state),
        state.size
    );
    if state.gold {
        text.push_str(", gold");
    }
    match &version.base {
        Some(base) => {
            let _ = write!(text, "; handled: {}", edit(base));
        }
        None => text.push_str("; handled: nothing"),
    }
    for (handler, record) in &version.records {
        let _ = match &record.ended {
            Some(time) => write!(text, "; {handler} ended at {time}"),
            None => write!(text, "; {handler} open since {}", record.started),
        };
    }
    if version.deleting {
        text.push_str("; being deleted");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::samples::Story;
    use crate::workload::CHANGED;

    #[test]
    fn a_report_shows_calls_and_versions_of_the_object() {
        let story = Story::complete().repeated_after_record(CHANGED);
        let broken = story.broken();
        let text = &broken.first().expect("a broken claim").text;
        let calls = text.matches(" calls changed, attempt 1").count();
        assert_eq!(calls, 2, "{text}");
        assert!(
            text.contains(" version 20: edit 1 (whole ), size 1; handled: edit 1 "),
            "{text}"
        );
    }
}
