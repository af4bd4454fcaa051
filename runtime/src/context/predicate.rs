//! Filters and delays of handlers that are methods of the operator's state type.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::cause::Subject;
use kopf_core::handler::filter::{TextTest, ValueTest};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::debug;

use super::filter::FilterContext;
use crate::handler::state::SharedState;

/// A test of a label or an annotation, which is `None` if it is absent. An object that cannot be
/// decoded does not match.
pub fn text<S, K>(
    state: impl Into<SharedState<S>>,
    condition: fn(&S, Option<&str>, &FilterContext<'_, K>) -> bool,
) -> TextTest
where
    S: Send + Sync + 'static,
    K: DeserializeOwned + 'static,
{
    let state = state.into();
    TextTest::Matches(Arc::new(move |value, subject| {
        decoded(subject).is_some_and(|cx| condition(state.get(), value, &cx))
    }))
}

/// A test of a field, which is `None` if it is absent. A value or an object that cannot be decoded
/// does not match.
pub fn value<S, F, K>(
    state: impl Into<SharedState<S>>,
    condition: fn(&S, Option<&F>, &FilterContext<'_, K>) -> bool,
) -> ValueTest
where
    S: Send + Sync + 'static,
    F: DeserializeOwned + 'static,
    K: DeserializeOwned + 'static,
{
    let state = state.into();
    ValueTest::Matches(Arc::new(move |value, subject| {
        match value.map(F::deserialize).transpose() {
            Ok(value) => {
                decoded(subject).is_some_and(|cx| condition(state.get(), value.as_ref(), &cx))
            }
            Err(error) => {
                debug!("a filter does not match: its field cannot be decoded: {error}");
                false
            }
        }
    }))
}

/// A test of the object and its change. An object that cannot be decoded does not match.
pub fn when<S, K>(
    state: impl Into<SharedState<S>>,
    condition: fn(&S, &FilterContext<'_, K>) -> bool,
) -> impl Fn(&Subject<'_>) -> bool + Send + Sync + 'static
where
    S: Send + Sync + 'static,
    K: DeserializeOwned + 'static,
{
    let state = state.into();
    move |subject| decoded(subject).is_some_and(|cx| condition(state.get(), &cx))
}

fn decoded<'a, K: DeserializeOwned>(subject: &Subject<'a>) -> Option<FilterContext<'a, K>> {
    FilterContext::new(subject)
        .inspect_err(|error| {
            debug!("a filter does not match: the object cannot be decoded: {error}");
        })
        .ok()
}

/// A delay that depends on the object; none for an object that cannot be decoded.
pub fn delay<S, K>(
    state: impl Into<SharedState<S>>,
    delay: fn(&S, &K) -> Duration,
) -> impl Fn(&Value) -> Duration + Send + Sync + 'static
where
    S: Send + Sync + 'static,
    K: DeserializeOwned + 'static,
{
    let state = state.into();
    move |body| match K::deserialize(body) {
        Ok(object) => delay(state.get(), &object),
        Err(error) => {
            debug!("there is no delay: the object cannot be decoded: {error}");
            Duration::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use kopf_core::object::ObjectView;
    use serde_json::json;

    use super::*;

    struct SizeLimit {
        most: u32,
    }

    #[test]
    fn a_value_that_cannot_be_decoded_does_not_match() {
        let state = Arc::new(SizeLimit { most: 5 });
        let accepts = |limits: &SizeLimit, size: Option<&u32>, _: &FilterContext<'_, Value>| {
            size.is_none_or(|size| *size <= limits.most)
        };
        let test = value(&state, accepts);
        let ValueTest::Matches(test) = test else {
            panic!("{test:?}");
        };
        let body = json!({});
        let subject = Subject::object(ObjectView::new(&body));
        let holds = |value: Option<&Value>| test(value, &subject);
        assert!(holds(None));
        assert!(holds(Some(&json!(5))));
        assert!(!holds(Some(&json!(6))));
        assert!(!holds(Some(&json!("5"))));
    }

    #[derive(serde::Deserialize)]
    struct Sized {
        size: u32,
    }

    #[test]
    fn a_label_is_tested_together_with_its_object() {
        let state = Arc::new(SizeLimit { most: 5 });
        let test = text(&state, |limits, tier, cx: &FilterContext<'_, Sized>| {
            tier == Some("gold") && cx.object().size <= limits.most
        });
        let TextTest::Matches(test) = test else {
            panic!("{test:?}");
        };
        let holds = |tier, body: Value| test(tier, &Subject::object(ObjectView::new(&body)));
        assert!(holds(Some("gold"), json!({"size": 5})));
        assert!(!holds(Some("gold"), json!({"size": 6})));
        assert!(!holds(None, json!({"size": 5})));
        assert!(!holds(Some("gold"), json!({"size": "5"})));
    }

    #[test]
    fn an_object_that_cannot_be_decoded_does_not_match() {
        let state = Arc::new(SizeLimit { most: 5 });
        let test = when(&state, |limits, cx: &FilterContext<'_, Sized>| {
            cx.object().size <= limits.most
        });
        for (body, expected) in [
            (json!({"size": 1}), true),
            (json!({"size": 9}), false),
            (json!({"size": "1"}), false),
        ] {
            assert_eq!(test(&Subject::object(ObjectView::new(&body))), expected);
        }
    }
}
