//! Nothing is lost: every matching handler has ended on the final state of every object.

use std::collections::BTreeSet;

use super::calls::{Calls, scope};
use super::{BrokenClaim, Claim, Evidence};
use crate::journal::LoggedStep;
use crate::watch_log::ObjectVersion;
use crate::workload::{
    CHANGED, GILDED, GOLD_SUBS, MADE, PARTS, RECONCILED, RELEASED, RESIZED, SUBS,
};

pub(super) fn check(evidence: &Evidence, calls: &Calls<'_>) -> Vec<BrokenClaim> {
    let mut broken = Vec::new();
    for (name, object) in &evidence.widgets {
        for handler in handlers_of(evidence, object) {
            let all = calls.of_handler(&object.uid, handler);
            let wanted = scope(handler, &object.state);
            let ended = all.iter().filter(|call| call.is_final());
            let mut ended: Vec<_> = ended.collect();
            ended.sort_by_key(|call| call.over);
            let edit = object.state.edit;
            if !ended
                .iter()
                .any(|call| scope(handler, &call.begin.state) == wanted)
            {
                broken.push(Claim::NothingLost.broken(format!(
                    "{name}: `{handler}` has not ended on the final state (edit {edit}), after {} calls",
                    all.len()
                )));
                continue;
            }
            let Some(last) = ended.last() else { continue };
            let counts = !evidence.tested.has_records() || calls.recorded_at(last).is_some();
            if scope(handler, &last.begin.state) != wanted && counts {
                broken.push(Claim::NothingLost.broken(format!(
                    "{name}: the last end of `{handler}` that counts is for edit {} and not for the final state (edit {edit})",
                    last.begin.state.edit
                )));
            }
        }
    }
    broken.extend(deletions(evidence, calls));
    broken
}

/// The handlers that must have ended on the state of an object.
fn handlers_of(evidence: &Evidence, object: &ObjectVersion) -> Vec<&'static str> {
    let mut handlers = Vec::new();
    if evidence.tested.has_records() {
        handlers.extend([MADE, CHANGED, PARTS, RESIZED]);
        handlers.extend(SUBS);
        let of_gold = GOLD_SUBS.into_iter().chain([GILDED]);
        handlers.extend(of_gold.filter(|_| object.state.gold));
    }
    handlers.extend(evidence.tested.has_children().then_some(RECONCILED));
    handlers
}

/// Every object that the operator held was released by its handler of deletions.
fn deletions(evidence: &Evidence, calls: &Calls<'_>) -> Vec<BrokenClaim> {
    let mut broken = Vec::new();
    let existing: BTreeSet<&str> = evidence
        .widgets
        .values()
        .map(|it| it.uid.as_str())
        .collect();
    for uid in calls.uids().filter(|uid| !existing.contains(uid)) {
        let Some(held) = calls.versions(uid).iter().find(|it| it.held) else {
            continue;
        };
        let mut released = calls.of_handler(uid, RELEASED).iter();
        let released = released.any(|call| matches!(call.end, Some((_, LoggedStep::Success))));
        let excused = evidence.tampered.contains(uid) || deleted_at_once(calls.versions(uid));
        if !released && !excused {
            let name = &held.name;
            broken.push(Claim::NothingLost.broken(format!(
                "{name} ({uid}) is gone, and `{RELEASED}` has not succeeded"
            )));
        }
    }
    broken
}

/// Whether the API server has deleted the object with its finalizer on it: a request for a deletion
/// reads the object first, and does not see a finalizer that is added after that. An object that
/// waits for its finalizer has a version that says so before its last one.
fn deleted_at_once(versions: &[&ObjectVersion]) -> bool {
    let mut deleting = versions.iter().filter(|it| it.deleting);
    deleting.next().is_some_and(|it| it.held) && deleting.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Story, claims_of};
    use super::*;

    #[test]
    fn a_complete_story_breaks_nothing() {
        assert_eq!(Story::complete().broken(), []);
    }

    #[test]
    fn a_handler_without_an_end_on_the_final_state_is_found() {
        for handler in [MADE, CHANGED, PARTS, RESIZED, RECONCILED, SUBS[0], SUBS[1]] {
            let story = Story::complete().without(handler);
            assert_eq!(claims_of(&story), [Claim::NothingLost], "{handler}");
        }
    }

    #[test]
    fn handlers_of_one_label_must_end_for_objects_that_have_it() {
        assert_eq!(Story::gold().broken(), []);
        for handler in GOLD_SUBS.into_iter().chain([GILDED]) {
            let story = Story::gold().without(handler);
            assert_eq!(claims_of(&story), [Claim::NothingLost], "{handler}");
        }
    }

    #[test]
    fn an_end_on_an_earlier_state_does_not_count() {
        let story = Story::complete().edited();
        assert!(claims_of(&story).contains(&Claim::NothingLost));
    }

    #[test]
    fn a_lost_return_to_an_earlier_state_is_found() {
        let story = Story::complete().handled_other_state_last();
        assert_eq!(claims_of(&story), [Claim::NothingLost]);
    }

    #[test]
    fn an_end_that_a_dead_process_did_not_record_does_not_count() {
        let story = || Story::complete().handled_other_state_last();
        let recorded = story().died_and_recorded_at(40, 41);
        assert!(claims_of(&recorded).contains(&Claim::NothingLost));
        let by_the_next_one = story().died_and_recorded_at(40, 50);
        assert!(!claims_of(&by_the_next_one).contains(&Claim::NothingLost));
    }

    #[test]
    fn without_records_the_last_success_must_be_for_the_final_state() {
        let story = Story::without_records();
        assert_eq!(claims_of(&story), []);
        let story = Story::without_records().reconciled_other_state_last();
        assert_eq!(claims_of(&story), [Claim::NothingLost]);
        let story = Story::without_records().without(RECONCILED);
        assert_eq!(claims_of(&story), [Claim::NothingLost]);
        let story = Story::without_records().gone_unreleased();
        assert_eq!(claims_of(&story), [Claim::NothingLost]);
    }

    #[test]
    fn an_object_that_is_gone_without_its_handler_is_found() {
        let story = Story::complete().gone_unreleased();
        assert!(claims_of(&story).contains(&Claim::NothingLost));
    }

    #[test]
    fn an_object_that_the_api_server_deletes_at_once_needs_no_handler() {
        let story = Story::complete().gone_unreleased().deleting(&[true]);
        assert!(!claims_of(&story).contains(&Claim::NothingLost));
        // It waited for its finalizer, or the operator had taken that away.
        for held in [&[true, true][..], &[false]] {
            let story = Story::complete().gone_unreleased().deleting(held);
            assert!(
                claims_of(&story).contains(&Claim::NothingLost),
                "held: {held:?}"
            );
        }
    }
}
