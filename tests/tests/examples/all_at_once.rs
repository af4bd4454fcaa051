//! `26-all-at-once`: an application works with objects, beside an operator in a thread of its own.

use kopf_tests::TestResult;
use kopf_tests::child_process::Ending;
use serde_json::json;

use crate::fixture::{EXAMPLE, ExampleFixture, count};

#[tokio::test]
async fn an_application_works_beside_its_operator_which_uses_every_feature() -> TestResult {
    let fixture = ExampleFixture::open("26-all-at-once", "all-at-once-operator").await?;
    let configs = fixture.sandbox.objects("v1", "ConfigMap").await?;
    let program = fixture.start_without_arguments()?;
    assert_eq!(program.wait().await?, Ending::Exit(0), "{}", program.log());
    for line in [
        "=> The operator starts in its thread",
        "=> And here we are! Creating: KopfExampleSpec",
        "=> Item item1",
        "=> Item item2",
        "The application has created an object: \"hello world\"",
        "=> Update 1: change spec.field: \"value\" -> \"changed\"",
        "The application has changed the object: 1",
        "=> kopf-example-1 is deleted",
        "=> The daemon starts",
        "=> The daemon stops: resource deleted",
        "The application has deleted the object.",
        "=> The operator stops",
        "The operator has stopped, and the application ends.",
    ] {
        assert_eq!(count(&program, line), 1, "{line}\n{}", program.log());
    }
    for line in [
        "=> The field: None -> Some(\"value\"), attempt 2",
        "=> The field: Some(\"value\") -> Some(\"changed\"), attempt 2",
        "=> The timer: 1 with the field",
        "=> Event ",
    ] {
        assert!(count(&program, line) > 0, "{line}\n{}", program.log());
    }
    configs.wait_gone(EXAMPLE).await?;
    Ok(())
}

#[tokio::test]
async fn the_operator_resumes_an_object_that_was_there_before() -> TestResult {
    let fixture = ExampleFixture::open("26-all-at-once", "all-at-once-operator").await?;
    let examples = fixture.kopf_examples().await?;
    let handled = json!({"kopf.zalando.org/last-handled-configuration": "{\"spec\":{}}\n"});
    let earlier = json!({"metadata": {"annotations": handled}, "spec": {}});
    examples.create("earlier", earlier).await?;
    let program = fixture.start_without_arguments()?;
    program.wait_for_log("=> earlier was there before").await?;
    Ok(())
}
