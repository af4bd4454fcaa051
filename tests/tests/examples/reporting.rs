//! `04-events`: Kubernetes events of handlers and of the operator.

use k8s_openapi::api::core::v1::Event;
use kopf_tests::child_process::Ending;
use kopf_tests::{TestResult, eventually};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::fixture::{EXAMPLE, ExampleFixture, is_handled, is_handled_with};

/// The events of a namespace: kind of the object, count, type, reason and message.
async fn events(api: &Api<Event>) -> Vec<String> {
    let events = api.list(&ListParams::default()).await;
    let mut lines: Vec<String> = events
        .map(|list| list.items)
        .unwrap_or_default()
        .into_iter()
        .map(|event| {
            let kind = event.involved_object.kind.unwrap_or_default();
            let words = [event.type_, event.reason, event.message];
            let words: Vec<String> = words.map(Option::unwrap_or_default).to_vec();
            format!(
                "{kind} {}x {}",
                event.count.unwrap_or_default(),
                words.join(" ")
            )
        })
        .collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn handlers_and_the_operator_post_events() -> TestResult {
    let fixture = ExampleFixture::open("04-events", "reporting-operator").await?;
    let examples = fixture.kopf_examples().await?;
    let api = Api::namespaced(fixture.sandbox.client(), fixture.sandbox.namespace());
    let operator = fixture.start()?;
    fixture.apply_object().await?;
    examples
        .wait_until(EXAMPLE, "its creation is handled", is_handled)
        .await?;
    let created = [
        "ConfigMap 1x Normal SomeReason Made for kopf-example-1",
        "KopfExample 1x Error SomeReason Some exception: invalid digit found in string",
        "KopfExample 1x Normal Finished All handlers succeeded.",
        "KopfExample 1x Normal SomeReason Some message",
        "KopfExample 1x Normal Success Handler 'create_fn' succeeded.",
        "KopfExample 1x SomeType SomeReason Some message",
        "KopfExample 1x Warning SomeReason Some message",
    ];
    eventually("all events are posted", async || {
        (events(&api).await == created).then_some(())
    })
    .await?;

    let edit = json!({"spec": {"field": "changed"}});
    examples.merge(EXAMPLE, edit).await?;
    examples
        .wait_until(EXAMPLE, "the change is handled", |it| {
            is_handled_with(it, "changed")
        })
        .await?;
    eventually("repeats are counted", async || {
        let repeated = "KopfExample 100x Warning Repeated Said a hundred times";
        let posted = events(&api).await;
        posted.iter().any(|event| event == repeated).then_some(())
    })
    .await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
