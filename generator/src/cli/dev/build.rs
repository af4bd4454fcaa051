//! Generates and builds the operator.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::error::Error;

/// How the operator is built.
#[derive(Clone, Debug)]
pub(super) struct Builder {
    pub(super) root: PathBuf,
    /// This program, as it was found at the start: a new one may be installed meanwhile.
    pub(super) kopf_gen: PathBuf,
    pub(super) release: bool,
}

impl Builder {
    /// Brings the generated files up to date; whether that worked. Messages are printed.
    pub(super) async fn generate(&self) -> Result<bool, Error> {
        let status = Command::new(&self.kopf_gen)
            .arg("generate")
            .arg("--manifest")
            .arg(&self.root)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .status()
            .await;
        let status = status.map_err(|error| failed("run kopf-gen generate", error))?;
        Ok(status.success())
    }

    /// Builds the operator; none if it does not compile. The compiler prints its messages itself.
    pub(super) async fn build(&self) -> Result<Option<PathBuf>, Error> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["build", "--message-format=json-render-diagnostics"])
            .arg("--manifest-path")
            .arg(self.root.join("Cargo.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        if self.release {
            command.arg("--release");
        }
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_this_program(name)) {
            command.env_remove(name);
        }
        let mut cargo = command
            .spawn()
            .map_err(|error| failed("run cargo", error))?;
        let output = cargo.stdout.take();
        let mut executable = None;
        if let Some(output) = output {
            let mut lines = BufReader::new(output).lines();
            while let Some(line) = lines
                .next_line()
                .await
                .map_err(|error| failed("read the output of cargo", error))?
            {
                executable = executable_in(&line, &self.root).or(executable);
            }
        }
        let status = cargo.wait().await;
        let status = status.map_err(|error| failed("wait for cargo", error))?;
        if !status.success() {
            return Ok(None);
        }
        executable.map(Some).ok_or(Error::NoProgram)
    }
}

/// Whether `cargo run -p kopf-gen` has set this variable to say something about kopf-gen.
///
/// Build scripts of the operator's dependencies read these names. If they saw them here, and not
/// when the user runs cargo, each build would compile the dependencies anew.
fn is_of_this_program(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name == "OUT_DIR" || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// The program of the crate in a message of cargo.
fn executable_in(line: &str, root: &Path) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_program = message["target"]["kind"]
        .as_array()?
        .contains(&"bin".into());
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let is_ours =
        std::fs::canonicalize(manifest).ok() == std::fs::canonicalize(root.join("Cargo.toml")).ok();
    let executable = message["executable"].as_str()?;
    (is_program && is_ours).then(|| PathBuf::from(executable))
}

fn failed(action: &'static str, source: io::Error) -> Error {
    Error::Program { action, source }
}
