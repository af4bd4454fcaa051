//! Decides, file by file, what a plan changes and what it must not touch.

use std::path::Path;

use super::lock::{Lock, Sha256Hex, normalized};
use super::{EditedFiles, Error, read_if_exists};
use crate::plan::{CratePath, FileContent, Plan, PlannedFile};

/// The difference between a plan and the disk.
#[derive(Debug, Default)]
pub struct Comparison {
    /// What has to be written or deleted, the lock last.
    pub changes: Vec<Change>,
    /// Generated files with edits that a run would lose.
    pub conflicts: Vec<Conflict>,
    /// Files that are no longer made but carry edits: they stay, and are the user's from now on.
    pub released: Vec<CratePath>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A file that does not exist yet.
    Create {
        /// The file.
        path: CratePath,
        /// Its text.
        after: String,
    },
    /// A file with another text.
    Update {
        /// The file.
        path: CratePath,
        /// What it holds now.
        before: Vec<u8>,
        /// What it will hold.
        after: String,
    },
    /// A file that is no longer made.
    Delete {
        /// The file.
        path: CratePath,
        /// What it holds now.
        before: Vec<u8>,
    },
}

/// A generated file that somebody edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The file.
    pub path: CratePath,
    /// What it holds now.
    pub on_disk: Vec<u8>,
    /// What kopf-gen would write.
    pub planned: String,
}

enum Verdict {
    Keep,
    Change(Change),
    Conflict(Conflict),
}

pub(super) fn compare(
    root: &Path,
    plan: &Plan,
    lock: &Lock,
    edited: EditedFiles,
) -> Result<Comparison, Error> {
    let mut comparison = Comparison::default();
    let mut next = Lock::with_notes(&plan.notes);
    for file in &plan.files {
        let on_disk = read_if_exists(&file.path.below(root))?;
        if let FileContent::Generated(text) = &file.content {
            next.record(file.path.clone(), Sha256Hex::of(text.as_bytes()));
        }
        match judge(file, on_disk, lock, edited)? {
            Verdict::Keep => {}
            Verdict::Change(change) => comparison.changes.push(change),
            Verdict::Conflict(conflict) => comparison.conflicts.push(conflict),
        }
    }
    for (path, hash) in lock
        .files()
        .filter(|(path, _)| next.hash_of(path).is_none())
    {
        match read_if_exists(&path.below(root))? {
            None => {}
            Some(_) if plan.files.iter().any(|file| file.path == *path) => {}
            Some(before) if Sha256Hex::of(&before) == *hash => {
                comparison.changes.push(Change::Delete {
                    path: path.clone(),
                    before,
                });
            }
            Some(_) => comparison.released.push(path.clone()),
        }
    }
    if next != *lock || read_if_exists(&Lock::location().below(root))?.is_none() {
        let before = read_if_exists(&Lock::location().below(root))?;
        comparison
            .changes
            .push(change_to(Lock::location(), before, next.to_json()));
    }
    Ok(comparison)
}

fn judge(
    file: &PlannedFile,
    on_disk: Option<Vec<u8>>,
    lock: &Lock,
    edited: EditedFiles,
) -> Result<Verdict, Error> {
    let path = file.path.clone();
    Ok(match (&file.content, on_disk) {
        (FileContent::Generated(text) | FileContent::Scaffold(text), None) => {
            Verdict::Change(Change::Create {
                path,
                after: text.clone(),
            })
        }
        (FileContent::Scaffold(_), Some(_)) => Verdict::Keep,
        (FileContent::Generated(text), Some(bytes)) => {
            if normalized(&bytes) == text.as_bytes() {
                Verdict::Keep
            } else if edited == EditedFiles::Overwrite
                || lock.hash_of(&path) == Some(&Sha256Hex::of(&bytes))
            {
                Verdict::Change(Change::Update {
                    path,
                    before: bytes,
                    after: text.clone(),
                })
            } else {
                Verdict::Conflict(Conflict {
                    path,
                    on_disk: bytes,
                    planned: text.clone(),
                })
            }
        }
        (FileContent::Splice { before, after }, Some(bytes)) if bytes == before.as_bytes() => {
            if before == after {
                Verdict::Keep
            } else {
                Verdict::Change(Change::Update {
                    path,
                    before: bytes,
                    after: after.clone(),
                })
            }
        }
        (FileContent::Splice { .. }, _) => return Err(Error::ChangedMeanwhile(path)),
    })
}

fn change_to(path: CratePath, before: Option<Vec<u8>>, after: String) -> Change {
    match before {
        None => Change::Create { path, after },
        Some(before) => Change::Update {
            path,
            before,
            after,
        },
    }
}

// === impl Change ===

impl Change {
    /// The file that changes.
    #[must_use]
    pub fn path(&self) -> &CratePath {
        match self {
            Self::Create { path, .. } | Self::Update { path, .. } | Self::Delete { path, .. } => {
                path
            }
        }
    }

    pub(super) fn before(&self) -> Option<&[u8]> {
        match self {
            Self::Create { .. } => None,
            Self::Update { before, .. } | Self::Delete { before, .. } => Some(before),
        }
    }

    pub(super) fn after(&self) -> Option<&str> {
        match self {
            Self::Create { after, .. } | Self::Update { after, .. } => Some(after),
            Self::Delete { .. } => None,
        }
    }
}
