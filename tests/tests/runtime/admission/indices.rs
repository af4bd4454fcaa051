//! Webhooks that read indices wait until these are complete, also in a replica that does not lead.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kopf_runtime::{
    AdmissionError, EventHandler, IndexHandler, LeaderElectionSettings, Namespaces, Operator,
    PeeringSettings, Resource, ResourceHandlers, WebhookHandler,
};
use kopf_tests::health_client::HealthClient;
use kopf_tests::{Objects, PeeringObject, TestFailure, TestResult, eventually};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::fixture::{WebhookFixture, rejection};
use crate::indices::{ByWidget, CONFIG_MAP, indexed};

/// The events of ConfigMaps that handlers got.
#[derive(Default)]
struct ObservedMaps(Mutex<Vec<String>>);

impl ObservedMaps {
    fn events_of(&self, name: &str) -> Vec<String> {
        let events = self.0.lock().unwrap();
        let events = events.iter().filter_map(|it| it.strip_prefix(name));
        events.map(|it| it.trim_start().to_owned()).collect()
    }
}

/// ConfigMaps that are indexed by their `widget`, and have an event handler.
fn observed(maps: &Arc<ObservedMaps>) -> ResourceHandlers {
    Resource::<Value, ObservedMaps>::new(CONFIG_MAP, maps)
        .index(ByWidget, IndexHandler::new(), |_, cx| {
            Box::pin(async move {
                let widget = cx.object()["data"]["widget"].as_str();
                let entry = widget.map(|widget| (widget.to_owned(), cx.name().to_owned()));
                Ok(entry.into_iter().collect())
            })
        })
        .event(EventHandler::new("observe"), |maps, cx| {
            Box::pin(async move {
                let event = format!("{} {}", cx.name(), cx.event_type());
                maps.0.lock().unwrap().push(event);
                Ok(())
            })
        })
        .build()
}

/// Widgets of which only those may be created that are in the index.
fn indexed_only(fixture: &WebhookFixture) -> ResourceHandlers {
    fixture
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
        .build()
}

/// Waits until the webhook allows, or denies, a widget of this name.
async fn until_allowed(fixture: &WebhookFixture, name: &str, allowed: bool) -> TestResult {
    let what = format!("{name} is allowed: {allowed}");
    eventually(&what, async || {
        let asked = fixture.dry_run(name, json!({"spec": {}})).await;
        (asked.is_ok() == allowed).then_some(())
    })
    .await
}

fn in_namespace(fixture: &WebhookFixture, operator: Operator) -> Operator {
    operator.namespaces(Namespaces::Only(vec![
        fixture.sandbox.namespace().to_owned(),
    ]))
}

async fn config_maps(fixture: &WebhookFixture) -> Result<Objects, TestFailure> {
    fixture.sandbox.objects("v1", "ConfigMap").await
}

fn permit(widget: &str) -> Value {
    json!({"data": {"widget": widget}})
}

