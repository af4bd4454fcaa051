//! How children change: in place, made anew, when they are deleted, one at a time.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::{
    ChildOf, ChildOptions, HandlerResult, Pruning, ReconcileContext, ResourceHandlers,
    ResourceSpec, Scope, StatusSubresource, UpdateOrder, UpdateStrategy,
};
use kopf_tests::{Fault, Objects, RequestMatch, TestResult};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{
    config_maps, describe, keep_maps, kept_maps, reconcile, reported, size, wait_for_size,
};
use crate::fixture::{HandlerFixture, HandlerScripts};
use crate::indices::CONFIG_MAP;

const DEPLOYMENT: ResourceSpec = ResourceSpec {
    group: "apps",
    version: "v1",
    kind: "Deployment",
    plural: "deployments",
    scope: Scope::Namespaced,
    status: StatusSubresource::Present,
};

pub(super) enum RecreatedChildren {}
enum ReplacedChildren {}
enum SequentialChildren {}
enum SequentialDeployments {}
enum SequentiallyRecreated {}

impl ChildOf<SequentialDeployments> for Deployment {
    const OPTIONS: ChildOptions = ChildOptions::new().order(UpdateOrder::OneAtATime);
}

impl ChildOf<SequentiallyRecreated> for ConfigMap {
    const OPTIONS: ChildOptions = ChildOptions::new()
        .update(UpdateStrategy::Recreate)
        .order(UpdateOrder::OneAtATime);
}

impl ChildOf<RecreatedChildren> for ConfigMap {
    const OPTIONS: ChildOptions = ChildOptions::new().update(UpdateStrategy::Recreate);
}

impl ChildOf<ReplacedChildren> for ConfigMap {
    const OPTIONS: ChildOptions = ChildOptions::new()
        .update(UpdateStrategy::OnDelete)
        .pruning(Pruning::Keep);
}

impl ChildOf<SequentialChildren> for ConfigMap {
    const OPTIONS: ChildOptions = ChildOptions::new().order(UpdateOrder::OneAtATime);
}

fn maps<C: 'static>(fixture: &HandlerFixture) -> ResourceHandlers
where
    ConfigMap: ChildOf<C>,
{
    fixture
        .resource()
        .child::<C, ConfigMap>(CONFIG_MAP)
        .reconcile::<C>(reconcile(), |scripts, cx| Box::pin(keep_maps(scripts, cx)))
        .build()
}

#[tokio::test]
async fn a_child_is_made_anew_where_it_cannot_change() -> TestResult {
    let mut fixture = HandlerFixture::new("recreate").await?;
    let operator = fixture.start(maps::<RecreatedChildren>(&fixture)).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let maps = config_maps(&fixture).await?;
    let first = maps.get("a").await?.uid();
    maps.merge("a", json!({"data": {"size": "drift"}})).await?;
    wait_for_size(&maps, "a", "1").await?;
    assert_eq!(
        maps.get("a").await?.uid(),
        first,
        "drift is repaired in place"
    );
    let patch = json!({"spec": {"maps": {"a": {"size": "2"}}}});
    fixture.objects.merge("one", patch).await?;
    wait_for_size(&maps, "a", "2").await?;
    assert_ne!(maps.get("a").await?.uid(), first);
    operator.stop().await
}

#[tokio::test]
async fn a_child_that_is_gone_before_its_deletion_is_made_anew_at_once() -> TestResult {
    let mut fixture = HandlerFixture::new("recreate-gone").await?;
    let handlers = maps::<RecreatedChildren>(&fixture);
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let maps = config_maps(&fixture).await?;
    // No event and no list says that the child is gone.
    let maps_of_all = || RequestMatch::any().path("/configmaps");
    for reads in [maps_of_all().watches(), maps_of_all().parameter("limit")] {
        proxy.always(reads, Fault::Answer(StatusCode::INTERNAL_SERVER_ERROR));
    }
    proxy.cut_all();
    maps.delete("a").await?;
    let patch = json!({"spec": {"maps": {"a": {"size": "2"}}}});
    fixture.objects.merge("one", patch).await?;
    wait_for_size(&maps, "a", "2").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_child_changes_when_it_is_deleted_and_is_kept_without_pruning() -> TestResult {
    let mut fixture = HandlerFixture::new("on-delete").await?;
    let operator = fixture.start(maps::<ReplacedChildren>(&fixture)).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}, "b": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let maps = config_maps(&fixture).await?;
    let patch = json!({"spec": {"maps": {"a": {"size": "2"}, "b": null}}});
    fixture.objects.merge("one", patch).await?;
    reported(&mut fixture, "one: changed").await;
    assert_eq!(size(&maps.get("a").await?), Some("1"));
    maps.delete("a").await?;
    wait_for_size(&maps, "a", "2").await?;
    assert_eq!(size(&maps.get("b").await?), Some("1"), "it is not pruned");
    operator.stop().await
}

#[tokio::test]
async fn children_change_one_at_a_time() -> TestResult {
    let mut fixture = HandlerFixture::new("one-at-a-time").await?;
    let handlers = maps::<SequentialChildren>(&fixture);
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}, "b": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let before = proxy.requests().len();
    let patch = json!({"spec": {"maps": {"a": {"size": "2"}, "b": {"size": "2"}}}});
    fixture.objects.merge("one", patch).await?;
    assert_eq!(fixture.next_report().await, "one: changed");
    let changed: BTreeSet<String> = proxy.requests()[before..]
        .iter()
        .filter(|it| it.method == Method::PATCH && it.uri.contains("/configmaps/"))
        .map(|it| it.uri.clone())
        .collect();
    assert!(changed.len() <= 2, "{changed:?}");
    assert_eq!(fixture.next_report().await, "one: asked");
    let maps = config_maps(&fixture).await?;
    wait_for_size(&maps, "a", "2").await?;
    wait_for_size(&maps, "b", "2").await?;
    operator.stop().await
}

