//! WatchSelectors are derived only if every handler agrees and none needs the finalizer.

use std::sync::Arc;

use super::*;
use crate::handler::{HandlerSpec, Trigger};

type LabelTests<'a> = Vec<(&'a str, Combined<TextTest>)>;

fn derive(handlers: Vec<(Trigger, LabelTests<'_>)>) -> WatchSelectors {
    let specs = handlers
        .into_iter()
        .enumerate()
        .map(|(index, (trigger, labels))| {
            let mut spec = HandlerSpec::new(format!("h{index}").as_str(), trigger);
            spec.filters.labels = labels
                .into_iter()
                .map(|(key, test)| (key.to_owned(), test))
                .collect();
            spec
        });
    WatchSelectors::derive(&Registry::new(specs).expect("sound"))
}

fn equals(value: &str) -> Combined<TextTest> {
    TextTest::Equals(value.to_owned()).into()
}

#[test]
fn common_requirements_are_widened_to_what_all_handlers_accept() {
    let selectors = derive(vec![
        (
            Trigger::Create,
            vec![
                ("a", equals("1")),
                ("b", equals("x")),
                ("c", TextTest::Absent.into()),
            ],
        ),
        (
            Trigger::Update,
            vec![
                ("a", equals("2")),
                ("b", TextTest::Present.into()),
                ("c", TextTest::Absent.into()),
            ],
        ),
    ]);
    assert_eq!(
        selectors.label_selector().as_deref(),
        Some("a in (1,2),b,!c")
    );
    assert_eq!(selectors.field_selector(), None);
}

#[test]
fn a_single_handler_is_enough_to_prevent_a_selector() {
    let with = |trigger, labels| {
        derive(vec![
            (Trigger::Create, vec![("a", equals("1"))]),
            (trigger, labels),
        ])
    };
    assert!(with(Trigger::Event, vec![]).is_empty());
    assert!(
        with(
            Trigger::Delete { optional: false },
            vec![("a", equals("1"))]
        )
        .is_empty()
    );
    assert!(with(Trigger::Daemon, vec![("a", equals("1"))]).is_empty());
    assert!(with(Trigger::Event, vec![("a", TextTest::Absent.into())]).is_empty());
    assert!(!with(Trigger::Delete { optional: true }, vec![("a", equals("1"))]).is_empty());
}

#[test]
fn only_what_a_label_selector_can_express_is_derived() {
    let one = |test| derive(vec![(Trigger::Event, vec![("a", test)])]).label_selector();
    let predicate = || Combined::One(TextTest::Matches(Arc::new(|_, _| true)));
    assert_eq!(one(predicate()), None);
    assert_eq!(one(Combined::Any(vec![equals("1"), predicate()])), None);
    assert_eq!(
        one(Combined::All(vec![predicate(), equals("1")])).as_deref(),
        Some("a=1")
    );
    assert_eq!(
        one(Combined::Any(vec![equals("2"), equals("1")])).as_deref(),
        Some("a in (1,2)")
    );
    assert_eq!(
        one(!Combined::One(TextTest::Present)).as_deref(),
        Some("!a")
    );
    assert_eq!(one(!Combined::One(TextTest::Absent)).as_deref(), Some("a"));
    assert_eq!(one(Combined::Any(vec![])), None);
    assert_eq!(one(equals("not a label value")), None);
}

#[test]
fn names_are_selected_by_field() {
    let mut spec = HandlerSpec::new("h", Trigger::Event);
    spec.filters.field = Some(crate::handler::filter::FieldFilter {
        path: "metadata.name".into(),
        test: FieldTest::Value(ValueTest::Equals("n".into()).into()),
    });
    let selectors = WatchSelectors::derive(&Registry::new([spec]).expect("sound"));
    assert_eq!(
        selectors.field_selector().as_deref(),
        Some("metadata.name=n")
    );
}
