//! From the end of one call to its consequence for the handler's record.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    handler::retry::{ErrorMode, RetryLimit, RetryPolicy},
    progress::record::Record,
    time,
};

/// Delay after a temporary error that names none.
pub const TEMPORARY_DELAY: Duration = Duration::from_secs(60);

/// How a handler failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandlerFailure {
    /// It asks to be called again.
    #[error("{message}")]
    Temporary {
        /// What went wrong.
        message: String,
        /// After this time; at once if none.
        delay: Option<Duration>,
    },
    /// It asks not to be called again.
    #[error("{message}")]
    Permanent {
        /// What went wrong.
        message: String,
    },
    /// It says nothing about being called again; panics belong here.
    #[error("{message}")]
    Other {
        /// What went wrong.
        message: String,
    },
    /// It was not called, or interrupted, because a limit was reached.
    #[error("{0}")]
    Exhausted(RetryLimit),
}

/// How one call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It returned, with a result for the status unless null.
    Success(Value),
    /// It returned, but its sub-handlers are not done.
    Waiting {
        /// When the first of them is due; at once if none.
        delay: Option<Duration>,
    },
    /// It failed.
    Error(HandlerFailure),
}

/// What one call means for the handler.
#[derive(Clone, Debug, PartialEq)]
pub enum Consequence {
    /// Done; the result is to be delivered unless null.
    Succeeded(Value),
    /// Done, as far as an error that is ignored is.
    Ignored {
        /// What went wrong.
        message: String,
    },
    /// Failed for good.
    Failed {
        /// What went wrong.
        message: String,
    },
    /// To be called again.
    Retry {
        /// What went wrong.
        message: String,
        /// After this time; at once if none.
        delay: Option<Duration>,
    },
    /// To be called again when its sub-handlers are due; no attempt is counted.
    Waiting {
        /// After this time; at once if none.
        delay: Option<Duration>,
    },
}

// === impl HandlerFailure ===

impl HandlerFailure {
    /// A temporary error with Kopf's default delay.
    #[must_use]
    pub fn temporary(message: impl Into<String>) -> Self {
        Self::Temporary {
            message: message.into(),
            delay: Some(TEMPORARY_DELAY),
        }
    }
}

// === impl Consequence ===

impl Consequence {
    /// Judges how a call ended; the record is the one before the call.
    ///
    /// A retry that would only run into a limit is a failure right away.
    #[must_use]
    pub fn of(
        outcome: Outcome,
        policy: &RetryPolicy,
        default_backoff: Duration,
        record: &Record,
        now: Timestamp,
    ) -> Self {
        let retry = |message: String, delay: Option<Duration>| {
            let wait = delay.unwrap_or_default();
            let runtime = record.runtime(now).saturating_add(wait);
            match policy.allow(record.retries.saturating_add(1), runtime) {
                Ok(()) => Self::Retry { message, delay },
                Err(_) => Self::Failed { message },
            }
        };
        match outcome {
            Outcome::Success(result) => Self::Succeeded(result),
            Outcome::Waiting { delay } => Self::Waiting { delay },
            Outcome::Error(error) => match (error, policy.errors) {
                (HandlerFailure::Temporary { message, delay }, _) => retry(message, delay),
                (HandlerFailure::Permanent { message }, _)
                | (HandlerFailure::Other { message }, ErrorMode::Permanent) => {
                    Self::Failed { message }
                }
                (HandlerFailure::Exhausted(limit), _) => Self::Failed {
                    message: limit.to_string(),
                },
                (HandlerFailure::Other { message }, ErrorMode::Ignored) => {
                    Self::Ignored { message }
                }
                (HandlerFailure::Other { message }, ErrorMode::Temporary) => {
                    retry(message, Some(policy.backoff.unwrap_or(default_backoff)))
                }
            },
        }
    }

    /// Whether the handler is done.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Succeeded(_) | Self::Ignored { .. } | Self::Failed { .. }
        )
    }

    /// The record after the call.
    #[must_use]
    pub fn apply(&self, record: &Record, now: Timestamp) -> Record {
        let now = time::to_micros(now);
        let at = |delay: &Option<Duration>| delay.map(|delay| time::after(now, delay));
        let counted = Record {
            retries: record.retries.saturating_add(1),
            delayed: None,
            message: None,
            ..record.clone()
        };
        match self {
            Self::Succeeded(_) | Self::Ignored { .. } => Record {
                stopped: Some(now),
                success: true,
                ..counted
            },
            Self::Failed { message } => Record {
                stopped: Some(now),
                failure: true,
                message: Some(message.clone()),
                ..counted
            },
            Self::Retry { message, delay } => Record {
                delayed: at(delay),
                message: Some(message.clone()),
                ..counted
            },
            Self::Waiting { delay } => Record {
                delayed: at(delay),
                retries: record.retries,
                ..counted
            },
        }
    }
}

#[cfg(test)]
mod tests;
