//! Daemons, timers and the index at rest: for each object, and for no other.

use std::collections::{BTreeMap, BTreeSet};

use super::calls::Calls;
use super::{BrokenClaim, Claim, Evidence};
use crate::clock::SECOND;
use crate::journal::IndexedState;
use crate::workload::{NOTICED, STEADY, TICK};

/// The time after which a call should have ended, on a busy machine.
const CALL_PATIENCE: u64 = 20 * SECOND;

pub(super) fn check(evidence: &Evidence, calls: &Calls<'_>) -> Vec<BrokenClaim> {
    let mut broken = hanging(evidence, calls);
    if !evidence.tested.has_records() {
        return broken;
    }
    broken.extend(daemons(evidence, calls));
    for (name, object) in &evidence.widgets {
        let last = calls.of_handler(&object.uid, TICK).last();
        let last = last.map_or(0, |call| call.begin.at);
        if last < evidence.quiet_from {
            broken
                .push(Claim::Background.broken(format!("{name}: `{TICK}` is not called any more")));
        }
    }
    broken.extend(index(evidence));
    broken.extend(notices(evidence, calls));
    broken
}

fn daemons(evidence: &Evidence, calls: &Calls<'_>) -> Vec<BrokenClaim> {
    let mut broken = Vec::new();
    let mut running: BTreeMap<&str, usize> = BTreeMap::new();
    for (uid, _, calls) in calls.groups().filter(|(_, handler, _)| *handler == STEADY) {
        let open = calls
            .iter()
            .filter(|call| call.over.is_none_or(|over| over > evidence.rest));
        running.insert(uid, open.count());
    }
    let existing: BTreeSet<&str> = evidence
        .widgets
        .values()
        .map(|it| it.uid.as_str())
        .collect();
    for (name, object) in &evidence.widgets {
        let count = running.get(object.uid.as_str()).copied().unwrap_or(0);
        if count != 1 {
            broken.push(Claim::Background.broken(format!("{name}: `{STEADY}` runs {count} times")));
        }
    }
    for (uid, count) in running {
        if count > 0 && !existing.contains(uid) {
            broken
                .push(Claim::NoOrphans.broken(format!("`{STEADY}` runs for {uid}, which is gone")));
        }
    }
    broken
}

/// Calls that never end.
fn hanging(evidence: &Evidence, calls: &Calls<'_>) -> Vec<BrokenClaim> {
    let mut broken = Vec::new();
    for (uid, handler, calls) in calls.groups().filter(|(_, handler, _)| *handler != STEADY) {
        for call in calls.iter().filter(|call| call.over.is_none()) {
            if call.begin.at + CALL_PATIENCE < evidence.rest {
                let name = &call.begin.name;
                broken.push(
                    Claim::Background
                        .broken(format!("{name} ({uid}): a call of `{handler}` never ends")),
                );
            }
        }
    }
    broken
}

fn index(evidence: &Evidence) -> Vec<BrokenClaim> {
    let probes = evidence
        .pids
        .iter()
        .filter_map(|pid| evidence.journal.last_probe(*pid));
    // Of several replicas, the leader reports last.
    let Some(probe) = probes.max_by_key(|probe| probe.at) else {
        return vec![Claim::IndexComplete.broken("no process reports its index".to_owned())];
    };
    let wanted = evidence.widgets.iter();
    let wanted: BTreeMap<&str, &str> = wanted
        .map(|(name, object)| (name.as_str(), object.state.whole.as_str()))
        .collect();
    let mut broken = Vec::new();
    for (name, state) in &wanted {
        if probe.index.get(*name).map(IndexedState::whole).as_deref() != Some(state) {
            broken.push(Claim::IndexComplete.broken(format!(
                "{name} is missing in the index, or has an old state there"
            )));
        }
    }
    for name in probe.index.keys() {
        if !wanted.contains_key(name.as_str()) {
            broken.push(
                Claim::IndexComplete.broken(format!("{name} is in the index, and does not exist")),
            );
        }
    }
    broken
}

/// The handler of watch events has got the final version of each gate.
fn notices(evidence: &Evidence, calls: &Calls<'_>) -> Vec<BrokenClaim> {
    let mut broken = Vec::new();
    // Of several replicas, one handles gates, and another one may lead.
    for (name, gate) in evidence.gates.iter().filter(|_| !evidence.elected) {
        let mut calls = calls.of_handler(&gate.uid, NOTICED).iter();
        if !calls.any(|call| call.begin.version == gate.version) {
            broken.push(Claim::NothingLost.broken(format!(
                "{name}: `{NOTICED}` has not got the final version {}",
                gate.version
            )));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Story, claims_of};
    use super::*;

    #[test]
    fn a_missing_daemon_and_a_missing_timer_are_found() {
        for handler in [STEADY, TICK] {
            let story = Story::complete().without(handler);
            assert_eq!(claims_of(&story), [Claim::Background], "{handler}");
        }
    }

    #[test]
    fn a_daemon_of_an_object_that_is_gone_is_an_orphan() {
        let story = Story::complete().gone_unreleased();
        assert!(claims_of(&story).contains(&Claim::NoOrphans));
    }

    #[test]
    fn a_call_that_never_ends_is_found() {
        let story = Story::complete().with_endless_call();
        assert!(claims_of(&story).contains(&Claim::Background));
    }

    #[test]
    fn a_stale_index_is_found() {
        let story = Story::complete().with_stale_index();
        assert_eq!(claims_of(&story), [Claim::IndexComplete]);
    }
}
