//! `12-embedded`: a program reads an index of its embedded operator, and stops it.

use kopf_tests::TestResult;
use kopf_tests::child_process::Ending;
use serde_json::json;

use crate::fixture::{EXAMPLE, ExampleFixture};

#[tokio::test]
async fn a_program_reads_an_index_of_its_embedded_operator_and_stops_it() -> TestResult {
    let fixture = ExampleFixture::open("12-embedded", "embedded-operator").await?;
    let program = fixture.start_without_arguments()?;
    program.wait_for_log("The operator is ready.").await?;
    program.wait_for_log("The cluster has {}.").await?;
    fixture.apply_object().await?;
    program
        .wait_for_log("The cluster has {\"kopf-example-1=value\"}.")
        .await?;
    program
        .wait_for_log("kopf-example-1 is handled by an embedded operator")
        .await?;
    let examples = fixture.kopf_examples().await?;
    let edit = json!({"spec": {"field": "changed"}});
    examples.merge(EXAMPLE, edit).await?;
    program
        .wait_for_log("The cluster has {\"kopf-example-1=changed\"}.")
        .await?;
    assert_eq!(program.terminate().await?, Ending::Exit(0));
    assert!(program.log().contains("The operator has stopped."));
    Ok(())
}
