//! `13-hooks`: startup before everything, a task for every Pod, and cleanup at the end.

use kopf_tests::TestResult;
use kopf_tests::operator::{Ending, Signal};
use serde_json::json;

use crate::stage::{Stage, count};

#[tokio::test]
async fn tasks_come_after_the_startup_and_end_with_their_pods_or_the_operator() -> TestResult {
    let stage = Stage::open("13-hooks", "hooks-operator").await?;
    let pods = stage.sandbox.objects("v1", "Pod").await?;
    let spec = json!({"containers": [{"name": "the-only-one", "image": "busybox"}]});
    pods.create("short-lived", json!({"spec": spec})).await?;
    let operator = stage.start()?;
    for told in [
        "=> Ready in a second",
        "Activity 'get_ready' succeeded.",
        "Activity 'get_lucky' failed temporarily: no luck yet",
        "=> Lucky at attempt 3",
        "=> The task of short-lived is running",
    ] {
        operator.wait_for_log(told).await?;
    }
    let log = operator.log();
    let place = |text: &str| log.find(text).expect("it was told");
    assert!(place("=> Lucky at attempt 3") < place("=> The task of short-lived is running"));

    stage.apply_object().await?;
    operator
        .wait_for_log("=> The task of kopf-pod-1 is running")
        .await?;
    pods.delete("short-lived").await?;
    operator
        .wait_for_log("=> The task of short-lived ends with the Pod")
        .await?;
    operator.signal(Signal::INT)?;
    assert_eq!(operator.wait().await?, Ending::Exit(0));
    for told in [
        "=> The task of kopf-pod-1 has ended",
        "=> All tasks have ended",
        "Activity 'end_tasks' succeeded.",
    ] {
        assert_eq!(count(&operator, told), 1, "{}", operator.log());
    }
    assert_eq!(count(&operator, "The task of short-lived has ended"), 0);
    let untouched = pods.get("kopf-pod-1").await?;
    assert_eq!(untouched.metadata.finalizers, None);
    pods.delete("kopf-pod-1").await?;
    Ok(())
}
