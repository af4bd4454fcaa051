//! Metrics of an operator, compared with the documentation and with its work.

use std::collections::{BTreeMap, BTreeSet};

use kopf_tests::prometheus::PrometheusText;
use kopf_tests::{TestFailure, TestResult, eventually};
use serde_json::json;

use crate::health::{HealthFixture, HealthOperator};

/// The page that documents the metrics.
const DOCUMENTED: &str = include_str!("../../../docs/observability.md");

pub(crate) async fn metrics(target: &HealthOperator) -> Result<PrometheusText, TestFailure> {
    let answer = target.get("/metrics").await?;
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("text/plain; version=0.0.4"));
    Ok(PrometheusText::parse(&answer.body)?)
}

/// Waits until a sample has a value.
pub(crate) async fn until(
    target: &HealthOperator,
    name: &str,
    labels: &[(&str, &str)],
    holds: impl Fn(f64) -> bool,
) -> Result<PrometheusText, TestFailure> {
    eventually(&format!("{name} {labels:?}"), async || {
        let metrics = metrics(target).await.ok()?;
        let value = metrics.value(name, labels)?;
        holds(value).then_some(metrics)
    })
    .await
}

#[tokio::test]
async fn exactly_the_documented_metrics_are_served() -> TestResult {
    let fixture = HealthFixture::open("documented").await?;
    fixture.widgets.create("one", json!({})).await?;
    let target = fixture.start(&[("HEALTH_WEBHOOK", "yes")]).await?;
    let index = [("index", "by_name")];
    let metrics = until(&target, "kopf_index_keys", &index, |it| it == 1.0).await?;
    let served: BTreeMap<String, (String, BTreeSet<String>)> = metrics
        .families()
        .iter()
        .map(|(name, family)| (name.clone(), (family.kind.clone(), family.labels())))
        .collect();
    let documented: BTreeMap<String, (String, BTreeSet<String>)> = DOCUMENTED
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `kopf_")?.split('|').map(str::trim);
            let name = format!("kopf_{}", cells.next()?.trim_matches('`'));
            let kind = cells.next()?.to_owned();
            let labels = cells
                .next()?
                .split(',')
                .map(|it| it.trim().trim_matches('`'));
            let labels = labels.filter(|it| !it.is_empty()).map(str::to_owned);
            Some((name, (kind, labels.collect())))
        })
        .collect();
    assert_eq!(served, documented);
    target.process.terminate().await?;
    Ok(())
}

#[tokio::test]
async fn metrics_count_by_kind_and_handler() -> TestResult {
    let fixture = HealthFixture::open("counted").await?;
    fixture.widgets.create("old", json!({})).await?;
    let target = fixture.start(&[("HEALTH_WEBHOOK", "yes")]).await?;
    target
        .process
        .wait_for_log("the webhooks are configured")
        .await?;
    target.until("/readyz", 200).await?;
    let kind = format!("Widget.{}", fixture.sandbox.group());
    let kind = ("kind", &*kind);

    fixture
        .widgets
        .create("fails", json!({"spec": {"do": "fail"}}))
        .await?;
    let refused = json!({"spec": {"do": "refuse"}});
    eventually("the webhook refuses", async || {
        fixture
            .widgets
            .create("refused", refused.clone())
            .await
            .err()
    })
    .await?;
    let work = |outcome| [kind, ("handler", "work"), ("outcome", outcome)];
    let outcomes = "kopf_handler_outcomes_total";
    let counted = until(&target, outcomes, &work("succeeded"), |it| it >= 2.0).await?;
    let value = |name, labels: &[(&str, &str)]| counted.value(name, labels).unwrap_or(-1.0);
    assert_eq!(value(outcomes, &work("temporary")), 1.0);
    let handler = [kind, ("handler", "work")];
    assert_eq!(value("kopf_handler_retries_total", &handler), 1.0);
    assert_eq!(value("kopf_handler_duration_seconds_count", &handler), 3.0);
    let event = |of| [kind, ("type", of)];
    assert_eq!(value("kopf_events_total", &event("listed")), 1.0);
    assert_eq!(value("kopf_events_total", &event("added")), 1.0);
    assert!(value("kopf_events_total", &event("modified")) >= 3.0);
    let webhook = [kind, ("webhook", "check")];
    let review = |verdict| [webhook[0], webhook[1], ("verdict", verdict)];
    assert!(value("kopf_webhook_reviews_total", &review("allowed")) >= 1.0);
    assert!(value("kopf_webhook_reviews_total", &review("denied")) >= 1.0);
    assert!(value("kopf_webhook_duration_seconds_count", &webhook) >= 2.0);
    let request = |verb, code| [("verb", verb), ("code", code)];
    assert!(value("kopf_api_requests_total", &request("list", "200")) >= 1.0);
    assert!(value("kopf_api_requests_total", &request("watch", "200")) >= 1.0);
    assert!(value("kopf_api_requests_total", &request("patch", "200")) >= 3.0);
    assert_eq!(value("kopf_ready", &[]), 1.0);
    assert_eq!(value("kopf_paused", &[("reason", "peers")]), 0.0);
    assert_eq!(value("kopf_index_keys", &[("index", "by_name")]), 2.0);
    let posted = [("outcome", "posted")];
    until(&target, "kopf_kubernetes_events_total", &posted, |it| {
        it >= 1.0
    })
    .await?;

    let labelled = json!({"metadata": {"labels": {"background": "yes"}}});
    fixture.widgets.create("labelled", labelled).await?;
    for (name, handler) in [("kopf_daemons", "wait"), ("kopf_timers", "tick")] {
        let labels = [kind, ("handler", handler)];
        until(&target, name, &labels, |it| it == 1.0).await?;
    }
    fixture.widgets.delete("labelled").await?;
    for (name, handler) in [("kopf_daemons", "wait"), ("kopf_timers", "tick")] {
        let labels = [kind, ("handler", handler)];
        until(&target, name, &labels, |it| it == 0.0).await?;
    }
    target.process.terminate().await?;
    Ok(())
}

#[tokio::test]
async fn no_metric_label_names_an_object() -> TestResult {
    let fixture = HealthFixture::open("cardinality").await?;
    fixture
        .widgets
        .create("very-special-name", json!({}))
        .await?;
    let target = fixture.start(&[]).await?;
    target.until("/readyz", 200).await?;
    let before = target.get("/metrics").await?.body.lines().count();
    let kind = format!("Widget.{}", fixture.sandbox.group());
    let work = [
        ("kind", &*kind),
        ("handler", "work"),
        ("outcome", "succeeded"),
    ];
    until(&target, "kopf_handler_outcomes_total", &work, |it| {
        it >= 1.0
    })
    .await?;
    let body = target.get("/metrics").await?.body;
    assert!(!body.contains("very-special-name"));
    // New status codes of the API server add lines.
    let added = body.lines().count() - before;
    assert!(added < 10, "{added} more lines");
    Ok(())
}
