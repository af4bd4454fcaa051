//! The outcome of one call of a handler, and its consequence for the handler's record.
//!
//! [`crate::handler::retry`] decides about retries and their delays.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    handler::retry::{AfterFailure, CallsSoFar, RetryLimit, RetryPolicy, TEMPORARY_DELAY},
    message::shortened,
    progress::record::Record,
    time,
};

/// The failure of a handler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandlerFailure {
    /// The handler asks for another call.
    #[error("{message}")]
    Temporary {
        /// The error message.
        message: String,
        /// After this time; at once if none.
        delay: Option<Duration>,
    },
    /// The handler asks for no other call.
    #[error("{message}")]
    Permanent {
        /// The error message.
        message: String,
    },
    /// An arbitrary error, which says nothing about another call; panics are such errors.
    #[error("{message}")]
    Other {
        /// The error message.
        message: String,
    },
    /// A limit was reached: the call was not made, or it was interrupted.
    #[error("{0}")]
    Exhausted(RetryLimit),
}

/// The outcome of one call.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The handler returned, with a result for the status unless null.
    Success(Value),
    /// The handler returned, but its sub-handlers are not done.
    Waiting {
        /// The time until the first of them is due; at once if none.
        delay: Option<Duration>,
    },
    /// The handler failed.
    Error(HandlerFailure),
}

/// The consequence of one call for the handler.
#[derive(Clone, Debug, PartialEq)]
pub enum Consequence {
    /// Done; the result goes to the status unless null.
    Succeeded(Value),
    /// Done: the error is ignored.
    Ignored {
        /// The error message.
        message: String,
    },
    /// Failed for good.
    Failed {
        /// The error message.
        message: String,
    },
    /// Another call follows.
    Retry {
        /// The error message.
        message: String,
        /// After this time; at once if none.
        delay: Option<Duration>,
    },
    /// Another call follows when its sub-handlers are due; this one is not counted.
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
    /// Decides the consequence of an outcome; the record is the one before the call.
    #[must_use]
    pub fn of(
        outcome: Outcome,
        policy: &RetryPolicy,
        default_backoff: Duration,
        record: &Record,
        now: Timestamp,
    ) -> Self {
        let calls = CallsSoFar {
            attempts: record.retries.saturating_add(1),
            runtime: record.runtime(now),
        };
        let failure = match outcome {
            Outcome::Success(result) => return Self::Succeeded(result),
            Outcome::Waiting { delay } => return Self::Waiting { delay },
            Outcome::Error(failure) => failure,
        };
        let after = match &failure {
            HandlerFailure::Temporary { delay, .. } => policy.after_temporary_error(*delay, calls),
            HandlerFailure::Other { .. } => policy.after_arbitrary_error(default_backoff, calls),
            HandlerFailure::Permanent { .. } | HandlerFailure::Exhausted(_) => AfterFailure::Fail,
        };
        let message = failure.to_string();
        match after {
            AfterFailure::Retry(delay) => Self::Retry { message, delay },
            AfterFailure::Fail => Self::Failed { message },
            AfterFailure::Ignore => Self::Ignored { message },
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
    ///
    /// A longer message than an annotation can have would keep the API server from accepting it.
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
                message: Some(shortened(message)),
                ..counted
            },
            Self::Retry { message, delay } => Record {
                delayed: at(delay),
                message: Some(shortened(message)),
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
