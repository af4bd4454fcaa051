//! What is remembered of objects: shared by all handlers of one, and gone with it.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kopf_runtime::{
    AdmissionError, ChangeHandler, DaemonHandler, EventHandler, EventType, FieldHandler,
    IndexHandler, Memo, On, Operation, SubHandler, TimerHandler, WebhookHandler,
};
use kopf_tests::sandbox::DEFAULT_TIMEOUT;
use kopf_tests::{PeeringObject, TestResult};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::admission::hall::{Hall, refusal};
use crate::bench::Bench;
use crate::indices::ByWidget;

/// Who was called for an object.
#[derive(Default)]
struct Visitors(Mutex<BTreeSet<&'static str>>);

impl Memo<Value> for Visitors {}

impl Visitors {
    fn enter(&self, name: &'static str) {
        self.0.lock().unwrap().insert(name);
    }

    fn list(&self) -> String {
        let names = self.0.lock().unwrap();
        names.iter().copied().collect::<Vec<_>>().join(" ")
    }
}

/// How often somebody looked at an object.
#[derive(Default)]
struct Looks(AtomicU32);

impl Memo<Value> for Looks {}

#[tokio::test]
async fn all_handlers_of_an_object_share_its_memo_until_the_object_is_gone() -> TestResult {
    let mut bench = Bench::new("memos").await?;
    let resource = bench
        .resource()
        .memo::<Visitors>()
        .event(EventHandler::new("event"), |stage, cx| {
            Box::pin(async move {
                let memo = cx.memo::<Visitors>();
                if matches!(cx.event_type(), EventType::Added | EventType::Deleted) {
                    let news = format!("{} {}: {}", cx.name(), cx.event_type(), memo.list());
                    stage.tell(news);
                }
                memo.enter("event");
                Ok(())
            })
        })
        .change(ChangeHandler::new("create", On::create()), |_, cx| {
            Box::pin(async move {
                cx.memo::<Visitors>().enter("create");
                cx.sub(SubHandler::new("sub"), |cx| {
                    Box::pin(async move {
                        cx.memo::<Visitors>().enter("sub");
                        Ok(())
                    })
                });
                Ok(())
            })
        })
        .field::<u32>(FieldHandler::new("field", "spec.size"), |_, cx| {
            Box::pin(async move {
                cx.memo::<Visitors>().enter("field");
                Ok(())
            })
        })
        .timer(
            TimerHandler::every("timer", Duration::from_millis(50)),
            |stage, cx| {
                Box::pin(async move {
                    let memo = cx.memo::<Visitors>();
                    memo.enter("timer");
                    stage.tell(format!("{} has {}", cx.name(), memo.list()));
                    Ok(())
                })
            },
        )
        .daemon(DaemonHandler::new("daemon"), |_, cx| {
            Box::pin(async move {
                cx.memo::<Visitors>().enter("daemon");
                cx.stop().wait().await;
                Ok(())
            })
        })
        .index(ByWidget, IndexHandler::new(), |_, cx| {
            Box::pin(async move {
                cx.memo::<Visitors>().enter("index");
                Ok(Vec::new())
            })
        })
        .build();
    let operator = bench.start(resource).await?;
    bench.create("one", 1).await?;
    let everybody = "create daemon event field index sub timer";
    wait_for(&mut bench, "one ADDED: index").await;
    wait_for(&mut bench, &format!("one has {everybody}")).await;
    bench.objects.delete("one").await?;
    wait_for(&mut bench, &format!("one DELETED: {everybody}")).await;
    bench.create("one", 1).await?;
    wait_for(&mut bench, "one ADDED: index").await;
    bench.objects.delete("one").await?;
    operator.stop().await
}

/// Passes over everything else that is told.
async fn wait_for(bench: &mut Bench, news: &str) {
    let told = async { while bench.seen().await != news {} };
    let told = tokio::time::timeout(DEFAULT_TIMEOUT, told).await;
    told.unwrap_or_else(|_| panic!("never told: {news}"));
}

#[tokio::test]
async fn webhooks_see_the_memo_of_the_object_but_not_of_one_that_is_being_created() -> TestResult {
    let hall = Hall::new("memos").await?;
    let resource = hall
        .resource()
        .memo::<Looks>()
        .event(EventHandler::new("look"), |_, cx| {
            Box::pin(async move {
                cx.memo::<Looks>().0.fetch_add(10, Ordering::Relaxed);
                cx.patch().label("looked-at", "yes");
                Ok(())
            })
        })
        .validate::<Value>(WebhookHandler::new("check"), |gate, cx| {
            Box::pin(async move {
                gate.check(cx).await?;
                let looks = cx.memo::<Looks>().0.fetch_add(1, Ordering::Relaxed);
                let message = format!("{} sees {looks}", cx.operation());
                if cx.raw()["spec"]["tell"] == true {
                    return Err(AdmissionError::denied(message));
                }
                Ok(())
            })
        });
    let operator = hall.open(resource, hall.local()).await?;
    let told = |status: kube::core::Status| status.message;
    let tell = json!({"spec": {"tell": true}});
    for _ in 0..2 {
        let message = told(refusal(hall.widgets.create("one", tell.clone()).await));
        assert!(message.ends_with("CREATE sees 0"), "{message}");
    }
    hall.widgets.create("one", json!({"spec": {}})).await?;
    hall.widgets
        .wait_until("one", "somebody looked at it", |it| {
            it.metadata.labels.is_some()
        })
        .await?;
    let first = sees(&told(refusal(
        hall.widgets.merge("one", tell.clone()).await,
    )));
    let second = sees(&told(refusal(hall.widgets.merge("one", tell).await)));
    assert!(first > 10, "the event handler shares it: {first}");
    // What the operator itself writes is reviewed, too.
    assert!(second > first, "the other review shares it: {second}");
    operator.stop().await?;
    let deleting = DeleteParams::default();
    hall.widgets.api().delete("one", &deleting).await?;
    Ok(())
}

#[tokio::test]
async fn what_webhooks_remember_while_paused_is_there_for_handlers_later() -> TestResult {
    let hall = Hall::new("early-memos").await?;
    let peering = PeeringObject::create(&hall.sandbox, "default").await?;
    let ahead = json!({"someone": {
        "priority": 100, "lifetime": 600, "lastseen": jiff::Timestamp::now().to_string(),
    }});
    peering.write(ahead).await?;
    let resource = hall
        .resource()
        .memo::<Looks>()
        .event(EventHandler::new("look"), |_, cx| {
            Box::pin(async move {
                let looks = cx.memo::<Looks>().0.load(Ordering::Relaxed);
                if cx.raw()["metadata"]["labels"]["looks"].is_null() {
                    cx.patch().label("looks", &looks.to_string());
                }
                Ok(())
            })
        })
        .validate::<Value>(
            WebhookHandler::new("check").operations([Operation::Create, Operation::Update]),
            |gate, cx| {
                Box::pin(async move {
                    gate.check(cx).await?;
                    cx.memo::<Looks>().0.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                })
            },
        );
    let operator = hall.open(resource, hall.local()).await?;
    hall.widgets.create("one", json!({"spec": {}})).await?;
    for size in 1..=2 {
        let edit = json!({"spec": {"size": size}});
        hall.widgets.merge("one", edit).await?;
    }
    peering.write(json!({"someone": null})).await?;
    let noticed = hall
        .widgets
        .wait_until("one", "it is noticed", |it| it.metadata.labels.is_some())
        .await?;
    let looks = noticed.metadata.labels.unwrap_or_default()["looks"].clone();
    assert_eq!(looks, "2", "the creation does not count, both edits do");
    operator.stop().await
}

/// The number at the end of a message.
fn sees(message: &str) -> u32 {
    let number = message.rsplit(' ').next().unwrap_or_default();
    number.parse().expect("the message ends with a number")
}