#[tokio::test]
async fn a_webhook_is_not_called_before_the_indices_are_complete() -> TestResult {
    let fixture = WebhookFixture::new("hook-index").await?;
    let maps = fixture.sandbox.objects("v1", "ConfigMap").await?;
    let known = json!({"data": {"widget": "known"}});
    maps.create("permit", known).await?;
    let widgets = indexed_only(&fixture);
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

#[tokio::test]
async fn a_replica_that_never_led_fills_the_indices_for_its_webhooks() -> TestResult {
    let fixture = WebhookFixture::new("standby-index").await?;
    let maps = config_maps(&fixture).await?;
    maps.create("early", permit("known")).await?;
    let election = || LeaderElectionSettings {
        name: Some("shared".to_owned()),
        namespace: Some(fixture.sandbox.namespace().to_owned()),
        // The leader keeps the lease on a busy machine, and releases it when it stops.
        lease_duration: Duration::from_secs(60),
        renew_deadline: Duration::from_secs(50),
        retry_period: Duration::from_millis(500),
    };
    let leader = Operator::new("leader")
        .resource(indexed(IndexHandler::new(), Duration::ZERO))
        .leader_election(election())
        .identity("leader");
    let leader = in_namespace(&fixture, leader).spawn(fixture.sandbox.client());
    // A replica is ready also if another one leads, and the other one must not be first.
    let leases = fixture
        .sandbox
        .objects("coordination.k8s.io/v1", "Lease")
        .await?;
    leases
        .wait_until("shared", "the first replica leads", |it| {
            let holder = it.data["spec"]["holderIdentity"].as_str();
            holder.is_some_and(|it| it.starts_with("leader"))
        })
        .await?;
    let observed_maps = Arc::new(ObservedMaps::default());
    let standby = Operator::new("webhooks")
        .resource(indexed_only(&fixture))
        .resource(observed(&observed_maps))
        .leader_election(election())
        .identity("standby")
        .webhooks(fixture.local_server());
    let standby = in_namespace(&fixture, standby).spawn(fixture.sandbox.client());
    standby.ready().await?;
    until_allowed(&fixture, "unknown", false).await?;
    fixture.dry_run("known", json!({"spec": {}})).await?;

    maps.delete("early").await?;
    until_allowed(&fixture, "known", false).await?;
    maps.create("late", permit("known")).await?;
    until_allowed(&fixture, "known", true).await?;
    let none = Vec::<String>::new();
    assert_eq!(observed_maps.events_of("late"), none, "it does not lead");

    leader.stop().await?;
    eventually("the standby leads, and handles what there is", async || {
        (observed_maps.events_of("late") == ["LISTED"]).then_some(())
    })
    .await?;
    assert_eq!(observed_maps.events_of("early"), none);
    fixture.dry_run("known", json!({"spec": {}})).await?;
    standby.stop().await?;
    Ok(())
}

#[tokio::test]
async fn during_a_pause_indices_are_updated_and_no_deletion_is_lost_for_handlers() -> TestResult {
    let fixture = WebhookFixture::new("paused-index").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "ours").await?;
    let maps = config_maps(&fixture).await?;
    maps.create("goes", permit("one")).await?;
    let observed_maps = Arc::new(ObservedMaps::default());
    let health = HealthClient::on_free_port().await?;
    let operator = Operator::new("webhooks")
        .resource(indexed_only(&fixture))
        .resource(observed(&observed_maps))
        .peering(PeeringSettings::named("ours"))
        .liveness(format!("http://{}/healthz", health.address()).parse()?)
        .webhooks(fixture.local_server());
    let operator = in_namespace(&fixture, operator).spawn(fixture.sandbox.client());
    operator.ready().await?;
    until_allowed(&fixture, "two", false).await?;
    eventually("the handler is called", async || {
        (observed_maps.events_of("goes").len() == 1).then_some(())
    })
    .await?;

    let other = json!({"priority": 100, "lifetime": 600, "lastseen": "2100-01-01T00:00:00+00:00"});
    peering.write(json!({"other": other})).await?;
    eventually("the operator has paused", async || {
        let report = health.get("/readyz").await.ok()?.json();
        (report["paused"]["reason"] == "peers").then_some(())
    })
    .await?;
    maps.delete("goes").await?;
    maps.create("comes", permit("two")).await?;
    until_allowed(&fixture, "one", false).await?;
    until_allowed(&fixture, "two", true).await?;
    let none = Vec::<String>::new();
    assert_eq!(observed_maps.events_of("comes"), none, "it is paused");
    assert_eq!(observed_maps.events_of("goes").len(), 1);
    peering.write(json!({"other": null})).await?;
    eventually("the deletion and the creation are handled", async || {
        let goes = observed_maps.events_of("goes");
        let comes = observed_maps.events_of("comes");
        (goes.last().is_some_and(|it| it == "DELETED") && !comes.is_empty()).then_some(())
    })
    .await?;
    operator.stop().await?;
    Ok(())
}
