//! Differences: examples in Kopf's order, and properties.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::object::patch::apply_merge;

/// Any JSON value of moderate size.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            any_map(inner),
        ]
    })
}

fn any_map(inner: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abc]", inner, 0..4)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// Any state: a map at the top.
pub(crate) fn any_state() -> impl Strategy<Value = Value> {
    any_map(any_json())
}

fn change(op: DiffOp, path: &str, old: Option<Value>, new: Option<Value>) -> DiffItem {
    DiffItem {
        op,
        path: FieldPath::from(path),
        old: old.map_or(OldValue::Absent, OldValue::Known),
        new,
    }
}

#[test]
fn a_diff_is_written_as_one_line() {
    let old = json!({"size": "1G", "gone": 2});
    let new = json!({"size": "2G", "fresh": [1]});
    let text = diff(Some(&old), Some(&new)).to_string();
    assert_eq!(
        text,
        r#"add fresh: -> [1]; remove gone: 2; change size: "1G" -> "2G""#
    );
    assert_eq!(diff(Some(&old), Some(&old)).to_string(), "");
}

#[test]
fn added_keys_come_first_then_removed_then_changed() {
    let old = json!({"same": 1, "gone": 2, "other": 3, "map": {"x": 1, "y": 2}});
    let new = json!({"other": 4, "same": 1, "fresh": 5, "map": {"x": 1, "y": 3}});
    let items: Vec<DiffItem> = diff(Some(&old), Some(&new)).into_iter().collect();
    assert_eq!(
        items,
        [
            change(DiffOp::Add, "fresh", None, Some(json!(5))),
            change(DiffOp::Remove, "gone", Some(json!(2)), None),
            change(DiffOp::Change, "other", Some(json!(3)), Some(json!(4))),
            change(DiffOp::Change, "map.y", Some(json!(2)), Some(json!(3))),
        ]
    );
}

#[test]
fn lists_change_as_a_whole_and_null_is_absent() {
    let old = json!({"list": [1, 2], "null": null});
    let new = json!({"list": [1, 3]});
    let items: Vec<DiffItem> = diff(Some(&old), Some(&new)).into_iter().collect();
    assert_eq!(
        items,
        [change(
            DiffOp::Change,
            "list",
            Some(json!([1, 2])),
            Some(json!([1, 3]))
        )]
    );
}

#[test]
fn without_a_last_handled_state_the_object_is_one_addition() {
    let new = Essence::from_value(json!({"spec": {"a": 1}}));
    let items: Vec<DiffItem> = Baseline::Absent.diff(&new).into_iter().collect();
    assert_eq!(
        items,
        [change(
            DiffOp::Add,
            "",
            None,
            Some(json!({"spec": {"a": 1}}))
        )]
    );
}

#[test]
fn digests_show_that_a_value_changed_but_not_its_old_value() {
    let old = json!({"data": {"a": "x", "b": "y", "c": "z"}});
    let new = Essence::from_value(json!({"data": {"a": "x", "b": "changed", "d": "new"}}));
    let base = Baseline::Hashed(HashedState::new(&old, "uid", 9));
    let items: Vec<DiffItem> = base.diff(&new).into_iter().collect();
    let unknown = |op, path: &str, new| DiffItem {
        op,
        path: FieldPath::from(path),
        old: OldValue::Unknown,
        new,
    };
    assert_eq!(
        items,
        [
            change(DiffOp::Add, "data.d", None, Some(json!("new"))),
            unknown(DiffOp::Remove, "data.c", None),
            unknown(DiffOp::Change, "data.b", Some(json!("changed"))),
        ]
    );
    let at = |path: &str| base.value_at(&FieldPath::from(path), &new);
    assert_eq!(at("data.a"), OldValue::Known(json!("x")));
    assert_eq!(at("data.b"), OldValue::Unknown);
    assert_eq!(at("data.c"), OldValue::Unknown);
    assert_eq!(at("data.d"), OldValue::Absent);
    assert_eq!(at("data"), OldValue::Unknown);
}

