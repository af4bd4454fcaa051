//! Other clients that make or delete the child between two requests about it.

use std::time::Duration;

use http::{Method, StatusCode};
use kopf_core::object::resource_version::OF_NO_OBJECT;
use kopf_runtime::OWNER_LABEL;
use kopf_tests::{Fault, Objects, RequestMatch, TestResult, eventually};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{config_maps, kept_maps, reconcile, reported, wait_for_size};
use crate::fixture::HandlerFixture;

/// The delay of a request, in which another client acts.
const DELAY: Duration = Duration::from_secs(1);

fn child_requests(method: Method) -> RequestMatch {
    RequestMatch::any().method(method).path("/configmaps/a")
}

/// Applies an object that must not exist.
async fn make(objects: &Objects, api_version: &str, kind: &str) -> Result<u16, kube::Error> {
    let body = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": "made", "resourceVersion": OF_NO_OBJECT, "labels": {"by": "us"}},
    });
    let params = PatchParams::apply("us").force();
    match objects
        .api()
        .patch("made", &params, &Patch::Apply(&body))
        .await
    {
        Ok(_) => Ok(201),
        Err(kube::Error::Api(status)) => Ok(status.code),
        Err(error) => Err(error),
    }
}

#[tokio::test]
async fn the_version_of_no_object_makes_objects_and_changes_none() -> TestResult {
    let fixture = HandlerFixture::new("no-object").await?;
    let maps = config_maps(&fixture).await?;
    let group = format!("{}/v1", fixture.sandbox.group());
    let kinds = [
        (&maps, "v1", "ConfigMap"),
        (&fixture.objects, group.as_str(), "Widget"),
    ];
    for (objects, api_version, kind) in kinds {
        assert_eq!(make(objects, api_version, kind).await?, 201, "{kind}");
        let made = objects.get("made").await?;
        assert_eq!(made.labels()["by"], "us");
        assert_eq!(make(objects, api_version, kind).await?, 409, "{kind}");
        objects.delete("made").await?;
        objects.wait_gone("made").await?;
        let theirs = objects.create("made", json!({})).await?;
        assert_eq!(make(objects, api_version, kind).await?, 409, "{kind}");
        let now = objects.get("made").await?;
        assert_eq!(now.resource_version(), theirs.resource_version());
    }
    Ok(())
}

#[tokio::test]
async fn an_object_that_another_client_makes_meanwhile_is_not_taken_over() -> TestResult {
    let mut fixture = HandlerFixture::new("made-meanwhile").await?;
    let maps = config_maps(&fixture).await?;
    let theirs = maps.create("a", json!({"data": {"size": "0"}})).await?;
    let handlers = kept_maps(&fixture, reconcile());
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    // As if it had been made after the operator asked for it.
    proxy.once(
        child_requests(Method::GET),
        Fault::Answer(StatusCode::NOT_FOUND),
    );
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    let namespace = fixture.sandbox.namespace().to_owned();
    let message =
        format!("error: the ConfigMap {namespace}/a exists, and this object does not own it");
    assert_eq!(fixture.next_report().await, message);
    let now = maps.get("a").await?;
    assert_eq!(now.resource_version(), theirs.resource_version());
    operator.stop().await
}

#[tokio::test]
async fn a_child_that_another_client_deletes_meanwhile_is_made_anew_in_the_same_call() -> TestResult
{
    let mut fixture = HandlerFixture::new("deleted-meanwhile").await?;
    let maps = config_maps(&fixture).await?;
    let handlers = kept_maps(&fixture, reconcile());
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    let owner = fixture.objects.create("one", json!({"spec": {}})).await?;
    reported(&mut fixture, "one: created").await;
    // It is ours by its owner, and the watch does not know it.
    let reference = json!({
        "apiVersion": format!("{}/v1", fixture.sandbox.group()), "kind": "Widget",
        "name": "one", "uid": owner.uid(),
    });
    let child = json!({"metadata": {"ownerReferences": [reference]}, "data": {"size": "0"}});
    let deleted = maps.create("a", child).await?;
    proxy.always(child_requests(Method::PATCH), Fault::Delay(DELAY));
    let patch = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.merge("one", patch).await?;
    eventually("the operator has asked whose it is", async || {
        let requests = proxy.requests();
        let mut requests = requests.iter();
        let asked = |uri: &str| uri.contains("/configmaps/a");
        let found = requests.any(|it| it.method == Method::GET && asked(&it.uri));
        found.then_some(())
    })
    .await?;
    maps.delete("a").await?;
    assert_eq!(fixture.next_report().await, "one: changed");
    wait_for_size(&maps, "a", "1").await?;
    let made = maps.get("a").await?;
    assert_ne!(made.uid(), deleted.uid());
    assert_eq!(made.labels().get(OWNER_LABEL), owner.uid().as_ref());
    operator.stop().await
}

#[tokio::test]
async fn a_child_that_cannot_be_applied_or_read_for_a_while_is_deleted_when_it_is_not_wanted()
-> TestResult {
    let mut fixture = HandlerFixture::new("unread").await?;
    let maps = config_maps(&fixture).await?;
    let handlers = kept_maps(&fixture, reconcile());
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    let body = json!({"spec": {"maps": {"a": {"size": "1"}}}});
    fixture.objects.create("one", body).await?;
    reported(&mut fixture, "one: created").await;
    // As after a conflict with a write that is executed at once with ours.
    proxy.always(
        child_requests(Method::PATCH),
        Fault::Answer(StatusCode::CONFLICT),
    );
    proxy.always(
        child_requests(Method::GET),
        Fault::Answer(StatusCode::INTERNAL_SERVER_ERROR),
    );
    let patch = json!({"spec": {"maps": {"a": {"size": "2"}}}});
    fixture.objects.merge("one", patch).await?;
    let report = fixture.next_report().await;
    assert!(report.starts_with("error: "), "{report}");
    proxy.clear_faults();
    let patch = json!({"spec": {"maps": {"a": null}}});
    fixture.objects.merge("one", patch).await?;
    maps.wait_gone("a").await?;
    operator.stop().await
}
