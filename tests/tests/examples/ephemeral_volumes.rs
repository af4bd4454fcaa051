//! `25-ephemeral-volumes`: a claim waits for its Pods, is used, and is deleted after them.

use kopf_tests::child_process::Ending;
use kopf_tests::{Objects, TestResult, eventually};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::fixture::ExampleFixture;

/// A claim for the Pods of one job.
fn claim(job: &str, safe: u32, expiry: u32, grace: u32) -> Value {
    json!({
        "metadata": {"labels": {"application": "data-crunching"}},
        "spec": {
            "selector": {"job-name": job},
            "size": "1Gi",
            "safeSeconds": safe,
            "expirySeconds": expiry,
            "graceSeconds": grace,
        },
    })
}

fn is_in(state: &'static str) -> impl Fn(&DynamicObject) -> bool {
    move |claim| claim.data["status"]["state"] == state
}

/// Creates a Pod of a job; no kubelet runs it.
async fn start_pod(pods: &Objects, name: &str, job: &str) -> TestResult {
    let container = json!({"name": "main", "image": "busybox"});
    let spec = json!({"containers": [container], "restartPolicy": "Never"});
    let body = json!({"metadata": {"labels": {"job-name": job}}, "spec": spec});
    pods.create(name, body).await?;
    pods.merge_status(name, json!({"phase": "Running"})).await?;
    Ok(())
}

/// Waits until Kubernetes has deleted a PersistentVolumeClaim, or waits only for what protects it: the
/// controller that sees that no Pod uses it does not run here.
async fn wait_deleted(pvcs: &Objects, name: &str) -> TestResult {
    eventually(
        &format!("the volume claim {name} is deleted"),
        async || match pvcs.api().get_opt(name).await.ok()? {
            Some(pvc) => pvc.metadata.deletion_timestamp.map(drop),
            None => Some(()),
        },
    )
    .await
}

#[tokio::test]
async fn a_claim_lives_as_long_as_its_pods_need_it() -> TestResult {
    let fixture = ExampleFixture::open("25-ephemeral-volumes", "ephemeral-volume-operator").await?;
    let sandbox = &fixture.sandbox;
    let claims = sandbox
        .objects("volumes.kopf.dev/v1", "EphemeralVolumeClaim")
        .await?;
    let pvcs = sandbox.objects("v1", "PersistentVolumeClaim").await?;
    let pods = sandbox.objects("v1", "Pod").await?;
    let operator = fixture.start()?;

    fixture.apply_object().await?;
    claims
        .create("never-used", claim("absent", 0, 1, 0))
        .await?;
    claims.create("used", claim("crunch", 0, 3600, 1)).await?;
    claims.create("safe", claim("quick", 3600, 3600, 0)).await?;
    start_pod(&pods, "crunch-1", "crunch").await?;
    start_pod(&pods, "quick-1", "quick").await?;

    claims.wait_gone("never-used").await?;
    operator.wait_for_log("no Pod has used the claim").await?;
    wait_deleted(&pvcs, "never-used").await?;

    for name in ["used", "safe", "workspace"] {
        claims
            .wait_until(name, "a Pod uses it", is_in("Used"))
            .await?;
    }
    let pvc = pvcs.get("workspace").await?;
    assert_eq!(pvc.data["spec"]["storageClassName"], "standard");
    assert_eq!(
        pvc.data["spec"]["resources"]["requests"]["storage"],
        "500Gi"
    );
    assert_eq!(pvc.labels()["application"], "data-crunching");

    for name in ["crunch-1", "quick-1"] {
        pods.merge_status(name, json!({"phase": "Succeeded"}))
            .await?;
    }
    claims.wait_gone("used").await?;
    operator
        .wait_for_log("all Pods of the claim have ended")
        .await?;
    wait_deleted(&pvcs, "used").await?;
    let safe = claims
        .wait_until("safe", "its Pod has ended", is_in("Unused"))
        .await?;
    assert_eq!(
        safe.metadata.deletion_timestamp, None,
        "the safe time lasts"
    );
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn a_claim_grows_is_relabelled_and_refuses_wrong_sizes() -> TestResult {
    let fixture = ExampleFixture::open("25-ephemeral-volumes", "ephemeral-volume-operator").await?;
    let sandbox = &fixture.sandbox;
    let claims = sandbox
        .objects("volumes.kopf.dev/v1", "EphemeralVolumeClaim")
        .await?;
    let pvcs = sandbox.objects("v1", "PersistentVolumeClaim").await?;
    let class = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: growing}\n\
        provisioner: kopf.test/none\nallowVolumeExpansion: true\n";
    sandbox.apply_shared(class).await?;
    let operator = fixture.start()?;
    let mut body = claim("later", 0, 3600, 0);
    body["spec"]["template"] = json!({"storageClassName": "growing"});
    claims.create("one", body).await?;
    pvcs.wait_until("one", "it exists", |_| true).await?;

    for size in ["much", "0", "-1Gi"] {
        let refused = claims.merge("one", json!({"spec": {"size": size}})).await;
        let message = refused.expect_err(size).to_string();
        assert!(
            message.contains("must be a quantity of storage"),
            "{message}"
        );
    }
    let refused = claims.merge("one", json!({"spec": {"size": "1Mi"}})).await;
    let message = refused.expect_err("less").to_string();
    assert!(message.contains("a claim cannot shrink"), "{message}");

    // Only a bound claim can grow, and no controller here binds it.
    pvcs.merge_status("one", json!({"phase": "Bound"})).await?;
    claims
        .merge("one", json!({"spec": {"size": "2Gi"}}))
        .await?;
    pvcs.wait_until("one", "it has grown", |it| {
        it.data["spec"]["resources"]["requests"]["storage"] == "2Gi"
    })
    .await?;
    let labels = json!({"application": null, "owner": "me"});
    claims
        .merge("one", json!({"metadata": {"labels": labels}}))
        .await?;
    pvcs.wait_until("one", "it has the labels of its owner", |it| {
        it.labels().get("owner").is_some_and(|it| it == "me")
            && !it.labels().contains_key("application")
    })
    .await?;

    claims.delete("one").await?;
    claims.wait_gone("one").await?;
    wait_deleted(&pvcs, "one").await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
