//! Filters: each kind of test, and the logic of combinations.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    cause::Reason,
    object::{ObjectView, diff::Baseline, essence::Essence, hashed::HashedState},
};

fn with_cause(old: &Value, new: &Value, check: impl FnOnce(&Subject<'_>)) {
    let old = match old {
        Value::Null => Baseline::Absent,
        old => Baseline::Known(Essence::from_value(old.clone())),
    };
    let new_essence = Essence::from_value(new.clone());
    let diff = old.diff(&new_essence);
    let cause = Cause {
        reason: Reason::Update,
        initial: false,
        body: ObjectView::new(new),
        old: &old,
        new: &new_essence,
        diff: &diff,
    };
    check(&Subject::change(&cause));
}

fn field(test: FieldTest) -> Filters {
    Filters {
        field: Some(FieldFilter {
            path: FieldPath::from("spec.x"),
            test,
        }),
        ..Filters::default()
    }
}

fn equals(value: Value) -> Combined<ValueTest> {
    ValueTest::Equals(value).into()
}

#[test]
fn labels_and_annotations_are_tested_by_value_presence_and_predicate() {
    let body = json!({"metadata": {"labels": {"a": "1", "e": ""}, "annotations": {"n": "2"}}});
    let subject = Subject::object(ObjectView::new(&body));
    let label = |key: &str, test: TextTest| {
        let filters = Filters {
            labels: vec![(key.to_owned(), test.into())],
            ..Filters::default()
        };
        filters.prematch(&subject)
    };
    assert!(label("a", TextTest::Equals("1".into())));
    assert!(!label("a", TextTest::Equals("2".into())));
    assert!(!label("z", TextTest::Equals(String::new())));
    assert!(label("e", TextTest::Present));
    assert!(!label("e", TextTest::Absent));
    assert!(label("z", TextTest::Absent));
    assert!(label(
        "z",
        TextTest::Matches(Arc::new(|value, _| value.is_none()))
    ));
    assert!(!label(
        "a",
        TextTest::Matches(Arc::new(|value, _| value.is_none()))
    ));

    let annotated = Filters {
        annotations: vec![("n".to_owned(), TextTest::Equals("2".into()).into())],
        ..Filters::default()
    };
    assert!(annotated.prematch(&subject));
    assert!(Filters::default().prematch(&subject));
}

#[test]
fn a_value_counts_before_or_after_the_change() {
    let (one, two, none) = (
        json!({"spec": {"x": 1}}),
        json!({"spec": {"x": 2}}),
        json!({"spec": {}}),
    );
    let value = |test: ValueTest| field(FieldTest::Value(test.into()));
    with_cause(&one, &two, |subject| {
        assert!(value(ValueTest::Equals(json!(1))).matches(subject, true));
        assert!(value(ValueTest::Equals(json!(2))).matches(subject, true));
        assert!(!value(ValueTest::Equals(json!(3))).matches(subject, true));
        assert!(!value(ValueTest::Absent).matches(subject, true));
    });
    with_cause(&one, &none, |subject| {
        assert!(value(ValueTest::Present).matches(subject, true));
        assert!(value(ValueTest::Absent).matches(subject, true));
        assert!(field(FieldTest::Any).matches(subject, true));
    });
    with_cause(&Value::Null, &none, |subject| {
        assert!(!field(FieldTest::Any).matches(subject, false));
        assert!(value(ValueTest::Absent).matches(subject, false));
        let absent = ValueTest::Matches(Arc::new(|value, _| value.is_none()));
        assert!(value(absent).matches(subject, false));
    });
}

#[test]
fn transitions_are_tested_on_both_sides_and_only_for_changes() {
    let (one, two) = (json!({"spec": {"x": 1}}), json!({"spec": {"x": 2}}));
    let transition = |old, new| field(FieldTest::Transition { old, new });
    with_cause(&one, &two, |subject| {
        assert!(transition(Some(equals(json!(1))), Some(equals(json!(2)))).matches(subject, true));
        assert!(transition(None, Some(equals(json!(2)))).matches(subject, true));
        assert!(!transition(Some(equals(json!(2))), None).matches(subject, true));
        assert!(transition(Some(equals(json!(2))), None).prematch(subject));
    });
    with_cause(&one, &one, |subject| {
        assert!(!field(FieldTest::Any).matches(subject, true));
        assert!(field(FieldTest::Any).matches(subject, false));
        assert!(field(FieldTest::Any).prematch(subject));
    });
}

#[test]
fn an_old_value_that_was_not_kept_passes_every_test_for_a_value() {
    let old = Baseline::Hashed(HashedState::new(&json!({"spec": {"x": 1}}), "", 9));
    let body = json!({"spec": {"x": 2}});
    let new = Essence::from_value(body.clone());
    let diff = old.diff(&new);
    let cause = Cause {
        reason: Reason::Update,
        initial: false,
        body: ObjectView::new(&body),
        old: &old,
        new: &new,
        diff: &diff,
    };
    let subject = Subject::change(&cause);
    let from = |test: ValueTest| {
        let filters = field(FieldTest::Transition {
            old: Some(test.into()),
            new: None,
        });
        filters.matches(&subject, true)
    };
    assert!(from(ValueTest::Equals(json!(7))));
    assert!(from(ValueTest::Present));
    assert!(!from(ValueTest::Absent));
}

#[test]
fn all_predicates_get_the_data_of_the_runtime() {
    let body = json!({"spec": {"x": 1}});
    let has_data = |subject: &Subject<'_>| {
        subject.context.downcast_ref() == Some(&7_u8)
            && subject.handler.downcast_ref() == Some(&9_u8)
    };
    let by_text = TextTest::Matches(Arc::new(move |_, subject| has_data(subject)));
    let by_value = ValueTest::Matches(Arc::new(move |_, subject| has_data(subject)));
    let all = [
        Filters {
            labels: vec![("a".to_owned(), by_text.clone().into())],
            ..Filters::default()
        },
        Filters {
            annotations: vec![("a".to_owned(), by_text.into())],
            ..Filters::default()
        },
        field(FieldTest::Value(by_value.into())),
        Filters {
            when: Some(WhenTest::new(has_data).into()),
            ..Filters::default()
        },
    ];
    let subject = Subject::object(ObjectView::new(&body));
    let on_occasion = subject.with_context(&7_u8);
    for filters in all {
        assert!(!filters.prematch(&on_occasion));
        let of_handler = Filters {
            data: Some(Arc::new(9_u8)),
            ..filters
        };
        assert!(!of_handler.prematch(&subject));
        assert!(of_handler.prematch(&on_occasion));
        assert!(of_handler.matches(&on_occasion, false));
    }
}

