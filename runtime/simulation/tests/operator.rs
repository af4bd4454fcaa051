//! The claims about operators hold in every history.

use kopf_simulation::choices::Choices;
use kopf_simulation::claims::OperatorScenario;
use kopf_simulation::explore::{explore, play};
use kopf_simulation::world::History;

/// The histories of the test command.
const HISTORIES: u64 = 500;

#[test]
fn the_claims_hold_in_every_history() {
    let explored = explore(OperatorScenario::new, 0..HISTORIES);
    if let Some(failure) = explored.failure {
        panic!(
            "seed {} fails: {}; show it by: cargo run -p kopf-simulation -- replay {}",
            failure.seed, failure.violation, failure.seed
        );
    }
    assert_eq!(explored.histories, HISTORIES);
}

#[test]
fn a_seed_plays_the_same_history_again() {
    let trace = |seed: u64| {
        let mut history = History::recorded();
        let mut choices = Choices::seeded(seed);
        let _ = play(OperatorScenario::new, &mut choices, &mut history);
        history.to_string()
    };
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7), trace(8));
}
