//! The hooks of an operator (startup, cleanup, login, probe), with all names chosen.

use super::handler::RetryOptions;
use super::param::Param;
pub use crate::load::manifest::HookKind;

/// The trait that the user's operator implements for its hooks.
pub const TRAIT: &str = "Hooks";

/// One method of the `Hooks` trait.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// The id in log lines and probe results.
    pub id: String,
    /// The method.
    pub method: String,
    /// The occasion on which it is called.
    pub moment: HookKind,
    /// The treatment of failures.
    pub retry: RetryOptions,
    /// The value that every call receives.
    pub param: Option<Param>,
}
