//! Calls handlers of the operator, one after the other, until each of them is done for good.

use std::time::Duration;

use jiff::Timestamp;
use kopf_core::cause::Reason;
use kopf_core::handler::HandlerId;
use kopf_core::outcome::{Consequence, HandlerFailure, Outcome};
use kopf_core::progress::record::Record;
use tracing::{Instrument as _, error, info};

use super::{Hook, HookAttempt, HookContext};
use crate::events::span;
use crate::process::execute::invoke::supervised;
use crate::process::execute::report::Failing;

/// What becomes of the other handlers when one has failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookFailurePolicy {
    /// They do not matter any more.
    StopAtFirst,
    /// They are called all the same.
    RunAll,
}

/// A handler that failed for good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{handler}` has failed: {message}")]
pub struct HookFailure {
    /// Its id.
    pub handler: String,
    /// What went wrong.
    pub message: String,
}

/// Calls all handlers until each of them is done, and tells which of them failed.
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
    let told = failed.map(|(hook, record)| HookFailure {
        handler: hook.declared.id.to_string(),
        message: record.message.clone().unwrap_or_default(),
    });
    told.collect()
}

impl<C: HookContext> Hook<C> {
    /// Makes one attempt, and tells what became of it.
    async fn attempt(&self, record: &Record, cx: &mut C, default_backoff: Duration) -> Record {
        let policy = &self.declared.policy;
        let runtime = record.runtime(Timestamp::now());
        let outcome = match policy.allow(record.retries, runtime) {
            Err(limit) => Outcome::Error(HandlerFailure::Exhausted(limit)),
            Ok(()) => {
                cx.attempt(HookAttempt {
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
        let failing = Failing {
            policy,
            consequence: &consequence,
            record: Some(&record),
            default_backoff,
            now,
        };
        tell(&self.declared.id, &outcome, &failing);
        record
    }
}

/// Tells what became of a call, in the words of Kopf.
fn tell(id: &HandlerId, outcome: &Outcome, failing: &Failing<'_>) {
    match outcome {
        Outcome::Success(_) => info!("Activity '{id}' succeeded."),
        Outcome::Waiting { .. } => {}
        Outcome::Error(failure) => error!("Activity '{id}' {}", failing.complaint(failure)),
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
    struct Calls {
        good: AtomicU32,
        bad: AtomicU32,
    }

    fn good<'a>(calls: &'a Calls, _: &'a mut CleanupContext) -> BoxFuture<'a, HandlerResult> {
        calls.good.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }

    fn bad<'a>(calls: &'a Calls, cx: &'a mut CleanupContext) -> BoxFuture<'a, HandlerResult> {
        assert_eq!(calls.bad.fetch_add(1, Ordering::Relaxed), cx.retry());
        Box::pin(async { Err(HandlerError::arbitrary("oops")) })
    }

    async fn run(
        declared: HookHandler,
        on_failure: HookFailurePolicy,
    ) -> (Vec<HookFailure>, u32, u32) {
        let calls = Arc::new(Calls::default());
        let handlers = Hooks::new(&calls)
            .cleanup(declared, bad)
            .cleanup(HookHandler::new("good"), good)
            .build();
        let mut cx = CleanupContext::new(None, Indices::default());
        let failed = run_hooks(&handlers.cleanups, &mut cx, on_failure, BACKOFF).await;
        let count = |of: &AtomicU32| of.load(Ordering::Relaxed);
        (failed, count(&calls.bad), count(&calls.good))
    }

    #[tokio::test]
    async fn a_failure_is_retried_as_often_as_allowed_and_success_is_not_repeated() {
        let declared = HookHandler::new("bad")
            .retries(3)
            .backoff(Duration::from_millis(1));
        let (failed, bad, good) = run(declared, HookFailurePolicy::RunAll).await;
        assert_eq!((bad, good), (3, 1));
        assert_eq!(failed[0].to_string(), "`bad` has failed: oops");
    }

    #[tokio::test]
    async fn a_failure_for_good_stops_the_others_if_they_do_not_matter_any_more() {
        let declared = || HookHandler::new("bad").errors(ErrorMode::Permanent);
        let (failed, bad, good) = run(declared(), HookFailurePolicy::StopAtFirst).await;
        assert_eq!((failed.len(), bad, good), (1, 1, 0));
        let (failed, bad, good) = run(declared(), HookFailurePolicy::RunAll).await;
        assert_eq!((failed.len(), bad, good), (1, 1, 1));
    }

    #[tokio::test]
    async fn an_error_that_is_ignored_is_no_failure() {
        let declared = HookHandler::new("bad").errors(ErrorMode::Ignored);
        let (failed, bad, good) = run(declared, HookFailurePolicy::StopAtFirst).await;
        assert_eq!((failed, bad, good), (Vec::new(), 1, 1));
    }
}
