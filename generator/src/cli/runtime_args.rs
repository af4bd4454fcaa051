//! The options of `new` and `generate` that choose the source of the runtime for a new crate.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::runtime_source::{Error, RuntimeSource};

/// The source of the runtime; by default that from which this program comes.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
pub(super) struct RuntimeArgs {
    /// Take kopf-runtime from this folder
    #[arg(long, value_name = "PATH")]
    runtime_path: Option<PathBuf>,
    /// Take kopf-runtime from this git repository; `URL#REV` names a commit, tag or branch
    #[arg(long, value_name = "URL[#REV]")]
    runtime_git: Option<String>,
    /// Take this published version of kopf-runtime
    #[arg(long, value_name = "VERSION")]
    runtime_version: Option<String>,
    /// Copy kopf-runtime into the crate, from what this program carries
    #[arg(long)]
    vendor: bool,
}

impl RuntimeArgs {
    /// The option that was given.
    pub(super) fn option(&self) -> Option<&'static str> {
        [
            (self.runtime_path.is_some(), "--runtime-path"),
            (self.runtime_git.is_some(), "--runtime-git"),
            (self.runtime_version.is_some(), "--runtime-version"),
            (self.vendor, "--vendor"),
        ]
        .into_iter()
        .find_map(|(is_given, option)| is_given.then_some(option))
    }

    /// The source for a crate in `dir`.
    pub(super) fn source(&self, dir: &Path) -> Result<RuntimeSource, Error> {
        if let Some(path) = &self.runtime_path {
            return RuntimeSource::folder(path, dir);
        }
        if let Some(address) = &self.runtime_git {
            return git_source(address);
        }
        if let Some(version) = &self.runtime_version {
            return RuntimeSource::registry(version);
        }
        if self.vendor {
            return Ok(RuntimeSource::Vendored);
        }
        RuntimeSource::of_this_program(dir)
    }
}

/// The repository of an address `URL#REV`.
pub(super) fn git_source(address: &str) -> Result<RuntimeSource, Error> {
    match address.split_once('#') {
        Some((url, revision)) if !revision.is_empty() => {
            RuntimeSource::git(url, Some(revision.to_owned()))
        }
        Some((url, _)) => RuntimeSource::git(url, None),
        None => RuntimeSource::git(address, None),
    }
}
