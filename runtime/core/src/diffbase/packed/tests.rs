//! Packed states keep everything if it fits, and show changes in any case.

use proptest::prelude::*;

use super::*;
use crate::object::diff::tests::any_state;

#[test]
fn other_texts_are_no_states() {
    for text in [
        "",
        "{",
        "{}",
        r#"{"deflate":"%"}"#,
        r#"{"deflate":"AAAA"}"#,
        r#"{"digests":5}"#,
    ] {
        assert_eq!(unpack(text, ""), None, "{text}");
    }
}

#[test]
fn an_unreadable_state_differs_from_everything() {
    let base = unreadable();
    assert!(!base.is_absent());
    for value in [json!({}), json!({"spec": 1})] {
        assert!(!base.diff(&Essence::from_value(value)).is_empty());
    }
}

proptest! {
    #[test]
    fn packing_is_undone_by_unpacking(state in any_state(), text in ".*") {
        prop_assert_eq!(inflate(&deflate(&text)), Some(text));
        let base = Baseline::Known(Essence::from_value(state));
        prop_assert_eq!(unpack(&pack(&base, "uid", usize::MAX), "uid"), Some(base));
    }

    #[test]
    fn with_any_budget_the_same_state_is_equal_and_another_differs(
        state in any_state(), other in any_state(), budget in 0usize..300,
    ) {
        let base = Baseline::Known(Essence::from_value(state.clone()));
        let packed = pack(&base, "uid", budget);
        prop_assert!(packed.len() <= budget.max(30));
        let unpacked = unpack(&packed, "uid").expect("readable");
        prop_assert!(unpacked.diff(&Essence::from_value(state)).is_empty());
        let other = Essence::from_value(other);
        prop_assert_eq!(unpacked.diff(&other).is_empty(), base.diff(&other).is_empty());
    }
}
