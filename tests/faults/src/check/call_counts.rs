//! How often handlers are called, and how often for a state that they have handled.

use super::Evidence;
use super::calls::{Calls, scope};
use crate::workload::{CHANGED, RECONCILED, RELEASED};

/// The calls of one handler for all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallCount {
    pub(crate) handler: &'static str,
    pub(crate) calls: usize,
    /// The calls right after a success on the same state of the object.
    pub(crate) repeated: usize,
}

/// The counts of the handlers that have calls, of those that operators share.
pub(crate) fn of(evidence: &Evidence) -> Vec<CallCount> {
    let calls = Calls::of(evidence);
    let counts = [CHANGED, RECONCILED, RELEASED].map(|handler| count(&calls, handler));
    counts.into_iter().filter(|count| count.calls > 0).collect()
}

fn count(calls: &Calls<'_>, handler: &'static str) -> CallCount {
    let mut count = CallCount {
        handler,
        ..CallCount::default()
    };
    for (_, _, group) in calls.groups().filter(|(_, of, _)| *of == handler) {
        count.calls += group.len();
        let again = group.windows(2).filter(|pair| {
            let [first, second] = [&pair[0], &pair[1]];
            first.is_final()
                && scope(handler, &first.begin.state) == scope(handler, &second.begin.state)
        });
        count.repeated += again.count();
    }
    count
}

#[cfg(test)]
mod tests {
    use super::super::samples::Story;
    use super::*;

    #[test]
    fn a_call_right_after_a_success_on_the_same_state_counts_as_repeated() {
        let counts = |story: &Story| {
            let counts = of(&story.evidence);
            let count = counts.into_iter().find(|it| it.handler == CHANGED);
            count.map(|it| (it.calls, it.repeated))
        };
        let story = Story::complete();
        assert_eq!(counts(&story), Some((1, 0)));
        let story = story.repeated_by_the_next_process(CHANGED);
        assert_eq!(counts(&story), Some((2, 1)));
        let story = Story::complete().handled_other_state_last();
        assert_eq!(counts(&story), Some((2, 0)));
    }
}