#[test]
fn differences_are_written_with_old_and_new_values() {
    let old = json!({"spec": {"size": "1G", "old": [1]}});
    let new = json!({"spec": {"size": "2G", "new": true}});
    let lines: Vec<String> = diff(Some(&old), Some(&new))
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        lines,
        [
            "add spec.new: -> true",
            "remove spec.old: [1]",
            r#"change spec.size: "1G" -> "2G""#,
        ]
    );
}

#[test]
fn a_merge_patch_removes_only_what_was_removed() {
    let labels = json!({"a": "1", "b": "2"});
    let of = |old: Option<&Value>, new: Option<&Value>| diff(old, new).merge_patch();
    assert_eq!(of(None, Some(&labels)), labels);
    assert_eq!(of(Some(&labels), None), json!({"a": null, "b": null}));
    assert_eq!(
        of(Some(&labels), Some(&json!({"b": "3", "c": "4"}))),
        json!({"c": "4", "a": null, "b": "3"})
    );
    assert_eq!(of(Some(&labels), Some(&labels)), json!({}));
}

proptest! {
    #[test]
    fn merging_the_patch_of_a_diff_into_the_old_state_gives_the_new_one(
        a in any_state(), b in any_state(),
    ) {
        let mut state = a.clone();
        apply_merge(&mut state, &diff(Some(&a), Some(&b)).merge_patch());
        prop_assert!(same(Some(&state), Some(&b)), "{} is not {}", state, b);
    }

    #[test]
    fn applying_a_diff_to_the_old_state_gives_the_new_one(a in any_state(), b in any_state()) {
        let difference = diff(Some(&a), Some(&b));
        prop_assert!(same(Some(&difference.apply(&a)), Some(&b)));
        prop_assert_eq!(difference.is_empty(), same(Some(&a), Some(&b)));
    }

    #[test]
    fn reduction_to_a_field_is_the_diff_of_its_values(a in any_state(), b in any_state()) {
        let path = FieldPath::from("a.b");
        let (base, new) = (Baseline::Known(Essence::from_value(a)), Essence::from_value(b));
        let whole = base.diff(&new);
        let reduced = base.diff_at(&path, &new);
        let touched = whole.iter().any(|item| {
            let (short, long) = (item.path.parts(), path.parts());
            short.starts_with(long) || long.starts_with(short)
        });
        prop_assert_eq!(reduced.is_empty(), base.same_at(&path, &new));
        prop_assert!(touched || reduced.is_empty());
        let under: Vec<_> = whole
            .iter()
            .filter_map(|item| item.path.parts().strip_prefix(path.parts()))
            .map(FieldPath::new)
            .collect();
        let paths: Vec<_> = reduced.iter().map(|item| item.path.clone()).collect();
        prop_assert!(under.is_empty() || under == paths);
    }

    #[test]
    fn digests_show_the_same_changes_as_values(a in any_state(), b in any_state(), depth in 0usize..6) {
        let known = Baseline::Known(Essence::from_value(a.clone()));
        let hashed = Baseline::Hashed(HashedState::new(&a, "uid", depth));
        let new = Essence::from_value(b);
        prop_assert_eq!(known.diff(&new).is_empty(), hashed.diff(&new).is_empty());
        for path in ["", "a", "a.b", "a.b.c"].map(FieldPath::from) {
            let same = hashed.same_at(&path, &new);
            prop_assert!(!same || known.same_at(&path, &new), "a change was missed");
            prop_assert_eq!(hashed.diff_at(&path, &new).is_empty(), same);
        }
        if depth == 5 {
            let paths = |diff: Diff| diff.into_iter().map(|item| item.path).collect::<Vec<_>>();
            let mut expected = paths(known.diff(&new));
            let mut actual = paths(hashed.diff(&new));
            expected.sort();
            actual.sort();
            prop_assert_eq!(expected, actual);
        }
    }
}
