//! `19-children-reconcile`: a Website with a ConfigMap, a Service and a Deployment.

use kopf_tests::TestResult;
use kopf_tests::child_process::Ending;
use kube::ResourceExt as _;
use serde_json::json;

use crate::fixture::ExampleFixture;

#[tokio::test]
async fn a_website_owns_three_objects_and_uses_a_fourth() -> TestResult {
    let fixture = ExampleFixture::open("19-children-reconcile", "websites-operator").await?;
    let sandbox = &fixture.sandbox;
    let websites = sandbox.objects("kopf.dev/v1", "Website").await?;
    let pages = sandbox.objects("v1", "ConfigMap").await?;
    let services = sandbox.objects("v1", "Service").await?;
    let secrets = sandbox.objects("v1", "Secret").await?;
    let deployments = sandbox.objects("apps/v1", "Deployment").await?;
    let operator = fixture.start()?;

    fixture.apply_object().await?;
    let page = pages
        .wait_until("hello", "it has the page", |it| {
            it.data["data"]["index.html"] == "Hello, world!"
        })
        .await?;
    let site = websites
        .wait_until("hello", "it reports its readiness", |it| {
            it.data["status"]["conditions"][0]["type"] == "Ready"
        })
        .await?;
    assert_eq!(
        page.owner_references()[0].uid,
        site.uid().unwrap_or_default()
    );
    assert_eq!(page.labels()["team"], "web");
    services.wait_until("hello", "it exists", |_| true).await?;
    let password = |version: String| {
        move |it: &kube::api::DynamicObject| {
            let template = &it.data["spec"]["template"]["metadata"];
            template["annotations"]["password-version"] == *version
        }
    };
    deployments
        .wait_until("hello", "there is no password", password("missing".into()))
        .await?;

    // Objects that the Website uses.
    let secret = secrets
        .create("hello-password", json!({"stringData": {"password": "abc"}}))
        .await?;
    let version = secret.resource_version().unwrap_or_default();
    deployments
        .wait_until("hello", "it has the password", password(version))
        .await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn what_others_change_comes_back_and_what_is_not_applied_goes() -> TestResult {
    let fixture = ExampleFixture::open("19-children-reconcile", "websites-operator").await?;
    let sandbox = &fixture.sandbox;
    let websites = sandbox.objects("kopf.dev/v1", "Website").await?;
    let pages = sandbox.objects("v1", "ConfigMap").await?;
    let services = sandbox.objects("v1", "Service").await?;
    let deployments = sandbox.objects("apps/v1", "Deployment").await?;
    let operator = fixture.start()?;
    fixture.apply_object().await?;
    deployments
        .wait_until("hello", "it exists", |_| true)
        .await?;

    pages
        .merge("hello", json!({"data": {"index.html": "Bye!"}}))
        .await?;
    pages
        .wait_until("hello", "the page is repaired", |it| {
            it.data["data"]["index.html"] == "Hello, world!"
        })
        .await?;
    let first = services.wait_until("hello", "it exists", |_| true).await?;
    services.delete("hello").await?;
    services
        .wait_until("hello", "it is made again", |it| it.uid() != first.uid())
        .await?;
    // What `reconcile` leaves out belongs to others.
    deployments
        .merge("hello", json!({"spec": {"replicas": 2}}))
        .await?;
    websites
        .merge(
            "hello",
            json!({"spec": {"page": "Second", "exposed": false}}),
        )
        .await?;
    pages
        .wait_until("hello", "it has the new page", |it| {
            it.data["data"]["index.html"] == "Second"
        })
        .await?;
    services.wait_gone("hello").await?;
    deployments
        .wait_until("hello", "it keeps its replicas", |it| {
            it.data["spec"]["replicas"] == 2
        })
        .await?;

    websites.delete("hello").await?;
    pages.wait_gone("hello").await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
