//! What must not compile does not compile, for the reason that is meant.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// An error on a line: its code and its message.
type Rejection = (u64, String, String);

#[test]
fn every_misuse_is_rejected_for_its_own_reason() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cases.rs");
    let text = std::fs::read_to_string(source).expect("the cases are readable");
    let expected = expected(&text);
    let rejected = compile();

    let mut problems: Vec<String> = Vec::new();
    for (line, code, message) in &rejected {
        let meant = |it: &&Rejection| it.0 == *line && it.1 == *code && message.contains(&it.2);
        if !expected.iter().any(|it| meant(&it)) {
            problems.push(format!("line {line} has another error: {code} {message}"));
        }
    }
    let lines: BTreeSet<u64> = rejected.iter().map(|it| it.0).collect();
    for (line, code, message) in &expected {
        if !lines.contains(line) {
            problems.push(format!("line {line} compiles, without {code} {message}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The errors that the comments after `//~` announce: on their line, or on the line before if they
/// have one of their own.
fn expected(text: &str) -> Vec<Rejection> {
    let annotated = (1..).zip(text.lines()).filter_map(|(line, text)| {
        let (code_before, announced) = text.split_once("//~ ")?;
        let (code, message) = announced.split_once(' ')?;
        let line = if code_before.trim().is_empty() {
            line - 1
        } else {
            line
        };
        Some((line, code.to_owned(), message.to_owned()))
    });
    annotated.collect()
}

/// Compiles all cases at once, and returns the errors.
fn compile() -> Vec<Rejection> {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["rustc", "--locked", "--lib", "--message-format=json", "--"])
        .args(["--cfg", "misuse", "--emit=metadata"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    for (name, _) in std::env::vars_os() {
        // Dependencies whose build scripts read these variables of this test would be built anew.
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    let output = command.output().expect("cargo runs");
    assert!(!output.status.success(), "all misuses compile");
    let lines = String::from_utf8_lossy(&output.stdout);
    let messages = lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let rejected: Vec<Rejection> = messages.filter_map(|it: Value| rejection(&it)).collect();
    let progress = String::from_utf8_lossy(&output.stderr);
    assert!(!rejected.is_empty(), "no case was compiled:\n{progress}");
    rejected
}

fn rejection(message: &Value) -> Option<Rejection> {
    let message = message.get("message")?;
    if message["level"] != "error" {
        return None;
    }
    let code = message["code"]["code"].as_str()?;
    let spans = message["spans"].as_array()?;
    let span = spans.iter().find(|span| span["is_primary"] == true)?;
    Some((
        span["line_start"].as_u64()?,
        code.to_owned(),
        message["message"].as_str()?.to_owned(),
    ))
}
