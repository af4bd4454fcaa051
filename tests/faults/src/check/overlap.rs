//! One at a time: no two calls of change handlers for one object at once, and no handler, daemon or
//! timer twice at once.

use std::collections::BTreeMap;

use super::calls::{Call, Calls};
use super::{BrokenClaim, Claim, Evidence};
use crate::journal::LoggedStep;
use crate::workload::{NOTICED, STEADY, TICK};

pub(super) fn check(evidence: &Evidence, calls: &Calls<'_>) -> Vec<BrokenClaim> {
    let mut broken = Vec::new();
    // Sub-handlers run inside of their parents, daemons and timers beside all others.
    let mut turns: BTreeMap<&str, Vec<&Call<'_>>> = BTreeMap::new();
    for (uid, handler, calls) in calls.groups() {
        if handler == NOTICED {
            continue;
        }
        let calls = calls.iter().collect::<Vec<_>>();
        if matches!(handler, STEADY | TICK) || handler.starts_with("parts/") {
            broken.extend(overlaps(evidence, &calls));
        } else {
            turns.entry(uid).or_default().extend(calls);
        }
    }
    for calls in turns.values_mut() {
        calls.sort_by_key(|call| call.begin.at);
        broken.extend(overlaps(evidence, calls));
    }
    broken
}

/// The calls that begin before an earlier one is over.
fn overlaps(evidence: &Evidence, calls: &[&Call<'_>]) -> Vec<BrokenClaim> {
    let mut broken = Vec::new();
    let mut running: Option<&Call<'_>> = None;
    for call in calls {
        if let Some(earlier) = running
            && over(evidence, earlier).is_none_or(|over| over > call.begin.at)
            // Peers notice each other after a moment.
            && earlier.role == call.role
        {
            let (one, other) = (earlier.begin, call.begin);
            broken.push(Claim::NoOverlap.broken(format!(
                "{} ({}): `{}` of process {} at version {} and `{}` of process {} at version {} at once",
                one.name, one.uid, one.handler, one.pid, one.version, other.handler, other.pid, other.version
            )));
        }
        let later = |one: &Call<'_>, other: &Call<'_>| match (one.over, other.over) {
            (None, _) => true,
            (_, None) => false,
            (Some(one), Some(other)) => one > other,
        };
        if running.is_none_or(|earlier| later(call, earlier)) {
            running = Some(call);
        }
    }
    broken
}

/// The end of a call. A stopped process does nothing, and drops a call when it continues.
fn over(evidence: &Evidence, call: &Call<'_>) -> Option<u64> {
    let dropped = matches!(call.end, Some((_, LoggedStep::Cut)));
    let life = evidence
        .lives
        .iter()
        .rev()
        .find(|life| life.pid == call.begin.pid && life.started <= call.begin.at);
    let mut stops = life.map_or(&[][..], |life| life.stops.as_slice()).iter();
    let stop = stops.find(|(from, to)| {
        dropped && *from >= call.begin.at && call.over.is_some_and(|over| over >= *to)
    });
    stop.map_or(call.over, |(from, _)| Some(*from))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Story, claims_of};
    use super::*;
    use crate::workload::{CHANGED, MADE, SUBS};

    #[test]
    fn calls_at_once_are_found() {
        for (one, other) in [(CHANGED, CHANGED), (MADE, CHANGED)] {
            let story = Story::complete().overlapping(one, other);
            assert!(
                claims_of(&story).contains(&Claim::NoOverlap),
                "{one} {other}"
            );
        }
        let story = Story::complete().overlapping(SUBS[0], SUBS[0]);
        assert!(claims_of(&story).contains(&Claim::NoOverlap));
    }

    #[test]
    fn a_sub_handler_inside_of_its_parent_is_no_overlap() {
        assert_eq!(claims_of(&Story::complete()), []);
    }

    #[test]
    fn two_daemons_of_one_object_are_found() {
        let story = Story::complete().with_second_daemon();
        assert!(claims_of(&story).contains(&Claim::NoOverlap));
    }
}
