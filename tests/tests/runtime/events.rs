//! Event handlers: called for every watch event, without progress, and repeated only on demand.

use std::sync::Arc;
use std::time::Duration;

use kopf_runtime::{
    ErrorMode, EventHandler, FilterContext, HandlerError, Resource, ValueTest, WatchEventType,
    predicate,
};
use kopf_tests::TestResult;
use kube::ResourceExt as _;
use serde_json::{Value, json};

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
async fn filters_of_event_handlers_see_the_type_of_the_event() -> TestResult {
    struct UnmodifiedFilter;
    impl UnmodifiedFilter {
        fn accepts(&self, size: Option<&u32>, cx: &FilterContext<'_, Value>) -> bool {
            assert_eq!(cx.resource().kind, cx.object()["kind"]);
            size.is_some() && cx.event_type() != Some(WatchEventType::Modified)
        }
    }
    let mut fixture = HandlerFixture::new("event-filter").await?;
    let unmodified = predicate::value(&Arc::new(UnmodifiedFilter), UnmodifiedFilter::accepts);
    let handler = EventHandler::new("spy").value("spec.size", unmodified);
    let resource = fixture
        .resource()
        .event(handler, |scripts, cx| {
            Box::pin(async move {
                scripts.report_event(cx.name(), cx.event_type(), cx.raw());
                Ok(())
            })
        })
        .build();
    fixture.create("before", 0).await?;
    let operator = fixture.start(resource).await?;
    assert_eq!(fixture.next_report().await, "before LISTED 0");
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "one ADDED 1");
    let size = |size: u32| json!({"spec": {"size": size}});
    fixture.objects.merge("one", size(2)).await?;
    fixture.create("two", 1).await?;
    assert_eq!(fixture.next_report().await, "two ADDED 1");
    operator.stop().await
}

