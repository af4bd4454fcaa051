//! `12-embedded`: a program knows what the operator inside of it knows, and ends with it.

use kopf_tests::TestResult;
use kopf_tests::operator::Ending;
use serde_json::json;

use crate::stage::{EXAMPLE, Stage};

#[tokio::test]
async fn a_program_shows_what_its_operator_knows_and_stops_it() -> TestResult {
    let stage = Stage::open("12-embedded", "embedded-operator").await?;
    let program = stage.start_plainly()?;
    program.wait_for_log("The operator is ready.").await?;
    program.wait_for_log("The cluster has [].").await?;
    stage.apply_object().await?;
    program
        .wait_for_log("The cluster has [\"kopf-example-1=value\"].")
        .await?;
    program
        .wait_for_log("kopf-example-1 is handled by an embedded operator")
        .await?;
    let examples = stage.kopf_examples().await?;
    let edit = json!({"spec": {"field": "changed"}});
    examples.merge(EXAMPLE, edit).await?;
    program
        .wait_for_log("The cluster has [\"kopf-example-1=changed\"].")
        .await?;
    assert_eq!(program.terminate().await?, Ending::Exit(0));
    assert!(program.log().contains("The operator has stopped."));
    Ok(())
}
