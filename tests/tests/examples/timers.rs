//! `15-timers`: timers at an interval, when idle, and until a permanent error.

use kopf_tests::TestResult;
use kopf_tests::child_process::Ending;
use serde_json::json;

use crate::fixture::{EXAMPLE, ExampleFixture, count};

#[tokio::test]
async fn timers_run_at_intervals_when_idle_and_until_a_permanent_error() -> TestResult {
    let fixture = ExampleFixture::open("15-timers", "timers-operator").await?;
    let examples = fixture.kopf_examples().await?;
    let operator = fixture.start()?;
    fixture.apply_object().await?;
    for line in [
        "=> Ping from a thread: field=\"value\"",
        "=> Settled: field=Some(\"value\")",
    ] {
        operator.wait_for_log(line).await?;
    }
    examples
        .merge(EXAMPLE, json!({"spec": {"field": "changed"}}))
        .await?;
    operator
        .wait_for_log("=> Settled: field=Some(\"changed\")")
        .await?;
    let label = json!({"metadata": {"labels": {"fragile": "yes"}}});
    examples.merge(EXAMPLE, label).await?;
    operator
        .wait_for_log("Timer 'fragile' failed permanently: That is enough.")
        .await?;
    assert_eq!(count(&operator, "will try again in 0.5 seconds: Oops!"), 3);
    examples
        .wait_until(EXAMPLE, "several ticks are counted", |it| {
            it.data["status"]["every_second"]["ticks"]
                .as_u64()
                .is_some_and(|ticks| ticks >= 5)
        })
        .await?;
    examples.delete(EXAMPLE).await?;
    examples.wait_gone(EXAMPLE).await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    assert_eq!(count(&operator, "Settled: field=Some(\"value\")"), 1);
    Ok(())
}