#[tokio::test]
async fn what_an_event_handler_patches_is_written_once() -> TestResult {
    let mut fixture = HandlerFixture::new("event-patch").await?;
    let resource = fixture
        .resource()
        .event(EventHandler::new("marks"), |scripts, cx| {
            Box::pin(async move {
                cx.patch().label("seen", "yes");
                scripts.report(cx.raw()["spec"]["size"].to_string());
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
    // Before and after the write, and after an edit.
    let edit = json!({"spec": {"size": 2}});
    fixture.objects.merge("one", edit).await?;
    while fixture.next_report().await != "2" {}
    let user = operator.user.clone();
    operator.stop().await?;
    let requests = fixture.sandbox.requests_of(&user).await?;
    let patches = requests
        .iter()
        .filter(|it| it.verb == "patch" && it.resource.as_deref() == Some("widgets"));
    assert_eq!(patches.count(), 1);
    Ok(())
}

#[tokio::test]
async fn an_event_handler_of_several_fields_has_an_id_and_a_result_for_each() -> TestResult {
    let mut fixture = HandlerFixture::new("event-fields").await?;
    let on = |path| EventHandler::new("seen").value(path, ValueTest::Present);
    let resource = fixture
        .resource()
        .event(on("spec.size").param("large"), |scripts, cx| {
            Box::pin(async move {
                let param = cx.param().and_then(|it| it.as_str());
                scripts.report(format!("{} {param:?}", cx.handler_id()));
                Ok(cx.set_result(&json!({"is": "size"}))?)
            })
        })
        .event(on("metadata.name"), |scripts, cx| {
            Box::pin(async move {
                scripts.report(format!("{} {:?}", cx.handler_id(), cx.param()));
                Ok(cx.set_result(&json!({"is": "name"}))?)
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    assert_eq!(
        fixture.next_report().await,
        "seen/spec.size Some(\"large\")"
    );
    assert_eq!(fixture.next_report().await, "seen/metadata.name None");
    let one = fixture
        .objects
        .wait_until("one", "both results", |it| {
            it.data["status"]["seen/metadata.name"].is_object()
        })
        .await?;
    assert_eq!(
        one.data["status"],
        json!({"seen/spec.size": {"is": "size"}, "seen/metadata.name": {"is": "name"}})
    );
    operator.stop().await
}

/// A handler that reports each call, labels objects without annotations, and fails at those of an
/// odd size until its third attempt.
fn failing(fixture: &HandlerFixture, handler: EventHandler) -> kopf_runtime::ResourceHandlers {
    let resource: Resource<_, _> = fixture.resource();
    let resource = resource.event(handler, |scripts, cx| {
        Box::pin(async move {
            let size = cx.raw()["spec"]["size"].as_i64().unwrap_or_default();
            let event_type = cx.event_type();
            scripts.report(format!("{event_type} {size}, retry {}", cx.retry()));
            if cx.raw()["metadata"].get("annotations").is_none() {
                cx.patch().label("seen", &format!("{}", cx.retry()));
            }
            match (size % 2, cx.retry()) {
                (1, 0) => Err("an arbitrary error".into()),
                (1, 1) => Err(HandlerError::temporary_after(
                    Duration::from_millis(50),
                    "not yet",
                )),
                _ => Ok(()),
            }
        })
    });
    resource.build()
}

#[tokio::test]
async fn an_event_handler_with_retries_is_called_again_for_the_same_event() -> TestResult {
    let mut fixture = HandlerFixture::new("event-retries").await?;
    let handler = EventHandler::new("spy")
        .errors(ErrorMode::Temporary)
        .backoff(Duration::from_millis(50));
    let unlabelled = handler.label("seen", kopf_runtime::TextTest::Absent);
    let resource = failing(&fixture, unlabelled);
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    // The label of the first attempt makes an event that the handler does not match.
    for retry in 0..3 {
        assert_eq!(
            fixture.next_report().await,
            format!("ADDED 1, retry {retry}")
        );
    }
    fixture
        .objects
        .wait_until("one", "the patch of the last attempt", |it| {
            it.labels().get("seen").is_some_and(|it| it == "2")
        })
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn an_event_handler_is_called_again_for_a_deletion() -> TestResult {
    let mut fixture = HandlerFixture::new("event-deletion").await?;
    let handler = EventHandler::new("spy")
        .retries(3)
        .backoff(Duration::from_millis(50))
        .value("metadata.annotations.last", ValueTest::Present);
    let resource = failing(&fixture, handler);
    let operator = fixture.start(resource).await?;
    fixture.create("one", 3).await?;
    fixture.create("other", 1).await?;
    let last = json!({"metadata": {"annotations": {"last": "yes"}, "finalizers": ["a.b/c"]}});
    fixture.objects.merge("one", last).await?;
    for retry in 0..3 {
        assert_eq!(
            fixture.next_report().await,
            format!("MODIFIED 3, retry {retry}")
        );
    }
    fixture.objects.delete("one").await?;
    for retry in 0..3 {
        assert_eq!(
            fixture.next_report().await,
            format!("MODIFIED 3, retry {retry}")
        );
    }
    let release = json!({"metadata": {"finalizers": null}});
    fixture.objects.merge("one", release).await?;
    for retry in 0..3 {
        assert_eq!(
            fixture.next_report().await,
            format!("DELETED 3, retry {retry}")
        );
    }
    operator.stop().await
}

#[tokio::test]
async fn a_newer_event_replaces_the_repetition_of_a_failed_call() -> TestResult {
    let mut fixture = HandlerFixture::new("event-replaced").await?;
    let hour = Duration::from_secs(3600);
    let handler = EventHandler::new("spy").retries(3).backoff(hour);
    let resource = fixture.resource().event(handler, |scripts, cx| {
        Box::pin(async move {
            let size = cx.raw()["spec"]["size"].as_i64().unwrap_or_default();
            scripts.report(format!("{size}, retry {}", cx.retry()));
            match size {
                1 => Err("in an hour".into()),
                2 => Err(HandlerError::temporary_after(
                    Duration::from_millis(20),
                    "soon",
                )),
                _ => Ok(()),
            }
        })
    });
    let operator = fixture.start(resource.build()).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "1, retry 0");
    let size = |size: u32| json!({"spec": {"size": size}});
    fixture.objects.merge("one", size(2)).await?;
    for retry in 0..3 {
        assert_eq!(fixture.next_report().await, format!("2, retry {retry}"));
    }
    // After its last attempt the call is not repeated any more.
    fixture.objects.merge("one", size(3)).await?;
    assert_eq!(fixture.next_report().await, "3, retry 0");
    operator.stop().await
}
