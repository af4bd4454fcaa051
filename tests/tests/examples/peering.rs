//! `06-peering`: a deployed operator, a spare one, and one with `--dev`; one at a time is active.

use kopf_tests::child_process::{ChildProcess, Ending};
use kopf_tests::{PeeringObject, TestResult, eventually};
use serde_json::json;

use crate::fixture::{EXAMPLE, ExampleFixture};

/// Waits until an operator has handled the object this many times.
async fn handled(operator: &ChildProcess, times: usize) -> TestResult {
    let text = format!("{EXAMPLE} is handled here");
    eventually(&format!("{times} times handled"), async || {
        (operator.log().matches(&text).count() == times).then_some(())
    })
    .await
}

#[tokio::test]
async fn a_dev_operator_pauses_the_deployed_one_and_the_next_priority_takes_over() -> TestResult {
    let fixture = ExampleFixture::open("06-peering", "peering-operator").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "peering-example").await?;
    let examples = fixture.kopf_examples().await?;
    let change = async |value: &str| {
        examples
            .merge(EXAMPLE, json!({"spec": {"field": value}}))
            .await
    };
    let deployed = fixture.start_with(&["--priority", "10"], &[("POD_ID", "deployed")])?;
    fixture.apply_object().await?;
    handled(&deployed, 1).await?;
    let spare = fixture.start_with(&[], &[("POD_ID", "spare")])?;
    spare
        .wait_for_log("Pausing operations: in favour of deployed (priority 10).")
        .await?;

    let developer = fixture.start_with(&["--dev"], &[("POD_ID", "developer")])?;
    deployed
        .wait_for_log("Pausing operations: in favour of developer (priority 666).")
        .await?;
    peering
        .wait_for(&["deployed", "developer", "spare"])
        .await?;
    change("by the developer").await?;
    handled(&developer, 1).await?;

    assert_eq!(developer.terminate().await?, Ending::Exit(0));
    deployed.wait_for_log("Resuming operations.").await?;
    change("by the deployed one").await?;
    handled(&deployed, 2).await?;

    assert_eq!(deployed.terminate().await?, Ending::Exit(0));
    spare.wait_for_log("Resuming operations.").await?;
    change("by the spare one").await?;
    handled(&spare, 1).await?;
    handled(&deployed, 2).await?;
    handled(&developer, 1).await?;
    assert_eq!(spare.terminate().await?, Ending::Exit(0));
    peering.wait_for(&[]).await
}

#[tokio::test]
async fn freeze_and_resume_pause_and_resume_the_operator() -> TestResult {
    let fixture = ExampleFixture::open("06-peering", "peering-operator").await?;
    PeeringObject::create(&fixture.sandbox, "peering-example").await?;
    let deployed = fixture.start()?;
    fixture.apply_object().await?;
    handled(&deployed, 1).await?;
    let namespace = fixture.sandbox.namespace();
    let freeze = ["freeze", "--lifetime", "600", "--namespace", namespace];
    assert_eq!(fixture.command(&freeze)?.wait().await?, Ending::Exit(0));
    deployed
        .wait_for_log("Pausing operations: in favour of")
        .await?;
    let examples = fixture.kopf_examples().await?;
    examples
        .merge(EXAMPLE, json!({"spec": {"field": "x"}}))
        .await?;
    let resume = ["resume", "--namespace", namespace];
    assert_eq!(fixture.command(&resume)?.wait().await?, Ending::Exit(0));
    handled(&deployed, 2).await?;
    deployed.terminate().await.map(drop)
}
