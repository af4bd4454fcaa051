//! `08-events`: event handlers get all watch events, may fail, and write nothing.

use k8s_openapi::api::core::v1::Event;
use kopf_tests::TestResult;
use kopf_tests::child_process::Ending;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::fixture::{ExampleFixture, lines_with};

#[tokio::test]
async fn event_handlers_get_everything_and_write_nothing() -> TestResult {
    let fixture = ExampleFixture::open("08-events", "events-operator").await?;
    let examples = fixture.kopf_examples().await?;
    examples
        .create("old", json!({"spec": {"field": "there before"}}))
        .await?;
    let operator = fixture.start()?;
    operator.wait_for_log("Event received: Listed").await?;
    examples
        .create("new", json!({"spec": {"field": "value"}}))
        .await?;
    operator.wait_for_log("Event received: Added").await?;
    let changed = examples
        .merge("new", json!({"spec": {"field": "changed"}}))
        .await?;
    operator.wait_for_log("Event received: Modified").await?;
    examples.delete("old").await?;
    operator.wait_for_log("Event received: Deleted").await?;

    let untouched = examples.get("new").await?;
    assert_eq!(untouched.resource_version(), changed.resource_version());
    assert!(untouched.annotations().is_empty() && untouched.finalizers().is_empty());
    let words = |line: String| line.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let seen: Vec<String> = lines_with(&operator, &["Event received:"])
        .into_iter()
        .map(words)
        .collect();
    assert_eq!(
        seen,
        ["Listed", "Added", "Modified", "Deleted"].map(|it| format!("Event received: {it}"))
    );
    assert_eq!(lines_with(&operator, &["Oops!"]).len(), 4);
    let events: Api<Event> = Api::namespaced(fixture.sandbox.client(), fixture.sandbox.namespace());
    let posted = events.list(&ListParams::default()).await?.items;
    assert!(posted.is_empty(), "{posted:#?}");
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
