//! Handlers of children, views of children, and objects that are referred to.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kopf_runtime::{
    ChildChange, ChildContext, ChildHandler, ChildOf, ChildOptions, HandlerResult,
    ReconcileContext, ResourceHandlers, ResourceSpec, Scope, StatusSubresource, UsedBy,
};
use kopf_tests::TestResult;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::{WidgetChildren, config_maps, keep_maps, maps_of, reconcile, reported};
use crate::fixture::{HandlerFixture, HandlerScripts};
use crate::indices::CONFIG_MAP;

const SECRET: ResourceSpec = ResourceSpec {
    group: "",
    version: "v1",
    kind: "Secret",
    plural: "secrets",
    scope: Scope::Namespaced,
    status: StatusSubresource::Absent,
};

enum ReadChildren {}

impl ChildOf<ReadChildren> for ConfigMap {
    const OPTIONS: ChildOptions = ChildOptions::new().contents(kopf_runtime::ChildContents::Bodies);
}

async fn child_changed(
    scripts: &HandlerScripts,
    cx: &mut ChildContext<Value, ConfigMap>,
) -> HandlerResult {
    let data = cx.child().data.as_ref();
    let size = data.and_then(|data| data.get("size")).cloned();
    let what = match cx.event_type() {
        ChildChange::Applied => "has",
        ChildChange::Deleted => "had",
    };
    scripts.report(format!("{} {what} {}", cx.name(), size.unwrap_or_default()));
    let size = cx.child().data.as_ref().and_then(|data| data.get("size"));
    cx.patch().status(json!({"size": size}));
    Ok(())
}

