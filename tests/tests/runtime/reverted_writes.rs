//! Writes that a webhook or another client reverts: an event is posted, retries slow down, no change is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use kopf_runtime::{ChangeHandler, On};
use kopf_tests::rewriting_webhook::{RewritingWebhook, strip_kopf_annotations};
use kopf_tests::webhook::WebhookReply;
use kopf_tests::{Objects, TestFailure, TestResult, eventually};
use kube::ResourceExt as _;
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::fixture::{HandlerFixture, LAST_HANDLED};

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

/// Waits for an event whose message contains this text.
async fn wait_for_event(
    fixture: &HandlerFixture,
    part: &str,
) -> Result<DynamicObject, TestFailure> {
    let events = fixture.sandbox.objects("v1", "Event").await?;
    eventually(&format!("an event says that {part}"), async || {
        let events = events.api().list(&Default::default()).await.ok()?;
        events.into_iter().find(|event| {
            let message = event.data["message"].as_str();
            message.is_some_and(|message| message.contains(part))
        })
    })
    .await
}

#[tokio::test]
async fn annotations_that_a_webhook_removes_slow_the_handler_down() -> TestResult {
    let mut fixture = HandlerFixture::new("stripped").await?;
    let webhook =
        RewritingWebhook::register(&fixture.sandbox, &fixture.objects, strip_kopf_annotations)
            .await?;
    let counter = AtomicUsize::new(0);
    fixture.script("create_fn", move |cx| {
        let count = counter.fetch_add(1, Ordering::Relaxed);
        Ok(cx.set_result(&json!({"count": count}))?)
    });
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start(handlers).await?;
    let begun = Instant::now();
    fixture.create("one", 1).await?;
    for _ in 0..4 {
        assert_eq!(fixture.next_call().await.object, "one");
    }
    assert!(
        begun.elapsed() >= Duration::from_secs(4),
        "the delays are 1, 1 and 2 seconds"
    );
    let event = wait_for_event(&fixture, "does not keep it").await?;
    let message = event.data["message"].as_str().unwrap_or_default();
    assert!(message.contains(LAST_HANDLED), "{message}");
    webhook.unregister().await?;
    fixture.wait_until_handled("one", 1).await?;
    operator.stop().await
}

