//! What happens to a handler that fails: error mode, retries, timeout, backoff.

use std::time::Duration;

/// How an error that says nothing about itself is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorMode {
    /// Retried after the backoff.
    #[default]
    Temporary,
    /// The handler has failed.
    Permanent,
    /// The handler counts as succeeded, without a result.
    Ignored,
}

/// The policy of one handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How arbitrary errors are treated.
    pub errors: ErrorMode,
    /// Overall time since the handler was first selected, downtime included.
    pub timeout: Option<Duration>,
    /// How many times it is called at most.
    pub retries: Option<u32>,
    /// Delay after an arbitrary error; the operator's default if none.
    pub backoff: Option<Duration>,
}

/// Why a handler is not called any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RetryLimit {
    /// The overall time is over.
    #[error("timed out after {0:?}")]
    Timeout(Duration),
    /// All calls were made.
    #[error("failed after {0} attempts")]
    Retries(u32),
}

// === impl RetryPolicy ===

impl RetryPolicy {
    /// Whether a call may still be made after `attempts` calls and `runtime`.
    ///
    /// # Errors
    /// Names the limit that forbids it.
    pub fn allow(&self, attempts: u32, runtime: Duration) -> Result<(), RetryLimit> {
        match (self.timeout, self.retries) {
            (Some(timeout), _) if runtime >= timeout => Err(RetryLimit::Timeout(timeout)),
            (_, Some(retries)) if attempts >= retries => Err(RetryLimit::Retries(retries)),
            _ => Ok(()),
        }
    }
}
