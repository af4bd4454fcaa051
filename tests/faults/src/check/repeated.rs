//! Nothing is repeated: a handler is not called again for a state on which its end was recorded.

use super::calls::{Call, Calls, scope};
use super::{BrokenClaim, Claim, Evidence, story};
use crate::clock::SECOND;
use crate::operators::{OperatorLife, OperatorRole};
use crate::state::DigestedState;
use crate::tested_operator::TestedOperator;
use crate::watch_log::HandlerRecord;
use crate::workload::{
    GILDED, GOLD_SUBS, LEFT, NOTICED, PARTS, RECONCILED, RESUMED, STEADY, SUBS, TICK,
};

/// The time after the start of a rival in which both operators may handle an object.
const TAKEOVER: u64 = 5 * SECOND;

/// The time after the end of a call in which its end may be written.
const WRITE_TIME: u64 = SECOND;

pub(super) fn check(evidence: &Evidence, calls: &Calls<'_>) -> Vec<BrokenClaim> {
    let mut broken = Vec::new();
    for (uid, handler, group) in calls.groups() {
        // A handler with sub-handlers is called again for those that saw an older state, and that
        // of children for each list and for what happens to them.
        let has_reasons = matches!(handler, LEFT | NOTICED | PARTS | RECONCILED | STEADY | TICK);
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
                let story = story::lines(evidence, uid, first.begin.at, second.begin.at);
                broken.push(Claim::NothingRepeated.broken(format!(
                    "{name} ({uid}): `{handler}` ended on edit {edit} at version {} and was called for it again at version {}: {reason}{story}",
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
        let excused = paused_between(evidence, first, second);
        return (one_process && !excused).then(|| "twice in one process".to_owned());
    }
    if handler == GILDED && left_the_filter(calls, first, second) {
        return None;
    }
    if SUBS.contains(&handler) || GOLD_SUBS.contains(&handler) {
        // Its success is remembered while the cycle of its parent is open, and is on the object. A
        // late write of another operator may have put an older end in its place.
        let is_undone = calls
            .recorded_at(first)
            .is_some_and(|recorded| is_undone(evidence, calls, first, second, recorded));
        let shown = calls.shows_end(first, second.begin.version) && !is_undone;
        return shown.then(|| "its record says that it has ended".to_owned());
    }
    if let Some(recorded) = calls.recorded_at(first)
        && recorded <= second.begin.version
    {
        if in_takeover(evidence, calls, second)
            || is_undone(evidence, calls, first, second, recorded)
            || evidence.tested == TestedOperator::Kopf
                && has_missed_a_state(calls, first, second, recorded)
        {
            return None;
        }
        return Some(format!("the end was recorded at version {recorded}"));
    }
    // The process knows what it has not written. But a leader that loses its lease writes
    // nothing, and a rejected write makes an attempt fail.
    let excused = evidence.elected || evidence.rejected.contains(&first.begin.uid);
    let main = (first.role, second.role) == (OperatorRole::Main, OperatorRole::Main);
    (one_process && main && !excused).then(|| "both in one process".to_owned())
}

/// Whether a rival lived between both calls, in whose favour the operator may have paused: after a
/// pause it resumes its objects again.
fn paused_between(evidence: &Evidence, first: &Call<'_>, second: &Call<'_>) -> bool {
    rival_lives(evidence).any(|rival| {
        let lived_after = |time| rival.ended.is_none_or(|ended| ended > time);
        rival.started < second.begin.at && lived_after(first.begin.at)
    })
}

/// Whether a rival has just started, and the operator handled the object in that moment: the peers
/// do not know each other yet, and one may write over what the other one has recorded.
fn in_takeover(evidence: &Evidence, calls: &Calls<'_>, second: &Call<'_>) -> bool {
    let uid = second.begin.uid.as_str();
    rival_lives(evidence).any(|rival| {
        let handled_beside = |call: &Call<'_>| {
            call.role == OperatorRole::Main
                && call.begin.at < second.begin.at
                && call
                    .over
                    .is_none_or(|over| over + WRITE_TIME > rival.started)
        };
        (rival.started..rival.started + TAKEOVER).contains(&second.begin.at)
            && calls.of_turns(uid).any(handled_beside)
    })
}

/// Whether a late write of one of two operators has put an older record, or an older last handled
/// state, in the place of what the other one has recorded. It was under way when its operator
/// paused; what that operator has called must not be forgotten.
fn is_undone(
    evidence: &Evidence,
    calls: &Calls<'_>,
    first: &Call<'_>,
    second: &Call<'_>,
    recorded: u64,
) -> bool {
    let handler = first.begin.handler.as_str();
    let versions = calls.versions(&first.begin.uid);
    let at = calls.version(&first.begin.uid, recorded);
    let Some(recorded) = at.filter(|_| paused_between(evidence, first, second)) else {
        return false;
    };
    let end = recorded.end_of(handler);
    let is_older_record = |record: &HandlerRecord| {
        let time = record.ended.as_ref().unwrap_or(&record.started);
        end.is_some_and(|end| time.as_str() < end)
    };
    let is_state_since_first = |base: &DigestedState| {
        let mut since = versions.iter();
        since.any(|it| it.version >= first.begin.version && it.state.whole == base.whole)
    };
    let mut base = recorded.base.as_ref();
    let mut later = versions
        .iter()
        .filter(|it| it.version > recorded.version && it.version <= second.begin.version);
    later.any(|version| {
        let has_moved = version.base.as_ref() != base;
        base = version.base.as_ref();
        let is_older_base = has_moved && base.is_some_and(|base| !is_state_since_first(base));
        is_older_base || version.record_of(handler).is_some_and(is_older_record)
    })
}

/// Whether the object shows a newer state as handled, which the handler has not seen: Kopf does so
/// for an edit within a cycle. When that edit is reverted, the second call is for the difference.
/// kopf-gen promises never to store such a state, so that its call would be a repetition.
fn has_missed_a_state(
    calls: &Calls<'_>,
    first: &Call<'_>,
    second: &Call<'_>,
    recorded: u64,
) -> bool {
    let handler = first.begin.handler.as_str();
    let versions = calls.versions(&first.begin.uid);
    let seen = scope(handler, &first.begin.state);
    let is_newer = |base: &DigestedState| {
        let mut since = versions.iter();
        since.any(|it| it.version > first.begin.version && it.state.whole == base.whole)
    };
    let before = calls.version(&first.begin.uid, recorded);
    let before = before.and_then(|it| it.base.as_ref());
    let between = recorded + 1..=second.begin.version;
    let later = versions.iter().filter(|it| between.contains(&it.version));
    let mut moved = later.map(|it| it.base.as_ref()).filter(|it| *it != before);
    moved.any(|base| base.is_some_and(|base| scope(handler, base) != seen && is_newer(base)))
}

fn rival_lives(evidence: &Evidence) -> impl Iterator<Item = &OperatorLife> {
    let lives = evidence.lives.iter();
    lives.filter(|life| life.role == OperatorRole::Rival)
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
    fn a_call_after_a_recorded_end_is_admitted_in_a_takeover() {
        let story = || Story::complete().repeated_after_record(CHANGED);
        assert_eq!(claims_of(&story().with_rival(28, 60).reconciled_at(28)), []);
        // The operator has not handled the object, or long ago, or the rival came long ago or later.
        for (started, handled) in [(28, None), (28, Some(26)), (24, Some(24)), (31, Some(29))] {
            let mut story = story().with_rival(started, 60);
            if let Some(second) = handled {
                story = story.reconciled_at(second);
            }
            assert_eq!(claims_of(&story), [Claim::NothingRepeated], "{started}");
        }
    }

    #[test]
    fn a_call_after_an_end_that_was_not_recorded_is_admitted() {
        let story = Story::complete().repeated_by_the_next_process(CHANGED);
        assert_eq!(claims_of(&story), []);
    }

    #[test]
    fn a_call_after_an_older_record_of_a_second_operator_is_admitted() {
        let repeats = |next, rival: Option<(u64, u64)>| {
            let mut story = Story::complete().repeated_after(CHANGED, next);
            if let Some((from, to)) = rival {
                story = story.with_rival(from, to);
            }
            claims_of(&story).contains(&Claim::NothingRepeated)
        };
        let older = || {
            [
                Story::with_record_of(CHANGED, 19, Some(20)),
                Story::with_record_of(CHANGED, 19, None),
                Story::with_base(0),
            ]
        };
        for next in older() {
            assert!(!repeats(next.clone(), Some((15, 24))), "{next:?}");
            // There was no second operator between both calls.
            assert!(repeats(next.clone(), None), "{next:?}");
            assert!(repeats(next.clone(), Some((15, 21))), "{next:?}");
        }
        for next in [
            Story::with_record_of(CHANGED, 21, Some(22)),
            Story::with_record_of(CHANGED, 23, None),
            Story::with_base(1),
            Story::with_base(2),
        ] {
            assert!(repeats(next.clone(), Some((15, 24))), "{next:?}");
        }
    }

    #[test]
    fn a_call_for_a_state_that_returns_after_a_missed_one_is_admitted_for_kopf_only() {
        let repeats_in = |tested, handler, bases: &[u64]| {
            let mut story = Story::complete().missed_third_edit(handler, bases);
            story.evidence.tested = tested;
            claims_of(&story).contains(&Claim::NothingRepeated)
        };
        let ours = TestedOperator::KopfGen;
        assert!(
            repeats_in(ours, CHANGED, &[3]),
            "kopf-gen stores no such state"
        );
        let repeats = |handler, bases: &[u64]| repeats_in(TestedOperator::Kopf, handler, bases);
        assert!(!repeats(CHANGED, &[3]), "the third edit counts as handled");
        assert!(repeats(CHANGED, &[]), "no state was missed");
        assert!(repeats(CHANGED, &[1]), "only an older state is back");
        assert!(repeats(CHANGED, &[2]), "its own state");
        assert!(repeats(MADE, &[3]), "it is not for edits");
    }

    #[test]
    fn a_record_without_an_attempt_is_not_the_end_of_a_call() {
        let repeats = |attempts| {
            let story = Story::complete().reverted_after_death(CHANGED, attempts);
            claims_of(&story).contains(&Claim::NothingRepeated)
        };
        assert!(!repeats(0));
        assert!(repeats(1));
    }

    #[test]
    fn the_record_of_an_earlier_call_is_not_taken_for_that_of_the_last_one() {
        let repeats = |handler, second| {
            let story = Story::complete().repeated_beside_record_of(handler, second);
            claims_of(&story).contains(&Claim::NothingRepeated)
        };
        for handler in [CHANGED, SUBS[0]] {
            assert!(!repeats(handler, 20), "{handler}");
            assert!(repeats(handler, 22), "{handler}");
        }
    }

    #[test]
    fn a_sub_handler_is_not_called_beside_its_record() {
        let story = Story::complete().sub_repeated_beside_record(SUBS[0]);
        assert_eq!(claims_of(&story), [Claim::NothingRepeated]);
        let story = Story::complete().repeated_after_record(SUBS[0]);
        assert_eq!(claims_of(&story), []);
    }

    #[test]
    fn a_sub_handler_is_called_beside_an_older_record_of_a_second_operator() {
        let repeats = |ended, rival: Option<(u64, u64)>| {
            let next = Story::with_record_of(SUBS[0], 19, Some(ended));
            let mut story = Story::complete().repeated_after(SUBS[0], next);
            if let Some((from, to)) = rival {
                story = story.with_rival(from, to);
            }
            claims_of(&story).contains(&Claim::NothingRepeated)
        };
        assert!(!repeats(20, Some((15, 24))));
        assert!(repeats(20, None), "there is no second operator");
        assert!(repeats(22, Some((15, 24))), "it is its own record");
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

    #[test]
    fn a_second_resume_after_a_pause_is_admitted() {
        let story = Story::complete().resumed_twice().with_rival(31, 31);
        assert_eq!(claims_of(&story), []);
        for (from, to) in [(10, 20), (40, 50)] {
            let story = Story::complete().resumed_twice().with_rival(from, to);
            assert_eq!(claims_of(&story), [Claim::NothingRepeated], "{from} {to}");
        }
    }
}
