//! `22-load-tests`: a load test is pending, executing, finished or failed, as its Pods are.

use std::collections::BTreeSet;
use std::fs;
use std::future;
use std::process::Command;

use kopf_cluster::node::{self, POD_RESULT_ANNOTATION};
use kopf_tests::child_process::Ending;
use kopf_tests::{
    Objects, PrivateControlPlane, TestFailure, TestResult, User, eventually, workspace,
};
use kube::ResourceExt as _;
use kube::api::{DynamicObject, ListParams};
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::ExampleFixture;

const FOLDER: &str = "22-load-tests";
const LOAD_TEST: &str = "example-02";

#[test]
fn the_definitions_are_the_original_ones_as_the_generator_corrects_them() -> TestResult {
    let generator = workspace::build_program("kopf-gen")?;
    let example = workspace::root().join("examples").join(FOLDER);
    let copy = TempDir::new()?;
    fs::copy(example.join("kopf.yaml"), copy.path().join("kopf.yaml"))?;
    fs::create_dir(copy.path().join("crds"))?;
    for entry in fs::read_dir(example.join("original"))? {
        let entry = entry?;
        fs::copy(
            entry.path(),
            copy.path().join("crds").join(entry.file_name()),
        )?;
    }
    let generate = |arguments: &[&str]| {
        let mut generate = Command::new(&generator);
        generate.arg("generate").args(arguments).arg("--manifest");
        generate.arg(copy.path().join("kopf.yaml")).output()
    };
    let refused = generate(&[])?;
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(
        message.contains("which no current cluster accepts"),
        "{message}"
    );
    let corrected = generate(&["--fix-names"])?;
    assert!(corrected.status.success(), "{corrected:?}");
    for name in ["loadtest-crd.yaml", "simpledeployment-crd.yaml"] {
        let text = |folder: &std::path::Path| fs::read_to_string(folder.join("crds").join(name));
        assert_eq!(text(copy.path())?, text(&example)?, "{name}");
    }
    Ok(())
}

fn is_in(state: &'static str, children: usize) -> impl Fn(&DynamicObject) -> bool {
    move |test| {
        let status = &test.data["status"];
        let listed = status["children"].as_array().map(Vec::len);
        status["state"] == state && listed == Some(children)
    }
}

/// The uids of the Pods that run, once there are as many.
async fn running(pods: &Objects, count: usize) -> Result<BTreeSet<String>, TestFailure> {
    let all = ListParams::default().labels(&format!("loadtest={LOAD_TEST}"));
    eventually("the Pods run", async || {
        let list = pods.api().list(&all).await.ok()?.items;
        let runs = |pod: &DynamicObject| pod.data["status"]["phase"] == "Running";
        let uids: BTreeSet<String> = list.iter().filter_map(|pod| pod.uid()).collect();
        (uids.len() == count && list.iter().all(runs)).then_some(uids)
    })
    .await
}

async fn end(pods: &Objects, number: usize, result: &str) -> TestResult {
    let annotations = json!({POD_RESULT_ANNOTATION: result});
    let patch = json!({"metadata": {"annotations": annotations}});
    pods.merge(&format!("{LOAD_TEST}-{number}"), patch).await?;
    Ok(())
}

#[tokio::test]
async fn a_load_test_follows_its_pods_and_starts_them_again_after_a_change() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let client = plane.client(&User::administrator("node")).await?;
    let node = tokio::spawn(node::run(client, future::pending()));
    let fixture = ExampleFixture::open_on(plane.handle(), FOLDER, "load-test-operator").await?;
    let tests = fixture
        .sandbox
        .objects("example.org/v1", "LoadTest")
        .await?;
    let simple = fixture
        .sandbox
        .objects("example.org/v1", "SimpleDeployment")
        .await?;
    let pods = fixture.sandbox.objects("v1", "Pod").await?;
    let operator = fixture.start()?;
    fixture.apply_object().await?;

    let only = simple
        .wait_until("example-01", "it has its Pod", |it| {
            it.data["status"]["child"] == "example-01"
        })
        .await?;
    let pod = pods.get("example-01").await?;
    let children = json!([pod.uid()]);
    assert_eq!(only.data["status"]["create_function"]["children"], children);
    assert_eq!(pod.labels()["app"], "simple-app");

    tests
        .wait_until(LOAD_TEST, "it executes", is_in("executing", 5))
        .await?;
    let first = running(&pods, 5).await?;
    for number in 1..5 {
        end(&pods, number, "succeeded").await?;
    }
    pods.wait_until("example-02-4", "it has ended", |it| {
        it.data["status"]["phase"] == "Succeeded"
    })
    .await?;
    assert_eq!(
        tests.get(LOAD_TEST).await?.data["status"]["state"],
        "executing"
    );
    end(&pods, 5, "succeeded").await?;
    tests
        .wait_until(LOAD_TEST, "it is finished", is_in("finished", 5))
        .await?;

    let edited = tests
        .merge(LOAD_TEST, json!({"spec": {"replicas": 3}}))
        .await?;
    tests
        .wait_from(edited, "it is pending", is_in("pending", 0))
        .await?;
    tests
        .wait_until(LOAD_TEST, "it executes again", is_in("executing", 3))
        .await?;
    let second = running(&pods, 3).await?;
    assert!(first.is_disjoint(&second), "all Pods are new");
    end(&pods, 2, "failed").await?;
    tests
        .wait_until(LOAD_TEST, "it has failed", is_in("failed", 3))
        .await?;

    tests.delete(LOAD_TEST).await?;
    tests.wait_gone(LOAD_TEST).await?;
    for number in 1..=3 {
        pods.wait_gone(&format!("{LOAD_TEST}-{number}")).await?;
    }
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    node.abort();
    Ok(())
}
