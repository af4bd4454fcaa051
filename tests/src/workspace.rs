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
        let is_of_package = text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_");
        if is_of_package || text == "OUT_DIR" {
            command.env_remove(&name);
        }
    }
}

/// Builds the program of a member of this workspace, in the folder that all members share.
#[track_caller]
pub fn build_program(package: &str) -> Result<PathBuf, TestFailure> {
    let failure = TestFailure::at_caller();
    match build(&[package]) {
        Ok(mut programs) => Ok(programs.remove(0)),
        Err(message) => Err(failure.with_message(message)),
    }
}

/// The same for several members at once; their programs are in the order of the members.
#[track_caller]
pub fn build_programs(packages: &[&str]) -> Result<Vec<PathBuf>, TestFailure> {
    let failure = TestFailure::at_caller();
    build(packages).map_err(|message| failure.with_message(message))
}

fn build(packages: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut cargo = cargo();
    // Together with this crate, so that shared dependencies are built once and not per selection.
    let selection = ["--package", "kopf-tests", "--bins"];
    cargo
        .args(["build", "--quiet", "--message-format=json"])
        .args(selection)
        .args(packages.iter().flat_map(|package| ["--package", package]));
    let output = cargo.output().map_err(|error| error.to_string())?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let built: Vec<Value> = stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let program = |package: &&str| {
        let of_package = built.iter().filter(|it| it["target"]["name"] == *package);
        let mut programs = of_package.filter_map(|it| it["executable"].as_str());
        programs.next().map(PathBuf::from)
    };
    let programs: Option<Vec<PathBuf>> = packages.iter().map(program).collect();
    programs.filter(|_| output.status.success()).ok_or_else(|| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        format!("{} does not build:\n{stderr}", packages.join(", "))
    })
}
