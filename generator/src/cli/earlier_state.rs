//! Reads the definitions of an earlier state of the crate from git.

use std::path::Path;
use std::process::Command;

/// Why an earlier state could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// git cannot be run.
    #[error("`git` could not be run, which `--against` needs")]
    Git(#[source] std::io::Error),
    /// The folder is not in a repository, or the revision is not in it.
    #[error("git does not know `{revision}`: {reason}")]
    Revision {
        /// The revision.
        revision: String,
        /// The first line of git's error.
        reason: String,
    },
    /// A file of the revision could not be read.
    #[error("git could not print {path} of that revision: {reason}")]
    File {
        /// The path.
        path: String,
        /// The first line of git's error.
        reason: String,
    },
}

/// A commit of the repository in which the crate is.
pub(super) struct EarlierState<'r> {
    root: &'r Path,
    commit: String,
}

// === impl EarlierState ===

impl<'r> EarlierState<'r> {
    /// Finds a revision: a branch, a tag, a commit.
    pub(super) fn find(root: &'r Path, revision: &str) -> Result<Self, Error> {
        let commit = format!("{revision}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--end-of-options", &commit];
        match git(root, &arguments)? {
            Ok(commit) => Ok(Self {
                root,
                commit: commit.trim().to_owned(),
            }),
            Err(reason) => Err(Error::Revision {
                revision: revision.to_owned(),
                reason,
            }),
        }
    }

    /// The files below a path of the crate, as paths of the crate.
    pub(super) fn files(&self, path: &str) -> Result<Vec<String>, Error> {
        let arguments = [
            "ls-tree",
            "-r",
            "-z",
            "--name-only",
            &self.commit,
            "--",
            path,
        ];
        let listed = git(self.root, &arguments)?.map_err(|reason| Error::File {
            path: path.to_owned(),
            reason,
        })?;
        let paths = listed.split('\0').filter(|path| !path.is_empty());
        Ok(paths.map(str::to_owned).collect())
    }

    /// The text of a file, by a path that [`Self::files`] returned.
    pub(super) fn read(&self, path: &str) -> Result<String, Error> {
        let object = format!("{}:./{path}", self.commit);
        git(self.root, &["show", &object])?.map_err(|reason| Error::File {
            path: path.to_owned(),
            reason,
        })
    }
}

/// The output of git, or the first line of its error.
fn git(root: &Path, arguments: &[&str]) -> Result<Result<String, String>, Error> {
    let mut command = Command::new("git");
    let output = command.arg("-C").arg(root).args(arguments).output();
    let output = output.map_err(Error::Git)?;
    if output.status.success() {
        return Ok(Ok(String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let first = errors.lines().next().unwrap_or("no reason given");
    Ok(Err(first.trim_start_matches("fatal: ").to_owned()))
}
