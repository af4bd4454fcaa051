//! The value of `param` in the manifest, with the type in which a method takes it.

use serde_json::Value;

use crate::rust::RustType;

/// A value that every call of a handler receives.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The value.
    pub value: Value,
    /// Its type.
    pub ty: ParamType,
}

/// The type of the argument of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// `&str`
    Text,
    /// `i64`
    Integer,
    /// `f64`
    Float,
    /// `bool`
    Flag,
    /// `&serde_json::Value`
    Json,
    /// A reference to a type that the manifest names; the value is decoded once.
    Named(RustType),
}

// === impl Param ===

impl Param {
    /// A value in the type of its literal.
    #[must_use]
    pub fn of_literal(value: Value) -> Self {
        let ty = match &value {
            Value::String(_) => ParamType::Text,
            Value::Number(number) if number.is_i64() => ParamType::Integer,
            Value::Number(number) if number.is_f64() => ParamType::Float,
            Value::Bool(_) => ParamType::Flag,
            _ => ParamType::Json,
        };
        Self { value, ty }
    }
}

// === impl ParamType ===

impl ParamType {
    /// The type that holds the values of both types, if there is one.
    #[must_use]
    pub fn common(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (one, other) if one == other => Some(one.clone()),
            (Self::Integer, Self::Float) | (Self::Float, Self::Integer) => Some(Self::Float),
            _ => None,
        }
    }

    /// The type in messages.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Integer => "an integer".to_owned(),
            Self::Float => "a number".to_owned(),
            Self::Flag => "a boolean".to_owned(),
            Self::Json => "JSON".to_owned(),
            Self::Named(ty) => ty.short(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn literals_have_the_type_that_holds_them() {
        for (value, ty) in [
            (json!("a"), ParamType::Text),
            (json!(-5), ParamType::Integer),
            (json!(0.5), ParamType::Float),
            (json!(true), ParamType::Flag),
            (json!({"a": 1}), ParamType::Json),
            (json!(u64::MAX), ParamType::Json),
        ] {
            assert_eq!(Param::of_literal(value).ty, ty);
        }
    }

    #[test]
    fn only_numbers_of_two_types_have_a_common_one() {
        let common = ParamType::Integer.common(&ParamType::Float);
        assert_eq!(common, Some(ParamType::Float));
        assert_eq!(
            ParamType::Text.common(&ParamType::Text),
            Some(ParamType::Text)
        );
        assert_eq!(ParamType::Text.common(&ParamType::Integer), None);
    }
}
