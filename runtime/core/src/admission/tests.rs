//! The requests that a webhook reviews.

use serde_json::json;

use super::*;
use crate::{
    handler::filter::{FieldFilter, FieldTest, TextTest, ValueTest},
    object::path::FieldPath,
};

#[test]
fn a_mutating_webhook_reviews_deletions_only_if_it_names_them() {
    let mut spec = WebhookSpec::new("fix", WebhookRole::Mutating);
    assert!(spec.concerns(Operation::Create, None));
    assert!(!spec.concerns(Operation::Delete, None));
    spec.operations = vec![Operation::Delete];
    assert!(spec.concerns(Operation::Delete, None));
    assert!(!spec.concerns(Operation::Create, None));
}

#[test]
fn subresources_are_reviewed_only_if_named() {
    let mut spec = WebhookSpec::new("check", WebhookRole::Validating);
    let concerns = |spec: &WebhookSpec, sub| spec.concerns(Operation::Update, sub);
    assert!(concerns(&spec, None) && !concerns(&spec, Some("status")));
    spec.endpoint = WebhookEndpoint::Subresource("status".to_owned());
    assert!(!concerns(&spec, None) && concerns(&spec, Some("status")));
    spec.endpoint = WebhookEndpoint::All;
    assert!(concerns(&spec, None) && concerns(&spec, Some("scale")));
}

#[test]
fn filters_see_the_labels_of_the_body_and_the_field_before_and_after() {
    let mut spec = WebhookSpec::new("check", WebhookRole::Validating);
    spec.filters.labels = vec![("tier".to_owned(), TextTest::Present.into())];
    spec.filters.field = Some(FieldFilter {
        path: FieldPath::from("spec.size"),
        test: FieldTest::Transition {
            old: Some(ValueTest::Equals(json!(1)).into()),
            new: Some(ValueTest::Equals(json!(2)).into()),
        },
    });
    let object =
        |size: u32, labels| json!({"metadata": {"labels": labels}, "spec": {"size": size}});
    let matches = |old: serde_json::Value, new: serde_json::Value| {
        let reviewed = ReviewedObject {
            body: &new,
            old: &Baseline::Known(Essence::from_value(old)),
            new: &Essence::from_value(new.clone()),
            context: &(),
        };
        spec.matches(Operation::Update, &reviewed)
    };
    let tier = json!({"tier": "gold"});
    assert!(matches(object(1, json!({})), object(2, tier.clone())));
    assert!(!matches(object(1, tier.clone()), object(2, json!({}))));
    assert!(!matches(object(2, tier.clone()), object(2, tier.clone())));
    assert!(!matches(object(1, tier.clone()), object(1, tier)));
}
