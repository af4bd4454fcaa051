//! Calls handlers of the operator one after the other, with retries, until each is done.

use std::time::Duration;

use jiff::Timestamp;
use kopf_core::cause::Reason;
use kopf_core::handler::HandlerId;
use kopf_core::outcome::{Consequence, HandlerFailure, Outcome};
use kopf_core::progress::record::Record;
use tracing::{Instrument as _, error, info};

use super::handler::{Hook, HookAttempt, HookContext};
use crate::events::span;
use crate::process::execute::invoke::supervised;
use crate::process::execute::report::FailureDescription;

/// The treatment of the other handlers after one has failed permanently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookFailurePolicy {
    /// They are not called any more.
    StopAtFirst,
    /// They are called nevertheless.
    RunAll,
}

/// A startup, cleanup or login handler that failed permanently.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{handler}` has failed: {message}")]
pub struct HookFailure {
    /// The id of the handler.
    pub handler: String,
    /// The error message.
    pub message: String,
}

/// Calls all handlers until each is done, and returns the failures.
pub(crate) async fn run_hooks<C: HookContext>(
    hooks: &[Hook<C>],
    cx: &mut C,
    on_failure: HookFailurePolicy,
    default_backoff: Duration,
) -> Vec<HookFailure> {
    let now = Timestamp::now();
    let mut records: Vec<Record> = hooks
        .iter()
        .map(|_| Record::begin(Reason::Noop, now))
        .collect();
    loop {
        for (hook, record) in hooks.iter().zip(&mut records) {
            if record.is_finished() || record.is_sleeping(Timestamp::now()) {
                continue;
            }
            *record = hook.attempt(record, cx, default_backoff).await;
            if record.failure && on_failure == HookFailurePolicy::StopAtFirst {
                return failures(hooks, &records);
            }
        }
        let now = Timestamp::now();
        let unfinished = records.iter().filter(|record| !record.is_finished());
        match unfinished.map(|record| record.delay(now)).min() {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return failures(hooks, &records),
        }
    }
}

fn failures<C>(hooks: &[Hook<C>], records: &[Record]) -> Vec<HookFailure> {
    let failed = hooks.iter().zip(records);
    let failed = failed.filter(|(_, record)| record.failure);
    let failures = failed.map(|(hook, record)| HookFailure {
        handler: hook.declared.id.to_string(),
        message: record.message.clone().unwrap_or_default(),
    });
    failures.collect()
}

impl<C: HookContext> Hook<C> {
    /// Makes one attempt, and returns the record with its outcome.
    async fn attempt(&self, record: &Record, cx: &mut C, default_backoff: Duration) -> Record {
        let policy = &self.declared.policy;
        let runtime = record.runtime(Timestamp::now());
        let outcome = match policy.allow(record.retries, runtime) {
            Err(limit) => Outcome::Error(HandlerFailure::Exhausted(limit)),
            Ok(()) => {
                cx.set_attempt(HookAttempt {
                    handler: self.declared.id.clone(),
                    param: self.declared.param.clone(),
                    retry: record.retries,
                    started: record.started,
                    runtime,
                });
                let limit = policy.timeout.map(|it| it.saturating_sub(runtime));
                let span = span::handler(self.declared.id.as_str(), record.retries);
                let call = supervised(self.function.call(cx), limit).instrument(span);
                call.await.into_outcome(None, Reason::Noop, policy)
            }
        };
        let now = Timestamp::now();
        let consequence = Consequence::of(outcome.clone(), policy, default_backoff, record, now);
        let record = consequence.apply(record, now);
        let description = FailureDescription {
            policy,
            consequence: &consequence,
            record: Some(&record),
            default_backoff,
            now,
        };
        log_outcome(&self.declared.id, &outcome, &description);
        record
    }
}

/// Logs the outcome of a call, in the words of Kopf.
fn log_outcome(id: &HandlerId, outcome: &Outcome, description: &FailureDescription<'_>) {
    match outcome {
        Outcome::Success(_) => info!("Activity '{id}' succeeded."),
        Outcome::Waiting { .. } => {}
        Outcome::Error(failure) => error!("Activity '{id}' {}", description.describe(failure)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::future::BoxFuture;
    use kopf_core::handler::retry::ErrorMode;

    use super::super::{CleanupContext, HookHandler, Hooks};
    use super::*;
    use crate::handler::error::{HandlerError, HandlerResult};
    use crate::index::Indices;

    const BACKOFF: Duration = Duration::from_secs(60);

    /// Counts the calls of each handler.
    #[derive(Default)]
    struct CallCounts {
        good: AtomicU32,
        bad: AtomicU32,
    }

    fn good<'a>(calls: &'a CallCounts, _: &'a mut CleanupContext) -> BoxFuture<'a, HandlerResult> {
        calls.good.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }

    fn bad<'a>(calls: &'a CallCounts, cx: &'a mut CleanupContext) -> BoxFuture<'a, HandlerResult> {
        assert_eq!(calls.bad.fetch_add(1, Ordering::Relaxed), cx.retry());
        Box::pin(async { Err(HandlerError::arbitrary("oops")) })
    }

    async fn run(
        declared: HookHandler,
        on_failure: HookFailurePolicy,
    ) -> (Vec<HookFailure>, u32, u32) {
        let calls = Arc::new(CallCounts::default());
        let handlers = Hooks::new(&calls)
            .cleanup(declared, bad)
            .cleanup(HookHandler::new("good"), good)
            .build();
        let mut cx = CleanupContext::new(None, Arc::default(), Indices::default());
        let failed = run_hooks(&handlers.cleanups, &mut cx, on_failure, BACKOFF).await;
        let count = |of: &AtomicU32| of.load(Ordering::Relaxed);
        (failed, count(&calls.bad), count(&calls.good))
    }

    #[tokio::test]
    async fn a_failure_is_retried_up_to_the_limit_and_a_success_is_not_repeated() {
        let declared = HookHandler::new("bad")
            .retries(3)
            .backoff(Duration::from_millis(1));
        let (failed, bad, good) = run(declared, HookFailurePolicy::RunAll).await;
        assert_eq!((bad, good), (3, 1));
        assert_eq!(failed[0].to_string(), "`bad` has failed: oops");
    }

    #[tokio::test]
    async fn a_permanent_failure_stops_the_other_handlers_if_the_policy_says_so() {
        let declared = || HookHandler::new("bad").errors(ErrorMode::Permanent);
        let (failed, bad, good) = run(declared(), HookFailurePolicy::StopAtFirst).await;
        assert_eq!((failed.len(), bad, good), (1, 1, 0));
        let (failed, bad, good) = run(declared(), HookFailurePolicy::RunAll).await;
        assert_eq!((failed.len(), bad, good), (1, 1, 1));
    }

    #[tokio::test]
    async fn an_ignored_error_is_not_a_failure() {
        let declared = HookHandler::new("bad").errors(ErrorMode::Ignored);
        let (failed, bad, good) = run(declared, HookFailurePolicy::StopAtFirst).await;
        assert_eq!((failed, bad, good), (Vec::new(), 1, 1));
    }
}
