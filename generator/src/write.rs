//! The only module that changes files: compares a plan with the disk, then applies the difference as one step.
//!
//! New texts are staged first and a journal makes the step final, so a run that is killed leaves
//! the old state or is completed by the next one; it never leaves a mix behind for good.

mod compare;
mod journal;
mod lock;

use std::io;
use std::path::{Path, PathBuf};

use crate::plan::{CratePath, PlannedFile};

pub use compare::{Change, Comparison, Conflict};
pub use lock::{Lock, LockError, Sha256Hex};

/// The folder that belongs to kopf-gen inside an operator crate.
pub const TOOL_FOLDER: &str = ".kopf-gen";

/// Whether a hand-edited generated file may be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditedFiles {
    /// Refuse, and show what would be lost.
    Keep,
    /// The user asked to discard the edits.
    Overwrite,
}

/// Why the files could not be compared or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be written, moved or deleted.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The lock file is not one that this version understands.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Another kopf-gen is writing into the same crate.
    #[error("another kopf-gen is writing into {0}")]
    Busy(PathBuf),
    /// The journal of an interrupted run is damaged.
    #[error("the journal of an interrupted run, {path}, is damaged")]
    Journal {
        /// The journal.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A file was changed between reading and writing it.
    #[error("{0} was changed while kopf-gen was running; run it again")]
    ChangedMeanwhile(CratePath),
    /// A file was edited after an interrupted run had been about to replace it.
    #[error(
        "{path} was edited after an interrupted run; its new text is in {staged}: \
         take over what you need, delete {journal}, and run `kopf-gen generate`"
    )]
    EditedAfterInterruption {
        /// The edited file.
        path: CratePath,
        /// Where the text is that would have replaced it.
        staged: PathBuf,
        /// The journal that keeps the interrupted run alive.
        journal: PathBuf,
    },
}

/// Compares `plan` with the crate in `root`, changing nothing.
pub fn compare(
    root: &Path,
    plan: &[PlannedFile],
    edited: EditedFiles,
) -> Result<Comparison, Error> {
    let lock = Lock::read(root)?;
    compare::compare(root, plan, &lock, edited)
}

/// Applies a comparison that has no conflicts: afterwards all of it is on disk, or none.
pub fn apply(root: &Path, comparison: &Comparison) -> Result<(), Error> {
    debug_assert!(
        comparison.conflicts.is_empty(),
        "conflicts are refused before anything is written"
    );
    if comparison.changes.is_empty() {
        return Ok(());
    }
    journal::commit(root, &comparison.changes, &mut || Ok(()))
}

/// Completes a run that was interrupted. Says whether there was one.
pub fn recover(root: &Path) -> Result<bool, Error> {
    journal::recover(root, &mut || Ok(()))
}

/// Whether a run was interrupted and waits to be completed.
#[must_use]
pub fn is_interrupted(root: &Path) -> bool {
    journal::path(root).exists()
}

fn read_if_exists(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(source) => Err(Error::Read {
            path: path.to_path_buf(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests;
