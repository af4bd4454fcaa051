//! Runs the real kubectl.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::go_program::{self, GoModule};
use crate::test_failure::TestFailure;

const MODULE: GoModule = [
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
    /// Builds kubectl, or finds it in the cache.
    pub async fn obtain() -> Result<Self, TestFailure> {
        let program = go_program::obtain("kubectl", MODULE).await?;
        Ok(Self { program })
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
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
