//! Event handlers: called for every watch event, without progress and without retries.

use kopf_runtime::{EventHandler, HandlerError, ValueTest};
use kopf_tests::TestResult;
use kube::ResourceExt as _;
use serde_json::json;

use crate::fixture::HandlerFixture;

#[tokio::test]
async fn event_handlers_get_all_watch_events_and_write_nothing() -> TestResult {
    let mut fixture = HandlerFixture::new("events").await?;
    fixture.create("before", 0).await?;
    let resource = fixture
        .resource()
        .event(EventHandler::new("spy"), |scripts, cx| {
            Box::pin(async move {
                scripts.report_event(cx.name(), cx.event_type(), cx.raw());
                Err(HandlerError::permanent("which is ignored"))
            })
        })
        .event(
            EventHandler::new("never").value("spec.size", ValueTest::Equals(json!(99))),
            |_, _| Box::pin(async move { panic!("no object has this size") }),
        )
        .build();
    let operator = fixture.start(resource).await?;
    assert_eq!(fixture.next_report().await, "before LISTED 0");
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "one ADDED 1");
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    assert_eq!(fixture.next_report().await, "one MODIFIED 2");
    let one = fixture.objects.get("one").await?;
    assert!(one.annotations().is_empty());
    fixture.objects.delete("one").await?;
    assert_eq!(fixture.next_report().await, "one DELETED 2");
    assert_eq!(fixture.writes(&operator).await?, (0, 0));
    operator.stop().await
}

#[tokio::test]
async fn the_patch_of_an_event_handler_is_written() -> TestResult {
    let mut fixture = HandlerFixture::new("event-patch").await?;
    let resource = fixture
        .resource()
        .event(EventHandler::new("marks"), |_, cx| {
            Box::pin(async move {
                if cx.raw()["metadata"]["labels"].get("seen").is_none() {
                    cx.patch().label("seen", "yes");
                }
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    fixture
        .objects
        .wait_until("one", "it is marked", |it| it.labels().contains_key("seen"))
        .await?;
    operator.stop().await
}
