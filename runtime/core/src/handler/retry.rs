//! Decides about a handler that failed: whether it is called again, and after which delay.

use std::time::Duration;

/// The delay after a temporary error that names none; Kopf's default.
pub const TEMPORARY_DELAY: Duration = Duration::from_secs(60);

/// The treatment of arbitrary errors: those that are neither temporary nor permanent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorMode {
    /// The handler is called again after the backoff.
    #[default]
    Temporary,
    /// The handler has failed.
    Permanent,
    /// The handler counts as succeeded, without a result.
    Ignored,
}

/// The retry settings of one handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The treatment of arbitrary errors.
    pub errors: ErrorMode,
    /// Overall time since the handler was first selected, downtime included.
    pub timeout: Option<Duration>,
    /// The greatest number of calls.
    pub retries: Option<u32>,
    /// Delay after an arbitrary error; the operator's default if none.
    pub backoff: Option<Duration>,
}

/// The limit that forbids another call of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RetryLimit {
    /// The overall time is over.
    #[error("timed out after {0:?}")]
    Timeout(Duration),
    /// All calls were made.
    #[error("failed after {0} attempts")]
    Retries(u32),
}

/// The calls of a handler so far, the failed one included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallsSoFar {
    /// The number of calls.
    pub attempts: u32,
    /// The time since the handler was first selected.
    pub runtime: Duration,
}

/// The decision after a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another call after this delay; at once if none.
    Retry(Option<Duration>),
    /// No other call: the handler has failed.
    Fail,
    /// No other call: the handler counts as succeeded.
    Ignore,
}

// === impl RetryPolicy ===

impl RetryPolicy {
    /// Checks whether a call may still be made after `attempts` calls and `runtime`.
    ///
    /// # Errors
    /// The limit that forbids the call.
    pub fn allow(&self, attempts: u32, runtime: Duration) -> Result<(), RetryLimit> {
        match (self.timeout, self.retries) {
            (Some(timeout), _) if runtime >= timeout => Err(RetryLimit::Timeout(timeout)),
            (_, Some(retries)) if attempts >= retries => Err(RetryLimit::Retries(retries)),
            _ => Ok(()),
        }
    }

    /// Decides what follows an error that asks for another call after `delay`.
    ///
    /// If a limit would forbid that call when it is due, the handler has failed right away.
    #[must_use]
    pub fn after_temporary_error(
        &self,
        delay: Option<Duration>,
        calls: CallsSoFar,
    ) -> AfterFailure {
        let runtime = calls.runtime.saturating_add(delay.unwrap_or_default());
        match self.allow(calls.attempts, runtime) {
            Ok(()) => AfterFailure::Retry(delay),
            Err(_) => AfterFailure::Fail,
        }
    }

    /// Decides what follows an error that is neither temporary nor permanent.
    #[must_use]
    pub fn after_arbitrary_error(
        &self,
        default_backoff: Duration,
        calls: CallsSoFar,
    ) -> AfterFailure {
        match self.errors {
            ErrorMode::Temporary => {
                let delay = self.backoff.unwrap_or(default_backoff);
                self.after_temporary_error(Some(delay), calls)
            }
            ErrorMode::Permanent => AfterFailure::Fail,
            ErrorMode::Ignored => AfterFailure::Ignore,
        }
    }
}
