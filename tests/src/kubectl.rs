//! Builds the real kubectl from its Go modules, and runs it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binaries::Environment;
use crate::test_failure::TestFailure;

/// The Go module of kubectl: its requirements, their checksums, its program.
const MODULE: [(&str, &str); 3] = [
    ("go.mod", include_str!("../kubectl/go.mod")),
    ("go.sum", include_str!("../kubectl/go.sum")),
    ("main.go", include_str!("../kubectl/main.go")),
];

/// A program of kubectl.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
}

// === impl Kubectl ===

impl Kubectl {
    /// Builds kubectl into the cache once; later calls, also from other processes, find it there.
    pub async fn obtain() -> Result<Self, TestFailure> {
        tokio::task::spawn_blocking(|| Self::build(&Environment::from_process(None).folders.cache))
            .await?
    }

    fn build(cache: &Path) -> Result<Self, TestFailure> {
        let folder = cache.join("kubectl");
        fs::create_dir_all(&folder)?;
        let lock = File::create(folder.join("lock"))?;
        lock.lock()?;
        let program = folder.join("kubectl");
        if program.exists() && has_module(&folder) {
            return Ok(Self { program });
        }
        for (name, text) in MODULE {
            fs::write(folder.join(name), text)?;
        }
        let unfinished = folder.join("kubectl.unfinished");
        let go = Command::new("go")
            .current_dir(&folder)
            .env("CGO_ENABLED", "0")
            .args(["build", "-trimpath", "-ldflags", "-s -w", "-o"])
            .arg(&unfinished)
            .arg(".")
            .output()
            .map_err(|error| TestFailure::new(format!("`go` could not be run: {error}")))?;
        if !go.status.success() {
            let errors = String::from_utf8_lossy(&go.stderr).into_owned();
            return Err(TestFailure::new(format!("kubectl was not built: {errors}")));
        }
        fs::rename(&unfinished, &program)?;
        Ok(Self { program })
    }

    /// Runs a command that has to succeed, and returns its output.
    pub fn run(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<String, TestFailure> {
        let output = Command::new(&self.program)
            .env("KUBECONFIG", kubeconfig)
            .args(arguments)
            .output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let command = arguments.join(" ");
            return Err(TestFailure::new(format!("kubectl {command}: {errors}")));
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// Whether the program in a folder was built from the module of today.
fn has_module(folder: &Path) -> bool {
    let is_same = |(name, text): &(&str, &str)| {
        let found: io::Result<String> = fs::read_to_string(folder.join(name));
        found.is_ok_and(|found| found == *text)
    };
    MODULE.iter().all(is_same)
}
