//! Timers on real objects.

use std::time::Duration;

use kopf_runtime::{HandlerError, Settings, TextTest, TimerHandler};
use kopf_tests::TestResult;
use kube::ResourceExt as _;
use serde_json::json;

use crate::bench::Bench;

const TENTH: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_timer_ticks_with_the_newest_state_and_delivers_results() -> TestResult {
    let mut bench = Bench::new("timer").await?;
    let resource = bench
        .resource()
        .timer(TimerHandler::every("ping", TENTH), |_, cx| {
            Box::pin(async move {
                cx.set_result(&json!({"size": cx.object()["spec"]["size"]}))?;
                Ok(())
            })
        })
        .build();
    let operator = bench.start(resource).await?;
    bench.create("one", 1).await?;
    for size in [1, 2] {
        bench
            .objects
            .wait_until("one", "the result is delivered", |it| {
                it.data["status"]["ping"]["size"] == size
            })
            .await?;
        bench
            .objects
            .merge("one", json!({"spec": {"size": 2}}))
            .await?;
    }
    bench.objects.delete("one").await?;
    bench.objects.wait_gone("one").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_permanent_error_stops_a_timer_and_lets_its_object_go() -> TestResult {
    let mut bench = Bench::new("timer-permanent").await?;
    let handler = TimerHandler::every("ping", TENTH).backoff(TENTH);
    let resource = bench
        .resource()
        .timer(handler, |stage, cx| {
            Box::pin(async move {
                stage.tell(format!("attempt {}", cx.retry()));
                match cx.retry() {
                    0 => Err(std::fmt::Error.into()),
                    _ => Err(HandlerError::permanent("never again")),
                }
            })
        })
        .build();
    let operator = bench.start(resource).await?;
    bench.create("one", 1).await?;
    assert_eq!(bench.seen().await, "attempt 0");
    assert_eq!(bench.seen().await, "attempt 1");
    bench
        .objects
        .wait_until("one", "it is let go", |it| it.finalizers().is_empty())
        .await?;
    bench
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    bench.create("two", 1).await?;
    assert_eq!(bench.seen().await, "attempt 0", "of the other object");
    operator.stop().await
}

#[tokio::test]
async fn an_idle_timer_waits_for_quiet_and_results_do_not_disturb_it() -> TestResult {
    let mut bench = Bench::new("timer-idle").await?;
    let handler = TimerHandler::when_idle("settled", 5 * TENTH).label("on", TextTest::Absent);
    let resource = bench
        .resource()
        .timer(handler, |stage, cx| {
            Box::pin(async move {
                let size = &cx.object()["spec"]["size"];
                stage.tell(format!("settled at {size}"));
                cx.set_result(&json!({"size": size}))?;
                Ok(())
            })
        })
        .build();
    let operator = bench.start(resource).await?;
    bench.create("one", 1).await?;
    for size in 2..6 {
        bench
            .objects
            .merge("one", json!({"spec": {"size": size}}))
            .await?;
    }
    assert_eq!(bench.seen().await, "settled at 5");
    bench
        .objects
        .wait_until("one", "the result is delivered", |it| {
            it.data["status"]["settled"]["size"] == 5
        })
        .await?;
    bench
        .objects
        .merge("one", json!({"spec": {"size": 6}}))
        .await?;
    assert_eq!(bench.seen().await, "settled at 6");
    let labels = json!({"metadata": {"labels": {"on": "yes"}}});
    bench.objects.merge("one", labels).await?;
    bench
        .objects
        .wait_until("one", "it is let go", |it| it.finalizers().is_empty())
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn timers_of_listed_objects_tick_after_a_restart() -> TestResult {
    let mut bench = Bench::new("timer-restart").await?;
    bench.create("one", 1).await?;
    for spread in [
        Duration::ZERO,
        Settings::default().background.initial_spread,
    ] {
        let resource = bench
            .resource()
            .timer(
                TimerHandler::every("ping", Duration::from_secs(600)),
                |stage, cx| {
                    Box::pin(async move {
                        stage.tell(format!("{} ticks", cx.name()));
                        Ok(())
                    })
                },
            )
            .build();
        let mut settings = Settings::default();
        settings.background.initial_spread = spread;
        let operator = bench.start_with(resource, settings).await?;
        assert_eq!(bench.seen().await, "one ticks");
        operator.stop().await?;
    }
    Ok(())
}
