//! The log of an operator, as its options change it.

use kopf_tests::child_process::Ending;
use kopf_tests::{Sandbox, TestFailure, TestResult};
use serde_json::{Value, json};

const OPERATOR: &str = env!("CARGO_BIN_EXE_flaky-operator");

/// The whole log of an operator that has handled one object, and what the log says about it.
struct CompleteLog {
    text: String,
    group: String,
    namespace: String,
    uid: String,
}

impl CompleteLog {
    async fn with(options: &[&str]) -> Result<Self, TestFailure> {
        Self::with_variable(options, None).await
    }

    async fn with_variable(options: &[&str], rust_log: Option<&str>) -> Result<Self, TestFailure> {
        let sandbox = Sandbox::open("logs").await?;
        let objects = sandbox.define("Widget").await?;
        let mut operator = sandbox
            .operator(OPERATOR, &sandbox.administrator("operator"))?
            .env("FLAKY_GROUP", sandbox.group())
            // Longer than a write takes, so that the operator has to wait.
            .env("FLAKY_DELAY", "2000")
            .args(["--standalone", "--namespace", sandbox.namespace()])
            .args(options);
        if let Some(filter) = rust_log {
            operator = operator.env("RUST_LOG", filter);
        }
        let operator = operator.start()?;
        objects.create("one", json!({"spec": {"size": 1}})).await?;
        let handled = objects
            .wait_until("one", "it is handled", |it| it.data["status"]["flaky"] == 1)
            .await?;
        assert_eq!(operator.terminate().await?, Ending::Exit(0));
        Ok(Self {
            text: operator.log(),
            group: sandbox.group().to_owned(),
            namespace: sandbox.namespace().to_owned(),
            uid: handled.metadata.uid.unwrap_or_default(),
        })
    }

    fn has_line(&self, line: &str) -> bool {
        self.text.lines().any(|it| it == line)
    }

    /// The lines of the format `full`, as their level and the rest.
    fn levels(&self) -> Vec<(&str, &str)> {
        let lines = self.text.lines().map(|line| {
            let (time, rest) = line.split_once(' ').unwrap_or_default();
            assert!(time.parse::<jiff::Timestamp>().is_ok(), "{line}");
            rest.trim_start().split_once(' ').unwrap_or_default()
        });
        lines.collect()
    }

    fn json_lines(&self) -> Result<Vec<Value>, TestFailure> {
        let lines = self.text.lines().map(serde_json::from_str);
        Ok(lines.collect::<Result<_, _>>()?)
    }

    fn reference(&self) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group),
            "kind": "Widget",
            "namespace": self.namespace,
            "name": "one",
            "uid": self.uid,
        })
    }
}

#[tokio::test]
async fn lines_have_time_level_object_and_message() -> TestResult {
    let log = CompleteLog::with(&[]).await?;
    let lines = log.levels();
    let about = format!("[{}/one]", log.namespace);
    let succeeded = format!("{about} Handler 'quick' succeeded.");
    assert!(lines.contains(&("INFO", &succeeded)), "{}", log.text);
    assert!(lines.iter().all(|line| line.0 != "DEBUG"), "{}", log.text);
    Ok(())
}

#[tokio::test]
async fn a_quiet_operator_logs_warnings_and_errors_only() -> TestResult {
    let log = CompleteLog::with(&["--quiet"]).await?;
    let lines = log.levels();
    let failed = |line: &&(&str, &str)| line.1.contains("'flaky' failed temporarily");
    assert_eq!(lines.iter().filter(failed).count(), 1, "{}", log.text);
    let unimportant = |line: &(&str, &str)| !matches!(line.0, "WARN" | "ERROR");
    assert!(!lines.iter().any(unimportant), "{}", log.text);
    Ok(())
}

#[tokio::test]
async fn the_variable_of_rust_decides_about_the_amount_of_lines() -> TestResult {
    let log = CompleteLog::with_variable(&["--verbose"], Some("warn")).await?;
    let unimportant = |line: &(&str, &str)| !matches!(line.0, "WARN" | "ERROR");
    let lines = log.levels();
    assert!(
        !lines.is_empty() && !lines.iter().any(unimportant),
        "{}",
        log.text
    );
    Ok(())
}

