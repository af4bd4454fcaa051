//! The handlers of the operator as a whole, with every name decided.

use super::handler::RetryOptions;
pub use crate::load::manifest::Moment;

/// One method of the trait of the operator as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// The id by which the log tells of it.
    pub id: String,
    /// The method.
    pub method: String,
    /// When it is called.
    pub moment: Moment,
    /// How failures are treated.
    pub retry: RetryOptions,
    /// What the method is told on every call.
    pub param: Option<serde_json::Value>,
}
