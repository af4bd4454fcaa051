//! The world finds the mistakes of an operator, and none where there is none.

use kopf_simulation::choices::Choices;
use kopf_simulation::explore::{explore, play, shrink};
use kopf_simulation::finalizer_operator::{FinalizerScenario, PlantedMistake};
use kopf_simulation::world::History;

/// The histories of the test command.
const HISTORIES: u64 = 500;

#[test]
fn the_claims_hold_in_every_history() {
    let explored = explore(
        || FinalizerScenario::new(PlantedMistake::None),
        0..HISTORIES,
    );
    if let Some(failure) = explored.failure {
        panic!(
            "seed {} fails: {}; show it by: cargo run -p kopf-simulation -- replay {}",
            failure.seed, failure.violation, failure.seed
        );
    }
    assert_eq!(explored.histories, HISTORIES);
}

#[test]
fn every_planted_mistake_is_found_and_shrunk() {
    for mistake in PlantedMistake::ALL.iter().copied() {
        let scenario = || FinalizerScenario::new(mistake);
        let explored = explore(scenario, 0..HISTORIES);
        let failure = explored
            .failure
            .unwrap_or_else(|| panic!("{mistake:?} is not found"));
        let decisions = shrink(scenario, &failure);
        assert!(decisions.count() < failure.decisions.count(), "{mistake:?}");
        let mut history = History::recorded();
        let (_, result) = play(scenario, &mut Choices::recorded(decisions), &mut history);
        let violation = result.expect_err("the shrunk history fails");
        assert_eq!(violation.claim, failure.violation.claim, "{mistake:?}");
        let last = history.lines().last().expect("a trace");
        assert!(last.contains(violation.claim), "{last}");
    }
}

#[test]
fn a_seed_plays_the_same_history_again() {
    let trace = |seed: u64| {
        let mut history = History::recorded();
        let mut choices = Choices::seeded(seed);
        let _ = play(
            || FinalizerScenario::new(PlantedMistake::None),
            &mut choices,
            &mut history,
        );
        history.to_string()
    };
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7), trace(8));
}