#[tokio::test]
async fn debugging_adds_a_line_for_each_request_and_no_internals() -> TestResult {
    let log = CompleteLog::with(&["--debug"]).await?;
    let widgets = format!(
        "/apis/{}/v1/namespaces/{}/widgets",
        log.group, log.namespace
    );
    let requests: Vec<&str> = log.levels().iter().map(|line| line.1).collect();
    let logged = |verb: &str, path: &str, status: &str| {
        let begin = format!("{verb} {path}");
        requests.iter().any(|line| {
            // The requests of a handler's turn are inside the span of its object.
            let line = line.split_once("] ").map_or(*line, |(_, line)| line);
            line.starts_with(&begin) && line.contains(status) && line.ends_with(" ms")
        })
    };
    assert!(logged("list", &widgets, ": 200 in "), "{}", log.text);
    assert!(logged("watch", &widgets, ": 200 in "), "{}", log.text);
    let one = format!("{widgets}/one");
    assert!(logged("patch", &one, ": 200 in "), "{}", log.text);
    for internal in [
        "pool",
        "connect",
        "handshake",
        "TLS",
        "hyper",
        "rustls",
        "h2",
    ] {
        let lines = log.levels().into_iter();
        let mut debug = lines.filter(|line| line.0 == "DEBUG");
        assert!(!debug.any(|line| line.1.contains(internal)), "{internal}");
    }

    let verbose = CompleteLog::with(&["--verbose"]).await?;
    assert!(!verbose.text.contains(" ms\n"), "{}", verbose.text);
    assert!(!verbose.text.contains("hyper"), "{}", verbose.text);
    Ok(())
}

#[tokio::test]
async fn plain_lines_are_the_message_with_or_without_the_object() -> TestResult {
    let log = CompleteLog::with(&["--log-format", "plain"]).await?;
    let line = "Handler 'quick' succeeded.";
    let about = format!("[{}/one] {line}", log.namespace);
    assert!(log.has_line(&about), "{}", log.text);
    let log = CompleteLog::with(&["--log-format", "plain", "--no-log-prefix"]).await?;
    assert!(log.has_line(line), "{}", log.text);
    Ok(())
}

#[tokio::test]
async fn json_lines_have_the_object_under_the_given_key() -> TestResult {
    let line = "Handler 'quick' succeeded.";
    let log = CompleteLog::with(&["--log-format=json", "--log-refkey=about"]).await?;
    let lines = log.json_lines()?;
    let found = lines.iter().find(|it| it["message"] == line);
    let found = found.expect("the line is logged");
    assert_eq!(found["about"], log.reference());
    assert_eq!(found["severity"], "info");
    assert_eq!(found["object"], Value::Null);
    let failed = lines.iter().find(|it| it["severity"] == "error");
    assert_eq!(failed.expect("a handler fails")["about"], log.reference());

    let log = CompleteLog::with(&["--log-format=json", "--log-prefix"]).await?;
    let lines = log.json_lines()?;
    let message = format!("[{}/one] {line}", log.namespace);
    let found = lines.iter().find(|it| it["message"] == message);
    assert_eq!(
        found.expect("the line is logged")["object"],
        log.reference()
    );
    Ok(())
}

#[tokio::test]
async fn verbose_lines_say_why_which_what_and_until_when() -> TestResult {
    let log = CompleteLog::with(&["--verbose"]).await?;
    let about = format!("[{}/one] ", log.namespace);
    let lines = log.levels().into_iter();
    let debug = lines.filter(|line| line.0 == "DEBUG");
    let about_one: Vec<&str> = debug.filter_map(|it| it.1.strip_prefix(&about)).collect();
    let mut rest = about_one.iter();
    for expected in [
        "Creation is in progress.",
        "Handler 'quick' is invoked: attempt 1.",
        "Merge-patching the status with: {",
        "Merge-patching the resource with: {",
        "Handler 'flaky' is invoked: attempt 1.",
        "Merge-patching the resource with: {",
        "Sleeping for ",
        "Handler 'flaky' is invoked: attempt 2.",
    ] {
        let found = rest.any(|line| line.starts_with(expected));
        assert!(found, "{expected}: {}", log.text);
    }
    // Each line is one line, however large the records are.
    assert!(
        about_one.iter().all(|line| line.len() < 4_200),
        "{}",
        log.text
    );
    Ok(())
}
