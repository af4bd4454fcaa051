//! Faults of the fault proxy, observed by a kube client.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, future};
use http::{Method, StatusCode};
use kopf_tests::sandbox::DEFAULT_TIMEOUT;
use kopf_tests::{Fault, FaultProxy, Objects, RequestMatch, Sandbox, TestResult};
use kube::api::{ListParams, WatchParams};
use serde_json::json;
use tokio::time::timeout;

use super::code;

async fn proxied(name: &str) -> Result<(Sandbox, FaultProxy, Objects), kopf_tests::TestFailure> {
    let sandbox = Sandbox::open(name).await?;
    let widgets = sandbox.define("Widget").await?;
    let proxy =
        FaultProxy::start(sandbox.control_plane(), &sandbox.administrator("proxied")).await?;
    let widgets = widgets.through(&proxy.client().await?);
    Ok((sandbox, proxy, widgets))
}

#[tokio::test]
async fn injected_responses_reach_the_client_the_requested_number_of_times() -> TestResult {
    let (_sandbox, proxy, widgets) = proxied("answers").await?;
    let creations = || RequestMatch::any().method(Method::POST).path("/widgets");
    proxy.times(2, creations(), Fault::Answer(StatusCode::TOO_MANY_REQUESTS));
    proxy.once(
        creations(),
        Fault::Answer(StatusCode::INTERNAL_SERVER_ERROR),
    );
    proxy.once(
        RequestMatch::any().method(Method::PATCH),
        Fault::AnswerRetryAfter(StatusCode::CONFLICT, Duration::from_secs(1)),
    );

    let mut codes = Vec::new();
    for _ in 0..3 {
        codes.push(code(widgets.create("one", json!({})).await)?);
    }
    assert_eq!(codes, [429, 429, 500]);
    widgets.create("one", json!({})).await?;
    assert_eq!(
        code(widgets.merge("one", json!({"spec": {"size": 1}})).await)?,
        409
    );
    widgets.merge("one", json!({"spec": {"size": 2}})).await?;

    let creations: Vec<_> = proxy
        .requests()
        .into_iter()
        .filter(|it| it.method == Method::POST)
        .map(|it| it.status.map(|status| status.as_u16()))
        .collect();
    assert_eq!(creations, [Some(429), Some(429), Some(500), Some(201)]);
    Ok(())
}

#[tokio::test]
async fn cut_before_prevents_the_request_and_cut_after_does_not() -> TestResult {
    let (_sandbox, proxy, widgets) = proxied("cuts").await?;
    proxy.once(RequestMatch::any().method(Method::POST), Fault::CutBefore);
    proxy.once(RequestMatch::any().method(Method::POST), Fault::CutAfter);

    assert!(widgets.create("before", json!({})).await.is_err());
    assert!(widgets.create("after", json!({})).await.is_err());

    assert_eq!(code(widgets.get("before").await)?, 404);
    widgets.get("after").await?;
    Ok(())
}

#[tokio::test]
async fn a_delay_fault_delays_a_request() -> TestResult {
    let (_sandbox, proxy, widgets) = proxied("delay").await?;
    let time = Duration::from_millis(700);
    proxy.once(RequestMatch::any().not_watches(), Fault::Delay(time));

    let started = Instant::now();
    widgets.api().list(&ListParams::default()).await?;

    assert!(started.elapsed() >= time);
    Ok(())
}

#[tokio::test]
async fn a_truncated_watch_delivers_complete_events_and_then_ends() -> TestResult {
    let (_sandbox, proxy, widgets) = proxied("truncated").await?;
    let start = widgets.api().list(&ListParams::default()).await?;
    let version = start.metadata.resource_version.unwrap_or_default();
    proxy.once(RequestMatch::any().watches(), Fault::TruncateAfter(2));

    let events = widgets
        .api()
        .watch(&WatchParams::default(), &version)
        .await?;
    for name in ["one", "two", "three"] {
        widgets.create(name, json!({})).await?;
    }

    // A kube client treats a broken stream as ended, and drops the partial event.
    let seen: Vec<_> = events
        .filter_map(|event| future::ready(event.ok()))
        .collect()
        .await;
    assert_eq!(seen.len(), 2, "{seen:?}");
    let events = widgets
        .api()
        .watch(&WatchParams::default(), &version)
        .await?;
    let whole: Vec<_> = events.take(3).try_collect().await?;
    assert_eq!(whole.len(), 3, "the next watch is complete");
    Ok(())
}

#[tokio::test]
async fn a_truncated_watch_delivers_complete_events_that_come_at_once() -> TestResult {
    let (_sandbox, proxy, widgets) = proxied("at-once").await?;
    let start = widgets.api().list(&ListParams::default()).await?;
    let version = start.metadata.resource_version.unwrap_or_default();
    for name in ["one", "two", "three"] {
        widgets.create(name, json!({})).await?;
    }

    for round in 0..50 {
        proxy.once(RequestMatch::any().watches(), Fault::TruncateAfter(2));
        let events = widgets
            .api()
            .watch(&WatchParams::default(), &version)
            .await?;
        let seen = events.filter(|event| future::ready(event.is_ok()));
        assert_eq!(seen.count().await, 2, "round {round}");
    }
    Ok(())
}

#[tokio::test]
async fn cut_all_ends_open_watches_and_clear_faults_removes_faults() -> TestResult {
    let (_sandbox, proxy, widgets) = proxied("cutting").await?;
    let events = widgets.api().watch(&WatchParams::default(), "0").await?;

    proxy.always(RequestMatch::any(), Fault::CutBefore);
    proxy.cut_all();
    timeout(DEFAULT_TIMEOUT, events.collect::<Vec<_>>()).await?;
    assert!(widgets.api().list(&ListParams::default()).await.is_err());

    proxy.clear_faults();
    widgets.api().list(&ListParams::default()).await?;
    Ok(())
}
