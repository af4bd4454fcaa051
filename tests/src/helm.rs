//! Runs the real Helm.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::go_program::{self, GoModule};
use crate::test_failure::TestFailure;

const MODULE: GoModule = [
    ("go.mod", include_str!("../helm/go.mod")),
    ("go.sum", include_str!("../helm/go.sum")),
    ("main.go", include_str!("../helm/main.go")),
];

/// A program of Helm, with folders of its own for what it keeps.
#[derive(Debug)]
pub struct Helm {
    program: PathBuf,
    home: TempDir,
}

// === impl Helm ===

impl Helm {
    /// Builds Helm, or finds it in the cache.
    pub async fn obtain() -> Result<Self, TestFailure> {
        let program = go_program::obtain("helm", MODULE).await?;
        let home = tempfile::tempdir()?;
        Ok(Self { program, home })
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs a command that has to succeed, without a cluster, and returns its output.
    pub fn run(&self, arguments: &[&str]) -> Result<String, TestFailure> {
        self.run_on(&self.home.path().join("none"), arguments)
    }

    /// Runs a command that has to succeed, and returns its output.
    pub fn run_on(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<String, TestFailure> {
        let home = self.home.path();
        let output = Command::new(&self.program)
            .env("KUBECONFIG", kubeconfig)
            .env("HELM_CACHE_HOME", home.join("cache"))
            .env("HELM_CONFIG_HOME", home.join("config"))
            .env("HELM_DATA_HOME", home.join("data"))
            .args(arguments)
            .output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let printed = String::from_utf8_lossy(&output.stdout);
            let command = arguments.join(" ");
            return Err(TestFailure::new(format!(
                "helm {command}: {errors}{printed}"
            )));
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}
