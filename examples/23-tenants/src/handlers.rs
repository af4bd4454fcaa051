//! The state of the operator, and a module of handlers for each kind.

mod kopf_example;
mod nats_example;

/// The state that all handlers share while the operator runs, such as clients and connection pools.
#[derive(Debug, Default)]
pub struct Operator {}
