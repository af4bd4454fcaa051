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

/// A test of a label or an annotation, which is `None` if it is absent.
pub fn text<S: Send + Sync + 'static>(
    state: impl Into<SharedState<S>>,
    condition: fn(&S, Option<&str>) -> bool,
) -> TextTest {
    let state = state.into();
    TextTest::Matches(Arc::new(move |value, _| condition(state.get(), value)))
}

/// A test of a field, which is `None` if it is absent. A value that cannot be decoded does not
/// match.
pub fn value<S, F>(
    state: impl Into<SharedState<S>>,
    condition: fn(&S, Option<&F>) -> bool,
) -> ValueTest
where
    S: Send + Sync + 'static,
    F: DeserializeOwned + 'static,
{
    let state = state.into();
    ValueTest::Matches(Arc::new(move |value, _| {
        match value.map(F::deserialize).transpose() {
            Ok(value) => condition(state.get(), value.as_ref()),
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
    move |subject| match FilterContext::new(subject) {
        Ok(cx) => condition(state.get(), &cx),
        Err(error) => {
            debug!("a filter does not match: the object cannot be decoded: {error}");
            false
        }
    }
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
        let test = value(&state, |limits, size: Option<&u32>| {
            size.is_none_or(|size| *size <= limits.most)
        });
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

    #[test]
    fn an_object_that_cannot_be_decoded_does_not_match() {
        #[derive(serde::Deserialize)]
        struct Sized {
            size: u32,
        }
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
