//! Adapters from admission reviews to typed webhooks: they decode the object and call the
//! function, and catch its panics and timeouts.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kopf_core::admission::review::{Denial, mutation};
use kopf_core::object::patch::JsonPatch;
use serde::de::DeserializeOwned;

use crate::context::mutation::MutationContext;
use crate::context::validation::{ReviewInputs, ValidationContext};
use crate::handler::error::{AdmissionErrorKind, AdmissionResult};
use crate::handler::state::SharedState;
use crate::task::panic_message;

/// A webhook without its types.
pub(crate) trait ReviewFunction: Send + Sync {
    /// Reviews one request, for at most `limit`.
    fn call(&self, inputs: ReviewInputs, limit: Duration) -> BoxFuture<'_, ReviewResult>;
}

/// The result of one call of a webhook.
#[derive(Debug)]
pub(crate) struct ReviewResult {
    pub(crate) verdict: ReviewVerdict,
    pub(crate) warnings: Vec<String>,
    pub(crate) patch: Option<JsonPatch>,
}

/// The decision of a webhook.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReviewVerdict {
    Allowed,
    Denied(Denial),
    /// The webhook failed.
    Failed(String),
}

pub(crate) struct ValidationAdapter<K, S> {
    pub(crate) state: SharedState<S>,
    pub(crate) function:
        for<'a> fn(&'a S, &'a mut ValidationContext<K>) -> BoxFuture<'a, AdmissionResult>,
}

pub(crate) struct MutationAdapter<K, S> {
    pub(crate) state: SharedState<S>,
    pub(crate) function:
        for<'a> fn(&'a S, &'a mut MutationContext<K>) -> BoxFuture<'a, AdmissionResult>,
}

// === impl ReviewFunction ===

impl<K, S> ReviewFunction for ValidationAdapter<K, S>
where
    K: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    fn call(&self, inputs: ReviewInputs, limit: Duration) -> BoxFuture<'_, ReviewResult> {
        Box::pin(async move {
            let mut cx = match decode(inputs) {
                Ok(cx) => cx,
                Err(denied) => return denied,
            };
            let verdict = supervised((self.function)(self.state.get(), &mut cx), limit).await;
            ReviewResult {
                verdict,
                warnings: cx.take_warnings(),
                patch: None,
            }
        })
    }
}

impl<K, S> ReviewFunction for MutationAdapter<K, S>
where
    K: DeserializeOwned + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    fn call(&self, inputs: ReviewInputs, limit: Duration) -> BoxFuture<'_, ReviewResult> {
        Box::pin(async move {
            let mut cx = match decode(inputs) {
                Ok(cx) => MutationContext::new(cx),
                Err(denied) => return denied,
            };
            let verdict = supervised((self.function)(self.state.get(), &mut cx), limit).await;
            let warnings = cx.take_warnings();
            let verdict = match (verdict, cx.draft.settle(&cx.patch)) {
                (ReviewVerdict::Allowed, Err(error)) => ReviewVerdict::Failed(error.to_string()),
                (verdict, _) => verdict,
            };
            let patch = std::mem::take(&mut cx.patch).into_writes();
            let patch = match (&verdict, cx.new_raw()) {
                (ReviewVerdict::Allowed, Some(sent)) if !patch.is_empty() => mutation(sent, patch),
                _ => None,
            };
            ReviewResult {
                verdict,
                warnings,
                patch,
            }
        })
    }
}

// === impl ReviewResult ===

impl ReviewResult {
    pub(crate) fn failed(message: String) -> Self {
        Self::new(ReviewVerdict::Failed(message))
    }

    fn new(verdict: ReviewVerdict) -> Self {
        Self {
            verdict,
            warnings: Vec::new(),
            patch: None,
        }
    }
}

fn decode<K: DeserializeOwned>(inputs: ReviewInputs) -> Result<ValidationContext<K>, ReviewResult> {
    let text = inputs.request.body().map_or("null", |body| body.get());
    match serde_json::from_str(text) {
        Ok(object) => Ok(ValidationContext::new(object, inputs)),
        Err(error) => Err(ReviewResult::new(ReviewVerdict::Denied(Denial {
            message: format!("the object does not fit its type: {error}"),
            code: 422,
        }))),
    }
}

async fn supervised(call: BoxFuture<'_, AdmissionResult>, limit: Duration) -> ReviewVerdict {
    let call = AssertUnwindSafe(call).catch_unwind();
    match tokio::time::timeout(limit, call).await {
        Ok(Ok(Ok(()))) => ReviewVerdict::Allowed,
        Ok(Ok(Err(error))) => match error.kind {
            AdmissionErrorKind::Denied { code } => ReviewVerdict::Denied(Denial {
                message: error.message,
                code,
            }),
            AdmissionErrorKind::Failed => ReviewVerdict::Failed(error.message),
        },
        Ok(Err(payload)) => {
            ReviewVerdict::Failed(format!("panicked: {}", panic_message(&*payload)))
        }
        Err(_) => ReviewVerdict::Failed(format!("did not return within {limit:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::error::AdmissionError;

    const LIMIT: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn a_panic_is_a_failure_of_the_webhook() {
        let verdict = supervised(Box::pin(async { panic!("no {}", "way") }), LIMIT).await;
        assert_eq!(
            verdict,
            ReviewVerdict::Failed("panicked: no way".to_owned())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_review_is_cancelled_after_its_time_limit() {
        let verdict = supervised(Box::pin(std::future::pending()), LIMIT).await;
        let message = "did not return within 5s".to_owned();
        assert_eq!(verdict, ReviewVerdict::Failed(message));
    }

    #[tokio::test]
    async fn a_denial_keeps_its_code() {
        let denied = async { Err(AdmissionError::denied_with(499, "no")) };
        let verdict = supervised(Box::pin(denied), LIMIT).await;
        let message = "no".to_owned();
        assert_eq!(
            verdict,
            ReviewVerdict::Denied(Denial { message, code: 499 })
        );
    }
}
