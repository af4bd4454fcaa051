//! The operators that `kopf-gen new --preset` makes work without changes.

use kopf_tests::child_process::Ending;
use kopf_tests::{TestResult, eventually, workspace};
use kube::ResourceExt as _;
use serde_json::json;

use crate::fixture::{ExampleFixture, is_handled};

async fn open_preset(preset: &str) -> Result<ExampleFixture, kopf_tests::TestFailure> {
    let name = format!("preset-{preset}");
    ExampleFixture::open_in(workspace::root().join("tests/golden").join(&name), &name).await
}

#[tokio::test]
async fn a_child_is_created_repaired_updated_and_garbage_collected() -> TestResult {
    let fixture = open_preset("child").await?;
    let examples = fixture.kopf_examples().await?;
    let children = fixture.sandbox.objects("v1", "ConfigMap").await?;
    let operator = fixture.start()?;

    let object = json!({"metadata": {"labels": {"tier": "gold"}}, "spec": {"field": "first"}});
    let parent = examples.create("one", object).await?;
    let child = children
        .wait_until("one", "it is made", |child| {
            child.data["data"]["spec.json"] == r#"{"field":"first"}"#
        })
        .await?;
    assert_eq!(
        child.owner_references()[0].uid,
        parent.uid().unwrap_or_default()
    );
    assert_eq!(child.labels()["tier"], "gold");
    children
        .merge("one", json!({"data": {"spec.json": "changed by hand"}}))
        .await?;
    children
        .wait_until("one", "it is repaired", |child| {
            child.data["data"]["spec.json"] == r#"{"field":"first"}"#
        })
        .await?;
    examples
        .merge("one", json!({"spec": {"field": "second"}}))
        .await?;
    children
        .wait_until("one", "it is updated", |child| {
            child.data["data"]["spec.json"] == r#"{"field":"second"}"#
        })
        .await?;

    examples.delete("one").await?;
    children.wait_gone("one").await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn one_handler_of_each_kind_is_called() -> TestResult {
    let fixture = open_preset("full").await?;
    let exhibits = fixture
        .sandbox
        .objects("presets.kopf.dev/v1", "Exhibit")
        .await?;
    let operator = fixture.start()?;
    for function in ["startup", "login"] {
        let line = format!("{function} was called");
        operator.wait_for_log(&line).await?;
    }
    operator
        .wait_for_log("the webhooks are configured in")
        .await?;
    eventually("the API server calls the webhooks", async || {
        exhibits.create("early", json!({"spec": {}})).await.ok()?;
        exhibits.delete("early").await.ok()?;
        exhibits.wait_gone("early").await.ok()?;
        operator
            .log()
            .contains("set_defaults was called")
            .then_some(())
    })
    .await?;

    exhibits
        .create("one", json!({"spec": {"field": "first"}}))
        .await?;
    exhibits
        .wait_until("one", "it is handled", is_handled)
        .await?;
    exhibits
        .merge("one", json!({"metadata": {"labels": {"tier": "gold"}}}))
        .await?;
    for function in [
        "create", "observe", "check", "update", "relabel", "validate",
    ] {
        let line = format!("{function} was called");
        operator.wait_for_log(&line).await?;
    }
    exhibits.delete("one").await?;
    exhibits.wait_gone("one").await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    for function in ["delete", "cleanup"] {
        let line = format!("{function} was called");
        assert!(operator.log().contains(&line), "{}", operator.log());
    }
    Ok(())
}
