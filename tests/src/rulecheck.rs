//! Checks alert rules as `promtool check rules` does.

use std::path::Path;
use std::process::Command;

use crate::go_program::{self, GoModule};
use crate::test_failure::TestFailure;

const MODULE: GoModule = [
    ("go.mod", include_str!("../rulecheck/go.mod")),
    ("go.sum", include_str!("../rulecheck/go.sum")),
    ("main.go", include_str!("../rulecheck/main.go")),
];

/// What Prometheus says about a file of rules; nothing if it is fine.
pub async fn check(rules: &Path) -> Result<String, TestFailure> {
    let program = go_program::obtain("rulecheck", MODULE).await?;
    let output = Command::new(program).arg(rules).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    Ok(String::from_utf8(output.stdout)? + &errors)
}
