//! The program that runs supervisors and wraps child processes: another process than the one that
//! uses them, because it must outlive that one.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of the program in the packages whose tests use it.
const NAME: &str = "control-plane";

/// A program whose `main` calls [`crate::subcommand::run`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
}

/// The program is not where cargo puts it.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} is missing; `cargo build -p kopf-tests --bins` builds it, as `cargo test` of that package does",
    .0.display()
)]
pub struct MissingProgram(PathBuf);

// === impl Program ===

impl Program {
    /// The program at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The program in the folder above `deps/`, into which cargo puts the test binary.
    pub fn beside_this_executable() -> Result<Self, MissingProgram> {
        let test = env::current_exe().unwrap_or_default();
        let beside = test.parent().unwrap_or(Path::new("/"));
        let folder = if beside.ends_with("deps") {
            beside.parent().unwrap_or(beside)
        } else {
            beside
        };
        let path = folder.join(NAME);
        if path.is_file() {
            Ok(Self::at(path))
        } else {
            Err(MissingProgram(path))
        }
    }

    /// The running program itself.
    pub fn this_executable() -> std::io::Result<Self> {
        Ok(Self::at(env::current_exe()?))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.arg(subcommand);
        command
    }
}