#[tokio::test]
async fn a_finalizer_that_a_webhook_removes_is_added_again_with_growing_delays() -> TestResult {
    let mut fixture = HandlerFixture::new("unheld").await?;
    let webhook = RewritingWebhook::register(&fixture.sandbox, &fixture.objects, |request| {
        let held = request["object"]["metadata"]["finalizers"].is_array();
        let stamp = json!({"op": "add", "path": "/metadata/labels", "value": {
            "webhook.test/request": request["uid"],
        }});
        let release = json!({"op": "remove", "path": "/metadata/finalizers"});
        WebhookReply::Patch(if held {
            json!([stamp, release])
        } else {
            json!([stamp])
        })
    })
    .await?;
    let handlers = fixture.handlers([ChangeHandler::new("delete_fn", On::delete())]);
    let operator = fixture.start(handlers).await?;
    let begun = Instant::now();
    fixture.create("one", 1).await?;
    eventually("the finalizer was added four times", async || {
        let (writes, _) = fixture.writes(&operator).await.ok()?;
        (writes >= 4).then_some(())
    })
    .await?;
    assert!(
        begun.elapsed() >= Duration::from_secs(4),
        "the delays are 1, 1 and 2 seconds"
    );
    let event = wait_for_event(&fixture, "does not keep it").await?;
    let message = event.data["message"].as_str().unwrap_or_default();
    assert!(message.contains(FINALIZER), "{message}");
    webhook.unregister().await?;
    fixture
        .objects
        .wait_until("one", "the finalizer is kept", |it| {
            it.finalizers() == [FINALIZER]
        })
        .await?;
    fixture.objects.delete("one").await?;
    fixture.objects.wait_gone("one").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_handlers_patch_that_a_webhook_reverts_calls_no_handler_again() -> TestResult {
    let mut fixture = HandlerFixture::new("reverted").await?;
    let webhook = RewritingWebhook::register(&fixture.sandbox, &fixture.objects, |request| {
        if request["object"]["spec"]["note"].is_null() {
            return WebhookReply::Allow;
        }
        WebhookReply::Patch(json!([{"op": "remove", "path": "/spec/note"}]))
    })
    .await?;
    fixture.script("update_fn", |cx| {
        cx.patch().set("spec.note", json!("mine"));
        Ok(())
    });
    let handlers = fixture.handlers([ChangeHandler::new("update_fn", On::update())]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    for size in 2..=3 {
        let edit = json!({"spec": {"size": size}});
        fixture.objects.merge("one", edit).await?;
        let one = fixture.wait_until_handled("one", size).await?;
        assert_eq!(one.data["spec"], json!({"size": size}));
    }
    assert_eq!(fixture.calls_so_far().len(), 2);
    webhook.unregister().await?;
    operator.stop().await
}

/// A client that watches the object `one` and reverts some of its states at once.
struct RevertingClient {
    reverts: Arc<AtomicUsize>,
    task: JoinHandle<Result<(), TestFailure>>,
}

impl RevertingClient {
    fn start(objects: &Objects, undo: fn(&DynamicObject) -> Option<Value>) -> Self {
        let reverts = Arc::new(AtomicUsize::new(0));
        let (objects, counted) = (objects.clone(), Arc::clone(&reverts));
        let task = tokio::spawn(async move {
            let params = WatchParams::default().fields("metadata.name=one");
            let mut events = Box::pin(objects.api().watch(&params, "0").await?);
            while let Some(event) = events.try_next().await? {
                let (WatchEvent::Added(one) | WatchEvent::Modified(one)) = event else {
                    continue;
                };
                if let Some(patch) = undo(&one) {
                    objects.merge("one", patch).await?;
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(())
        });
        Self { reverts, task }
    }

    /// Waits for this many more reverts; returns the time that they took.
    async fn wait_for_reverts(&self, more: usize) -> Result<Duration, TestFailure> {
        let begun = Instant::now();
        let goal = self.reverts.load(Ordering::Relaxed) + more;
        eventually("the other client has reverted often enough", async || {
            (self.reverts.load(Ordering::Relaxed) >= goal).then_some(())
        })
        .await?;
        Ok(begun.elapsed())
    }
}

impl Drop for RevertingClient {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test]
async fn annotations_that_another_client_removes_slow_the_handler_down() -> TestResult {
    let mut fixture = HandlerFixture::new("taken").await?;
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    let other_client = RevertingClient::start(&fixture.objects, |one| {
        let handled = one.annotations().contains_key(LAST_HANDLED);
        handled.then(|| json!({"metadata": {"annotations": {LAST_HANDLED: null}}}))
    });
    wait_for_event(&fixture, "the former state is back").await?;
    let pauses = other_client.wait_for_reverts(3).await?;
    assert!(pauses >= Duration::from_secs(2), "{pauses:?}");
    let calls = fixture.calls_so_far().len();
    assert!(calls < 25, "{calls} calls");
    drop(other_client);
    fixture.wait_until_handled("one", 1).await?;
    operator.stop().await
}

#[tokio::test]
async fn a_patch_that_another_client_reverts_slows_the_handler_down() -> TestResult {
    let mut fixture = HandlerFixture::new("fought").await?;
    fixture.script("update_fn", |cx| {
        cx.patch().set("spec.note", json!("mine"));
        Ok(())
    });
    let handlers = fixture.handlers([ChangeHandler::new("update_fn", On::update())]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    let other_client = RevertingClient::start(&fixture.objects, |one| {
        let noted = one.data["spec"]["note"].is_string();
        noted.then(|| json!({"spec": {"note": null}}))
    });
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    wait_for_event(&fixture, "the former state is back").await?;
    let calls = fixture.calls_so_far().len();
    assert!(calls < 50, "{calls} calls");
    drop(other_client);
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 3}}))
        .await?;
    fixture.wait_until_handled("one", 3).await?;
    fixture
        .objects
        .wait_until("one", "the patch of the handler is kept", |it| {
            it.annotations()[LAST_HANDLED].contains("mine")
        })
        .await?;
    operator.stop().await
}
