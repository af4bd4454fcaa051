//! Admission webhooks for NumberList objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::number_list::{NumberList, NumberListHandlers};

impl NumberListHandlers for Operator {
    /// Decides whether a NumberList may be created or changed.
    async fn say_hello(&self, cx: &mut ValidationContext<NumberList>) -> AdmissionResult {
        cx.warn("Verified with the operator's hook.");
        Ok(())
    }

    /// Decides whether a NumberList may be created or changed.
    async fn check_numbers(&self, cx: &mut ValidationContext<NumberList>) -> AdmissionResult {
        match &cx.object().spec.numbers {
            None | Some(Value::Array(_)) => Ok(()),
            Some(_) => Err(AdmissionError::denied("Numbers must be a list if present.")),
        }
    }

    /// Decides whether a NumberList may be created or changed.
    async fn convertible_numbers(&self, cx: &mut ValidationContext<NumberList>) -> AdmissionResult {
        for value in numbers(cx.object()) {
            match (value, to_number(value)) {
                (Value::Number(_), _) => {}
                (_, Some(_)) => cx.warn(format!("{value} is not a number but can be converted.")),
                (_, None) => {
                    let message = format!("Cannot convert {value} to a number.");
                    return Err(AdmissionError::denied(message));
                }
            }
        }
        Ok(())
    }

    /// Decides whether a NumberList may be created or changed.
    async fn numbers_range(&self, cx: &mut ValidationContext<NumberList>) -> AdmissionResult {
        let mut known = numbers(cx.object()).iter().filter_map(to_number);
        if known.all(|number| (0.0..=100.0).contains(&number)) {
            return Ok(());
        }
        let message = "Numbers must be in 0..100.";
        Err(AdmissionError::denied_with(499, message))
    }

    /// Can change a NumberList before it is created or changed.
    async fn ensure_default_numbers(
        &self,
        cx: &mut MutationContext<NumberList>,
    ) -> AdmissionResult {
        let numbers = &mut cx.spec_mut().numbers;
        numbers.get_or_insert_with(|| vec![1, 2, 3].into());
        Ok(())
    }

    /// Can change a NumberList before it is created or changed.
    async fn convert_numbers_if_possible(
        &self,
        cx: &mut MutationContext<NumberList>,
    ) -> AdmissionResult {
        let numbers = cx.spec_mut().numbers.as_mut().and_then(Value::as_array_mut);
        for value in numbers.into_iter().flatten().filter(|it| it.is_string()) {
            *value = to_number(value).map_or(value.clone(), Value::from);
        }
        Ok(())
    }
}

/// The numbers, if they are a list.
fn numbers(object: &NumberList) -> &[Value] {
    let numbers = object.spec.numbers.as_ref().and_then(Value::as_array);
    numbers.map_or(&[], Vec::as_slice)
}

fn to_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}
