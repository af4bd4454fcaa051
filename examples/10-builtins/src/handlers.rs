//! The state of the operator, and a module of handlers for each kind.

mod pod;

use std::time::Duration;

/// The state that all handlers share while the operator runs, such as clients and connection pools.
#[derive(Debug)]
pub struct Operator {
    /// The lifetime of a Pod.
    life: Duration,
}

impl Default for Operator {
    fn default() -> Self {
        let seconds = std::env::var("POD_LIFE_SECONDS").ok();
        let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(30);
        Self {
            life: Duration::from_secs(seconds),
        }
    }
}
