//! Supervises one call of a handler, which may fail, panic or take too long.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kopf_core::cause::Reason;
use kopf_core::handler::retry::{RetryLimit, RetryPolicy};
use kopf_core::outcome::{HandlerFailure, Outcome};
use serde_json::Value;

use crate::handler::error::{HandlerError, HandlerErrorKind, HandlerResult};
use crate::health::metrics::AttemptOutcome;
use crate::task::panic_message;

/// The end of a call.
#[derive(Debug)]
pub(crate) enum CallEnd {
    Returned(HandlerResult),
    Panicked(String),
    OutOfTime,
    /// The handler had to stop, and did not return by itself.
    Interrupted,
    /// The handler was not called: the object does not fit its type.
    Undecodable(String),
}

/// Runs a call to its end, at most as long as `limit`.
pub(crate) async fn supervised(
    call: BoxFuture<'_, HandlerResult>,
    limit: Option<Duration>,
) -> CallEnd {
    let call = AssertUnwindSafe(call).catch_unwind();
    let ended = match limit {
        Some(limit) => tokio::time::timeout(limit, call).await,
        None => Ok(call.await),
    };
    match ended {
        Ok(Ok(result)) => CallEnd::Returned(result),
        Ok(Err(payload)) => CallEnd::Panicked(panic_message(&*payload)),
        Err(_) => CallEnd::OutOfTime,
    }
}

impl CallEnd {
    /// The outcome for the records; `result` counts only after success.
    pub(crate) fn into_outcome(
        self,
        result: Option<Value>,
        reason: Reason,
        policy: &RetryPolicy,
    ) -> Outcome {
        match self {
            Self::Returned(Ok(())) => Outcome::Success(result.unwrap_or_default()),
            Self::Returned(Err(error)) => error.into_outcome(),
            Self::Panicked(message) => Outcome::Error(HandlerFailure::Other {
                message: format!("panicked: {message}"),
            }),
            Self::OutOfTime => {
                let timeout = policy.timeout.unwrap_or_default();
                Outcome::Error(HandlerFailure::Exhausted(RetryLimit::Timeout(timeout)))
            }
            Self::Interrupted => Outcome::Error(HandlerFailure::Other {
                message: "interrupted".to_owned(),
            }),
            Self::Undecodable(message) => {
                let message = format!("the object does not fit its type: {message}");
                Outcome::Error(match reason {
                    // Retries would keep an object that is being deleted for ever.
                    Reason::Delete => HandlerFailure::Permanent { message },
                    _ => HandlerFailure::Other { message },
                })
            }
        }
    }

    /// The outcome as a metric.
    pub(crate) fn counted(&self) -> AttemptOutcome {
        match self {
            Self::Returned(Ok(())) => AttemptOutcome::Succeeded,
            Self::Returned(Err(error)) => match error.kind {
                HandlerErrorKind::Temporary { .. } => AttemptOutcome::Temporary,
                HandlerErrorKind::Waiting { .. } => AttemptOutcome::Waiting,
                HandlerErrorKind::Permanent => AttemptOutcome::Permanent,
                HandlerErrorKind::Arbitrary => AttemptOutcome::Arbitrary,
            },
            Self::Panicked(_) => AttemptOutcome::Panicked,
            Self::OutOfTime => AttemptOutcome::TimedOut,
            Self::Interrupted => AttemptOutcome::Interrupted,
            Self::Undecodable(_) => AttemptOutcome::Undecodable,
        }
    }

    /// True if the error mode of the handler decides about a retry.
    pub(crate) fn is_arbitrary(&self) -> bool {
        match self {
            Self::Returned(Err(error)) => error.kind == HandlerErrorKind::Arbitrary,
            Self::Panicked(_) | Self::Undecodable(_) => true,
            Self::Returned(Ok(())) | Self::OutOfTime | Self::Interrupted => false,
        }
    }

    /// A short message about a failure, if there was one.
    pub(crate) fn problem(self) -> Option<String> {
        match self {
            Self::Returned(Ok(())) => None,
            Self::Returned(Err(error)) => Some(error.message),
            Self::Panicked(message) => Some(format!("panicked: {message}")),
            Self::OutOfTime => Some("it has timed out".to_owned()),
            Self::Interrupted => Some("it was interrupted".to_owned()),
            Self::Undecodable(message) => Some(message),
        }
    }
}

impl HandlerError {
    fn into_outcome(self) -> Outcome {
        let message = self.message;
        Outcome::Error(match self.kind {
            HandlerErrorKind::Temporary { delay } => HandlerFailure::Temporary {
                message,
                delay: Some(delay),
            },
            HandlerErrorKind::Permanent => HandlerFailure::Permanent { message },
            HandlerErrorKind::Arbitrary => HandlerFailure::Other { message },
            HandlerErrorKind::Waiting { delay } => return Outcome::Waiting { delay },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(end: CallEnd, reason: Reason) -> Outcome {
        let policy = RetryPolicy {
            timeout: Some(Duration::from_secs(5)),
            ..RetryPolicy::default()
        };
        end.into_outcome(Some(Value::from("made")), reason, &policy)
    }

    #[tokio::test]
    async fn a_panic_is_an_arbitrary_error() {
        let end = supervised(Box::pin(async { panic!("no {}", "way") }), None).await;
        assert_eq!(
            outcome(end, Reason::Create),
            Outcome::Error(HandlerFailure::Other {
                message: "panicked: no way".to_owned()
            })
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_interrupts_a_call() {
        let limit = Some(Duration::from_secs(5));
        let end = supervised(Box::pin(std::future::pending()), limit).await;
        assert_eq!(
            outcome(end, Reason::Create),
            Outcome::Error(HandlerFailure::Exhausted(RetryLimit::Timeout(
                Duration::from_secs(5)
            )))
        );
    }

    #[test]
    fn an_object_that_does_not_decode_may_be_repaired_unless_it_is_being_deleted() {
        let message = "the object does not fit its type: no size".to_owned();
        let end = || CallEnd::Undecodable("no size".to_owned());
        assert_eq!(
            outcome(end(), Reason::Update),
            Outcome::Error(HandlerFailure::Other {
                message: message.clone()
            })
        );
        assert_eq!(
            outcome(end(), Reason::Delete),
            Outcome::Error(HandlerFailure::Permanent { message })
        );
    }

    #[test]
    fn a_result_counts_only_after_success() {
        assert_eq!(
            outcome(CallEnd::Returned(Ok(())), Reason::Create),
            Outcome::Success(Value::from("made"))
        );
        let error = Err(HandlerError::permanent("no"));
        assert_eq!(
            outcome(CallEnd::Returned(error), Reason::Create),
            Outcome::Error(HandlerFailure::Permanent {
                message: "no".to_owned()
            })
        );
    }
}
