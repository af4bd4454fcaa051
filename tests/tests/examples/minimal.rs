//! `01-minimal`: one kind, one handler, with exactly the generated permissions.

use kopf_tests::TestResult;
use kopf_tests::child_process::Ending;
use kube::ResourceExt as _;
use serde_json::json;

use crate::fixture::ExampleFixture;

const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

#[tokio::test]
async fn an_object_is_handled_once_and_a_restart_does_not_repeat_it() -> TestResult {
    let fixture = ExampleFixture::open("01-minimal", "minimal-operator").await?;
    let examples = fixture.kopf_examples().await?;
    let operator = fixture.start()?;
    examples
        .create("one", json!({"spec": {"duration": "1m", "field": "value"}}))
        .await?;
    operator
        .wait_for_log("create_fn was called: create")
        .await?;
    let handled = examples
        .wait_until("one", "it is handled", |it| {
            it.annotations().contains_key(LAST_HANDLED)
        })
        .await?;
    assert_eq!(
        handled.annotations()[LAST_HANDLED],
        "{\"spec\":{\"duration\":\"1m\",\"field\":\"value\"}}\n"
    );
    assert_eq!(operator.terminate().await?, Ending::Exit(0));

    let operator = fixture.start()?;
    examples.create("two", json!({"spec": {}})).await?;
    operator
        .wait_for_log("create_fn was called: create")
        .await?;
    examples
        .wait_until("two", "it is handled", |it| {
            it.annotations().contains_key(LAST_HANDLED)
        })
        .await?;
    let calls = operator.log().matches("create_fn was called").count();
    assert_eq!(
        calls,
        1,
        "only the new object is handled:\n{}",
        operator.log()
    );
    assert_eq!(
        examples.get("one").await?.resource_version(),
        handled.resource_version()
    );

    examples.delete("one").await?;
    examples.wait_gone("one").await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
