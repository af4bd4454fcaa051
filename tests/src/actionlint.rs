//! Runs the real linter of GitHub workflows.

use std::path::Path;
use std::process::Command;

use crate::go_program::{self, GoModule};
use crate::test_failure::TestFailure;

const MODULE: GoModule = [
    ("go.mod", include_str!("../actionlint/go.mod")),
    ("go.sum", include_str!("../actionlint/go.sum")),
    ("main.go", include_str!("../actionlint/main.go")),
];

/// What the linter says about a workflow; nothing if it is fine.
pub async fn lint(workflow: &Path) -> Result<String, TestFailure> {
    let program = go_program::obtain("actionlint", MODULE).await?;
    let output = Command::new(program)
        .arg("-no-color")
        .arg(workflow)
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    Ok(String::from_utf8(output.stdout)? + &errors)
}
