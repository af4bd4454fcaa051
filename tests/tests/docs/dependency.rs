//! The dependency that a page shows is the runtime of this workspace, with a feature that it has.

use kopf_tests::{TestFailure, TestResult, workspace};
use serde_json::Value;

use super::blocks;

/// What cargo says of the runtime.
fn runtime() -> Result<Value, TestFailure> {
    let metadata = [
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ];
    let output = workspace::cargo().args(metadata).output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let found = packages.into_iter().find(|it| it["name"] == "kopf-runtime");
    found.ok_or_else(|| TestFailure::new("the workspace has no kopf-runtime"))
}

#[test]
fn the_feature_of_the_page_is_one_of_the_runtime() -> TestResult {
    let blocks = blocks::of_page("docs/observability.md".as_ref());
    let shown = blocks.iter().find(|it| it.language == "toml");
    let shown = &shown.expect("the page shows a dependency").text;
    let runtime = runtime()?;
    let version = runtime["version"].as_str().unwrap_or_default();
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    let expected = format!("kopf-runtime = {{ version = \"{minor}\", features = [\"otel\"] }}");
    assert_eq!(shown.trim(), expected);
    assert!(
        runtime["features"]["otel"].is_array(),
        "{}",
        runtime["features"]
    );
    Ok(())
}
