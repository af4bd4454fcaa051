//! Tests on a real control plane, which starts by itself.

use kopf_testing::{TestResult, on_cluster};

const PROGRAM: &str = env!("CARGO_BIN_EXE_everything-operator");

/// The CRDs that the test installs.
#[rustfmt::skip]
const DEFINITIONS: &[&str] = &[
    include_str!("../src/generated/types/ephemeral_volume_claim/crd.json"),
    include_str!("../src/generated/types/order/crd.json"),
    include_str!("../src/generated/types/warehouse/crd.json"),
];

/// An object that the API server accepts.
const OBJECT: &str = r#"{
  "spec": {
    "size": 1
  }
}"#;

#[test]
fn an_ephemeral_volume_claim_is_handled_and_deleted() -> TestResult {
    on_cluster(async |cluster| {
        for definition in DEFINITIONS {
            cluster.apply(definition).await?;
        }
        let program = cluster.program(PROGRAM).arg("--standalone");
        let operator = program.start().await?;
        let objects = cluster.objects(
            "kopf.dev/v1",
            "EphemeralVolumeClaim",
            "ephemeralvolumeclaims",
        );
        let object = serde_json::from_str(OBJECT)?;
        objects.create("example", object).await?;
        objects
            .until("example", "it was handled", |it| {
                !it.data["status"]["everything"]["last-handled-configuration"].is_null()
            })
            .await?;
        objects.delete("example").await?;
        objects.until_gone("example").await?;
        operator.stop().await
    })
}
