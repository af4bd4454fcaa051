//! `18-selection`: all kinds of a category are watched, also those defined later.

use kopf_tests::child_process::Ending;
use kopf_tests::{TestResult, workspace};
use kube::ResourceExt as _;
use serde_json::json;

use crate::fixture::{ExampleFixture, count};

#[tokio::test]
async fn all_selected_kinds_are_watched_and_only_labelled_objects_are_written() -> TestResult {
    let fixture = ExampleFixture::open("18-selection", "selection-operator").await?;
    let folder = workspace::root().join("examples/18-selection");
    let define = async |file: &str| {
        let yaml = std::fs::read_to_string(folder.join(file))?;
        fixture.sandbox.apply(&yaml).await
    };
    define("dolls.yaml").await?;
    let operator = fixture.start()?;
    operator.wait_for_log("matches dolls.toys.kopf.dev").await?;
    fixture.apply_object().await?;
    operator
        .wait_for_log("create of a doll: {\"dress\":\"red\"}")
        .await?;
    // The list or the watch reports it, depending on timing.
    operator.wait_for_log("Doll ann; there are 1").await?;

    define("kites.yaml").await?;
    operator
        .wait_for_log("matches dolls.toys.kopf.dev, kites.toys.kopf.dev")
        .await?;
    let kites = fixture.sandbox.objects("toys.kopf.dev/v1", "Kite").await?;
    kites.create("red", json!({})).await?;
    operator.wait_for_log("Kite red; there are 1").await?;
    kites.create("blue", json!({})).await?;
    operator
        .wait_for_log("ADDED Kite blue; there are 2")
        .await?;
    kites.delete("red").await?;
    operator
        .wait_for_log("DELETED Kite red; there are 1")
        .await?;
    assert!(kites.get("blue").await?.annotations().is_empty());
    assert_eq!(count(&operator, "forbidden"), 0, "{}", operator.log());
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
