//! `kubectl apply -k deploy` of the examples, with the real kubectl on an empty control plane, and an
//! operator that then runs with the token of its ServiceAccount.

use std::path::{Path, PathBuf};

use kopf_tests::{
    ChildProcess, Kubectl, PrivateControlPlane, Sandbox, TestFailure, TestResult, User, eventually,
    workspace,
};
use serde_json::{Value, json};

const APPLY: [&str; 4] = ["apply", "--server-side", "--validate=strict", "-k"];

fn examples() -> Result<Vec<PathBuf>, TestFailure> {
    let entries = std::fs::read_dir(workspace::root().join("examples"))?;
    let mut folders = Vec::new();
    for entry in entries {
        folders.push(entry?.path());
    }
    folders.sort();
    Ok(folders)
}

/// The kubeconfig of an administrator, with the token of a ServiceAccount instead.
fn with_token(kubeconfig: &Path, token: &str) -> Result<String, TestFailure> {
    let mut config: Value = serde_json::from_slice(&std::fs::read(kubeconfig)?)?;
    config["users"][0]["user"] = json!({"token": token});
    Ok(config.to_string())
}

/// The arguments of the operator in its Deployment, but for the port of its probes.
fn arguments(example: &Path) -> Result<Vec<String>, TestFailure> {
    let text = std::fs::read_to_string(example.join("deploy/base/deployment.yaml"))?;
    let documents = serde_saphyr::from_multiple::<Value>(&text)?;
    let deployment = documents.iter().find(|it| it["kind"] == "Deployment");
    let deployment = deployment.ok_or_else(|| TestFailure::new("there is no Deployment"))?;
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    let arguments = arguments.as_array().into_iter().flatten();
    let arguments = arguments.filter_map(Value::as_str);
    let others = arguments.filter(|it| !it.starts_with("--liveness="));
    Ok(others.map(str::to_owned).collect())
}

#[tokio::test]
async fn kubectl_deploys_every_example_at_once_and_again() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let kubectl = Kubectl::obtain().await?;
    let administrator = plane
        .handle()
        .kubeconfig(&User::administrator("deployer"))?;
    for example in examples()? {
        let folder = example.join("deploy").display().to_string();
        for _ in 0..2 {
            kubectl.run(&administrator, &[&APPLY[..], &[&folder]].concat())?;
        }
    }

    // The operator of a deployed example works with its ServiceAccount and its arguments alone.
    let sandbox = Sandbox::open_on(plane.handle(), "deployed").await?;
    let example = workspace::root().join("examples/06-peering");
    let name = "peering-operator";
    let token = ["create", "token", name, "--namespace", name];
    let token = kubectl.run(&administrator, &token)?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, with_token(&administrator, token.trim())?)?;
    let operator = ChildProcess::command(workspace::build_program(name)?)
        .env("KUBECONFIG", &kubeconfig)
        .env("POD_ID", "deployed")
        .args(arguments(&example)?)
        .start()?;
    let object = std::fs::read_to_string(example.join("obj.yaml"))?;
    sandbox.apply(&object).await?;
    eventually("the operator has handled the object", async || {
        operator.log().contains("is handled here").then_some(())
    })
    .await?;
    // It created the peering, which kubectl could not.
    let peering = ["get", "clusterkopfpeering", "peering-example", "-o", "json"];
    let peering = kubectl.run(&administrator, &peering)?;
    let peering: Value = serde_json::from_str(&peering)?;
    assert!(peering["status"]["deployed"].is_object(), "{peering}");
    operator.terminate().await.map(drop)
}
