//! Nothing is repeated: a handler is not called again for a state on which its end was recorded.

use super::calls::{Call, Calls, scope};
use super::{BrokenClaim, Claim, Evidence};
use crate::operators::OperatorRole;
use crate::workload::{GILDED, NOTICED, PARTS, RECONCILED, RESUMED, STEADY, SUBS, TICK};

pub(super) fn check(evidence: &Evidence, calls: &Calls<'_>) -> Vec<BrokenClaim> {
    let mut broken = Vec::new();
    for (uid, handler, group) in calls.groups() {
        // A handler with sub-handlers is called again for those that saw an older state, and that
        // of children for each list and for what happens to them.
        let has_reasons = matches!(handler, NOTICED | PARTS | RECONCILED | STEADY | TICK);
        if has_reasons || evidence.tampered.contains(uid) {
            continue;
        }
        for (number, first) in group.iter().enumerate() {
            let same = |call: &&Call<'_>| {
                scope(handler, &call.begin.state) == scope(handler, &first.begin.state)
            };
            // Only the next call: a call for another state in between is a reason for this one.
            let second = group.get(number + 1).filter(same);
            let Some(second) = second.filter(|_| first.is_final()) else {
                continue;
            };
            if let Some(reason) = repetition(evidence, calls, first, second) {
                let (name, edit) = (&first.begin.name, first.begin.state.edit);
                broken.push(Claim::NothingRepeated.broken(format!(
                    "{name} ({uid}): `{handler}` ended on edit {edit} at version {} and was called for it again at version {}: {reason}",
                    first.begin.version, second.begin.version
                )));
            }
        }
    }
    broken
}

/// The reason why the second call should not have been, if there is one.
fn repetition(
    evidence: &Evidence,
    calls: &Calls<'_>,
    first: &Call<'_>,
    second: &Call<'_>,
) -> Option<String> {
    let handler = first.begin.handler.as_str();
    let one_process = first.shares_process(second);
    if handler == RESUMED {
        return one_process.then(|| "twice in one process".to_owned());
    }
    if handler == GILDED && left_the_filter(calls, first, second) {
        return None;
    }
    if SUBS.contains(&handler) {
        // Its success is remembered while the cycle of its parent is open, and is on the object.
        let shown = calls.shows_end(handler, &second.begin.uid, second.begin.version);
        return shown.then(|| "its record says that it has ended".to_owned());
    }
    if let Some(recorded) = calls.recorded_at(first)
        && recorded <= second.begin.version
    {
        return Some(format!("the end was recorded at version {recorded}"));
    }
    // The process knows what it has not written. But a leader that loses its lease writes
    // nothing, and a rejected write makes an attempt fail.
    let excused = evidence.elected || evidence.rejected.contains(&first.begin.uid);
    let main = (first.role, second.role) == (OperatorRole::Main, OperatorRole::Main);
    (one_process && main && !excused).then(|| "both in one process".to_owned())
}

/// Whether the object had a state in between that the filter of the handler does not accept.
fn left_the_filter(calls: &Calls<'_>, first: &Call<'_>, second: &Call<'_>) -> bool {
    let between = first.begin.version..second.begin.version;
    let mut versions = calls.versions(&first.begin.uid).iter();
    versions.any(|it| between.contains(&it.version) && !it.state.gold)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Story, claims_of};
    use super::*;
    use crate::workload::{CHANGED, MADE, RELEASED};

    #[test]
    fn a_call_after_a_recorded_end_is_found() {
        for handler in [CHANGED, MADE] {
            let story = Story::complete().repeated_after_record(handler);
            assert_eq!(claims_of(&story), [Claim::NothingRepeated], "{handler}");
        }
    }

    #[test]
    fn a_second_call_in_one_process_is_found_without_a_record() {
        let story = Story::complete().repeated_in_one_process(CHANGED);
        assert_eq!(claims_of(&story), [Claim::NothingRepeated]);
    }

    #[test]
    fn a_call_after_an_end_that_was_not_recorded_is_admitted() {
        let story = Story::complete().repeated_by_the_next_process(CHANGED);
        assert_eq!(claims_of(&story), []);
    }

    #[test]
    fn a_sub_handler_is_not_called_beside_its_record() {
        let story = Story::complete().sub_repeated_beside_record(SUBS[0]);
        assert_eq!(claims_of(&story), [Claim::NothingRepeated]);
        let story = Story::complete().repeated_after_record(SUBS[0]);
        assert_eq!(claims_of(&story), []);
    }

    #[test]
    fn without_records_a_function_may_be_called_again() {
        let story = Story::without_records().repeated_in_one_process(RECONCILED);
        assert_eq!(claims_of(&story), []);
        let story = Story::without_records().repeated_in_one_process(RELEASED);
        assert_eq!(claims_of(&story), []);
    }

    #[test]
    fn a_second_resume_in_one_process_is_found() {
        let story = Story::complete().resumed_twice();
        assert_eq!(claims_of(&story), [Claim::NothingRepeated]);
    }
}
