//! `09-testing`: the cluster tests of an operator, with nothing set, and on a given cluster.

use kopf_tests::{Sandbox, TestFailure, TestResult, binaries, workspace};

/// Runs the tests of the example; returns whether they passed, and their output.
async fn run(kubeconfig: Option<std::path::PathBuf>) -> Result<(bool, String), TestFailure> {
    let tests = tokio::task::spawn_blocking(move || {
        let mut cargo = workspace::cargo();
        cargo
            .args(["test", "--package", "testing-operator"])
            .args(["--test", "cluster"])
            .env("KUBECONFIG", "/nonexistent")
            .env_remove(binaries::KUBECONFIG_VARIABLE);
        if let Some(kubeconfig) = kubeconfig {
            cargo.env(binaries::KUBECONFIG_VARIABLE, kubeconfig);
        }
        cargo.output()
    });
    let output = tests.await??;
    let text = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    Ok((output.status.success(), text.concat()))
}

#[tokio::test]
async fn cluster_tests_start_their_control_plane_and_say_which() -> TestResult {
    let (passed, output) = run(None).await?;
    assert!(passed, "{output}");
    assert!(output.contains("2 passed"), "{output}");
    assert!(output.contains("starts Kubernetes v"), "{output}");
    Ok(())
}

#[tokio::test]
async fn cluster_tests_run_on_a_cluster_that_is_named() -> TestResult {
    let sandbox = Sandbox::open_audited("testing-operator").await?;
    let tester = sandbox.administrator("tester");
    let (passed, output) = run(Some(sandbox.control_plane().kubeconfig(&tester)?)).await?;
    assert!(passed, "{output}");
    assert!(output.contains("2 passed"), "{output}");
    let counts = sandbox.count_requests_of(&tester).await?;
    assert_eq!(counts.of("kopfexamples", "create"), 2, "{counts:?}");
    Ok(())
}
