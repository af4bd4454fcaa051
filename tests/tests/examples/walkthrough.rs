//! `20-walkthrough`: a claim is created, resized, relabelled and deleted with its owner.

use kopf_tests::TestResult;
use kopf_tests::child_process::Ending;
use kube::ResourceExt as _;
use serde_json::json;

use crate::fixture::{ExampleFixture, is_handled};

/// The storage class of the example, which allows expansion.
const STORAGE_CLASS: &str = "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard}
provisioner: kopf.test/none
allowVolumeExpansion: true
";

#[tokio::test]
async fn a_claim_is_created_resized_relabelled_and_deleted_with_its_owner() -> TestResult {
    let fixture = ExampleFixture::open("20-walkthrough", "evc-operator").await?;
    fixture.sandbox.apply(STORAGE_CLASS).await?;
    let evcs = fixture
        .sandbox
        .objects("kopf.dev/v1", "EphemeralVolumeClaim")
        .await?;
    let pvcs = fixture
        .sandbox
        .objects("v1", "PersistentVolumeClaim")
        .await?;
    let operator = fixture.start()?;

    fixture.apply_object().await?;
    let evc = evcs
        .wait_until("my-claim", "it is handled", is_handled)
        .await?;
    assert_eq!(evc.data["status"]["create_fn"]["pvc-name"], "my-claim");
    let pvc = pvcs.get("my-claim").await?;
    assert_eq!(pvc.data["spec"]["resources"]["requests"]["storage"], "1G");
    assert_eq!(pvc.labels()["application"], "some-app");

    // Only a bound claim can grow, and no controller here binds it.
    pvcs.merge_status("my-claim", json!({"phase": "Bound"}))
        .await?;
    pvcs.merge("my-claim", json!({"metadata": {"labels": {"own": "kept"}}}))
        .await?;
    evcs.merge("my-claim", json!({"spec": {"size": "2G"}}))
        .await?;
    pvcs.wait_until("my-claim", "it has grown", |it| {
        it.data["spec"]["resources"]["requests"]["storage"] == "2G"
    })
    .await?;

    let labels = json!({"application": "other-app", "owner": "me"});
    evcs.merge("my-claim", json!({"metadata": {"labels": labels}}))
        .await?;
    pvcs.wait_until(
        "my-claim",
        "it has the labels of its owner and its own",
        |it| {
            json!(it.labels()) == json!({"application": "other-app", "owner": "me", "own": "kept"})
        },
    )
    .await?;
    evcs.merge(
        "my-claim",
        json!({"metadata": {"labels": {"application": null}}}),
    )
    .await?;
    pvcs.wait_until("my-claim", "it has lost a label with its owner", |it| {
        json!(it.labels()) == json!({"owner": "me", "own": "kept"})
    })
    .await?;
    evcs.merge("my-claim", json!({"metadata": {"labels": null}}))
        .await?;
    pvcs.wait_until("my-claim", "it has no labels but its own", |it| {
        json!(it.labels()) == json!({"own": "kept"})
    })
    .await?;

    evcs.delete("my-claim").await?;
    evcs.wait_gone("my-claim").await?;
    pvcs.wait_until("my-claim", "it is being deleted", |it| {
        it.metadata.deletion_timestamp.is_some()
    })
    .await?;
    // The controller that sees that no Pod uses the claim does not run here.
    pvcs.merge("my-claim", json!({"metadata": {"finalizers": null}}))
        .await?;
    pvcs.wait_gone("my-claim").await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
