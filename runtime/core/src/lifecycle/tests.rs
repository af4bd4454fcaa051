//! Strategies over the handlers that are due.

use proptest::prelude::*;

use super::*;

fn due(attempts: &[u32]) -> Vec<DueHandler> {
    attempts
        .iter()
        .enumerate()
        .map(|(index, attempts)| DueHandler {
            id: HandlerId::new(&format!("h{index}")),
            attempts: *attempts,
        })
        .collect()
}

fn names(picked: &[HandlerId]) -> Vec<&str> {
    picked.iter().map(HandlerId::as_str).collect()
}

#[test]
fn the_default_takes_one_with_the_fewest_attempts() {
    let pick = |lifecycle: Lifecycle| lifecycle.pick(&due(&[2, 1, 1]), 0);
    assert_eq!(names(&pick(Lifecycle::default())), ["h1"]);
    assert_eq!(names(&pick(Lifecycle::OneByOne)), ["h0"]);
    assert_eq!(names(&pick(Lifecycle::AllAtOnce)), ["h0", "h1", "h2"]);
}

#[test]
fn a_custom_choice_picks_only_due_handlers() {
    let choice = Lifecycle::Custom(Arc::new(|due| {
        vec![due[1].id.clone(), HandlerId::new("no such handler")]
    }));
    assert_eq!(names(&choice.pick(&due(&[0, 0]), 0)), ["h1"]);
}

proptest! {
    #[test]
    fn the_seed_is_the_only_source_of_randomness(
        attempts in prop::collection::vec(0u32..5, 0..8), seed in any::<u64>(),
    ) {
        let due = due(&attempts);
        let shuffled = Lifecycle::Shuffled.pick(&due, seed);
        prop_assert_eq!(&shuffled, &Lifecycle::Shuffled.pick(&due, seed));
        let one = Lifecycle::Randomized.pick(&due, seed);
        prop_assert_eq!(one.first(), shuffled.first());
        prop_assert_eq!(one.len(), due.len().min(1));
        let mut sorted = shuffled;
        sorted.sort();
        let all: Vec<_> = due.iter().map(|due| due.id.clone()).collect();
        prop_assert_eq!(sorted, all);
    }
}

#[test]
fn every_handler_is_picked_by_some_seed() {
    let due = due(&[0, 0, 0]);
    let mut first: Vec<HandlerId> = (0..64)
        .flat_map(|seed| Lifecycle::Randomized.pick(&due, seed))
        .collect();
    first.sort();
    first.dedup();
    assert_eq!(first.len(), 3);
}

#[test]
fn a_handler_that_is_chosen_twice_is_picked_once() {
    let due = due(&[0, 0]);
    let twice = |due: &[DueHandler]| {
        let ids = due.iter().chain(due).map(|due| due.id.clone());
        ids.chain([HandlerId::new("unknown")]).collect()
    };
    let picked = Lifecycle::Custom(Arc::new(twice)).pick(&due, 0);
    assert_eq!(picked, [due[0].id.clone(), due[1].id.clone()]);
}
