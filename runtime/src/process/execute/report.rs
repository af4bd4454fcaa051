//! Reports calls of handlers in the log and in Kubernetes events.
//!
//! The messages are those of Kopf, so that people and their alerts recognise them.

use std::time::Duration;

use jiff::Timestamp;
use kopf_core::cause::Reason;
use kopf_core::handler::finalizer_need::FinalizerNeed;
use kopf_core::handler::retry::{ErrorMode, RetryLimit, RetryPolicy};
use kopf_core::handler::{HandlerSpec, Trigger};
use kopf_core::machine::object::NextCall;
use kopf_core::outcome::{Consequence, HandlerFailure, Outcome};
use kopf_core::progress::record::Record;
use kopf_core::time;
use kopf_core::turn::{LeaveReason, Turn, TurnOutcome};
use tracing::{debug, error, info};

use crate::client::log_text;
use crate::client::resource::KindName;
use crate::page::journal::ReportedCall;
use crate::process::execute::handler_scope::{HandlerScope, ProgressEvent};

/// A finished call with its outcome.
pub(crate) struct FinishedCall<'a> {
    pub(crate) spec: &'a HandlerSpec,
    pub(crate) outcome: &'a Outcome,
    pub(crate) consequence: &'a Consequence,
    /// The record after the call.
    pub(crate) record: Option<&'a Record>,
    pub(crate) default_backoff: Duration,
    pub(crate) now: Timestamp,
}

/// The facts that decide about the message of a failure.
pub(crate) struct FailureDescription<'a> {
    pub(crate) policy: &'a RetryPolicy,
    pub(crate) consequence: &'a Consequence,
    /// The record after the call.
    pub(crate) record: Option<&'a Record>,
    pub(crate) default_backoff: Duration,
    pub(crate) now: Timestamp,
}

/// Logs the outcome of a call, and posts it as an event of the object.
pub(crate) fn report_call(finished: &FinishedCall<'_>, scope: &HandlerScope) {
    scope
        .services
        .journal
        .call_reported(&scope.subject.journaled(), &finished.journaled());
    let id = &finished.spec.id;
    let noun = noun(finished.spec.trigger);
    match finished.outcome {
        // They succeed for every object again and again: a log line each would be too much.
        Outcome::Success(_)
            if matches!(finished.spec.trigger, Trigger::Timer | Trigger::Reconcile) =>
        {
            debug!("{noun} '{id}' succeeded.");
        }
        Outcome::Success(_) if finished.spec.trigger == Trigger::Index => {}
        Outcome::Success(_) => {
            let message = format_args!("{noun} '{id}' succeeded.");
            info!("{message}");
            scope.post_progress(ProgressEvent::Success, message);
        }
        Outcome::Waiting { .. } => {}
        Outcome::Error(failure) => {
            let message = format!("{noun} '{id}' {}", finished.description().describe(failure));
            error!("{message}");
            // An index function does nothing to the object, so no event is posted.
            if finished.spec.trigger != Trigger::Index {
                scope.post_progress(ProgressEvent::Failure, message);
            }
        }
    }
}

/// Logs why handlers are called, and which records of another reason are continued.
pub(crate) fn report_turn(turn: &Turn, kind: &KindName) {
    let reason = turn.reason();
    for former in turn.superseded() {
        info!("the handling of {former} goes on as that of {reason}");
    }
    let Some(what) = title(reason) else {
        return;
    };
    if reason == Reason::Update {
        let diff = &turn.input().change.diff;
        debug!("{what} is in progress: {}", log_text::diff(kind, diff));
    } else {
        debug!("{what} is in progress.");
    }
}

/// Logs that a handler is about to be called.
pub(crate) fn report_begin(spec: &HandlerSpec, retry: u32) {
    let noun = noun(spec.trigger);
    debug!(
        "{noun} '{}' is invoked: attempt {}.",
        spec.id,
        retry.saturating_add(1)
    );
}

/// Logs a change of the finalizer that is about to be written.
pub(crate) fn report_finalizer(change: FinalizerNeed) {
    match change {
        FinalizerNeed::Settled => {}
        FinalizerNeed::Add => {
            debug!("Adding the finalizer, thus preventing the actual deletion.");
        }
        FinalizerNeed::Remove => {
            debug!("Removing the finalizer, thus allowing the actual deletion.");
        }
    }
}

