//! Children that `reconcile` applies: kept as they should be, and deleted when they are not wanted.

#[path = "reconcile/conflicts.rs"]
mod conflicts;
#[path = "reconcile/handlers.rs"]
mod handlers;
#[path = "reconcile/kills.rs"]
mod kills;
#[path = "reconcile/many.rs"]
mod many;
#[path = "reconcile/races.rs"]
mod races;
#[path = "reconcile/reach.rs"]
mod reach;
#[path = "reconcile/rest.rs"]
mod rest;
#[path = "reconcile/strategies.rs"]
mod strategies;
#[path = "reconcile/two_versions.rs"]
mod two_versions;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::{
    ChildOf, ChildOptions, HandlerResult, OPERATOR_LABEL, OWNER_LABEL, ReconcileContext,
    ReconcileHandler, ReconcileReason, ReconcileReasons, ResourceHandlers,
};
use kopf_tests::{Objects, TestFailure, TestResult};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::fixture::{HandlerFixture, HandlerScripts};
use crate::indices::CONFIG_MAP;

/// The marker of the kind.
enum WidgetChildren {}

impl ChildOf<WidgetChildren> for ConfigMap {
    const OPTIONS: ChildOptions = ChildOptions::new();
}

/// The ConfigMaps that an object asks for: those in `spec.maps`, with their data.
fn maps_of(object: &Value) -> Vec<ConfigMap> {
    let maps = object["spec"]["maps"].as_object().into_iter().flatten();
    let maps = maps.map(|(name, data)| {
        let data: BTreeMap<String, String> = serde_json::from_value(data.clone()).unwrap();
        let mut map = ConfigMap {
            data: Some(data),
            ..ConfigMap::default()
        };
        map.metadata.name = Some(name.clone());
        map.metadata.namespace = object["spec"]["namespace"].as_str().map(str::to_owned);
        map
    });
    maps.collect()
}

