//! The objects that tell the API server about the webhooks: they come, are mended, and go.

use std::time::Duration;

use kopf_runtime::admission::{Published, Server, Webhooks};
use kopf_runtime::{TextTest, WebhookHandler};
use kopf_tests::sandbox::eventually;
use kopf_tests::{Sandbox, TestFailure, TestResult};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::hall::{Hall, refusal};

const VALIDATING: &str = "ValidatingWebhookConfiguration";
const MUTATING: &str = "MutatingWebhookConfiguration";

#[tokio::test]
async fn webhooks_come_and_go_with_the_operator() -> TestResult {
    let hall = Hall::new("come-and-go").await?;
    let operator = hall
        .open(hall.checked(WebhookHandler::new("check")), hall.local())
        .await?;
    let made = hall.configuration(VALIDATING).await?.expect("it is there");
    let namespaces = &made.data["webhooks"][0]["namespaceSelector"];
    assert_eq!(
        *namespaces,
        json!({"matchExpressions": [{
            "key": "kubernetes.io/metadata.name", "operator": "In",
            "values": [hall.sandbox.namespace()],
        }]})
    );
    assert!(
        hall.configuration(MUTATING).await?.is_none(),
        "nothing mutates"
    );
    operator.stop().await?;
    assert!(hall.configuration(VALIDATING).await?.is_none());
    hall.unasked().await
}

#[tokio::test]
async fn persistent_webhooks_stay_and_their_failure_policy_decides() -> TestResult {
    let hall = Hall::new("persistent").await?;
    let strict = TextTest::Equals("yes".to_owned());
    let resource = hall
        .checked(WebhookHandler::new("check"))
        .validate(
            WebhookHandler::new("strict")
                .label("strict", strict)
                .persistent(),
            |gate, cx| Box::pin(gate.check(cx)),
        )
        .validate(
            WebhookHandler::new("tolerant")
                .persistent()
                .ignore_failures(),
            |gate, cx| Box::pin(gate.check(cx)),
        );
    let operator = hall.open(resource, hall.local()).await?;
    // A tolerant webhook lets a failure pass with a warning, but not a denial.
    let denied = refusal(hall.dry_run("no", json!({"spec": {"deny": "no"}})).await);
    assert_eq!(denied.code, 403);
    operator.stop().await?;
    let left = hall.configuration(VALIDATING).await?.expect("some stay");
    let names: Vec<_> = left.data["webhooks"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|webhook| webhook["name"].as_str().unwrap_or_default().to_owned())
        .collect();
    let name = hall.name();
    assert_eq!(
        names,
        [format!("strict.{name}"), format!("tolerant.{name}")]
    );

    eventually("what is not strict passes", async || {
        hall.dry_run("free", json!({"spec": {}})).await.ok()
    })
    .await?;
    let body = json!({"metadata": {"labels": {"strict": "yes"}}, "spec": {}});
    let status = refusal(hall.widgets.create("bound", body).await);
    assert_eq!(status.code, 500);
    assert!(
        status.message.contains("failed calling webhook"),
        "{status:?}"
    );
    Ok(())
}

#[tokio::test]
async fn after_a_crash_the_next_start_repairs_what_was_left() -> TestResult {
    let hall = Hall::new("crash").await?;
    let handler = || WebhookHandler::new("check");
    let operator = hall.open(hall.checked(handler()), hall.local()).await?;
    operator.kill().await;
    eventually("nobody answers", async || {
        hall.dry_run("lost", json!({"spec": {}})).await.err()
    })
    .await?;
    let operator = hall.open(hall.checked(handler()), hall.local()).await?;
    hall.widgets.create("one", json!({"spec": {}})).await?;
    operator.stop().await?;
    let left = hall
        .configuration(VALIDATING)
        .await?
        .expect("it was there before");
    assert_eq!(left.data["webhooks"].as_array().map_or(0, Vec::len), 0);
    hall.unasked().await
}

#[tokio::test]
async fn what_somebody_else_changes_is_mended() -> TestResult {
    let hall = Hall::new("mended").await?;
    let webhooks = hall.local().resync(Duration::from_millis(200));
    let operator = hall
        .open(hall.checked(WebhookHandler::new("check")), webhooks)
        .await?;
    let objects = hall
        .sandbox
        .objects("admissionregistration.k8s.io/v1", VALIDATING)
        .await?;
    let before = objects.get(&hall.name()).await?;
    let none = Patch::Merge(json!({"webhooks": []}));
    objects
        .api()
        .patch(&hall.name(), &PatchParams::default(), &none)
        .await?;
    objects
        .wait_until(&hall.name(), "it is as before", |it| {
            it.data["webhooks"] == before.data["webhooks"]
        })
        .await?;
    objects.delete(&hall.name()).await?;
    objects
        .wait_until(&hall.name(), "it is made anew", |it| {
            it.data["webhooks"] == before.data["webhooks"] && it.uid() != before.uid()
        })
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn an_operator_that_may_not_configure_its_webhooks_says_so() -> TestResult {
    let hall = Hall::new("forbidden").await?;
    let nobody = hall.sandbox.user("nobody");
    let client = hall.sandbox.control_plane().client(&nobody).await?;
    let operator = hall.start_as(
        hall.checked(WebhookHandler::new("check")),
        hall.local(),
        client,
    );
    let error = operator.error().await;
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    assert!(text.contains("webhooks cannot be made known"), "{text}");
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
        .published(Published::Service {
            namespace,
            name: name.to_owned(),
            port,
        })
        .listen(std::net::Ipv4Addr::LOCALHOST.into())
        .port(listen)
        .linger(Duration::ZERO)
        .check_every(Duration::from_millis(200))
}

/// A port that nobody uses at the moment.
pub(super) fn free_port() -> std::io::Result<u16> {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

#[tokio::test]
async fn only_the_last_replica_takes_the_webhooks_away() -> TestResult {
    let hall = Hall::new("replicas").await?;
    let port = free_port()?;
    let place = service(port).await?;
    let webhooks = |listen| {
        Webhooks::default()
            .managed(hall.name())
            .server(behind(&place, listen, port))
            .resync(Duration::from_millis(300))
    };
    let resource = || hall.checked(WebhookHandler::new("check"));
    let first = hall.open(resource(), webhooks(port)).await?;
    let second = hall.start(resource(), webhooks(0));
    let objects = hall
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
        .wait_until(&hall.name(), "both are there", replicas(2))
        .await?;
    second.stop().await?;
    let left = objects.get(&hall.name()).await?;
    assert!(replicas(1)(&left), "{:?}", left.annotations());
    hall.asked().await?;

    // One that is killed gives no sign of life any more.
    let killed = hall.start(resource(), webhooks(0));
    objects
        .wait_until(&hall.name(), "both are there", replicas(2))
        .await?;
    killed.kill().await;
    objects
        .wait_until(&hall.name(), "it is forgotten", replicas(1))
        .await?;
    first.stop().await?;
    assert!(hall.configuration(VALIDATING).await?.is_none());
    hall.unasked().await
}
