//! Values with their places in the text, alone or in lists.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::diagnostic::Span;

/// A value with its place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub span: Span,
}

/// One value, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum OneOrMany<T> {
    /// Written without a list.
    One(Spanned<T>),
    /// Written as a list.
    Many(#[schemars(length(min = 1))] Vec<Spanned<T>>),
}

// === impl OneOrMany ===

impl<T> OneOrMany<T> {
    /// The values, however they were written.
    #[must_use]
    pub fn as_slice(&self) -> &[Spanned<T>] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

// === impl Spanned ===

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
