//! What must not compile does not compile, for the reason that is meant.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// An error on a line: its code and its message.
type Rejection = (u64, String, String);

const PAGE: &str = "docs/children.md";

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

#[test]
fn the_page_shows_what_the_compiler_says_of_an_undeclared_child() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join(PAGE)).expect("the page is readable");
    let block = page
        .split("```text\nerror")
        .nth(1)
        .expect("the page shows an error");
    let shown = block.split("```").next().unwrap_or_default();
    let messages = messages();
    let rendered = messages
        .iter()
        .filter_map(|it| it["message"]["rendered"].as_str())
        .find(|it| it.contains("is not declared as a child"))
        .expect("an undeclared child is rejected");
    for line in format!("error{shown}").lines() {
        let words = line.trim();
        assert!(rendered.contains(words), "no `{words}` in {rendered}");
    }
}

/// The errors of all cases.
fn compile() -> Vec<Rejection> {
    let rejected: Vec<Rejection> = messages().iter().filter_map(rejection).collect();
    assert!(!rejected.is_empty(), "no case was compiled");
    rejected
}

/// Compiles all cases at once, and returns what the compiler says.
fn messages() -> Vec<Value> {
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
    let messages: Vec<Value> = lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let progress = String::from_utf8_lossy(&output.stderr);
    assert!(!messages.is_empty(), "no case was compiled:\n{progress}");
    messages
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
