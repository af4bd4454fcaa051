//! Webhook configurations: created, kept up to date, and removed by the operator.

use std::time::Duration;

use kopf_runtime::admission::{AdvertisedAddress, Server, Webhooks};
use kopf_runtime::{TextTest, WebhookHandler};
use kopf_tests::sandbox::eventually;
use kopf_tests::{Sandbox, TestFailure, TestResult};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::fixture::{WebhookFixture, rejection};

const VALIDATING: &str = "ValidatingWebhookConfiguration";
const MUTATING: &str = "MutatingWebhookConfiguration";

#[tokio::test]
async fn the_webhook_configuration_exists_while_the_operator_runs() -> TestResult {
    let fixture = WebhookFixture::new("come-and-go").await?;
    let operator = fixture
        .start_and_wait(
            fixture.with_check(WebhookHandler::new("check")),
            fixture.local_server(),
        )
        .await?;
    let made = fixture
        .configuration(VALIDATING)
        .await?
        .expect("it is there");
    let namespaces = &made.data["webhooks"][0]["namespaceSelector"];
    assert_eq!(
        *namespaces,
        json!({"matchExpressions": [{
            "key": "kubernetes.io/metadata.name", "operator": "In",
            "values": [fixture.sandbox.namespace()],
        }]})
    );
    assert!(
        fixture.configuration(MUTATING).await?.is_none(),
        "there is no mutating webhook"
    );
    operator.stop().await?;
    assert!(fixture.configuration(VALIDATING).await?.is_none());
    fixture.wait_until_not_called().await
}

#[tokio::test]
async fn persistent_webhooks_stay_configured_and_their_failure_policy_applies() -> TestResult {
    let fixture = WebhookFixture::new("persistent").await?;
    let strict = TextTest::Equals("yes".to_owned());
    let resource = fixture
        .with_check(WebhookHandler::new("check"))
        .validate(
            WebhookHandler::new("strict")
                .label("strict", strict)
                .persistent(),
            |recorder, cx| Box::pin(recorder.check(cx)),
        )
        .validate(
            WebhookHandler::new("tolerant")
                .persistent()
                .ignore_failures(),
            |recorder, cx| Box::pin(recorder.check(cx)),
        );
    let operator = fixture
        .start_and_wait(resource, fixture.local_server())
        .await?;
    // `failurePolicy: Ignore` does not ignore a denial.
    let denied = rejection(fixture.dry_run("no", json!({"spec": {"deny": "no"}})).await);
    assert_eq!(denied.code, 403);
    operator.stop().await?;
    let left = fixture
        .configuration(VALIDATING)
        .await?
        .expect("the persistent ones stay");
    let names: Vec<_> = left.data["webhooks"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|webhook| webhook["name"].as_str().unwrap_or_default().to_owned())
        .collect();
    let name = fixture.configuration_name();
    assert_eq!(
        names,
        [format!("strict.{name}"), format!("tolerant.{name}")]
    );

    eventually("objects without the label pass", async || {
        fixture.dry_run("free", json!({"spec": {}})).await.ok()
    })
    .await?;
    let body = json!({"metadata": {"labels": {"strict": "yes"}}, "spec": {}});
    let status = rejection(fixture.widgets.create("bound", body).await);
    assert_eq!(status.code, 500);
    assert!(
        status.message.contains("failed calling webhook"),
        "{status:?}"
    );
    Ok(())
}

#[tokio::test]
async fn after_a_crash_the_next_start_updates_the_webhook_configuration() -> TestResult {
    let fixture = WebhookFixture::new("crash").await?;
    let handler = || WebhookHandler::new("check");
    let operator = fixture
        .start_and_wait(fixture.with_check(handler()), fixture.local_server())
        .await?;
    operator.kill().await;
    eventually("the webhook does not answer", async || {
        fixture.dry_run("lost", json!({"spec": {}})).await.err()
    })
    .await?;
    let operator = fixture
        .start_and_wait(fixture.with_check(handler()), fixture.local_server())
        .await?;
    fixture.widgets.create("one", json!({"spec": {}})).await?;
    operator.stop().await?;
    let left = fixture
        .configuration(VALIDATING)
        .await?
        .expect("it was there before");
    assert_eq!(left.data["webhooks"].as_array().map_or(0, Vec::len), 0);
    fixture.wait_until_not_called().await
}

