//! `14-daemons`: daemons as tasks and threads, and how each stops.

use kopf_tests::TestResult;
use kopf_tests::child_process::Ending;
use serde_json::json;

use crate::fixture::{EXAMPLE, ExampleFixture, count};

#[tokio::test]
async fn daemons_run_until_the_object_is_deleted() -> TestResult {
    let fixture = ExampleFixture::open("14-daemons", "daemons-operator").await?;
    let examples = fixture.kopf_examples().await?;
    let operator = fixture.start()?;
    fixture.apply_object().await?;
    for ping in [
        "=> Ping from a thread for kopf-example-1",
        "=> Ping from a task: field=\"value\", retry=0",
    ] {
        operator.wait_for_log(ping).await?;
    }
    examples
        .merge(EXAMPLE, json!({"spec": {"field": "fail"}}))
        .await?;
    for line in [
        "Daemon 'background_async' failed temporarily: Trying once more!",
        "=> Ping from a task: field=\"fail\", retry=1",
    ] {
        operator.wait_for_log(line).await?;
    }
    assert_eq!(count(&operator, "ignores the stop signal"), 0);
    let label = json!({"metadata": {"labels": {"endless": "yes"}}});
    examples.merge(EXAMPLE, label).await?;
    operator
        .wait_for_log("=> Ping from a task that ignores the stop signal")
        .await?;
    examples
        .merge(EXAMPLE, json!({"spec": {"field": "last"}}))
        .await?;
    operator
        .wait_for_log("=> The field is Some(\"last\") now")
        .await?;

    let farewell = examples.wait_until(EXAMPLE, "the farewell is written", |it| {
        it.data["status"]["message"] == "Accompanying is finished."
    });
    examples.delete(EXAMPLE).await?;
    farewell.await?;
    examples.wait_gone(EXAMPLE).await?;
    for line in [
        "=> The thread has ended: resource deleted",
        "is interrupted: resource deleted, cancelled",
    ] {
        operator.wait_for_log(line).await?;
    }
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
