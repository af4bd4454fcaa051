//! Other clients that want the same child otherwise.

use std::time::Duration;

use kopf_tests::{TestResult, eventually};
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;

use super::{config_maps, kept_maps, reconcile, reported, size, wait_for_size};
use crate::fixture::HandlerFixture;

/// The time in which takebacks are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// A schema without conditions.
fn schema_without_conditions() -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    })
}

fn condition<'a>(object: &'a DynamicObject, member: &str) -> Option<&'a str> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    let mut conditions = conditions.iter();
    let applied = conditions.find(|it| it["type"] == "ChildrenApplied")?;
    applied[member].as_str()
}

#[tokio::test]
async fn an_object_that_is_not_ours_is_not_taken_over() -> TestResult {
    let mut fixture = HandlerFixture::new("foreign").await?;
    let maps = config_maps(&fixture).await?;
    let theirs = maps.create("a", json!({"data": {"size": "0"}})).await?;
    let handlers = kept_maps(&fixture, reconcile());
    let operator = fixture.start(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    let namespace = fixture.sandbox.namespace().to_owned();
    let message =
        format!("error: the ConfigMap {namespace}/a exists, and this object does not own it");
    reported(&mut fixture, &message).await;
    fixture
        .objects
        .wait_until("one", "the condition says so", |it| {
            condition(it, "reason") == Some("NotOwned") && condition(it, "status") == Some("False")
        })
        .await?;
    let now = maps.get("a").await?;
    assert_eq!(
        now.metadata.resource_version,
        theirs.metadata.resource_version
    );

    // Without the obstacle, the next call succeeds.
    maps.delete("a").await?;
    let patch = json!({"spec": {"maps": {"a": {"size": "2"}}}});
    fixture.objects.merge("one", patch).await?;
    wait_for_size(&maps, "a", "2").await?;
    fixture
        .objects
        .wait_until("one", "the condition holds", |it| {
            condition(it, "status") == Some("True")
        })
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn a_child_of_an_earlier_object_of_the_same_name_is_made_anew_once_it_is_gone() -> TestResult
{
    let mut fixture = HandlerFixture::new("namesake").await?;
    let maps = config_maps(&fixture).await?;
    let handlers = kept_maps(&fixture, reconcile());
    let operator = fixture.start(handlers).await?;
    let body = |size: &str| json!({"spec": {"maps": {"a": {"size": size}}}});
    fixture.objects.create("one", body("1")).await?;
    reported(&mut fixture, "one: created").await;
    let held = json!({"metadata": {"finalizers": ["kopf.test/held"]}});
    maps.merge("a", held).await?;
    fixture.objects.delete("one").await?;
    fixture.objects.wait_gone("one").await?;

    // The child of the earlier object is no obstacle, and not taken over either.
    fixture.objects.create("one", body("2")).await?;
    reported(&mut fixture, "one: created").await;
    // What the garbage collector of a cluster does, and then the holder.
    maps.delete("a").await?;
    let released = json!({"metadata": {"finalizers": null}});
    maps.merge("a", released).await?;
    wait_for_size(&maps, "a", "2").await?;
    let (owner, child) = (fixture.objects.get("one").await?, maps.get("a").await?);
    assert_eq!(
        Some(&child.owner_references()[0].uid),
        owner.metadata.uid.as_ref()
    );
    operator.stop().await
}

#[tokio::test]
async fn a_field_of_another_applier_is_reported_and_not_fought_over() -> TestResult {
    let mut fixture = HandlerFixture::new("applier").await?;
    let handlers = kept_maps(&fixture, reconcile());
    let operator = fixture.start(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let maps = config_maps(&fixture).await?;
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a"}, "data": {"size": "theirs"},
    });
    let params = PatchParams::apply("another").force();
    let theirs = Patch::Apply(&theirs);
    maps.api().patch("a", &params, &theirs).await?;
    fixture
        .objects
        .wait_until("one", "the conflict is reported", |it| {
            condition(it, "reason") == Some("Conflict")
        })
        .await?;
    let child = maps.get("a").await?;
    assert_eq!(size(&child), Some("theirs"));
    operator.stop().await
}

#[tokio::test]
async fn a_field_that_is_taken_from_us_again_and_again_is_left_for_a_minute() -> TestResult {
    let mut fixture = HandlerFixture::new("fight").await?;
    let handlers = kept_maps(&fixture, reconcile());
    let operator = fixture.start(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let maps = config_maps(&fixture).await?;
    let mut rounds = 0;
    loop {
        let theirs = maps.merge("a", json!({"data": {"size": "theirs"}})).await?;
        let version = theirs.metadata.resource_version.clone();
        let is_over = fixture.next_report().await.starts_with("error: ");
        rounds += 1;
        if is_over {
            let child = maps.get("a").await?;
            assert_eq!(child.metadata.resource_version, version);
            break;
        }
        wait_for_size(&maps, "a", "1").await?;
    }
    // On a very slow machine the first rounds may be more than a minute ago.
    assert!(rounds >= 4, "it was taken back three times: {rounds}");
    fixture
        .objects
        .wait_until("one", "the conflict is reported", |it| {
            condition(it, "reason") == Some("Conflict")
        })
        .await?;

    // When the minute is over, it is taken back without another change.
    let report = fixture.next_report_within(WINDOW * 3 / 2).await;
    assert_eq!(report.as_deref(), Some("one: child a, failed"));
    wait_for_size(&maps, "a", "1").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_field_that_the_call_leaves_out_is_never_touched() -> TestResult {
    let mut fixture = HandlerFixture::new("left-out").await?;
    let handlers = kept_maps(&fixture, reconcile());
    let operator = fixture.start(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1", "note": "x"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    let maps = config_maps(&fixture).await?;
    maps.merge("a", json!({"data": {"replicas": "7"}})).await?;
    reported(&mut fixture, "one: child a").await;
    let patch = json!({"spec": {"maps": {"a": {"size": "2", "note": null}}}});
    fixture.objects.merge("one", patch).await?;
    wait_for_size(&maps, "a", "2").await?;
    let data = &maps.get("a").await?.data["data"];
    assert_eq!(
        *data,
        json!({"size": "2", "replicas": "7"}),
        "what we left out is gone"
    );
    operator.stop().await
}

#[tokio::test]
async fn a_condition_that_the_schema_lacks_is_written_once_at_most() -> TestResult {
    let mut fixture = HandlerFixture::new("no-conditions").await?;
    let schema = schema_without_conditions();
    fixture.sandbox.define_with("Widget", schema).await?;
    fixture.objects.create("probe", json!({"spec": {}})).await?;
    eventually("the schema prunes conditions", async || {
        let status = json!({"phase": "x", "conditions": []});
        let written = fixture.objects.merge_status("probe", status).await.ok()?;
        written.data["status"]["conditions"].is_null().then_some(())
    })
    .await?;
    fixture.objects.delete("probe").await?;
    let maps = config_maps(&fixture).await?;
    maps.create("a", json!({"data": {"size": "0"}})).await?;
    let handlers = kept_maps(&fixture, reconcile());
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    let status_writes = || {
        let requests = proxy.requests();
        let writes = requests.iter().filter(|it| it.uri.contains("/one/status"));
        writes.count()
    };
    for size in 2..=5 {
        let report = fixture.next_report().await;
        assert!(report.contains("does not own it"), "{report}");
        // The failure is recorded after the status was written.
        fixture
            .objects
            .wait_until("one", "the failure is recorded", |it| {
                let annotations = it.metadata.annotations.iter().flat_map(|it| it.values());
                let mut retries = annotations.filter(|it| it.contains("does not own it"));
                retries.any(|it| it.contains(&format!("\"retries\":{}", size - 1)))
            })
            .await?;
        let patch = json!({"spec": {"maps": {"a": {"size": size.to_string()}}}});
        fixture.objects.merge("one", patch).await?;
    }
    assert!(status_writes() <= 1, "{} writes", status_writes());
    operator.stop().await
}