/// Logs why nothing is done for a state, or until when the object sleeps.
pub(crate) fn report_rest(next: NextCall, left: Option<LeaveReason>) {
    match (next, left) {
        (NextCall::After(delay), _) => debug!("{}", sleeping(delay, Timestamp::now())),
        (NextCall::Forget, _) => debug!("Deleted, really deleted, and we are notified."),
        (_, Some(LeaveReason::Released)) => {
            debug!("Deletion, but we are done with it, and we do not care.");
        }
        (_, Some(LeaveReason::Unchanged)) => {
            debug!("Something has changed, but we are not interested (the essence is the same).");
        }
        (_, Some(LeaveReason::NoHandler)) => {
            debug!("Ignored: no handler of the kind matches the object.");
        }
        (NextCall::AwaitChange | NextCall::NotBefore(_), None | Some(LeaveReason::Gone)) => {}
    }
}

/// A handler may ask for any delay, longer than time lasts.
fn sleeping(delay: Duration, now: Timestamp) -> String {
    let (seconds, until) = (delay.as_secs_f64(), time::after(now, delay));
    format!("Sleeping for {seconds:.1} seconds, until {until:.0}, for the delayed handlers.")
}

/// Logs and posts that all handlers of an object are done for now.
pub(crate) fn report_cycle_end(reason: Reason, conclusion: &TurnOutcome, scope: &HandlerScope) {
    let TurnOutcome {
        succeeded, failed, ..
    } = conclusion;
    let Some(what) = title(reason) else {
        return;
    };
    if succeeded + failed == 0 {
        return;
    }
    let tally = format_args!("{what} is processed: {succeeded} succeeded; {failed} failed.");
    info!("{tally}");
    if *failed == 0 {
        scope.post_progress(ProgressEvent::Finished, "All handlers succeeded.");
    } else {
        scope.post_progress(ProgressEvent::Finished, tally);
    }
}

/// The word for the handling of a reason in messages.
fn title(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::Create => Some("Creation"),
        Reason::Update => Some("Updating"),
        Reason::Delete => Some("Deletion"),
        Reason::Resume => Some("Resuming"),
        Reason::Noop | Reason::Free | Reason::Gone => None,
    }
}

/// The word for a handler in messages.
pub(crate) fn noun(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Daemon => "Daemon",
        Trigger::Timer => "Timer",
        Trigger::Index => "Index",
        _ => "Handler",
    }
}

impl FinishedCall<'_> {
    fn journaled(&self) -> ReportedCall<'_> {
        ReportedCall {
            spec: self.spec,
            consequence: self.consequence,
            record: self.record,
            at: self.now,
        }
    }

    fn description(&self) -> FailureDescription<'_> {
        FailureDescription {
            policy: &self.spec.policy,
            consequence: self.consequence,
            record: self.record,
            default_backoff: self.default_backoff,
            now: self.now,
        }
    }
}

impl FailureDescription<'_> {
    /// The message after the name of the handler.
    pub(crate) fn describe(&self, failure: &HandlerFailure) -> String {
        let policy = self.policy;
        match failure {
            HandlerFailure::Permanent { message } => format!("failed permanently: {message}"),
            HandlerFailure::Exhausted(RetryLimit::Timeout(_)) => {
                format!("has timed out after {}.", clock(self.runtime()))
            }
            HandlerFailure::Exhausted(RetryLimit::Retries(retries)) => {
                format!("has exceeded {retries} retries.")
            }
            HandlerFailure::Temporary { message, delay } => {
                match self.limit(delay.unwrap_or_default()) {
                    None => format!("failed temporarily: {message}"),
                    Some(RetryLimit::Timeout(timeout)) => format!(
                        "failed temporarily but will time out after {} seconds: {message}",
                        seconds(timeout)
                    ),
                    Some(RetryLimit::Retries(retries)) => {
                        format!("failed temporarily but will exceed {retries} retries: {message}")
                    }
                }
            }
            HandlerFailure::Other { message } => {
                let backoff = policy.backoff.unwrap_or(self.default_backoff);
                let prospect = match (policy.errors, self.limit(backoff)) {
                    (ErrorMode::Ignored, _) => "ignore it".to_owned(),
                    (ErrorMode::Permanent, _) => "stop now".to_owned(),
                    (ErrorMode::Temporary, None) => {
                        format!("try again in {} seconds", seconds(backoff))
                    }
                    (ErrorMode::Temporary, Some(RetryLimit::Timeout(timeout))) => format!(
                        "stop now (it would time out in {} seconds on the next attempt)",
                        seconds(timeout)
                    ),
                    (ErrorMode::Temporary, Some(RetryLimit::Retries(retries))) => {
                        format!("stop now (it would exceed {retries} retries on the next attempt)")
                    }
                };
                format!("failed with an exception and will {prospect}: {message}")
            }
        }
    }

    /// The limit that forbids another attempt after `delay`, if that is why there is none.
    fn limit(&self, delay: Duration) -> Option<RetryLimit> {
        let gave_up = matches!(self.consequence, Consequence::Failed { .. });
        let record = self.record.filter(|_| gave_up)?;
        let runtime = self.runtime().saturating_add(delay);
        self.policy.allow(record.retries, runtime).err()
    }

    fn runtime(&self) -> Duration {
        self.record
            .map_or(Duration::ZERO, |record| record.runtime(self.now))
    }
}

