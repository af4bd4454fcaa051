//! The operators on other frameworks, built when a run needs them.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use kopf_tests::{TestFailure, workspace};

/// Builds the operator on kube's Controller, with the profile of this program.
pub(crate) fn controller() -> Result<PathBuf, TestFailure> {
    const NAME: &str = "kopf-faults-controller";
    let target = workspace::root().join("target/faults-peers");
    let (profile, folder) = if cfg!(debug_assertions) {
        ("dev", "debug")
    } else {
        ("release", "release")
    };
    let mut cargo = workspace::cargo();
    cargo
        .args(["build", "--locked", "--quiet", "--profile", profile])
        .args(["--manifest-path", "tests/faults/controller/Cargo.toml"])
        .arg("--target-dir")
        .arg(&target);
    run(cargo, NAME)?;
    Ok(target.join(folder).join(NAME))
}

/// Builds the operator on controller-runtime.
pub(crate) fn controller_runtime() -> Result<PathBuf, TestFailure> {
    const NAME: &str = "faults-controller-runtime";
    let program = env::current_exe()?.with_file_name(NAME);
    let mut go = Command::new("go");
    go.args(["build", "-o"])
        .arg(&program)
        .arg("./faults")
        .current_dir(workspace::root().join("tests/bench/controller-runtime"));
    run(go, NAME)?;
    Ok(program)
}

fn run(mut build: Command, name: &str) -> Result<(), TestFailure> {
    let output = build.output()?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(TestFailure::new(format!("{name} was not built:\n{errors}")))
}
