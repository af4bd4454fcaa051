//! Secrets and credentials stay where they are: no log, annotation, event, metric or page has them.

use k8s_openapi::api::core::v1::Event;
use kopf_tests::health_client::HealthClient;
use kopf_tests::{TestFailure, TestResult};
use kube::api::{DynamicObject, ListParams};
use kube::config::Kubeconfig;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::page_fixture::{PageFixture, PageOperator};

/// In plain text, and its begin in base64, which does not depend on what follows.
const MARKS: [&str; 2] = ["xyzzy-marked-secret", "eHl6enktbWFya2VkLXNlY3Jl"];

/// What an operator shows or writes, each with the name of the place.
async fn places(
    fixture: &PageFixture,
    operator: &PageOperator,
) -> Result<Vec<(String, String)>, TestFailure> {
    let mut places = vec![("log".to_owned(), operator.process.log())];
    let health = HealthClient::of(&operator.process).await?;
    let metrics = health.get("/metrics").await?.body;
    assert!(metrics.contains("kopf"), "{metrics}");
    places.push(("metrics".to_owned(), metrics));
    for path in ["/api/objects", "/api/overview", "/api/calls"] {
        places.push((path.to_owned(), operator.get(path).await?.body));
    }
    let client = fixture.sandbox.client();
    let events: Api<Event> = Api::namespaced(client, fixture.sandbox.namespace());
    for event in events.list(&ListParams::default()).await? {
        places.push(("an event".to_owned(), serde_json::to_string(&event)?));
    }
    let secrets = fixture.sandbox.objects("v1", "Secret").await?;
    for object in [
        secrets.get("login").await?,
        fixture.widgets.get("one").await?,
    ] {
        places.push((object.name_any(), metadata(&object)?));
    }
    Ok(places)
}

fn metadata(object: &DynamicObject) -> Result<String, TestFailure> {
    let mut metadata = object.metadata.clone();
    metadata.managed_fields = None;
    Ok(serde_json::to_string(&metadata)?)
}

/// The private key in the kubeconfig of the operator, without the first line that all keys share.
fn key_of(kubeconfig: &std::path::Path) -> Result<String, TestFailure> {
    let config = serde_json::to_value(Kubeconfig::read_from(kubeconfig)?)?;
    let key = config["users"][0]["user"]["client-key-data"].as_str();
    let key = key.ok_or_else(|| TestFailure::new("the kubeconfig has no key"))?;
    assert!(key.len() > 100, "a key in base64");
    Ok(key[60..100].to_owned())
}

#[tokio::test]
async fn a_marked_secret_is_in_no_log_annotation_event_metric_or_page() -> TestResult {
    let fixture = PageFixture::open("marked").await?;
    let builder = fixture
        .prepare()?
        .args(["--debug", "--page", "http://127.0.0.1:0"])
        .args(["--liveness", "http://127.0.0.1:0/healthz"]);
    let operator = PageOperator::start(builder).await?;
    let secrets = fixture.sandbox.objects("v1", "Secret").await?;
    let with_value = |number: u32| json!({"stringData": {"key": format!("{}-{number}", MARKS[0])}});
    secrets.create("login", with_value(1)).await?;
    operator.until_object("login", "handled").await?;
    secrets.merge("login", with_value(2)).await?;
    let path = "/api/objects?search=login&state=handled";
    operator
        .until("the update is handled", path, |it| {
            it["objects"][0]["reason"] == "update"
        })
        .await?;
    fixture.create("one", "break").await?;
    operator.until_object("one", "failed").await?;
    let account = fixture.sandbox.administrator("operator");
    let key = key_of(&fixture.sandbox.control_plane().kubeconfig(&account)?)?;
    for (place, text) in places(&fixture, &operator).await? {
        for mark in MARKS.into_iter().chain([key.as_str()]) {
            assert!(!text.contains(mark), "{place} has {mark}: {text}");
        }
    }
    Ok(())
}
