//! A full disk: an operator that cannot write its log goes on with its work.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use kopf_tests::{Sandbox, TestResult};
use serde_json::json;

const OPERATOR: &str = env!("CARGO_BIN_EXE_flaky-operator");

#[tokio::test]
async fn an_operator_whose_log_is_on_a_full_disk_handles_its_objects() -> TestResult {
    let sandbox = Sandbox::open("full-disk").await?;
    let objects = sandbox.define("Widget").await?;
    let account = sandbox.administrator("operator");
    // Each write to this device fails as on a full disk.
    let full = || OpenOptions::new().write(true).open("/dev/full");
    let mut operator = Command::new(OPERATOR)
        .env("KUBECONFIG", sandbox.control_plane().kubeconfig(&account)?)
        .env("FLAKY_GROUP", sandbox.group())
        .args(["--standalone", "--verbose"])
        .args(["--namespace", sandbox.namespace()])
        .stdin(Stdio::null())
        .stdout(full()?)
        .stderr(full()?)
        .spawn()?;
    objects.create("one", json!({"spec": {"size": 1}})).await?;
    let handled = objects
        .wait_until("one", "it is handled", |it| it.data["status"]["flaky"] == 1)
        .await;
    operator.kill()?;
    operator.wait()?;
    handled.map(drop)
}
