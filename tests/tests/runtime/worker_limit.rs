//! The limits of objects that are handled at once, and of the memory of those that sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kopf_runtime::{
    ChangeHandler, EventHandler, HandlerError, HandlerResult, On, Resource, Settings, TimerHandler,
};
use kopf_tests::{TestFailure, TestResult, eventually};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::fixture::{HandlerFixture, HandlerScripts};

const LIMIT: usize = 2;

const OBJECTS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Counts the handlers that run, and lets them end one by one.
struct HandlerGauge {
    scripts: Arc<HandlerScripts>,
    running: AtomicUsize,
    most: AtomicUsize,
    ends: Semaphore,
}

impl HandlerGauge {
    fn new(scripts: &Arc<HandlerScripts>) -> Arc<Self> {
        Arc::new(Self {
            scripts: Arc::clone(scripts),
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            ends: Semaphore::new(0),
        })
    }

    /// Reports the object, and waits until the test lets a handler end.
    async fn run(&self, name: &str) -> HandlerResult {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        self.scripts.report(name.to_owned());
        let end = self.ends.acquire().await;
        end.expect("the test keeps it open").forget();
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

fn settings(worker_limit: Option<usize>) -> Settings {
    let mut settings = Settings::default();
    settings.queueing.worker_limit = worker_limit;
    settings.queueing.worker_patience = Duration::from_millis(50);
    settings.background.initial_spread = Duration::ZERO;
    settings
}

/// Runs a handler that waits in the gauge, on more objects than the limit.
async fn check_limit(
    name: &str,
    declare: impl FnOnce(Resource<Value, HandlerGauge>) -> Resource<Value, HandlerGauge>,
) -> TestResult {
    let mut fixture = HandlerFixture::new(name).await?;
    for object in OBJECTS {
        fixture.create(object, 1).await?;
    }
    let gauge = HandlerGauge::new(&fixture.scripts);
    let resource = declare(Resource::new(fixture.spec(), &gauge)).build();
    let operator = fixture.start_with(resource, settings(Some(LIMIT))).await?;
    let mut called = vec![fixture.next_report().await, fixture.next_report().await];
    while called.len() < OBJECTS.len() {
        let early = fixture.next_report_within(Duration::from_secs(1)).await;
        assert_eq!(early, None, "{LIMIT} run already: {called:?}");
        gauge.ends.add_permits(1);
        called.push(fixture.next_report().await);
    }
    called.sort();
    assert_eq!(called, OBJECTS);
    gauge.ends.add_permits(LIMIT);
    eventually("all handlers have ended", async || {
        (gauge.running.load(Ordering::SeqCst) == 0).then_some(())
    })
    .await?;
    assert_eq!(gauge.most.load(Ordering::SeqCst), LIMIT);
    operator.stop().await
}

#[tokio::test]
async fn change_handlers_count_for_as_long_as_they_run() -> TestResult {
    check_limit("limit-changes", |resource| {
        let handler = ChangeHandler::new("create_fn", On::create());
        resource.change(handler, |gauge, cx| Box::pin(gauge.run(cx.name())))
    })
    .await
}

#[tokio::test]
async fn event_handlers_count_for_as_long_as_they_run() -> TestResult {
    check_limit("limit-events", |resource| {
        let handler = EventHandler::new("event_fn");
        resource.event(handler, |gauge, cx| Box::pin(gauge.run(cx.name())))
    })
    .await
}

#[tokio::test]
async fn timers_count_for_as_long_as_they_run() -> TestResult {
    check_limit("limit-timers", |resource| {
        let handler = TimerHandler::every("timer_fn", Duration::from_secs(3600));
        resource.timer(handler, |gauge, cx| Box::pin(gauge.run(cx.name())))
    })
    .await
}

#[tokio::test]
async fn an_object_that_waits_for_a_retry_does_not_count() -> TestResult {
    let mut fixture = HandlerFixture::new("limit-retry").await?;
    fixture.script("create_fn", |cx| match cx.name() {
        "fails" => Err(HandlerError::temporary_after(
            Duration::from_secs(3600),
            "not today",
        )),
        _ => Ok(()),
    });
    let resource = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start_with(resource, settings(Some(1))).await?;
    fixture.create("fails", 1).await?;
    assert_eq!(fixture.next_call().await.object, "fails");
    fixture.create("fine", 1).await?;
    assert_eq!(fixture.next_call().await.object, "fine");
    fixture.wait_until_handled("fine", 1).await?;
    operator.stop().await
}

#[tokio::test]
async fn without_a_limit_handlers_that_hang_block_no_other_object() -> TestResult {
    let mut fixture = HandlerFixture::new("limit-none").await?;
    let scripts = Arc::clone(&fixture.scripts);
    fixture.script_async("create_fn", move |cx| {
        let hangs = cx.name() != "fine";
        let scripts = Arc::clone(&scripts);
        async move {
            if hangs {
                scripts.wait_for_release().await;
            }
            Ok(())
        }
    });
    for number in 0..40 {
        fixture.create(&format!("hangs-{number}"), 1).await?;
    }
    let resource = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start_with(resource, settings(None)).await?;
    for _ in 0..40 {
        fixture.next_call().await;
    }
    fixture.create("fine", 1).await?;
    fixture.wait_until_handled("fine", 1).await?;
    fixture.scripts.release();
    operator.stop().await
}

/// Calls a handler that fails once, and returns how often the operator read its object.
async fn reads_of_retries(name: &str, waiting_bytes: usize) -> Result<usize, TestFailure> {
    let mut fixture = HandlerFixture::new(name).await?;
    fixture.script("create_fn", |cx| match (cx.retry(), cx.name()) {
        (0, _) => Err(HandlerError::temporary_after(
            Duration::from_secs(1),
            "soon",
        )),
        (1, "deleted") => Err(HandlerError::temporary_after(
            Duration::from_secs(3600),
            "later",
        )),
        _ => Ok(()),
    });
    let mut settings = Settings::default();
    settings.queueing.waiting_bytes = waiting_bytes;
    let resource = fixture.handlers([
        ChangeHandler::new("create_fn", On::create()),
        ChangeHandler::new("update_fn", On::update()),
    ]);
    let operator = fixture.start_with(resource, settings).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    let reads = fixture.sandbox.count_requests_of(&operator.user).await?;
    let retries: Vec<u32> = fixture.calls_so_far().iter().map(|it| it.retry).collect();
    assert_eq!(retries, [0, 1]);

    // A deletion is noticed in the sleep, too.
    fixture.create("deleted", 1).await?;
    for retry in [0, 1] {
        assert_eq!(fixture.next_call().await.retry, retry);
    }
    fixture.objects.delete("deleted").await?;
    fixture.objects.wait_gone("deleted").await?;
    fixture.create("two", 1).await?;
    fixture.wait_until_handled("two", 1).await?;
    operator.stop().await?;
    Ok(reads.of("widgets", "get"))
}

#[tokio::test]
async fn an_object_that_sleeps_is_read_again_only_if_its_text_exceeds_the_budget() -> TestResult {
    assert_eq!(reads_of_retries("sleep-kept", 1024 * 1024).await?, 0);
    assert_ne!(reads_of_retries("sleep-read", 1).await?, 0);
    Ok(())
}
