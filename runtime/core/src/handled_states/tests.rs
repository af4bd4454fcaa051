//! Notes of handled states: their storage, when they are used, and their size.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::object::diff::tests::any_state;

fn at(second: u64) -> RecordStamp {
    RecordStamp {
        at: time::after(Timestamp::UNIX_EPOCH, Duration::from_secs(second)),
        retries: 1,
    }
}

fn known(value: Value) -> Baseline {
    Baseline::Known(Essence::from_value(value))
}

fn notes(states: &[Value]) -> HandledStates {
    let mut handled = HandledStates::default();
    for (index, state) in states.iter().enumerate() {
        let id = HandlerId::new(&format!("h{index}"));
        handled.note(id, at(index as u64), &known(state.clone()));
    }
    handled
}

#[test]
fn equal_states_are_kept_once_and_in_order() {
    let handled = notes(&[json!({"a": 1}), json!({"a": 2}), json!({"a": 1})]);
    assert_eq!(
        handled.states(),
        [known(json!({"a": 1})), known(json!({"a": 2}))]
    );
    assert_eq!(
        handled.state(&"h2".into(), at(2)),
        Some(&known(json!({"a": 1})))
    );
    assert_eq!(handled.state(&"h2".into(), at(3)), None);
    let called_since = RecordStamp {
        retries: 2,
        ..at(2)
    };
    assert_eq!(handled.state(&"h2".into(), called_since), None);
    let later = handled.filtered(|id, _| id.as_str() == "h1");
    assert_eq!(later.states(), [known(json!({"a": 2}))]);
    assert!(handled.filtered(|_, _| false).is_empty());
}

#[test]
fn notes_for_another_last_handled_state_are_not_used() {
    let handled = notes(&[json!({"a": 1})]);
    let base = known(json!({"a": 0}));
    let text = handled.encode(&base, "uid", usize::MAX);
    assert_eq!(HandledStates::decode(&text, &base, "uid"), Some(handled));
    assert_eq!(
        HandledStates::decode(&text, &known(json!({"a": 7})), "uid"),
        None
    );
    assert_eq!(HandledStates::decode(&text, &Baseline::Absent, "uid"), None);
    assert_eq!(HandledStates::decode("garbage", &base, "uid"), None);
    let dangling = text.replace(",0,false]", ",9,false]");
    assert_eq!(HandledStates::decode(&dangling, &base, "uid"), None);
}

#[test]
fn only_the_difference_to_the_last_handled_state_is_written() {
    let big = "x".repeat(10_000);
    let handled = notes(&[json!({"big": big, "a": 1})]);
    let text = handled.encode(&known(json!({"big": big, "a": 0})), "uid", usize::MAX);
    assert!(text.len() < 200, "{text}");
}

proptest! {
    #[test]
    fn notes_survive_storage(
        base in prop::option::of(any_state()), states in prop::collection::vec(any_state(), 1..4),
    ) {
        let handled = notes(&states);
        let base = base.map_or(Baseline::Absent, known);
        for budget in [usize::MAX, handled.encode(&base, "uid", usize::MAX).len() - 1] {
            let text = handled.encode(&base, "uid", budget);
            let back = HandledStates::decode(&text, &base, "uid").expect("the notes fit");
            for (index, state) in states.iter().enumerate() {
                let id = HandlerId::new(&format!("h{index}"));
                let read = back.state(&id, at(index as u64)).expect("there is a note");
                prop_assert!(read.diff(&Essence::from_value(state.clone())).is_empty());
            }
        }
    }

    #[test]
    fn a_budget_of_zero_still_distinguishes_states(state in any_state(), other in any_state()) {
        let text = notes(std::slice::from_ref(&state)).encode(&Baseline::Absent, "uid", 0);
        prop_assert!(text.len() < 120);
        let back = HandledStates::decode(&text, &Baseline::Absent, "uid").expect("the notes fit");
        let read = back.state(&"h0".into(), at(0)).expect("there is a note");
        let unchanged = read.diff(&Essence::from_value(other.clone())).is_empty();
        prop_assert_eq!(unchanged, known(state).diff(&Essence::from_value(other)).is_empty());
    }
}
