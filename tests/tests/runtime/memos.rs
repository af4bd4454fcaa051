//! Memos of objects: shared by all handlers of one object, and dropped with it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kopf_runtime::{
    AdmissionError, ChangeHandler, DaemonHandler, EventHandler, FieldHandler, FilterContext,
    IndexHandler, Memo, On, Operation, SubHandler, TimerHandler, WatchEventType, WebhookHandler,
    predicate,
};
use kopf_tests::sandbox::DEFAULT_TIMEOUT;
use kopf_tests::{PeeringObject, TestResult, eventually};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::admission::fixture::{WebhookFixture, rejection};
use crate::fixture::HandlerFixture;
use crate::indices::ByWidget;

/// The handlers that were called for an object.
#[derive(Default)]
struct CalledHandlers(Mutex<BTreeSet<&'static str>>);

impl Memo<Value> for CalledHandlers {}

impl CalledHandlers {
    fn add(&self, name: &'static str) {
        self.0.lock().unwrap().insert(name);
    }

    fn list(&self) -> String {
        let names = self.0.lock().unwrap();
        names.iter().copied().collect::<Vec<_>>().join(" ")
    }
}

/// The number of calls for an object.
#[derive(Default)]
struct CallCount(AtomicU32);

impl Memo<Value> for CallCount {}

#[tokio::test]
async fn all_handlers_of_an_object_share_its_memo_until_it_is_deleted() -> TestResult {
    let mut fixture = HandlerFixture::new("memos").await?;
    let resource = fixture
        .resource()
        .memo::<CalledHandlers>()
        .event(EventHandler::new("event"), |scripts, cx| {
            Box::pin(async move {
                let memo = cx.memo::<CalledHandlers>();
                if matches!(
                    cx.event_type(),
                    WatchEventType::Added | WatchEventType::Deleted
                ) {
                    let report = format!("{} {}: {}", cx.name(), cx.event_type(), memo.list());
                    scripts.report(report);
                }
                memo.add("event");
                Ok(())
            })
        })
        .change(ChangeHandler::new("create", On::create()), |_, cx| {
            Box::pin(async move {
                cx.memo::<CalledHandlers>().add("create");
                cx.sub(SubHandler::new("sub"), |cx| {
                    Box::pin(async move {
                        cx.memo::<CalledHandlers>().add("sub");
                        Ok(())
                    })
                });
                Ok(())
            })
        })
        .field::<u32>(FieldHandler::new("field", "spec.size"), |_, cx| {
            Box::pin(async move {
                cx.memo::<CalledHandlers>().add("field");
                Ok(())
            })
        })
        .timer(
            TimerHandler::every("timer", Duration::from_millis(50)),
            |scripts, cx| {
                Box::pin(async move {
                    let memo = cx.memo::<CalledHandlers>();
                    memo.add("timer");
                    scripts.report(format!("{} has {}", cx.name(), memo.list()));
                    Ok(())
                })
            },
        )
        .daemon(DaemonHandler::new("daemon"), |_, cx| {
            Box::pin(async move {
                cx.memo::<CalledHandlers>().add("daemon");
                cx.stop().wait().await;
                Ok(())
            })
        })
        .index(ByWidget, IndexHandler::new(), |_, cx| {
            Box::pin(async move {
                cx.memo::<CalledHandlers>().add("index");
                Ok(Vec::new())
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    let all_handlers = "create daemon event field index sub timer";
    wait_for(&mut fixture, "one ADDED: index").await;
    wait_for(&mut fixture, &format!("one has {all_handlers}")).await;
    fixture.objects.delete("one").await?;
    wait_for(&mut fixture, &format!("one DELETED: {all_handlers}")).await;
    fixture.create("one", 1).await?;
    wait_for(&mut fixture, "one ADDED: index").await;
    fixture.objects.delete("one").await?;
    operator.stop().await
}

/// Waits for a report, and skips all others.
async fn wait_for(fixture: &mut HandlerFixture, report: &str) {
    let reported = async { while fixture.next_report().await != report {} };
    let reported = tokio::time::timeout(DEFAULT_TIMEOUT, reported).await;
    reported.unwrap_or_else(|_| panic!("never reported: {report}"));
}

#[tokio::test]
async fn webhooks_share_the_memo_of_an_existing_object_and_get_a_new_one_on_creation() -> TestResult
{
    let webhooks = WebhookFixture::new("memos").await?;
    let resource = webhooks
        .resource()
        .memo::<CallCount>()
        .event(EventHandler::new("look"), |_, cx| {
            Box::pin(async move {
                cx.memo::<CallCount>().0.fetch_add(10, Ordering::Relaxed);
                cx.patch().label("looked-at", "yes");
                Ok(())
            })
        })
        .validate::<Value>(WebhookHandler::new("check"), |recorder, cx| {
            Box::pin(async move {
                recorder.check(cx).await?;
                let looks = cx.memo::<CallCount>().0.fetch_add(1, Ordering::Relaxed);
                let message = format!("{} sees {looks}", cx.operation());
                if cx.raw()["spec"]["tell"] == true {
                    return Err(AdmissionError::denied(message));
                }
                Ok(())
            })
        });
    let operator = webhooks
        .start_and_wait(resource, webhooks.local_server())
        .await?;
    let message_of = |status: kube::core::Status| status.message;
    let tell = json!({"spec": {"tell": true}});
    for _ in 0..2 {
        let message = message_of(rejection(
            webhooks.widgets.create("one", tell.clone()).await,
        ));
        assert!(message.ends_with("CREATE sees 0"), "{message}");
    }
    webhooks.widgets.create("one", json!({"spec": {}})).await?;
    webhooks
        .widgets
        .wait_until("one", "the event handler was called", |it| {
            it.metadata.labels.is_some()
        })
        .await?;
    let first = sees(&message_of(rejection(
        webhooks.widgets.merge("one", tell.clone()).await,
    )));
    let second = sees(&message_of(rejection(
        webhooks.widgets.merge("one", tell).await,
    )));
    assert!(first > 10, "the event handler shares it: {first}");
    // The operator's own writes are reviewed, too.
    assert!(second > first, "the second review shares it: {second}");
    operator.stop().await?;
    let deleting = DeleteParams::default();
    webhooks.widgets.api().delete("one", &deleting).await?;
    Ok(())
}

/// The edits that were reviewed in the next test; the creation does not count, as its object has
/// no uid yet.
static REVIEWED_EDITS: AtomicU32 = AtomicU32::new(0);

#[tokio::test]
async fn memos_that_webhooks_fill_during_a_pause_are_kept_for_handlers() -> TestResult {
    let webhooks = WebhookFixture::new("early-memos").await?;
    let peering = PeeringObject::create(&webhooks.sandbox, "default").await?;
    let peer = json!({"someone": {
        "priority": 100, "lifetime": 600, "lastseen": jiff::Timestamp::now().to_string(),
    }});
    peering.write(peer).await?;
    let resource = webhooks
        .resource()
        .memo::<CallCount>()
        .event(EventHandler::new("look"), |_, cx| {
            Box::pin(async move {
                let looks = cx.memo::<CallCount>().0.load(Ordering::Relaxed);
                if cx.raw()["metadata"]["labels"]["looks"].is_null() {
                    let edits = REVIEWED_EDITS.load(Ordering::Relaxed);
                    cx.patch().label("looks", &looks.to_string());
                    cx.patch().label("edits", &edits.to_string());
                }
                Ok(())
            })
        })
        .validate::<Value>(
            WebhookHandler::new("check").operations([Operation::Create, Operation::Update]),
            |recorder, cx| {
                Box::pin(async move {
                    recorder.check(cx).await?;
                    if cx.operation() == Operation::Update {
                        REVIEWED_EDITS.fetch_add(1, Ordering::Relaxed);
                    }
                    cx.memo::<CallCount>().0.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                })
            },
        );
    let operator = webhooks
        .start_and_wait(resource, webhooks.local_server())
        .await?;
    webhooks.widgets.create("one", json!({"spec": {}})).await?;
    for size in 1..=2 {
        let edit = json!({"spec": {"size": size}});
        webhooks.widgets.merge("one", edit).await?;
    }
    peering.write(json!({"someone": null})).await?;
    let labelled = webhooks
        .widgets
        .wait_until("one", "the event handler was called", |it| {
            it.metadata.labels.is_some()
        })
        .await?;
    let labels = labelled.metadata.labels.unwrap_or_default();
    assert_eq!(labels["looks"], labels["edits"], "each review of an edit");
    // Both edits; the API server reviews one again that it has to repeat.
    assert!(labels["edits"].parse::<u32>()? >= 2, "{labels:?}");
    operator.stop().await
}

/// The number at the end of a message.
fn sees(message: &str) -> u32 {
    let number = message.rsplit(' ').next().unwrap_or_default();
    number.parse().expect("the message ends with a number")
}

/// Counts its drops.
#[derive(Default)]
struct CountedDrop;

static DROPS: AtomicU32 = AtomicU32::new(0);

impl Memo<Value> for CountedDrop {}

impl Drop for CountedDrop {
    fn drop(&mut self) {
        DROPS.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn an_object_is_forgotten_even_if_the_handling_of_its_deletion_panics() -> TestResult {
    struct PanickingFilter(AtomicU32);
    impl PanickingFilter {
        fn accepts(&self, _: &FilterContext<'_, Value>) -> bool {
            assert_eq!(self.0.load(Ordering::Relaxed), 0, "as requested");
            true
        }
    }
    let mut fixture = HandlerFixture::new("memo-panic").await?;
    let filter = Arc::new(PanickingFilter(AtomicU32::new(0)));
    let handler = EventHandler::new("event");
    let handler = handler.when(predicate::when(&filter, PanickingFilter::accepts));
    let resource = fixture
        .resource()
        .memo::<CountedDrop>()
        .event(handler, |scripts, cx| {
            Box::pin(async move {
                scripts.report(cx.name().to_owned());
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "one");
    filter.0.store(1, Ordering::Relaxed);
    fixture.objects.delete("one").await?;
    eventually("the memo is dropped", async || {
        (DROPS.load(Ordering::Relaxed) == 1).then_some(())
    })
    .await?;
    operator.stop().await
}

#[tokio::test]
async fn a_filter_reads_the_change_the_memo_and_the_parameter_of_its_handler() -> TestResult {
    struct GrownFilter;
    impl GrownFilter {
        fn accepts(&self, cx: &FilterContext<'_, Value>) -> bool {
            let size = |object: &Value| object["spec"]["size"].as_u64();
            let least = cx.param().and_then(Value::as_u64);
            let grown = size(cx.object()) > cx.old().known().and_then(size);
            let created = cx.memo::<CallCount>().0.load(Ordering::Relaxed) == 1;
            grown && created && size(cx.object()) >= least
        }
    }
    let mut fixture = HandlerFixture::new("filter-context").await?;
    let handler = ChangeHandler::new("grow", On::update()).param(3);
    let filter = predicate::when(&Arc::new(GrownFilter), GrownFilter::accepts);
    let resource = fixture
        .resource()
        .memo::<CallCount>()
        .change(ChangeHandler::new("create", On::create()), |_, cx| {
            Box::pin(async move {
                cx.memo::<CallCount>().0.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        })
        .change(handler.when(filter), |scripts, cx| {
            Box::pin(async move {
                scripts.report(cx.object()["spec"]["size"].to_string());
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    for size in [2, 5, 4, 6] {
        let patch = json!({"spec": {"size": size}});
        fixture.objects.merge("one", patch).await?;
        fixture.wait_until_handled("one", size).await?;
    }
    assert_eq!(fixture.next_report().await, "5");
    assert_eq!(fixture.next_report().await, "6");
    operator.stop().await
}
