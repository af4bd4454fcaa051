//! Tests on a real control plane, which starts by itself.

use kopf_testing::{TestResult, on_cluster};

const PROGRAM: &str = env!("CARGO_BIN_EXE_preset-child");

/// The CRDs that the test installs.
#[rustfmt::skip]
const DEFINITIONS: &[&str] = &[
    include_str!("../src/generated/types/kopf_example/crd.json"),
];

/// An object that the API server accepts.
const OBJECT: &str = r#"{
  "spec": {}
}"#;

#[test]
fn a_kopf_example_is_handled_and_deleted() -> TestResult {
    on_cluster(async |cluster| {
        for definition in DEFINITIONS {
            cluster.apply(definition).await?;
        }
        let program = cluster.program(PROGRAM).arg("--standalone");
        let operator = program.start().await?;
        let objects = cluster.objects("kopf.dev/v1", "KopfExample", "kopfexamples");
        let children = cluster.objects("v1", "ConfigMap", "configmaps");
        let object = serde_json::from_str(OBJECT)?;
        objects.create("example", object).await?;
        children.until("example", "it exists", |_| true).await?;
        objects.delete("example").await?;
        objects.until_gone("example").await?;
        operator.stop().await
    })
}
