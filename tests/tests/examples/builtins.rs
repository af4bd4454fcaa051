//! `10-builtins`: Pods are deleted after a while, except in `kube-system`.

use k8s_openapi::api::core::v1::Pod;
use kopf_tests::child_process::Ending;
use kopf_tests::{TestResult, eventually};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::fixture::{ExampleFixture, count};

#[tokio::test]
async fn pods_are_deleted_after_a_while_except_in_kube_system() -> TestResult {
    let fixture = ExampleFixture::open("10-builtins", "builtins-operator").await?;
    let spec = json!({"containers": [{"name": "the-only-one", "image": "busybox"}]});
    let system: Api<Pod> = Api::namespaced(fixture.sandbox.client(), "kube-system");
    let metadata = json!({"name": fixture.sandbox.namespace()});
    let protected: Pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec}))?;
    let protected = system.create(&PostParams::default(), &protected).await?;
    let pods = fixture.sandbox.objects("v1", "Pod").await?;
    pods.create("before", json!({"spec": spec})).await?;

    let start = || {
        fixture.start_with(
            &["--namespace", "kube-system"],
            &[("POD_LIFE_SECONDS", "3")],
        )
    };
    let operator = start()?;
    operator.wait_for_log("Pod killing happens in 3s.").await?;
    assert_eq!(operator.kill().await?, Ending::Signal(9));
    assert!(
        pods.get("before")
            .await?
            .metadata
            .deletion_timestamp
            .is_none()
    );

    let operator = start()?;
    fixture.apply_object().await?;
    pods.wait_gone("before").await?;
    pods.wait_gone("kopf-pod-1").await?;
    eventually("both deletions are logged", async || {
        (count(&operator, "=== Pod killing happens NOW!") == 2).then_some(())
    })
    .await?;
    let left_alone = system.get(&protected.name_any()).await?;
    assert_eq!(left_alone.resource_version(), protected.resource_version());
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    system
        .delete(&protected.name_any(), &DeleteParams::default())
        .await?;
    Ok(())
}
