//! Coordination with other operators and replicas: peering, leader election, and the pauses that
//! both demand.

pub(crate) mod clock;
pub(crate) mod election;
pub(crate) mod pause;
pub(crate) mod peering;