#[tokio::test]
async fn changes_of_the_webhook_configuration_by_others_are_reverted() -> TestResult {
    let fixture = WebhookFixture::new("mended").await?;
    let webhooks = fixture.local_server().resync(Duration::from_millis(200));
    let operator = fixture
        .start_and_wait(fixture.with_check(WebhookHandler::new("check")), webhooks)
        .await?;
    let objects = fixture
        .sandbox
        .objects("admissionregistration.k8s.io/v1", VALIDATING)
        .await?;
    let before = objects.get(&fixture.configuration_name()).await?;
    let none = Patch::Merge(json!({"webhooks": []}));
    objects
        .api()
        .patch(
            &fixture.configuration_name(),
            &PatchParams::default(),
            &none,
        )
        .await?;
    objects
        .wait_until(&fixture.configuration_name(), "it is as before", |it| {
            it.data["webhooks"] == before.data["webhooks"]
        })
        .await?;
    objects.delete(&fixture.configuration_name()).await?;
    objects
        .wait_until(&fixture.configuration_name(), "it is created again", |it| {
            it.data["webhooks"] == before.data["webhooks"] && it.uid() != before.uid()
        })
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn an_operator_without_permission_to_configure_webhooks_ends_with_an_error() -> TestResult {
    let fixture = WebhookFixture::new("forbidden").await?;
    let user = fixture.sandbox.user("unprivileged");
    let client = fixture.sandbox.control_plane().client(&user).await?;
    let operator = fixture.start_as(
        fixture.with_check(WebhookHandler::new("check")),
        fixture.local_server(),
        client,
    );
    let error = operator.error().await;
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    assert!(
        text.contains("webhooks cannot be configured in the cluster"),
        "{text}"
    );
    assert!(
        text.contains("cannot read the MutatingWebhookConfiguration"),
        "{text}"
    );
    assert!(text.contains("forbidden"), "{text}");
    Ok(())
}

/// A Service that leads to a port of this machine, in a namespace of its own.
pub(super) async fn service(port: u16) -> Result<Sandbox, TestFailure> {
    let sandbox = Sandbox::open("service").await?;
    let service = format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: hooks}}, \
         spec: {{type: ExternalName, externalName: localhost, ports: [{{port: {port}}}]}}}}"
    );
    sandbox.apply(&service).await?;
    Ok(sandbox)
}

/// A server behind that Service.
pub(super) fn behind(sandbox: &Sandbox, listen: u16, port: u16) -> Server {
    behind_service(sandbox, "hooks", listen, port)
}

/// A server behind a Service, with a Secret of the same name.
pub(super) fn behind_service(sandbox: &Sandbox, name: &str, listen: u16, port: u16) -> Server {
    let namespace = sandbox.namespace().to_owned();
    Server::behind_service(&namespace, name, name)
        .advertised(AdvertisedAddress::Service {
            namespace,
            name: name.to_owned(),
            port,
        })
        .listen(std::net::Ipv4Addr::LOCALHOST.into())
        .port(listen)
        .linger(Duration::ZERO)
        .check_every(Duration::from_millis(200))
}

/// A port that is free now.
pub(super) fn free_port() -> std::io::Result<u16> {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

#[tokio::test]
async fn only_the_last_replica_removes_the_webhook_configuration() -> TestResult {
    let fixture = WebhookFixture::new("replicas").await?;
    let port = free_port()?;
    let service_sandbox = service(port).await?;
    let webhooks = |listen| {
        Webhooks::default()
            .managed(fixture.configuration_name())
            .server(behind(&service_sandbox, listen, port))
            .resync(Duration::from_millis(300))
    };
    let resource = || fixture.with_check(WebhookHandler::new("check"));
    let first = fixture.start_and_wait(resource(), webhooks(port)).await?;
    let second = fixture.start(resource(), webhooks(0));
    let objects = fixture
        .sandbox
        .objects("admissionregistration.k8s.io/v1", VALIDATING)
        .await?;
    let replicas = |count: usize| {
        move |it: &kube::api::DynamicObject| {
            let keys = it.annotations().keys();
            keys.filter(|key| key.starts_with("replicas.kopf-gen.dev/"))
                .count()
                == count
        }
    };
    objects
        .wait_until(&fixture.configuration_name(), "both are there", replicas(2))
        .await?;
    second.stop().await?;
    let left = objects.get(&fixture.configuration_name()).await?;
    assert!(replicas(1)(&left), "{:?}", left.annotations());
    fixture.wait_until_called().await?;

    // A killed replica does not renew its annotation.
    let killed = fixture.start(resource(), webhooks(0));
    objects
        .wait_until(&fixture.configuration_name(), "both are there", replicas(2))
        .await?;
    killed.kill().await;
    objects
        .wait_until(
            &fixture.configuration_name(),
            "its annotation is removed",
            replicas(1),
        )
        .await?;
    first.stop().await?;
    assert!(fixture.configuration(VALIDATING).await?.is_none());
    fixture.wait_until_not_called().await
}
