//! Timers on real objects.

use std::time::Duration;

use kopf_runtime::{HandlerError, Settings, TextTest, TimerHandler};
use kopf_tests::TestResult;
use kube::ResourceExt as _;
use serde_json::json;

use crate::fixture::HandlerFixture;

const TENTH: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_timer_gets_the_newest_object_and_its_result_is_written() -> TestResult {
    let mut fixture = HandlerFixture::new("timer").await?;
    let resource = fixture
        .resource()
        .timer(TimerHandler::every("ping", TENTH), |_, cx| {
            Box::pin(async move {
                cx.set_result(&json!({"size": cx.object()["spec"]["size"]}))?;
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    for size in [1, 2] {
        fixture
            .objects
            .wait_until("one", "the result is written", |it| {
                it.data["status"]["ping"]["size"] == size
            })
            .await?;
        fixture
            .objects
            .merge("one", json!({"spec": {"size": 2}}))
            .await?;
    }
    fixture.objects.delete("one").await?;
    fixture.objects.wait_gone("one").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_permanent_error_stops_a_timer_and_removes_the_finalizer() -> TestResult {
    let mut fixture = HandlerFixture::new("timer-permanent").await?;
    let handler = TimerHandler::every("ping", TENTH).backoff(TENTH);
    let resource = fixture
        .resource()
        .timer(handler, |scripts, cx| {
            Box::pin(async move {
                scripts.report(format!("attempt {}", cx.retry()));
                match cx.retry() {
                    0 => Err(std::fmt::Error.into()),
                    _ => Err(HandlerError::permanent("never again")),
                }
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "attempt 0");
    assert_eq!(fixture.next_report().await, "attempt 1");
    fixture
        .objects
        .wait_until("one", "the finalizer is removed", |it| {
            it.finalizers().is_empty()
        })
        .await?;
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    fixture.create("two", 1).await?;
    assert_eq!(
        fixture.next_report().await,
        "attempt 0",
        "of the other object"
    );
    operator.stop().await
}

#[tokio::test]
async fn an_idle_timer_waits_until_the_object_is_unchanged_and_ignores_its_own_results()
-> TestResult {
    let mut fixture = HandlerFixture::new("timer-idle").await?;
    let handler = TimerHandler::when_idle("settled", 5 * TENTH).label("on", TextTest::Absent);
    let resource = fixture
        .resource()
        .timer(handler, |scripts, cx| {
            Box::pin(async move {
                let size = &cx.object()["spec"]["size"];
                scripts.report(format!("settled at {size}"));
                cx.set_result(&json!({"size": size}))?;
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    for size in 2..6 {
        fixture
            .objects
            .merge("one", json!({"spec": {"size": size}}))
            .await?;
    }
    assert_eq!(fixture.next_report().await, "settled at 5");
    fixture
        .objects
        .wait_until("one", "the result is written", |it| {
            it.data["status"]["settled"]["size"] == 5
        })
        .await?;
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 6}}))
        .await?;
    assert_eq!(fixture.next_report().await, "settled at 6");
    let labels = json!({"metadata": {"labels": {"on": "yes"}}});
    fixture.objects.merge("one", labels).await?;
    fixture
        .objects
        .wait_until("one", "the finalizer is removed", |it| {
            it.finalizers().is_empty()
        })
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn timers_of_existing_objects_run_after_a_restart() -> TestResult {
    let mut fixture = HandlerFixture::new("timer-restart").await?;
    fixture.create("one", 1).await?;
    for spread in [
        Duration::ZERO,
        Settings::default().background.initial_spread,
    ] {
        let resource = fixture
            .resource()
            .timer(
                TimerHandler::every("ping", Duration::from_secs(600)),
                |scripts, cx| {
                    Box::pin(async move {
                        scripts.report(format!("{} ticks", cx.name()));
                        Ok(())
                    })
                },
            )
            .build();
        let mut settings = Settings::default();
        settings.background.initial_spread = spread;
        let operator = fixture.start_with(resource, settings).await?;
        assert_eq!(fixture.next_report().await, "one ticks");
        operator.stop().await?;
    }
    Ok(())
}
