//! Secrets that an operator reads are in nothing that it logs or writes, even if it logs everything.

use std::path::Path;

use k8s_openapi::api::core::v1::Event;
use kopf_tests::child_process::ChildProcess;
use kopf_tests::{Sandbox, TestFailure, TestResult, workspace};
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::json;

/// In plain text, and its begin in base64, which does not depend on what follows.
const MARKS: [&str; 2] = ["xyzzy-marked-secret", "eHl6enktbWFya2VkLXNlY3Jl"];

fn assert_unmarked(place: &str, text: &str) {
    for mark in MARKS {
        let line = text.lines().find(|line| line.contains(mark));
        assert_eq!(line, None, "{place} has {mark}");
    }
}

async fn assert_unmarked_events(sandbox: &Sandbox) -> TestResult {
    let events: Api<Event> = Api::namespaced(sandbox.client(), sandbox.namespace());
    for event in events.list(&ListParams::default()).await? {
        assert_unmarked("an event", &serde_json::to_string(&event)?);
    }
    Ok(())
}

fn everything_of(object: &DynamicObject) -> Result<String, TestFailure> {
    Ok(serde_json::to_string(object)?)
}

fn start_traced(sandbox: &Sandbox, program: &Path) -> Result<ChildProcess, TestFailure> {
    let builder = sandbox.operator(program, &sandbox.administrator("operator"))?;
    let builder = builder.env("RUST_LOG", "trace");
    let arguments = [
        "run",
        "--log-format",
        "plain",
        "--namespace",
        sandbox.namespace(),
    ];
    Ok(builder.args(arguments).start()?)
}

#[tokio::test]
async fn a_used_secret_is_in_no_log_event_owner_or_child() -> TestResult {
    let sandbox = Sandbox::open("used").await?;
    let program = workspace::build_program("websites-operator")?;
    let folder = workspace::root().join("examples/19-children-reconcile");
    let definition = std::fs::read_to_string(folder.join("crds/websites.yaml"))?;
    sandbox.apply_shared(&definition).await?;
    let secrets = sandbox.objects("v1", "Secret").await?;
    let with_value = |number: u32| json!({"stringData": {"key": format!("{}-{number}", MARKS[0])}});
    secrets.create("password", with_value(1)).await?;
    let operator = start_traced(&sandbox, &program)?;
    let websites = sandbox.objects("kopf.dev/v1", "Website").await?;
    let spec = json!({"page": "Hello!", "secretName": "password"});
    websites.create("hello", json!({"spec": spec})).await?;
    let deployments = sandbox.objects("apps/v1", "Deployment").await?;
    let first = deployments
        .wait_until("hello", "it is applied", |_| true)
        .await?;
    secrets.merge("password", with_value(2)).await?;
    let second = deployments
        .wait_until("hello", "it follows the Secret", |it| {
            it.data["spec"] != first.data["spec"]
        })
        .await?;
    assert_unmarked("the child", &everything_of(&second)?);
    assert_unmarked("the owner", &everything_of(&websites.get("hello").await?)?);
    assert_unmarked_events(&sandbox).await?;
    assert!(operator.log().contains("TRACE") || operator.log().len() > 10_000);
    assert_unmarked("the log", &operator.log());
    Ok(())
}

#[tokio::test]
async fn the_keys_of_webhooks_are_not_in_the_log() -> TestResult {
    let sandbox = Sandbox::open("keys").await?;
    let program = workspace::build_program("admission-operator")?;
    let folder = workspace::root().join("examples/17-admission");
    for file in ["crds/numberlists.yaml", "deploy/base/webhooks.yaml"] {
        let text = std::fs::read_to_string(folder.join(file))?;
        let text = text.replace("namespace: admission-operator", "namespace: $NAMESPACE");
        sandbox.apply_shared(&text).await?;
    }
    let operator = start_traced(&sandbox, &program)?;
    operator
        .wait_for_log("the webhooks are configured in")
        .await?;
    for key in ["PRIVATE KEY", "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS"] {
        assert!(!operator.log().contains(key), "the log has a key");
    }
    // Otherwise the API server would go on calling its webhooks.
    operator.terminate().await?;
    Ok(())
}