#[tokio::test]
async fn a_handler_of_children_gets_the_child_and_its_owner() -> TestResult {
    let mut fixture = HandlerFixture::new("on-child").await?;
    let handlers = fixture
        .resource()
        .child::<WidgetChildren, ConfigMap>(CONFIG_MAP)
        .reconcile::<WidgetChildren>(reconcile(), |scripts, cx| Box::pin(keep_maps(scripts, cx)))
        .on_child::<ConfigMap>(ChildHandler::new("child_changed"), |scripts, cx| {
            Box::pin(child_changed(scripts, cx))
        })
        .build();
    let operator = fixture.start(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one has 1").await;
    fixture
        .objects
        .wait_until("one", "its status has the size", |it| {
            it.data["status"]["size"] == "1"
        })
        .await?;
    let maps = config_maps(&fixture).await?;
    maps.delete("a").await?;
    reported(&mut fixture, "one had 1").await;
    reported(&mut fixture, "one has 1").await;
    operator.stop().await
}

/// Reports each attempt, and fails as often as the owner asks for it.
async fn fail_at_first(
    scripts: &HandlerScripts,
    cx: &mut ChildContext<Value, ConfigMap>,
) -> HandlerResult {
    scripts.report(format!("{}: attempt {}", cx.child().name_any(), cx.retry()));
    let failures = cx.raw()["spec"]["failures"].as_u64().unwrap_or_default();
    if u64::from(cx.retry()) < failures {
        return Err("not yet".into());
    }
    Ok(())
}

/// ConfigMaps as children, with a handler of them that fails at first.
fn failing_handler(fixture: &HandlerFixture, handler: ChildHandler) -> ResourceHandlers {
    fixture
        .resource()
        .child::<WidgetChildren, ConfigMap>(CONFIG_MAP)
        .reconcile::<WidgetChildren>(reconcile(), |scripts, cx| Box::pin(keep_maps(scripts, cx)))
        .on_child::<ConfigMap>(handler, |scripts, cx| Box::pin(fail_at_first(scripts, cx)))
        .build()
}

/// Waits for the next attempt of the handler of children.
async fn next_attempt(fixture: &mut HandlerFixture) -> String {
    loop {
        let report = fixture.next_report().await;
        if report.contains("attempt") {
            return report;
        }
    }
}

#[tokio::test]
async fn a_failed_handler_of_children_is_called_again_for_the_same_child() -> TestResult {
    let mut fixture = HandlerFixture::new("child-again").await?;
    let handler = || ChildHandler::new("seen").backoff(Duration::from_millis(50));
    let operator = fixture.start(failing_handler(&fixture, handler())).await?;
    let body = json!({"spec": {"failures": 2, "maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    for attempt in 0..3 {
        let expected = format!("a: attempt {attempt}");
        assert_eq!(next_attempt(&mut fixture).await, expected);
    }
    // A deleted child is not there to be found again, and its handler is called again all the same.
    let nothing = json!({"spec": {"maps": {"a": null}}});
    fixture.objects.merge("one", nothing).await?;
    for attempt in 0..3 {
        let expected = format!("a: attempt {attempt}");
        assert_eq!(next_attempt(&mut fixture).await, expected);
    }
    operator.stop().await
}

#[tokio::test]
async fn retries_limit_the_calls_for_one_event_and_a_start_begins_anew() -> TestResult {
    let mut fixture = HandlerFixture::new("child-retries").await?;
    let handler = || {
        let handler = ChildHandler::new("seen").backoff(Duration::from_millis(50));
        handler.retries(2)
    };
    let operator = fixture.start(failing_handler(&fixture, handler())).await?;
    let body = json!({"spec": {"failures": 9, "maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    for attempt in 0..2 {
        let expected = format!("a: attempt {attempt}");
        assert_eq!(next_attempt(&mut fixture).await, expected);
    }
    let maps = config_maps(&fixture).await?;
    maps.merge("a", json!({"data": {"theirs": "1"}})).await?;
    for attempt in 0..2 {
        let expected = format!("a: attempt {attempt}");
        assert_eq!(next_attempt(&mut fixture).await, expected);
    }
    operator.stop().await?;
    let operator = fixture.start(failing_handler(&fixture, handler())).await?;
    assert_eq!(next_attempt(&mut fixture).await, "a: attempt 0");
    operator.stop().await
}

#[tokio::test]
async fn a_handler_of_children_is_interrupted_at_its_timeout() -> TestResult {
    let mut fixture = HandlerFixture::new("child-timeout").await?;
    let handler = ChildHandler::new("seen").timeout(Duration::from_millis(200));
    let handlers = fixture
        .resource()
        .child::<WidgetChildren, ConfigMap>(CONFIG_MAP)
        .reconcile::<WidgetChildren>(reconcile(), |scripts, cx| Box::pin(keep_maps(scripts, cx)))
        .on_child::<ConfigMap>(handler, |scripts, cx| {
            Box::pin(async move {
                let data = cx.child().metadata.annotations.as_ref();
                let is_slow = data.is_none_or(|it| !it.contains_key("fast"));
                scripts.report(format!("slow: {is_slow}"));
                if is_slow {
                    std::future::pending::<()>().await;
                }
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "slow: true").await;
    let maps = config_maps(&fixture).await?;
    let fast = json!({"metadata": {"annotations": {"fast": "yes"}}});
    maps.merge("a", fast).await?;
    reported(&mut fixture, "slow: false").await;
    operator.stop().await
}

/// Reports the sizes of the children that the watch knows.
async fn read_maps(
    scripts: &HandlerScripts,
    cx: &mut ReconcileContext<Value, ReadChildren>,
) -> HandlerResult {
    let views = cx.children::<ConfigMap>();
    let sizes = views.iter().map(|view| {
        let body = view.body.as_ref().and_then(|map| map.data.as_ref());
        let size = body.and_then(|data| data.get("size")).cloned();
        let name = view.metadata.name.clone().unwrap_or_default();
        format!("{name}={}", size.unwrap_or_default())
    });
    scripts.report(sizes.collect::<Vec<_>>().join(" "));
    for map in maps_of(cx.raw()) {
        let applied = cx.apply(map).await?;
        let version = applied.metadata.resource_version;
        scripts.report(format!("has a version: {}", version.is_some()));
    }
    Ok(())
}

#[tokio::test]
async fn children_are_read_from_the_watch_with_their_bodies() -> TestResult {
    let mut fixture = HandlerFixture::new("views").await?;
    let handlers = fixture
        .resource()
        .child::<ReadChildren, ConfigMap>(CONFIG_MAP)
        .reconcile::<ReadChildren>(reconcile(), |scripts, cx| Box::pin(read_maps(scripts, cx)))
        .build();
    let operator = fixture.start(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    assert_eq!(fixture.next_report().await, "");
    assert_eq!(fixture.next_report().await, "has a version: true");
    fixture
        .objects
        .merge("one", json!({"spec": {"other": 1}}))
        .await?;
    assert_eq!(fixture.next_report().await, "a=1");
    assert_eq!(fixture.next_report().await, "has a version: true");
    operator.stop().await
}

#[tokio::test]
async fn an_object_that_is_referred_to_calls_when_it_comes_changes_and_goes() -> TestResult {
    let mut fixture = HandlerFixture::new("uses").await?;
    let handlers = fixture
        .resource()
        .uses::<Secret>(SECRET, UsedBy::new("spec.secretRef.name"))
        .reconcile::<WidgetChildren>(reconcile(), |scripts, cx| Box::pin(keep_maps(scripts, cx)))
        .build();
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    let body = json!({"spec": {"secretRef": {"name": "password"}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: listed").await;
    let secrets = fixture.sandbox.objects("v1", "Secret").await?;
    secrets.create("other", json!({})).await?;
    secrets.create("password", json!({})).await?;
    assert_eq!(fixture.next_report().await, "one: used password");
    secrets
        .merge("password", json!({"stringData": {"a": "b"}}))
        .await?;
    assert_eq!(fixture.next_report().await, "one: used password");
    secrets.delete("password").await?;
    assert_eq!(fixture.next_report().await, "one: used password");
    let requests = proxy.requests();
    let mut requests = requests.iter();
    assert!(!requests.any(|it| it.uri.contains("/secrets/")));
    operator.stop().await
}
