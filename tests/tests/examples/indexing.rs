//! `16-indexing`: a timer reads Pods from indices, without requests.

use kopf_tests::TestResult;
use kopf_tests::child_process::Ending;
use serde_json::json;

use crate::fixture::{EXAMPLE, ExampleFixture};

#[tokio::test]
async fn a_timer_reads_pods_by_label_and_by_phase_from_indices() -> TestResult {
    let fixture = ExampleFixture::open("16-indexing", "indexing-operator").await?;
    let pods = fixture.sandbox.objects("v1", "Pod").await?;
    let pod = json!({
        "metadata": {"labels": {"somelabel": "somevalue"}},
        "spec": {"containers": [{"name": "the-only-one", "image": "busybox"}]},
    });
    pods.create("before", pod.clone()).await?;
    let runs = json!({"phase": "Running"});
    pods.merge_status("before", runs.clone()).await?;
    fixture.apply_object().await?;
    let operator = fixture.start()?;
    operator.wait_for_log("running here: {\"before\"}").await?;
    let first = operator.wait_for_log("with one of the same labels").await?;
    assert!(first.ends_with(": {\"before\"}"), "{first}");

    pods.create("after", pod).await?;
    pods.merge_status("after", runs).await?;
    let label = json!({"metadata": {"labels": {"somelabel": "another"}}});
    pods.merge("before", label).await?;
    let examples = fixture.kopf_examples().await?;
    examples
        .wait_until(EXAMPLE, "both Pods run, and one is alike", |it| {
            it.data["status"]["running-pods"] == json!(["after", "before"])
                && it.data["status"]["alike"] == json!(["after"])
        })
        .await?;
    pods.delete("after").await?;
    examples
        .wait_until(EXAMPLE, "nothing of the deleted Pod is left", |it| {
            it.data["status"]["running-pods"] == json!(["before"])
                && it.data["status"]["alike"] == json!([])
        })
        .await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}

/// The line as the page shows it, with `…` for what differs.
fn documented() -> &'static str {
    let page = include_str!("../../../docs/indexing.md");
    let mut lines = page.lines();
    let found = lines.find(|it| it.starts_with("no handler is called before the indices"));
    found.expect("the page shows the line")
}

#[tokio::test]
async fn without_permission_to_list_the_operator_logs_the_missing_index() -> TestResult {
    let fixture = ExampleFixture::open("16-indexing", "indexing-operator").await?;
    let unprivileged = fixture.sandbox.user("unprivileged");
    let operator = fixture.start_as(&unprivileged, &[], &[])?;
    let line = operator
        .wait_for_log("no handler is called before the indices are complete; missing: ")
        .await?;
    assert!(line.contains("pods"), "{line}");
    assert!(line.contains("forbidden"), "{line}");
    // The operator of the page serves all namespaces.
    let line = line.replace(&format!(" in {}", fixture.sandbox.namespace()), "");
    let mut rest = &*line;
    for words in documented().split('…') {
        let found = rest.split_once(words);
        rest = found.unwrap_or_else(|| panic!("{line} lacks {words}")).1;
    }
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
