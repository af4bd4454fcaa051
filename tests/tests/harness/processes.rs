//! Child processes, and the report of a failed wait.

use std::time::Duration;

use kopf_tests::child_process::{Ending, Signal};
use kopf_tests::{ChildProcess, Sandbox, TestResult};
use serde_json::json;

/// A script in place of an operator: prints its kubeconfig, and exits on SIGTERM.
const SCRIPT: &str = "echo started with $KUBECONFIG for $0; echo to stderr >&2; \
                      trap 'echo bye; exit 7' TERM; while :; do sleep 0.05; done";

#[tokio::test]
async fn an_operator_gets_its_kubeconfig_and_its_log_is_captured() -> TestResult {
    let sandbox = Sandbox::open("operator").await?;
    let operator = sandbox
        .operator("sh", &sandbox.administrator("operator"))?
        .args(["-c", SCRIPT, "me"])
        .start()?;

    let line = operator.wait_for_log("started with").await?;
    operator.wait_for_log("to stderr").await?;
    assert!(line.ends_with("for me"), "{line}");
    let kubeconfig = line.split_whitespace().nth(2).unwrap_or_default();
    let client = kopf_tests::user::client_from(kubeconfig.as_ref()).await?;
    client.apiserver_version().await?;

    assert_eq!(operator.terminate().await?, Ending::Exit(7));
    assert!(operator.log().ends_with("bye"), "{}", operator.log());
    Ok(())
}

#[tokio::test]
async fn an_operator_can_be_paused_and_killed_and_ends_with_its_value() -> TestResult {
    let operator = ChildProcess::command("sh").arg("-c").arg(SCRIPT).start()?;
    operator.wait_for_log("started").await?;
    operator.signal(Signal::STOP)?;
    assert_eq!(operator.kill().await?, Ending::Signal(9));

    let operator = ChildProcess::command("sh").arg("-c").arg(SCRIPT).start()?;
    let pid = operator.pid();
    drop(operator);
    assert!(!super::leak::is_running(pid), "{pid} is still running");
    Ok(())
}

#[tokio::test]
async fn a_missing_program_is_named_in_the_error() {
    let failure = ChildProcess::command("/nonexistent/operator")
        .start()
        .expect_err("there is none");
    assert!(
        failure.to_string().contains("/nonexistent/operator"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_failed_wait_shows_the_object_its_events_and_the_log() -> TestResult {
    let sandbox = Sandbox::open("report").await?;
    let widgets = sandbox
        .define("Widget")
        .await?
        .within(Duration::from_secs(1));
    let operator = sandbox
        .operator("echo", &sandbox.user("operator"))?
        .arg("cannot cope")
        .start()?;
    operator.wait().await?;
    widgets.create("one", json!({"spec": {"size": 41}})).await?;
    let event = json!({
        "involvedObject": {"name": "one", "namespace": sandbox.namespace()},
        "type": "Warning", "reason": "Stuck", "message": "no idea",
    });
    sandbox
        .objects("v1", "Event")
        .await?
        .create("stuck", event)
        .await?;

    let failed = widgets
        .wait_until("one", "size is 42", |it| it.data["spec"]["size"] == 42)
        .await;

    let text = format!("{:?}", failed.expect_err("the size is 41"));
    let parts = [
        "until size is 42",
        "size: 41",
        "Warning Stuck: no idea",
        "cannot cope",
    ];
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    Ok(())
}