fn combined() -> impl Strategy<Value = Combined<bool>> {
    any::<bool>()
        .prop_map(Combined::One)
        .prop_recursive(3, 16, 4, |inner| {
            let many = prop::collection::vec(inner.clone(), 0..4);
            prop_oneof![
                many.clone().prop_map(Combined::All),
                many.clone().prop_map(Combined::Any),
                many.prop_map(Combined::NoneOf),
                inner.prop_map(|part| !part),
            ]
        })
}

proptest! {
    #[test]
    fn combinations_obey_the_laws_of_logic(parts in prop::collection::vec(combined(), 0..5)) {
        let eval = |part: &Combined<bool>| part.eval(&mut |value| *value);
        let negated: Vec<_> = parts.iter().cloned().map(|part| !part).collect();
        let (all, any) = (Combined::All(parts.clone()), Combined::Any(parts.clone()));
        prop_assert_eq!(eval(&all), parts.iter().all(eval));
        prop_assert_eq!(eval(&any), parts.iter().any(eval));
        prop_assert_eq!(eval(&Combined::NoneOf(parts)), !eval(&any));
        prop_assert_eq!(eval(&!all.clone()), eval(&Combined::Any(negated.clone())));
        prop_assert_eq!(eval(&!any), eval(&Combined::All(negated)));
        prop_assert_eq!(eval(&!!all.clone()), eval(&all));
    }
}
