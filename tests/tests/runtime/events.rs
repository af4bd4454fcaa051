//! Event handlers: called for what is seen, silent, and without a trace.

use kopf_runtime::{EventHandler, HandlerError, ValueTest};
use kopf_tests::TestResult;
use kube::ResourceExt as _;
use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn event_handlers_see_all_events_and_leave_no_trace() -> TestResult {
    let mut bench = Bench::new("events").await?;
    bench.create("before", 0).await?;
    let resource = bench
        .resource()
        .event(EventHandler::new("spy"), |stage, cx| {
            Box::pin(async move {
                stage.see(cx.name(), cx.event_type(), cx.raw());
                Err(HandlerError::permanent("which is ignored"))
            })
        })
        .event(
            EventHandler::new("never").value("spec.size", ValueTest::Equals(json!(99))),
            |_, _| Box::pin(async move { panic!("no object has this size") }),
        )
        .build();
    let operator = bench.start(resource).await?;
    assert_eq!(bench.seen().await, "before LISTED 0");
    bench.create("one", 1).await?;
    assert_eq!(bench.seen().await, "one ADDED 1");
    bench
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    assert_eq!(bench.seen().await, "one MODIFIED 2");
    let one = bench.objects.get("one").await?;
    assert!(one.annotations().is_empty());
    bench.objects.delete("one").await?;
    assert_eq!(bench.seen().await, "one DELETED 2");
    assert_eq!(bench.writes(&operator).await?, (0, 0));
    operator.stop().await
}

#[tokio::test]
async fn what_an_event_handler_wants_written_is_written() -> TestResult {
    let mut bench = Bench::new("event-patch").await?;
    let resource = bench
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
    let operator = bench.start(resource).await?;
    bench.create("one", 1).await?;
    bench
        .objects
        .wait_until("one", "it is marked", |it| it.labels().contains_key("seen"))
        .await?;
    operator.stop().await
}
