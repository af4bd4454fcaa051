//! Builds programs from their Go modules, once per machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binaries::Environment;
use crate::test_failure::TestFailure;

/// The files of a Go module: its requirements, their checksums, its program.
pub(crate) type GoModule = [(&'static str, &'static str); 3];

/// Builds the program of a module into the cache; later calls, also from other processes, find it
/// there.
pub(crate) async fn obtain(name: &'static str, module: GoModule) -> Result<PathBuf, TestFailure> {
    tokio::task::spawn_blocking(move || {
        let folder = Environment::from_process(None).folders.cache.join(name);
        build(&folder, name, &module)
    })
    .await?
}

fn build(folder: &Path, name: &str, module: &GoModule) -> Result<PathBuf, TestFailure> {
    fs::create_dir_all(folder)?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let program = folder.join(name);
    let is_same = |(file, text): &(&str, &str)| {
        let found = fs::read_to_string(folder.join(file));
        found.is_ok_and(|found| found == *text)
    };
    if program.exists() && module.iter().all(is_same) {
        return Ok(program);
    }
    for (file, text) in module {
        fs::write(folder.join(file), text)?;
    }
    let unfinished = folder.join("unfinished");
    let go = Command::new("go")
        .current_dir(folder)
        .env("CGO_ENABLED", "0")
        .args(["build", "-trimpath", "-ldflags", "-s -w", "-o"])
        .arg(&unfinished)
        .arg(".")
        .output()
        .map_err(|error| TestFailure::new(format!("`go` could not be run: {error}")))?;
    if !go.status.success() {
        let errors = String::from_utf8_lossy(&go.stderr).into_owned();
        return Err(TestFailure::new(format!("{name} was not built: {errors}")));
    }
    fs::rename(&unfinished, &program)?;
    Ok(program)
}