/// Seconds as Python writes them, without an empty fraction.
fn seconds(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        duration.as_secs().to_string()
    } else {
        duration.as_secs_f64().to_string()
    }
}

/// Time as Python writes it: hours, minutes, seconds, and microseconds unless there are none.
fn clock(duration: Duration) -> String {
    let total = duration.as_secs();
    let (hours, minutes, seconds) = (total / 3600, total / 60 % 60, total % 60);
    let micros = duration.subsec_micros();
    if micros == 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{hours}:{minutes:02}:{seconds:02}.{micros:06}")
    }
}

#[cfg(test)]
mod tests {
    use kopf_core::handler::retry::RetryPolicy;

    use super::*;

    /// The message of a failure that comes `after` the start of a handler with this policy.
    fn message(policy: RetryPolicy, after: u64, failure: &HandlerFailure) -> String {
        let default_backoff = Duration::from_secs(60);
        let start = Timestamp::UNIX_EPOCH;
        let now = start + Duration::from_secs(after);
        let before = Record::begin(Reason::Create, start);
        let outcome = Outcome::Error(failure.clone());
        let consequence = Consequence::of(outcome.clone(), &policy, default_backoff, &before, now);
        let mut spec = HandlerSpec::new("fn", Trigger::Create);
        spec.policy = policy;
        let finished = FinishedCall {
            spec: &spec,
            outcome: &outcome,
            consequence: &consequence,
            record: Some(&consequence.apply(&before, now)),
            default_backoff,
            now,
        };
        finished.description().describe(failure)
    }

    fn temporary() -> HandlerFailure {
        HandlerFailure::temporary("no")
    }

    fn other() -> HandlerFailure {
        HandlerFailure::Other {
            message: "oops".to_owned(),
        }
    }

    #[test]
    fn a_sleep_may_be_as_long_as_the_handler_likes() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(
            sleeping(Duration::from_millis(90_500), now),
            "Sleeping for 90.5 seconds, until 1970-01-01T00:01:30Z, for the delayed handlers."
        );
        let endless = sleeping(Duration::MAX, now);
        assert!(endless.contains("until 9999-12-30T"), "{endless}");
    }

    #[test]
    fn errors_that_are_retried_say_when() {
        let policy = RetryPolicy {
            backoff: Some(Duration::from_millis(2500)),
            ..RetryPolicy::default()
        };
        assert_eq!(
            message(policy, 1, &other()),
            "failed with an exception and will try again in 2.5 seconds: oops"
        );
        assert_eq!(
            message(RetryPolicy::default(), 1, &other()),
            "failed with an exception and will try again in 60 seconds: oops"
        );
        assert_eq!(message(policy, 1, &temporary()), "failed temporarily: no");
    }

    #[test]
    fn errors_that_are_not_retried_say_why() {
        let mode = |errors| RetryPolicy {
            errors,
            ..RetryPolicy::default()
        };
        assert_eq!(
            message(mode(ErrorMode::Permanent), 1, &other()),
            "failed with an exception and will stop now: oops"
        );
        assert_eq!(
            message(mode(ErrorMode::Ignored), 1, &other()),
            "failed with an exception and will ignore it: oops"
        );
    }

    #[test]
    fn limits_that_forbid_another_attempt_are_named() {
        let once = RetryPolicy {
            retries: Some(1),
            ..RetryPolicy::default()
        };
        assert_eq!(
            message(once, 1, &temporary()),
            "failed temporarily but will exceed 1 retries: no"
        );
        assert_eq!(
            message(once, 1, &other()),
            "failed with an exception and will stop now (it would exceed 1 retries on the next attempt): oops"
        );
        let short = RetryPolicy {
            timeout: Some(Duration::from_secs(5)),
            ..RetryPolicy::default()
        };
        assert_eq!(
            message(short, 1, &temporary()),
            "failed temporarily but will time out after 5 seconds: no"
        );
        let timeout = RetryLimit::Timeout(Duration::from_secs(5));
        assert_eq!(
            message(short, 3725, &HandlerFailure::Exhausted(timeout)),
            "has timed out after 1:02:05."
        );
    }
}
