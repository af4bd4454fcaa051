//! The workspace: its root folder, cargo commands, and builds of its programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::test_failure::TestFailure;

/// The root of the workspace.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this crate is a member of the workspace")
}

/// Prepares to run cargo in this workspace.
#[must_use]
pub fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root());
    clear_cargo_variables(&mut cargo);
    cargo
}

/// Removes the variables that cargo sets for this process: build scripts would run again for them.
pub fn clear_cargo_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
}

/// Builds the program of a member of this workspace, in the folder that all members share.
#[track_caller]
pub fn build_program(package: &str) -> Result<PathBuf, TestFailure> {
    let failure = TestFailure::at_caller();
    let mut cargo = cargo();
    // Together with this crate, so that shared dependencies are built once and not per selection.
    let selection = ["--package", "kopf-tests", "--package", package, "--bins"];
    cargo
        .args(["build", "--quiet", "--message-format=json"])
        .args(selection);
    let output = cargo.output()?;
    let executable = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == package)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    match executable {
        Some(executable) if output.status.success() => Ok(executable),
        _ => Err(failure.with_message(format!(
            "{package} does not build:\n{}",
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}
