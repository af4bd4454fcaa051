//! At rest: no request is made for what is already so, not even after a restart.

use std::time::{Duration, Instant};

use http::Method;
use kopf_runtime::{HandlerError, HandlerResult, ReconcileContext};
use kopf_tests::{FaultProxy, TestResult};
use serde_json::{Value, json};

use super::{WidgetChildren, config_maps, kept_maps, reconcile, reported, wait_for_size};
use crate::fixture::{HandlerFixture, HandlerScripts};

/// The writes that an operator has sent for its objects and their children. Events, and the
/// peering that an operator renews while it runs, are not among them.
fn writes(proxy: &FaultProxy) -> Vec<String> {
    let requests = proxy.requests().into_iter();
    let is_for_objects = |uri: &str| !uri.contains("/events") && !uri.contains("kopfpeerings");
    let writes = requests.filter(|it| it.method != Method::GET && is_for_objects(&it.uri));
    writes
        .map(|it| format!("{} {}", it.method, it.uri))
        .collect()
}

/// The reads of single objects.
fn reads(proxy: &FaultProxy) -> Vec<String> {
    let requests = proxy.requests().into_iter();
    let reads = requests.filter(|it| {
        let is_single = it.uri.contains("/configmaps/") || it.uri.contains("/widgets/");
        it.method == Method::GET && is_single
    });
    reads.map(|it| it.uri).collect()
}

/// The lists of ConfigMaps without a selector.
fn searches(proxy: &FaultProxy) -> usize {
    let requests = proxy.requests().into_iter();
    let searches =
        requests.filter(|it| it.uri.contains("/configmaps?") && !it.uri.contains("labelSelector="));
    searches.count()
}

#[tokio::test]
async fn without_a_child_a_record_keeps_a_later_start_from_searching() -> TestResult {
    let mut fixture = HandlerFixture::new("childless").await?;
    let (proxy, operator) = fixture
        .start_through_proxy(kept_maps(&fixture, reconcile()))
        .await?;
    fixture
        .objects
        .create("one", json!({"spec": {"maps": {}}}))
        .await?;
    reported(&mut fixture, "one: created").await;
    fixture
        .objects
        .wait_until("one", "the complete call is recorded", |it| {
            let annotations = it.metadata.annotations.as_ref();
            annotations.is_some_and(|it| it.values().any(|text| text.contains("ConfigMap")))
        })
        .await?;
    operator.stop().await?;
    assert_eq!(searches(&proxy), 1);

    let (proxy, operator) = fixture
        .start_through_proxy(kept_maps(&fixture, reconcile()))
        .await?;
    reported(&mut fixture, "one: listed").await;
    operator.stop().await?;
    assert_eq!(searches(&proxy), 0);
    Ok(())
}

#[tokio::test]
async fn what_is_already_so_costs_no_request_even_after_a_restart() -> TestResult {
    let mut fixture = HandlerFixture::new("at-rest").await?;
    let handlers = kept_maps(&fixture, reconcile());
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}, "b": {"size": "2"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let sent = writes(&proxy);
    let patches = sent.iter().filter(|it| it.contains("/configmaps/")).count();
    assert_eq!(patches, 2, "{sent:?}");

    // What another client adds is not ours: the call needs no write.
    let maps = config_maps(&fixture).await?;
    maps.merge("a", json!({"data": {"theirs": "x"}})).await?;
    reported(&mut fixture, "one: child a").await;
    fixture
        .objects
        .merge("one", json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await?;
    // The labels of the owner are those of its children.
    reported(&mut fixture, "one: changed").await;
    operator.stop().await?;
    let sent = writes(&proxy);
    let patches = sent.iter().filter(|it| it.contains("/configmaps/")).count();
    assert_eq!(patches, 4, "{sent:?}");
    let owner = sent.iter().filter(|it| it.contains("/widgets/")).count();
    assert_eq!(
        owner, 0,
        "the children show that they were applied: {sent:?}"
    );

    let handlers = kept_maps(&fixture, reconcile());
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    reported(&mut fixture, "one: listed").await;
    // A change of the owner passes through the same queue: its call is after the first one.
    let patch = json!({"spec": {"other": 1}});
    fixture.objects.merge("one", patch).await?;
    reported(&mut fixture, "one: changed").await;
    operator.stop().await?;
    assert_eq!(writes(&proxy), [""; 0]);
    assert_eq!(reads(&proxy), [""; 0]);
    wait_for_size(&maps, "a", "1").await
}

#[tokio::test]
async fn a_change_of_a_child_needs_no_request_for_its_owner() -> TestResult {
    let mut fixture = HandlerFixture::new("owner-known").await?;
    let handlers = kept_maps(&fixture, reconcile());
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let maps = config_maps(&fixture).await?;
    let before = reads(&proxy).len();
    maps.delete("a").await?;
    reported(&mut fixture, "one: child a").await;
    wait_for_size(&maps, "a", "1").await?;
    let after = reads(&proxy);
    assert!(
        !after[before..].iter().any(|it| it.contains("/widgets/")),
        "{after:?}"
    );
    operator.stop().await
}

#[tokio::test]
async fn an_interval_calls_again_and_changes_of_the_status_only_if_asked_for() -> TestResult {
    let mut fixture = HandlerFixture::new("interval").await?;
    let handler = reconcile()
        .interval(Duration::from_millis(200))
        .on_status_changes();
    let handlers = kept_maps(&fixture, handler);
    let operator = fixture.start(handlers).await?;
    fixture.objects.create("one", json!({"spec": {}})).await?;
    reported(&mut fixture, "one: created").await;
    reported(&mut fixture, "one: interval").await;
    fixture
        .objects
        .merge_status("one", json!({"phase": "new"}))
        .await?;
    reported(&mut fixture, "one: changed").await;
    operator.stop().await
}

/// Asks for another call once for each state, and reports that state then.
async fn hesitate(
    scripts: &HandlerScripts,
    cx: &mut ReconcileContext<Value, WidgetChildren>,
) -> HandlerResult {
    if cx.retry() == 0 {
        let delay = Duration::from_millis(20);
        return Err(HandlerError::temporary_after(delay, "not yet"));
    }
    scripts.report(format!("size {}", cx.raw()["spec"]["size"]));
    Ok(())
}

#[tokio::test]
async fn records_that_come_and_go_are_not_taken_for_a_restored_state() -> TestResult {
    let mut fixture = HandlerFixture::new("hesitant").await?;
    let handlers = fixture
        .resource()
        .reconcile::<WidgetChildren>(reconcile(), |scripts, cx| Box::pin(hesitate(scripts, cx)))
        .build();
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    reported(&mut fixture, "size 1").await;
    // Each edit makes two writes, and more than ten within ten seconds are suspicious.
    let (mut edits, mut quick_edits) = (vec![Instant::now()], 0);
    while quick_edits < 12 {
        let size = edits.len() + 1;
        let edit = json!({"spec": {"size": size}});
        fixture.objects.merge("one", edit).await?;
        reported(&mut fixture, &format!("size {size}")).await;
        let sixth_last = edits.iter().rev().nth(5);
        let is_quick = sixth_last.is_some_and(|it| it.elapsed() < Duration::from_secs(9));
        quick_edits += usize::from(is_quick);
        edits.push(Instant::now());
    }
    operator.stop().await?;
    let events = fixture.sandbox.objects("v1", "Event").await?;
    let events = events.api().list(&Default::default()).await?;
    let mut messages = events.iter().filter_map(|it| it.data["message"].as_str());
    let suspicion = messages.find(|it| it.contains("former state"));
    assert_eq!(suspicion, None);
    Ok(())
}
