//! Consequences of calls, limits included.

use super::*;
use crate::{cause::Reason, handler::retry::ErrorMode};

const BACKOFF: Duration = Duration::from_secs(60);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn start() -> Timestamp {
    "2020-01-01T00:00:00Z".parse().expect("valid")
}

fn record(retries: u32) -> Record {
    Record {
        retries,
        message: Some("before".to_owned()),
        ..Record::begin(Reason::Update, start())
    }
}

fn consequence(
    error: HandlerFailure,
    policy: RetryPolicy,
    retries: u32,
    after: u64,
) -> Consequence {
    let now = time::after(start(), seconds(after));
    Consequence::of(
        Outcome::Error(error),
        &policy,
        BACKOFF,
        &record(retries),
        now,
    )
}

fn other() -> HandlerFailure {
    HandlerFailure::Other {
        message: "oops".to_owned(),
    }
}

fn retry(delay: u64) -> Consequence {
    Consequence::Retry {
        message: "oops".to_owned(),
        delay: Some(seconds(delay)),
    }
}

fn failed() -> Consequence {
    Consequence::Failed {
        message: "oops".to_owned(),
    }
}

#[test]
fn arbitrary_errors_follow_the_mode() {
    let mode = |errors| RetryPolicy {
        errors,
        ..RetryPolicy::default()
    };
    assert_eq!(
        consequence(other(), mode(ErrorMode::Temporary), 0, 0),
        retry(60)
    );
    assert_eq!(
        consequence(other(), mode(ErrorMode::Permanent), 0, 0),
        failed()
    );
    let ignored = consequence(other(), mode(ErrorMode::Ignored), 0, 0);
    assert!(matches!(ignored, Consequence::Ignored { .. }));
    let own = RetryPolicy {
        backoff: Some(seconds(5)),
        ..RetryPolicy::default()
    };
    assert_eq!(consequence(other(), own, 0, 0), retry(5));
}

#[test]
fn temporary_and_permanent_errors_overrule_the_mode() {
    let ignored = RetryPolicy {
        errors: ErrorMode::Ignored,
        ..RetryPolicy::default()
    };
    assert_eq!(
        consequence(HandlerFailure::temporary("oops"), ignored, 0, 0),
        retry(60)
    );
    let permanent = HandlerFailure::Permanent {
        message: "oops".to_owned(),
    };
    assert_eq!(consequence(permanent, ignored, 0, 0), failed());
}

#[test]
fn a_retry_that_a_limit_would_forbid_is_a_failure_at_once() {
    let retries = RetryPolicy {
        retries: Some(3),
        ..RetryPolicy::default()
    };
    assert_eq!(consequence(other(), retries, 1, 0), retry(60));
    assert_eq!(consequence(other(), retries, 2, 0), failed());
    let timeout = RetryPolicy {
        timeout: Some(seconds(100)),
        ..RetryPolicy::default()
    };
    assert_eq!(consequence(other(), timeout, 0, 39), retry(60));
    assert_eq!(consequence(other(), timeout, 0, 40), failed());
    assert_eq!(
        timeout.allow(0, seconds(100)),
        Err(RetryLimit::Timeout(seconds(100)))
    );
    assert_eq!(retries.allow(3, seconds(0)), Err(RetryLimit::Retries(3)));
    assert_eq!(retries.allow(2, seconds(0)), Ok(()));
}

#[test]
fn records_count_attempts_and_keep_the_last_error() {
    let now = time::after(start(), seconds(10));
    let after = retry(60).apply(&record(1), now);
    assert_eq!(after.retries, 2);
    assert_eq!(after.delayed, Some(time::after(start(), seconds(70))));
    assert_eq!(after.message.as_deref(), Some("oops"));
    assert!(!after.is_finished() && after.is_sleeping(now));

    let done = Consequence::Succeeded(Value::Null).apply(&after, now);
    assert_eq!((done.retries, done.success, done.failure), (3, true, false));
    assert_eq!(
        (done.stopped, done.delayed, done.message),
        (Some(now), None, None)
    );

    let lost = failed().apply(&after, now);
    assert_eq!((lost.retries, lost.success, lost.failure), (3, false, true));
    assert_eq!(lost.message.as_deref(), Some("oops"));
}

#[test]
fn waiting_for_sub_handlers_is_no_attempt() {
    let waiting = Consequence::of(
        Outcome::Waiting {
            delay: Some(seconds(7)),
        },
        &RetryPolicy {
            retries: Some(1),
            ..RetryPolicy::default()
        },
        BACKOFF,
        &record(0),
        start(),
    );
    assert!(!waiting.is_final());
    let after = waiting.apply(&record(0), start());
    assert_eq!(after.retries, 0);
    assert_eq!(after.delayed, Some(time::after(start(), seconds(7))));
    assert!(!after.is_finished());
}
