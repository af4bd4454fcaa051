//! `09-testing`: the cluster tests of an operator, with and without a cluster.

use kopf_tests::{Sandbox, TestFailure, TestResult, workspace};

/// Runs the tests of the example; returns whether they passed, and their output.
async fn run(kubeconfig: Option<std::path::PathBuf>) -> Result<(bool, String), TestFailure> {
    let tests = tokio::task::spawn_blocking(move || {
        let mut cargo = workspace::cargo();
        cargo
            .args(["test", "--package", "testing-operator"])
            .args(["--features", "cluster", "--test", "cluster"])
            .env_remove("KUBECONFIG");
        if let Some(kubeconfig) = kubeconfig {
            cargo.env("KUBECONFIG", kubeconfig);
        }
        cargo.output()
    });
    let output = tests.await??;
    let text = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    Ok((output.status.success(), text.concat()))
}

#[tokio::test]
async fn cluster_tests_pass_on_a_cluster_and_name_the_missing_variable_without_one() -> TestResult {
    let sandbox = Sandbox::open("testing-operator").await?;
    let administrator = sandbox.administrator("tester");
    let kubeconfig = sandbox.control_plane().kubeconfig(&administrator)?;
    let (passed, output) = run(Some(kubeconfig)).await?;
    assert!(passed, "{output}");
    assert!(output.contains("2 passed"), "{output}");

    let (passed, output) = run(None).await?;
    assert!(!passed, "{output}");
    assert!(output.contains("KUBECONFIG is not set"), "{output}");
    assert!(output.contains("kind create cluster"), "{output}");
    Ok(())
}
