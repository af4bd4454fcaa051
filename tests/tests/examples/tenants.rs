//! `23-tenants`, `24-nats` and `27-tenants-reconcile`: the steps of one operator wait for each other, and
//! for the other operator.

use kopf_tests::child_process::Ending;
use kopf_tests::{Objects, TestResult, workspace};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;

use crate::fixture::{EXAMPLE, ExampleFixture, is_handled, lines_with};

/// Plays the controller of Deployments, which does not run here: the server of an object is ready.
async fn make_ready(deployments: &Objects, name: &str) -> TestResult {
    let made = deployments
        .wait_until(name, "the server is ordered", |_| true)
        .await?;
    let status = json!({
        "observedGeneration": made.metadata.generation,
        "replicas": 1,
        "updatedReplicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
    });
    deployments.merge_status(name, status).await?;
    Ok(())
}

#[test]
fn all_operators_have_the_same_definition_of_the_kind_between_them() -> TestResult {
    let text = |folder: &str| {
        let file = format!("examples/{folder}/natsexamples.yaml");
        std::fs::read_to_string(workspace::root().join(file))
    };
    let served = text("24-nats/crds")?;
    assert_eq!(text("23-tenants/crds")?, served);
    assert_eq!(text("27-tenants-reconcile/nats")?, served);
    Ok(())
}

#[tokio::test]
async fn the_steps_of_two_operators_follow_each_other_across_restarts() -> TestResult {
    let tenants = ExampleFixture::open("23-tenants", "tenant-operator").await?;
    let nats = ExampleFixture::open("24-nats", "nats-operator").await?;
    let examples = tenants.kopf_examples().await?;
    let between = tenants
        .sandbox
        .objects("kopf.dev/v1", "NatsExample")
        .await?;

    let first = tenants.start()?;
    tenants.apply_object().await?;
    first.wait_for_log("step 3 waits for nats").await?;
    let waits = |count: u64| {
        move |tenant: &DynamicObject| {
            let annotations = tenant.metadata.annotations.iter().flatten();
            annotations
                .filter(|(key, _)| *key == "kopf.zalando.org/connect")
                .filter_map(|(_, record)| serde_json::from_str::<serde_json::Value>(record).ok())
                .any(|record| record["retries"].as_u64() >= Some(count))
        }
    };
    let waiting = examples
        .wait_until(EXAMPLE, "step 3 is recorded", waits(1))
        .await?;
    assert_eq!(
        waiting.data["status"]["create_blob_storage"]["name"],
        "blob-of-kopf-example-1"
    );
    let object = between.get(EXAMPLE).await?;
    assert_eq!(object.data["spec"]["blob"], "blob-of-kopf-example-1");
    first.kill().await?;
    let steps = [
        "step 1:",
        "step 2:",
        "step 3:",
        "blob-of-kopf-example-1 is created",
    ];
    let taken = [
        "step 1: upload blob!",
        "blob-of-kopf-example-1 is created",
        "step 2: creating nats!",
    ];
    assert_eq!(lines_with(&first, &steps), taken);

    let second = tenants.start()?;
    second.wait_for_log("step 3 waits for nats").await?;
    let namespace = tenants.sandbox.namespace();
    let other = nats.start_with(&["--namespace", namespace], &[])?;
    let deployments = tenants.sandbox.objects("apps/v1", "Deployment").await?;
    make_ready(&deployments, EXAMPLE).await?;
    let tenant = examples
        .wait_until(EXAMPLE, "all steps are done", is_handled)
        .await?;
    let url = format!("nats://{EXAMPLE}.{namespace}:4222");
    assert_eq!(tenant.data["status"]["connect"]["nats"], url);
    assert_eq!(lines_with(&second, &steps), ["step 3: do something else!"]);

    examples.delete(EXAMPLE).await?;
    examples.wait_gone(EXAMPLE).await?;
    between.wait_gone(EXAMPLE).await?;
    for (api_version, kind) in [("apps/v1", "Deployment"), ("v1", "Service")] {
        let children = tenants.sandbox.objects(api_version, kind).await?;
        children.wait_gone(EXAMPLE).await?;
    }
    assert_eq!(second.terminate().await?, Ending::Exit(0));
    assert_eq!(other.terminate().await?, Ending::Exit(0));
    Ok(())
}

/// Whether the condition `Ready` has this status.
fn is_ready(status: &'static str) -> impl Fn(&DynamicObject) -> bool {
    move |it| {
        let conditions = it.data["status"]["conditions"].as_array();
        conditions
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == status)
    }
}

#[tokio::test]
async fn a_tenant_that_reconciles_follows_the_server_of_the_other_operator() -> TestResult {
    const TENANT: &str = "tenant-1";
    let nats = ExampleFixture::open("24-nats", "nats-operator").await?;
    let tenants =
        ExampleFixture::open("27-tenants-reconcile", "reconciled-tenant-operator").await?;
    let namespace = tenants.sandbox.namespace();
    let objects = tenants.sandbox.objects("kopf.dev/v1", "Tenant").await?;
    let between = tenants
        .sandbox
        .objects("kopf.dev/v1", "NatsExample")
        .await?;
    let deployments = tenants.sandbox.objects("apps/v1", "Deployment").await?;

    let first = tenants.start()?;
    tenants.apply_object().await?;
    objects
        .wait_until(TENANT, "it waits for nats", is_ready("False"))
        .await?;
    let ordered = between.get(TENANT).await?;
    assert_eq!(ordered.data["spec"]["blob"], "blob-of-tenant-1");
    first.kill().await?;

    let second = tenants.start()?;
    let other = nats.start_with(&["--namespace", namespace], &[])?;
    make_ready(&deployments, TENANT).await?;
    let tenant = objects
        .wait_until(TENANT, "nats is ready", is_ready("True"))
        .await?;
    let url = format!("nats://{TENANT}.{namespace}:4222");
    assert_eq!(tenant.data["status"]["nats"], url);
    assert_eq!(lines_with(&second, &["step 1"]), [""; 0], "no second blob");

    // What others delete comes back, on both levels.
    let server = deployments.get(TENANT).await?;
    deployments.delete(TENANT).await?;
    deployments
        .wait_until(TENANT, "it is made again", |it| it.uid() != server.uid())
        .await?;
    between.delete(TENANT).await?;
    between
        .wait_until(TENANT, "it is ordered again", |it| {
            it.uid() != ordered.uid()
        })
        .await?;

    objects.delete(TENANT).await?;
    objects.wait_gone(TENANT).await?;
    between.wait_gone(TENANT).await?;
    deployments.wait_gone(TENANT).await?;
    assert_eq!(second.terminate().await?, Ending::Exit(0));
    assert_eq!(other.terminate().await?, Ending::Exit(0));
    Ok(())
}
