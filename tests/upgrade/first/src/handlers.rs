//! What the operator knows, and the handlers of each kind.

mod ephemeral_volume_claim;

/// Lives as long as the operator and is shared by all handlers: the place for clients and pools.
#[derive(Debug, Default)]
pub struct Operator {}
