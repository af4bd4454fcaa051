//! The state of the operator, and a module of handlers for each kind.

mod website;

/// The state that all handlers share while the operator runs, such as clients and connection pools.
#[derive(Debug, Default)]
pub struct Operator {}
