//! What the operator knows, and the handlers of each kind.

mod pod;

use std::time::Duration;

/// Lives as long as the operator and is shared by all handlers: the place for clients and pools.
#[derive(Debug)]
pub struct Operator {
    /// How long a Pod may live.
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
