//! The state of the operator, and a module of handlers for each kind.

mod config_map;
mod deployment;
mod ephemeral_volume_claim;
mod everything;
mod hooks;
mod order;
mod pod;
mod toys;
mod warehouse;

/// The state that all handlers share while the operator runs, such as clients and connection pools.
#[derive(Debug, Default)]
pub struct Operator {}
