//! The errors of comparing and writing files.

use std::io;
use std::path::PathBuf;

use crate::crate_path::CratePath;

/// Why the files could not be compared or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file could not be written, moved or deleted.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file exists and kopf-gen did not write it.
    #[error("{0} was not written by kopf-gen; `--force` overwrites it")]
    NotOurs(PathBuf),
    /// A link in the crate leads out of it.
    #[error("{0} is not in the crate: a symbolic link leads out of it; remove the link")]
    Outside(PathBuf),
    /// The lock file cannot be used.
    #[error(transparent)]
    Lock(#[from] LockFileError),
    /// Another kopf-gen is writing into the same crate.
    #[error("another kopf-gen is writing into {0}")]
    Busy(PathBuf),
    /// The journal of an interrupted run is damaged.
    #[error("the journal of an interrupted run, {path}, is damaged")]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// A file was changed between reading and writing it.
    #[error("{0} was changed while kopf-gen was running; run it again")]
    ChangedMeanwhile(CratePath),
    /// A file was edited after an interrupted run had been about to replace it.
    #[error(
        "{path} was edited after an interrupted run; its new text is in {staged}: \
         copy what you need, delete {journal}, and run `kopf-gen generate`"
    )]
    EditedAfterInterruption {
        /// The edited file.
        path: CratePath,
        /// The file with the text that would have replaced it.
        staged: PathBuf,
        /// The journal of the interrupted run.
        journal: PathBuf,
    },
}

/// Why a lock file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockFileError {
    /// It is not JSON of the right shape, perhaps because of merge markers.
    #[error(
        "{path} is damaged; after a merge conflict take either side of it, \
         or delete it, and run `kopf-gen generate`"
    )]
    Damaged {
        /// The lock file.
        path: PathBuf,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// A newer kopf-gen wrote it.
    #[error(
        "{path} was written by a newer kopf-gen: it has format {found}, and this one reads formats \
         up to {known}; update kopf-gen"
    )]
    Newer {
        /// The lock file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this version reads.
        known: u32,
    },
}
