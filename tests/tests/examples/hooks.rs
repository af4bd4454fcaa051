//! `13-hooks`: startup and cleanup handlers, and a task for every Pod.

use kopf_tests::TestResult;
use kopf_tests::child_process::{Ending, Signal};
use serde_json::json;

use crate::fixture::{ExampleFixture, count};

#[tokio::test]
async fn tasks_start_after_the_startup_handler_and_end_with_their_pods_or_the_operator()
-> TestResult {
    let fixture = ExampleFixture::open("13-hooks", "hooks-operator").await?;
    let pods = fixture.sandbox.objects("v1", "Pod").await?;
    let spec = json!({"containers": [{"name": "the-only-one", "image": "busybox"}]});
    pods.create("short-lived", json!({"spec": spec})).await?;
    let operator = fixture.start()?;
    for line in [
        "=> Ready in a second",
        "Activity 'get_ready' succeeded.",
        "Activity 'get_lucky' failed temporarily: no luck yet",
        "=> Lucky at attempt 3",
        "=> The task of short-lived is running",
    ] {
        operator.wait_for_log(line).await?;
    }
    let log = operator.log();
    let position = |text: &str| log.find(text).expect("it was logged");
    assert!(position("=> Lucky at attempt 3") < position("=> The task of short-lived is running"));

    fixture.apply_object().await?;
    operator
        .wait_for_log("=> The task of kopf-pod-1 is running")
        .await?;
    pods.delete("short-lived").await?;
    operator
        .wait_for_log("=> The task of short-lived ends with the Pod")
        .await?;
    operator.signal(Signal::INT)?;
    assert_eq!(operator.wait().await?, Ending::Exit(0));
    for line in [
        "=> The task of kopf-pod-1 has ended",
        "=> All tasks have ended",
        "Activity 'end_tasks' succeeded.",
    ] {
        assert_eq!(count(&operator, line), 1, "{}", operator.log());
    }
    assert_eq!(count(&operator, "The task of short-lived has ended"), 0);
    let untouched = pods.get("kopf-pod-1").await?;
    assert_eq!(untouched.metadata.finalizers, None);
    pods.delete("kopf-pod-1").await?;
    Ok(())
}