/// Applies the Deployments `a` and `b` in the version that the object asks for.
async fn keep_deployments(
    scripts: &HandlerScripts,
    cx: &mut ReconcileContext<Value, SequentialDeployments>,
) -> HandlerResult {
    for name in ["a", "b"] {
        let labels = json!({"app": name});
        let version = &cx.raw()["spec"]["version"];
        let template = json!({
            "metadata": {"labels": labels, "annotations": {"version": version}},
            "spec": {"containers": [{"name": "main", "image": "busybox"}]},
        });
        let deployment = json!({
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        });
        let deployment: Deployment = serde_json::from_value(deployment)?;
        cx.apply(deployment).await?;
    }
    scripts.report(format!("{}: {}", cx.name(), describe(cx.reasons())));
    Ok(())
}

fn version(deployment: &DynamicObject) -> Option<&str> {
    let template = &deployment.data["spec"]["template"]["metadata"];
    template["annotations"]["version"].as_str()
}

/// Reports a Deployment as ready, as its controller does.
async fn make_ready(deployments: &Objects, name: &str) -> TestResult {
    let generation = deployments.get(name).await?.metadata.generation;
    let status = json!({
        "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1,
        "readyReplicas": 1, "availableReplicas": 1,
    });
    deployments.merge_status(name, status).await?;
    Ok(())
}

#[tokio::test]
async fn the_next_child_changes_once_the_one_before_it_is_ready() -> TestResult {
    let mut fixture = HandlerFixture::new("ready-first").await?;
    let handlers = fixture
        .resource()
        .child::<SequentialDeployments, Deployment>(DEPLOYMENT)
        .reconcile::<SequentialDeployments>(reconcile(), |scripts, cx| {
            Box::pin(keep_deployments(scripts, cx))
        })
        .build();
    let operator = fixture.start(handlers).await?;
    let body = json!({"spec": {"version": "1"}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let deployments = fixture.sandbox.objects("apps/v1", "Deployment").await?;
    for name in ["a", "b"] {
        make_ready(&deployments, name).await?;
    }
    // Both children are out of date, and neither waits for the other one.
    let patch = json!({"spec": {"version": "2"}});
    fixture.objects.merge("one", patch).await?;
    deployments
        .wait_until("a", "it is changed first", |it| version(it) == Some("2"))
        .await?;
    // Further calls do not touch the other one before the first one is ready.
    for other in 1..=2 {
        let patch = json!({"spec": {"other": other}});
        fixture.objects.merge("one", patch).await?;
        loop {
            let report = fixture.next_report().await;
            let is_call = report.contains("changed");
            let seen = fixture.objects.get("one").await?.data["spec"]["other"] == other;
            if is_call && seen {
                break;
            }
        }
        assert_eq!(version(&deployments.get("b").await?), Some("1"));
    }
    make_ready(&deployments, "a").await?;
    deployments
        .wait_until("b", "it is changed next", |it| version(it) == Some("2"))
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn a_child_that_is_made_anew_holds_the_next_one_until_it_exists() -> TestResult {
    let mut fixture = HandlerFixture::new("anew-first").await?;
    let handlers = maps::<SequentiallyRecreated>(&fixture);
    let operator = fixture.start(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}, "b": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let maps = config_maps(&fixture).await?;
    let held = json!({"metadata": {"finalizers": ["kopf.test/held"]}});
    maps.merge("a", held).await?;
    let patch = json!({"spec": {"maps": {"a": {"size": "2"}, "b": {"size": "2"}}}});
    fixture.objects.merge("one", patch).await?;
    maps.wait_until("a", "it is being deleted", |it| {
        it.metadata.deletion_timestamp.is_some()
    })
    .await?;
    let patch = json!({"metadata": {"annotations": {"touched": "yes"}}});
    fixture.objects.merge("one", patch).await?;
    while !fixture.next_report().await.contains("child a") {}
    let other = maps.get("b").await?;
    assert_eq!(other.metadata.deletion_timestamp, None);
    assert_eq!(size(&other), Some("1"));
    let released = json!({"metadata": {"finalizers": null}});
    maps.merge("a", released).await?;
    wait_for_size(&maps, "a", "2").await?;
    wait_for_size(&maps, "b", "2").await?;
    operator.stop().await
}

#[tokio::test]
async fn an_immutable_field_is_named_with_the_strategy_that_helps() -> TestResult {
    let mut fixture = HandlerFixture::new("immutable").await?;
    let operator = fixture.start(kept_maps(&fixture, reconcile())).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let maps = config_maps(&fixture).await?;
    maps.merge("a", json!({"immutable": true})).await?;
    let patch = json!({"spec": {"maps": {"a": {"size": "2"}}}});
    fixture.objects.merge("one", patch).await?;
    let report = loop {
        let report = fixture.next_report().await;
        if report.starts_with("error: ") {
            break report;
        }
    };
    assert!(report.contains("data is immutable"), "{report}");
    assert!(report.contains("`update: recreate`"), "{report}");
    operator.stop().await
}
