//! Test vectors made by Kopf itself.

use proptest::prelude::*;
use serde_json::json;

use super::KeyForm;
use crate::object::{ObjectView, patch::ObjectPatch};

const PREFIX: &str = "kopf.zalando.org";

/// Prefix, id, second form, first form.
const VECTORS: &[(&str, &str, &str, &str)] = &[
    (
        "kopf.zalando.org",
        "create_fn/spec.field",
        "kopf.zalando.org/create_fn.spec.field",
        "kopf.zalando.org/create_fn.spec.field",
    ),
    (
        "kopf.zalando.org",
        "main.<locals>.create_fn",
        "kopf.zalando.org/main._locals_.create_fn",
        "kopf.zalando.org/main._locals_.create_fn",
    ),
    (
        "kopf.zalando.org",
        "a_rather_long_handler_name_for_testing_the_cut/spec.some.field",
        "kopf.zalando.org/a_rather_long_handler_name_for_testing_the_cut.spec.some.field",
        "kopf.zalando.org/a_rather_long_handler_name_for_testing_-JfdL3w",
    ),
    (
        "kopf.zalando.org",
        "update_fn_with_a_very_long_name_that_surely_exceeds_limits/sub-handler-one",
        "kopf.zalando.org/update_fn_with_a_very_long_name_that_surely_exceeds_limi-DEik8Q",
        "kopf.zalando.org/update_fn_with_a_very_long_name_that_su-vAhU7g",
    ),
    (
        "kopf.zalando.org",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "kopf.zalando.org/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-SItAqA",
        "kopf.zalando.org/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-SItAqA",
    ),
    (
        "kopf.zalando.org",
        "ünïcödé/яяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяя",
        "kopf.zalando.org/ünïcödé.яяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяя-8bDhNA",
        "kopf.zalando.org/ünïcödé.яяяяяяяяяяяяяяяяяяяяяяяяяяяяяяя-KHqgAQ",
    ),
    (
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com",
        "create_fn/spec.field",
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com/create_fn.spec.field",
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com/-D6h79Q",
    ),
    (
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com",
        "main.<locals>.create_fn",
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com/main._locals_.create_fn",
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com/mai-SoLetg",
    ),
    (
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com",
        "a_rather_long_handler_name_for_testing_the_cut/spec.some.field",
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com/a_rather_long_handler_name_for_testing_the_cut.spec.some.field",
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com/a_rather_long_handler_name_for_testing_the-JfdL3w",
    ),
    (
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com",
        "update_fn_with_a_very_long_name_that_surely_exceeds_limits/sub-handler-one",
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com/update_fn_with_a_very_long_name_that_surely_exceeds_limi-DEik8Q",
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com/update_fn_with_a_very_long_name_that_surely_exceeds_li-vAhU7g",
    ),
    (
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-SItAqA",
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-SItAqA",
    ),
    (
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com",
        "ünïcödé/яяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяя",
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com/ünïcödé.яяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяя-8bDhNA",
        "a-prefix-so-long-that-the-slice-end-is-negative.example.example.example.com/ünïcödé.яяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяяя-KHqgAQ",
    ),
];

#[test]
fn keys_are_those_of_kopf() {
    for (prefix, id, v2, v1) in VECTORS {
        let form = KeyForm::new(prefix);
        assert_eq!(form.v2(id), *v2, "{id}");
        assert_eq!(form.v1(id), *v1, "{id}");
    }
}

#[test]
fn keys_are_those_in_the_documentation_of_the_format() {
    let names = [
        (
            "update_fn_with_a_very_long_name_that_surely_exceeds_limits/sub-handler-one",
            "update_fn_with_a_very_long_name_that_surely_exceeds_limi-DEik8Q",
            "update_fn_with_a_very_long_name_that_su-vAhU7g",
        ),
        (
            "a_rather_long_handler_name_for_testing_the_cut/spec.some.field",
            "a_rather_long_handler_name_for_testing_the_cut.spec.some.field",
            "a_rather_long_handler_name_for_testing_-JfdL3w",
        ),
    ];
    let form = KeyForm::new(PREFIX);
    for (id, v2, v1) in names {
        assert_eq!(form.v2(id), format!("{PREFIX}/{v2}"));
        assert_eq!(form.v1(id), format!("{PREFIX}/{v1}"));
    }
}

#[test]
fn equal_forms_are_one_key_and_the_first_form_can_be_left_out() {
    let body = json!({});
    let view = ObjectView::new(&body);
    let mut form = KeyForm::new(PREFIX);
    assert_eq!(form.keys("fn", view), ["kopf.zalando.org/fn"]);
    assert_eq!(form.keys(&"x".repeat(64), view).len(), 2);
    form.v1 = false;
    assert_eq!(form.keys(&"x".repeat(64), view).len(), 1);
}

#[test]
fn replica_sets_of_deployments_have_keys_of_their_own() {
    let body =
        json!({"kind": "ReplicaSet", "metadata": {"ownerReferences": [{"kind": "Deployment"}]}});
    let keys = KeyForm::new(PREFIX).keys("fn", ObjectView::new(&body));
    assert_eq!(keys, ["kopf.zalando.org/fn-ofDRS"]);
}

#[test]
fn prefixes_that_operators_do_not_recognise_are_marked_once() {
    let mark = |prefix: &str, body: serde_json::Value| {
        let mut patch = ObjectPatch::new();
        KeyForm::new(prefix).add_marker(ObjectView::new(&body), &mut patch);
        !patch.is_empty()
    };
    assert!(mark("example.com", json!({})));
    assert!(mark("kopf.dev", json!({})));
    assert!(!mark(PREFIX, json!({})));
    assert!(!mark("sub.kopf.zalando.org", json!({})));
    let marked = json!({"metadata": {"annotations": {"example.com/kopf-managed": "yes"}}});
    assert!(!mark("example.com", marked));
}

proptest! {
    #[test]
    fn plain_keys_equal_those_of_the_general_rule(id in "[a-z/<>._éß-]{1,70}", v1: bool) {
        let form = KeyForm { v1, ..KeyForm::new(PREFIX) };
        let body = serde_json::json!({});
        let mut general = vec![form.v2(&id)];
        if v1 && form.v1(&id) != general[0] {
            general.push(form.v1(&id));
        }
        prop_assert_eq!(form.keys(&id, ObjectView::new(&body)), general);
    }

    #[test]
    fn names_are_valid_and_within_the_limit(id in "[a-zA-Z0-9][a-zA-Z0-9_./<>-]{0,200}[a-zA-Z0-9]") {
        let form = KeyForm::new(PREFIX);
        for key in [form.v2(&id), form.v1(&id)] {
            let (prefix, name) = key.split_once('/').expect("a prefix");
            prop_assert_eq!(prefix, PREFIX);
            prop_assert!(name.len() <= 63);
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)));
        }
        prop_assert!(form.v1(&id).len() <= 63);
        prop_assert_eq!(form.v2(&id), form.v2(&id));
    }

    #[test]
    fn long_ids_with_a_common_beginning_have_different_keys(
        head in "[a-z]{63}", a in "[a-z]{1,20}", b in "[a-z]{1,20}",
    ) {
        prop_assume!(a != b);
        let form = KeyForm::new(PREFIX);
        prop_assert_ne!(form.v2(&format!("{head}{a}")), form.v2(&format!("{head}{b}")));
    }
}
