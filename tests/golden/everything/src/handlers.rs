//! What the operator knows, and the handlers of each kind.

mod config_map;
mod deployment;
mod ephemeral_volume_claim;
mod everything;
mod hooks;
mod order;
mod pod;
mod toys;
mod warehouse;

/// Lives as long as the operator and is shared by all handlers: the place for clients and pools.
#[derive(Debug, Default)]
pub struct Operator {}
