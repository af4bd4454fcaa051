//! Log lines about objects have the same shape.

use kopf_tests::{TestFailure, TestResult};
use serde_json::{Value, json};

use crate::scenario::{Implementation, ScenarioRun};

/// A line that both implementations log about each object.
const LINE: &str = "Handler 'create_map' succeeded.";

/// The log of an operator that has handled the object `one`, and the object as log lines name it.
async fn log_of(
    implementation: Implementation,
    variables: &[(&'static str, &str)],
) -> Result<(String, Value), TestFailure> {
    let mut run = ScenarioRun::open("create_with_result", implementation).await?;
    for (name, value) in variables {
        run.set(name, value);
    }
    run.start().await?;
    run.create("one", json!({"spec": {"size": 1}})).await?;
    run.note_settled("one").await?;
    let object = run.widgets.get("one").await?;
    run.operator().wait_for_log(LINE).await?;
    run.stop().await?;
    let reference = json!({
        "apiVersion": format!("{}/v1", run.sandbox.group()),
        "kind": "Widget",
        "name": "one",
        "namespace": run.sandbox.namespace(),
        "uid": object.metadata.uid,
    });
    Ok((run.operator().log(), reference))
}

fn line_of(log: &str) -> &str {
    let line = log.lines().find(|line| line.contains(LINE));
    line.expect("the operator has logged it")
}

#[tokio::test]
async fn json_lines_have_the_same_keys_and_the_object_under_the_given_one() -> TestResult {
    for implementation in [Implementation::Kopf, Implementation::Ours] {
        let variables = [
            ("KOPF_RUN_LOG_FORMAT", "json"),
            ("KOPF_RUN_LOG_REFKEY", "about"),
        ];
        let (log, object) = log_of(implementation, &variables).await?;
        let line: Value = serde_json::from_str(line_of(&log))?;
        assert_eq!(line["about"], object, "{implementation:?}: {line}");
        assert_eq!(line["message"], LINE, "{implementation:?}");
        assert_eq!(line["severity"], "info", "{implementation:?}");
        assert_eq!(line["object"], Value::Null, "{implementation:?}");
        let time = line["timestamp"].as_str().unwrap_or_default();
        let time: Result<jiff::Timestamp, _> = time.parse();
        assert!(time.is_ok(), "{implementation:?}: {line}");
        let (log, object) = log_of(
            implementation,
            &[
                ("KOPF_RUN_LOG_FORMAT", "json"),
                ("KOPF_RUN_LOG_PREFIX", "yes"),
            ],
        )
        .await?;
        let line: Value = serde_json::from_str(line_of(&log))?;
        let namespace = object["namespace"].as_str().unwrap_or_default();
        assert_eq!(
            line["message"],
            format!("[{namespace}/one] {LINE}"),
            "{implementation:?}"
        );
        assert_eq!(line["object"], object, "{implementation:?}");
    }
    Ok(())
}

#[tokio::test]
async fn plain_lines_are_the_same_with_and_without_the_object() -> TestResult {
    for implementation in [Implementation::Kopf, Implementation::Ours] {
        let plain = ("KOPF_RUN_LOG_FORMAT", "plain");
        let (log, object) = log_of(implementation, &[plain]).await?;
        let namespace = object["namespace"].as_str().unwrap_or_default();
        let expected = format!("[{namespace}/one] {LINE}");
        assert_eq!(line_of(&log), expected, "{implementation:?}");
        let without = ("KOPF_RUN_LOG_PREFIX", "no");
        let (log, _) = log_of(implementation, &[plain, without]).await?;
        assert_eq!(line_of(&log), LINE, "{implementation:?}");
    }
    Ok(())
}

/// The beginnings of the debug lines by which people follow the handling of an object.
const FOLLOWED: [&str; 9] = [
    "Adding the finalizer, thus preventing the actual deletion.",
    "Creation is in progress",
    "Deletion is in progress",
    "Handler 'delete_fn' is invoked",
    "Merge-patching the resource with: {",
    "Sleeping for ",
    "Removing the finalizer, thus allowing the actual deletion.",
    "Deletion, but we are done with it, and we do not care.",
    "Deleted, really deleted, and we are notified.",
];

#[tokio::test]
async fn verbose_lines_follow_an_object_from_its_creation_to_its_end() -> TestResult {
    let mut followed = Vec::new();
    for implementation in [Implementation::Kopf, Implementation::Ours] {
        let mut run = ScenarioRun::open("delete_with_finalizer", implementation).await?;
        run.set("KOPF_RUN_LOG_FORMAT", "plain");
        run.start().await?;
        let foreign = json!({"metadata": {"finalizers": ["kopf.test/foreign"]}});
        run.create("one", foreign).await?;
        run.note_settled("one").await?;
        run.widgets.delete("one").await?;
        run.operator().wait_for_log(FOLLOWED[7]).await?;
        run.merge("one", json!({"metadata": {"finalizers": null}}))
            .await?;
        run.operator().wait_for_log(FOLLOWED[8]).await?;
        run.stop().await?;
        let log = run.operator().log();
        let about = format!("[{}/one] ", run.sandbox.namespace());
        let lines: Vec<&str> = log
            .lines()
            .filter_map(|it| it.strip_prefix(&about))
            .collect();
        // The place of the first line of each sort: how often an object is patched may differ.
        let mut firsts = Vec::new();
        for begin in FOLLOWED {
            let first = lines.iter().position(|line| line.starts_with(begin));
            assert!(first.is_some(), "{implementation:?}: {begin}: {log}");
            firsts.push((first, begin));
        }
        firsts.sort_unstable();
        followed.push(
            firsts
                .into_iter()
                .map(|(_, begin)| begin)
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(followed[0], followed[1]);
    Ok(())
}
