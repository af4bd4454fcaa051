//! Checks pipelines of GitLab with its schema, which the Python package `check-jsonschema` carries.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binaries::Environment;
use crate::test_failure::TestFailure;

const PACKAGE: &str = "check-jsonschema==0.39.0";

/// What the schema says against a pipeline; nothing if it is fine.
pub async fn check(pipeline: &Path) -> Result<String, TestFailure> {
    let packages = tokio::task::spawn_blocking(obtain).await??;
    let output = Command::new("python3")
        .env("PYTHONPATH", &packages)
        .args(["-m", "check_jsonschema", "--color=never"])
        .args(["--builtin-schema", "vendor.gitlab-ci"])
        .args(["--data-transform", "gitlab-ci"])
        .arg(pipeline)
        .output()?;
    match output.status.code() {
        Some(0) => Ok(String::new()),
        Some(1) => Ok(String::from_utf8(output.stdout)?),
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(TestFailure::new(errors))
        }
    }
}

/// Installs the package into the cache once; later calls, also from other processes, find it there.
fn obtain() -> Result<PathBuf, TestFailure> {
    let cache = Environment::from_process(None).folders.cache;
    let folder = cache.join("check-jsonschema");
    fs::create_dir_all(&folder)?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let packages = folder.join(PACKAGE);
    if packages.exists() {
        return Ok(packages);
    }
    let unfinished = folder.join("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    let pip = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet"])
        .args(["--disable-pip-version-check", "--target"])
        .arg(&unfinished)
        .arg(PACKAGE)
        .output()?;
    if !pip.status.success() {
        let errors = String::from_utf8_lossy(&pip.stderr).into_owned();
        return Err(TestFailure::new(format!("{PACKAGE}: {errors}")));
    }
    fs::rename(&unfinished, &packages)?;
    Ok(packages)
}
