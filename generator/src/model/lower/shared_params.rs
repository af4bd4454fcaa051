//! Gives the methods that several handlers share one type for their parameters.

use std::collections::BTreeMap;

use crate::model::handler::{FilterTest, Handler, HandlerFilter, Predicate};
use crate::model::param::{Param, ParamType};
use crate::model::webhook::Webhook;

/// The type that a method takes; none if it has to do without the parameter.
type CommonTypes = BTreeMap<String, Option<ParamType>>;

/// Gives the parameters of handlers that share a method the type that holds them all, and passes
/// them to the predicates whose users all have such a parameter. Each comes with its entry in the
/// manifest.
pub(super) fn share<H, W>(handlers: &mut [(Handler, H)], webhooks: &mut [(Webhook, W)]) {
    let mut common = CommonTypes::new();
    for (handler, _) in &*handlers {
        if let Some(param) = &handler.param {
            add(&mut common, &handler.method, Some(&param.ty));
        }
    }
    for (handler, _) in &mut *handlers {
        if let Some(param) = &mut handler.param
            && let Some(Some(ty)) = common.get(&handler.method)
        {
            param.ty = ty.clone();
        }
    }
    let mut filtered: Vec<(&mut [HandlerFilter], Option<&Param>)> = Vec::new();
    for (handler, _) in handlers {
        filtered.push((&mut handler.filters, handler.param.as_ref()));
    }
    for (webhook, _) in webhooks {
        filtered.push((&mut webhook.filters, webhook.param.as_ref()));
    }
    let mut common = CommonTypes::new();
    for (filters, param) in &filtered {
        for predicate in filters.iter().flat_map(HandlerFilter::predicates) {
            add(&mut common, &predicate.method, param.map(|param| &param.ty));
        }
    }
    for (filters, param) in filtered {
        let Some(param) = param else { continue };
        for filter in filters {
            pass(filter, param, &common);
        }
    }
}

fn add(common: &mut CommonTypes, method: &str, ty: Option<&ParamType>) {
    common
        .entry(method.to_owned())
        .and_modify(|known| *known = known.as_ref().and_then(|it| it.common(ty?)))
        .or_insert_with(|| ty.cloned());
}

fn pass(filter: &mut HandlerFilter, param: &Param, common: &CommonTypes) {
    let passed = filter.expected.try_map(&mut |test| {
        let FilterTest::Predicate(predicate) = test else {
            return Some(test.clone());
        };
        let ty = common.get(&predicate.method).cloned().flatten();
        Some(FilterTest::Predicate(Predicate {
            method: predicate.method.clone(),
            param: ty.map(|ty| Param {
                value: param.value.clone(),
                ty,
            }),
        }))
    });
    if let Some(passed) = passed {
        filter.expected = passed;
    }
}

#[cfg(test)]
mod tests {
    use kopf_core::handler::filter::Combined;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::handler::{ChangeTriggers, FilterSubject, HandlerCause, RetryOptions};

    fn handler(method: &str, predicate: &str, param: Option<Value>) -> Handler {
        let test = FilterTest::Predicate(Predicate::new(predicate.to_owned()));
        Handler {
            id: method.to_owned(),
            method: method.to_owned(),
            cause: HandlerCause::Change(ChangeTriggers::default()),
            filters: vec![HandlerFilter {
                subject: FilterSubject::Object,
                expected: Combined::All(vec![test.into(), FilterTest::Present.into()]),
            }],
            retry: RetryOptions::default(),
            param: param.map(Param::of_literal),
            result: None,
        }
    }

    fn shared(handlers: Vec<Handler>) -> Vec<Option<ParamType>> {
        let mut handlers: Vec<_> = handlers.into_iter().map(|it| (it, ())).collect();
        share::<_, ()>(&mut handlers, &mut []);
        let filters = handlers.iter().flat_map(|(handler, ())| &handler.filters);
        let predicates = filters.flat_map(HandlerFilter::predicates);
        let params = predicates.map(|predicate| predicate.param.as_ref());
        params
            .map(|param| param.map(|param| param.ty.clone()))
            .collect()
    }

    #[test]
    fn a_predicate_takes_the_parameter_that_all_its_users_have() {
        let both = shared(vec![
            handler("one", "is_due", Some(json!(5))),
            handler("two", "is_due", Some(json!(0.5))),
        ]);
        assert_eq!(both, [Some(ParamType::Float), Some(ParamType::Float)]);
    }

    #[test]
    fn a_predicate_takes_no_parameter_that_one_user_lacks() {
        let one = shared(vec![
            handler("one", "is_due", Some(json!(5))),
            handler("two", "is_due", None),
            handler("three", "is_late", Some(json!("a"))),
        ]);
        assert_eq!(one, [None, None, Some(ParamType::Text)]);
    }

    #[test]
    fn a_predicate_takes_no_parameter_without_a_common_type() {
        let none = shared(vec![
            handler("one", "is_due", Some(json!(5))),
            handler("two", "is_due", Some(json!("a"))),
            handler("three", "is_due", Some(json!(5))),
        ]);
        assert_eq!(none, [None, None, None]);
    }
}
