//! Webhooks that read indices wait until these are complete.

use std::time::Duration;

use kopf_runtime::{AdmissionError, IndexHandler, Namespaces, Operator, WebhookHandler};
use kopf_tests::{TestResult, eventually};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::fixture::{WebhookFixture, rejection};
use crate::indices::{ByWidget, indexed};

#[tokio::test]
async fn a_webhook_is_not_called_before_the_indices_are_complete() -> TestResult {
    let fixture = WebhookFixture::new("hook-index").await?;
    let maps = fixture.sandbox.objects("v1", "ConfigMap").await?;
    let known = json!({"data": {"widget": "known"}});
    maps.create("permit", known).await?;
    let widgets = fixture
        .resource()
        .validate::<Value>(WebhookHandler::new("is_known"), |_, cx| {
            Box::pin(async move {
                let name = cx.name().unwrap_or_default();
                if cx.index(ByWidget).contains_key(name) {
                    return Ok(());
                }
                Err(AdmissionError::denied("it is not indexed"))
            })
        })
        .build();
    let operator = Operator::new("webhooks")
        .resource(widgets)
        .resource(indexed(IndexHandler::new(), Duration::from_secs(3)))
        .namespaces(Namespaces::Only(vec![
            fixture.sandbox.namespace().to_owned(),
        ]))
        .webhooks(fixture.local_server());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(operator.run(fixture.sandbox.client(), async {
        let _ = stopped.await;
    }));
    let empty = || json!({"spec": {}});
    eventually(
        "the webhook denies objects that are not indexed",
        async || {
            fixture
                .dry_run("known", empty())
                .await
                .expect("it is known");
            fixture
                .dry_run("unknown", empty())
                .await
                .is_err()
                .then_some(())
        },
    )
    .await?;
    let refused = rejection(fixture.dry_run("unknown", empty()).await);
    assert!(
        refused.message.ends_with("it is not indexed"),
        "{refused:?}"
    );
    fixture.dry_run("known", empty()).await?;
    maps.delete("permit").await?;
    eventually(
        "an object that is no longer indexed is denied",
        async || {
            fixture
                .dry_run("known", empty())
                .await
                .is_err()
                .then_some(())
        },
    )
    .await?;
    drop(stop);
    running.await.expect("the operator does not panic")?;
    Ok(())
}
