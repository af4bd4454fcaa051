//! Tests on a real control plane, which starts by itself.

use kopf_testing::{Cluster, Objects, TestResult, on_cluster};
use kube::ResourceExt as _;
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_testing-operator");

/// The CRDs that the tests install.
#[rustfmt::skip]
const DEFINITIONS: &[&str] = &[
    include_str!("../src/generated/types/kopf_example/crd.json"),
];

async fn examples(cluster: &Cluster) -> Result<Objects, kopf_testing::TestFailure> {
    for definition in DEFINITIONS {
        cluster.apply(definition).await?;
    }
    Ok(cluster.objects("kopf.dev/v1", "KopfExample", "kopfexamples"))
}

#[test]
fn a_kopf_example_is_handled_and_deleted() -> TestResult {
    on_cluster(async |cluster| {
        let examples = examples(cluster).await?;
        let program = cluster.program(PROGRAM).arg("--standalone");
        let operator = program.start().await?;

        examples.create("example", json!({"spec": {}})).await?;
        let handled = examples
            .until("example", "the status has the result", |it| {
                it.data["status"]["create_fn"]["attempts"] == 2
            })
            .await?;
        assert_eq!(handled.finalizers().len(), 1);
        assert!(operator.log().contains("Something was logged here."));

        examples.delete("example").await?;
        examples.until_gone("example").await?;
        operator.wait_for_log("Deleted, really deleted.").await?;
        operator.stop().await
    })
}

#[test]
fn progress_survives_a_restart() -> TestResult {
    on_cluster(async |cluster| {
        let examples = examples(cluster).await?;
        let start = async || cluster.program(PROGRAM).arg("--standalone").start().await;
        let operator = start().await?;
        examples.create("example", json!({"spec": {}})).await?;
        operator.wait_for_log("Not at the first attempt.").await?;
        operator.stop().await?;

        let operator = start().await?;
        examples
            .until("example", "the second attempt has succeeded", |it| {
                it.data["status"]["create_fn"]["attempts"] == 2
            })
            .await?;
        assert!(!operator.log().contains("Not at the first attempt."));
        examples.delete("example").await?;
        examples.until_gone("example").await?;
        operator.stop().await
    })
}