/// The reasons in words.
fn describe(reasons: &ReconcileReasons) -> String {
    let words = reasons.iter().map(|reason| match reason {
        ReconcileReason::Created => "created".to_owned(),
        ReconcileReason::Changed => "changed".to_owned(),
        ReconcileReason::Listed => "listed".to_owned(),
        ReconcileReason::ChildChanged(child) => format!("child {}", child.name),
        ReconcileReason::UsedChanged(used) => format!("used {}", used.name),
        ReconcileReason::Interval => "interval".to_owned(),
        ReconcileReason::Asked => "asked".to_owned(),
        ReconcileReason::Failed => "failed".to_owned(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Applies the ConfigMaps that the object asks for, and reports the reasons or the error.
async fn keep_maps<C>(
    scripts: &HandlerScripts,
    cx: &mut ReconcileContext<Value, C>,
) -> HandlerResult
where
    ConfigMap: ChildOf<C>,
{
    for map in maps_of(cx.raw()) {
        if let Err(error) = cx.apply(map).await {
            scripts.report(format!("error: {error}"));
            return Err(error);
        }
    }
    if let Some(error) = cx.raw()["spec"]["error"].as_str() {
        return Err(error.into());
    }
    scripts.report(format!("{}: {}", cx.name(), describe(cx.reasons())));
    Ok(())
}

/// The kind with ConfigMaps as children.
fn kept_maps(fixture: &HandlerFixture, handler: ReconcileHandler) -> ResourceHandlers {
    fixture
        .resource()
        .child::<WidgetChildren, ConfigMap>(CONFIG_MAP)
        .reconcile::<WidgetChildren>(handler, |scripts, cx| Box::pin(keep_maps(scripts, cx)))
        .build()
}

fn reconcile() -> ReconcileHandler {
    ReconcileHandler::new("reconcile")
}

/// Waits for a report, and skips others.
async fn reported(fixture: &mut HandlerFixture, expected: &str) {
    while fixture.next_report().await != expected {}
}

async fn config_maps(fixture: &HandlerFixture) -> Result<Objects, TestFailure> {
    fixture.sandbox.objects("v1", "ConfigMap").await
}

fn size(map: &DynamicObject) -> Option<&str> {
    map.data["data"]["size"].as_str()
}

/// Waits until a ConfigMap has this size.
async fn wait_for_size(maps: &Objects, name: &str, expected: &str) -> TestResult {
    maps.wait_until(name, &format!("its size is {expected}"), |it| {
        size(it) == Some(expected)
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_child_that_other_clients_change_or_delete_is_repaired() -> TestResult {
    let mut fixture = HandlerFixture::new("drift").await?;
    let handlers = kept_maps(&fixture, reconcile());
    let operator = fixture.start(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    let owner = fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let maps = config_maps(&fixture).await?;
    let child = maps.get("a").await?;
    let uid = owner.uid().unwrap_or_default();
    assert_eq!(child.labels().get(OWNER_LABEL), Some(&uid));
    assert_eq!(child.labels()[OPERATOR_LABEL], "fixture");
    assert_eq!(child.owner_references()[0].uid, uid);

    maps.merge("a", json!({"data": {"size": "9"}})).await?;
    reported(&mut fixture, "one: child a").await;
    wait_for_size(&maps, "a", "1").await?;

    maps.delete("a").await?;
    reported(&mut fixture, "one: child a").await;
    wait_for_size(&maps, "a", "1").await?;

    let labels = json!({"metadata": {"labels": {OWNER_LABEL: null, OPERATOR_LABEL: null}}});
    maps.merge("a", labels).await?;
    maps.wait_until("a", "it has its labels again", |it| {
        it.labels().get(OWNER_LABEL) == Some(&uid)
    })
    .await?;

    maps.merge("a", json!({"metadata": {"ownerReferences": null}}))
        .await?;
    maps.wait_until("a", "it has its owner again", |it| {
        it.owner_references().iter().any(|owner| owner.uid == uid)
    })
    .await?;
    operator.stop().await
}

#[tokio::test]
async fn the_last_call_sees_the_last_state_and_change_handlers_come_first() -> TestResult {
    let mut fixture = HandlerFixture::new("last-state").await?;
    let handlers = fixture
        .resource()
        .child::<WidgetChildren, ConfigMap>(CONFIG_MAP)
        .change(
            kopf_runtime::ChangeHandler::new(
                "changed",
                kopf_runtime::On::create().or(kopf_runtime::On::update()),
            ),
            |scripts, cx| {
                Box::pin(async move {
                    scripts.report(format!("{} handled", cx.name()));
                    Ok(())
                })
            },
        )
        .reconcile::<WidgetChildren>(reconcile(), |scripts, cx| Box::pin(keep_maps(scripts, cx)))
        .build();
    let operator = fixture.start(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "0"}}}});
    fixture.objects.create("one", body).await?;
    assert_eq!(fixture.next_report().await, "one handled");
    assert_eq!(fixture.next_report().await, "one: created");
    for size in 1..=20 {
        let patch = json!({"spec": {"maps": {"a": {"size": size.to_string()}}}});
        fixture.objects.merge("one", patch).await?;
    }
    let maps = config_maps(&fixture).await?;
    wait_for_size(&maps, "a", "20").await?;
    operator.stop().await
}

#[tokio::test]
async fn what_is_not_applied_any_more_is_deleted_after_a_complete_call() -> TestResult {
    let mut fixture = HandlerFixture::new("prune").await?;
    let handler = reconcile().backoff(std::time::Duration::from_secs(1));
    let handlers = kept_maps(&fixture, handler);
    let operator = fixture.start(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}, "b": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let maps = config_maps(&fixture).await?;
    let kept = maps.get("a").await?.uid();
    assert_eq!(maps.get("b").await?.name_any(), "b");

    // A call that fails does not delete.
    let failing = json!({"spec": {"maps": {"a": {"size": "2"}, "b": null}, "error": "not yet"}});
    fixture.objects.merge("one", failing).await?;
    fixture
        .objects
        .wait_until("one", "the failure is recorded", |it| {
            let annotations = it.annotations().values();
            annotations.into_iter().any(|it| it.contains("not yet"))
        })
        .await?;
    assert_eq!(maps.get("b").await?.name_any(), "b");

    let complete = json!({"spec": {"error": null}});
    fixture.objects.merge("one", complete).await?;
    maps.wait_gone("b").await?;
    let a = maps.get("a").await?;
    assert_eq!((a.uid(), size(&a)), (kept, Some("2")));
    // The record goes once the call with its deletions is complete.
    fixture
        .objects
        .wait_until("one", "the failure is not recorded any more", |it| {
            let mut annotations = it.annotations().values();
            !annotations.any(|it| it.contains("not yet"))
        })
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn children_of_a_python_operator_are_recognised_and_labelled() -> TestResult {
    let mut fixture = HandlerFixture::new("adopted").await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    let owner = fixture.objects.create("one", body).await?;
    let maps = config_maps(&fixture).await?;
    let reference = json!({
        "apiVersion": format!("{}/v1", fixture.sandbox.group()), "kind": "Widget",
        "name": "one", "uid": owner.uid(), "controller": true, "blockOwnerDeletion": true,
    });
    for name in ["a", "other"] {
        let child = json!({"metadata": {"ownerReferences": [reference]}, "data": {"size": "0"}});
        maps.create(name, child).await?;
    }
    let made = maps.get("a").await?.uid();
    let handlers = kept_maps(&fixture, reconcile());
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    reported(&mut fixture, "one: created").await;
    wait_for_size(&maps, "a", "1").await?;
    let a = maps.get("a").await?;
    assert_eq!(a.uid(), made, "it was changed in its place");
    assert_eq!(a.labels().get(OWNER_LABEL), owner.uid().as_ref());
    let gets = proxy.requests();
    let mut gets = gets.iter();
    assert!(!gets.any(|it| it.uri.contains("/configmaps/a") && it.method == "GET"));
    assert_eq!(maps.get("other").await?.data["data"]["size"], "0");
    operator.stop().await
}
