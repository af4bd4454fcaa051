//! `09-testing`: the tests that an operator has for clusters, on a cluster and without one.

use kopf_tests::{Sandbox, TestFailure, TestResult, workspace};

/// Runs the tests of the example, and tells whether they passed, and what they said.
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
    let said = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    Ok((output.status.success(), said.concat()))
}

#[tokio::test]
async fn cluster_tests_pass_on_a_cluster_and_name_the_missing_variable_without_one() -> TestResult {
    let sandbox = Sandbox::open("testing-operator").await?;
    let administrator = sandbox.administrator("tester");
    let kubeconfig = sandbox.control_plane().kubeconfig(&administrator)?;
    let (passed, said) = run(Some(kubeconfig)).await?;
    assert!(passed, "{said}");
    assert!(said.contains("2 passed"), "{said}");

    let (passed, said) = run(None).await?;
    assert!(!passed, "{said}");
    assert!(said.contains("KUBECONFIG is not set"), "{said}");
    assert!(said.contains("kind create cluster"), "{said}");
    Ok(())
}
