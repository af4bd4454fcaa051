//! Decides, file by file, what a plan changes and what it must not touch.

use std::path::Path;

use super::error::Error;
use super::files::read_if_exists;
use super::lock::{LockFile, Sha256Hex, normalized};
use crate::plan::{Content, CratePath, Plan, PlannedFile};

/// The difference between a plan and the disk.
#[derive(Debug, Default)]
pub struct Comparison {
    /// What has to be written or deleted, the lock last.
    pub changes: Vec<FileChange>,
    /// Generated files with edits that a run would lose.
    pub conflicts: Vec<EditConflict>,
    /// Files that are no longer made but carry edits: they stay, and are the user's from now on.
    pub released: Vec<CratePath>,
}

/// Whether a hand-edited generated file may be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditPolicy {
    /// Refuse, and show what would be lost.
    Keep,
    /// The user asked to discard the edits.
    Overwrite,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
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
pub struct EditConflict {
    /// The file.
    pub path: CratePath,
    /// What it holds now.
    pub on_disk: Vec<u8>,
    /// What kopf-gen would write.
    pub planned: String,
}

enum FileDecision {
    Keep,
    Change(FileChange),
    Conflict(EditConflict),
}

pub(super) fn compare(
    root: &Path,
    plan: &Plan,
    lock: &LockFile,
    edited: EditPolicy,
) -> Result<Comparison, Error> {
    let mut comparison = Comparison::default();
    let mut next = LockFile::with_notes(&plan.notes);
    for file in &plan.files {
        let on_disk = read_if_exists(&file.path.below(root))?;
        if let Content::Generated(text) = &file.content {
            next.record(file.path.clone(), Sha256Hex::of(text.as_bytes()));
        }
        match decide(file, on_disk, lock, edited)? {
            FileDecision::Keep => {}
            FileDecision::Change(change) => comparison.changes.push(change),
            FileDecision::Conflict(conflict) => comparison.conflicts.push(conflict),
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
                comparison.changes.push(FileChange::Delete {
                    path: path.clone(),
                    before,
                });
            }
            Some(_) => comparison.released.push(path.clone()),
        }
    }
    if next != *lock || read_if_exists(&LockFile::location().below(root))?.is_none() {
        let before = read_if_exists(&LockFile::location().below(root))?;
        comparison
            .changes
            .push(change_to(LockFile::location(), before, next.to_json()));
    }
    Ok(comparison)
}

fn decide(
    file: &PlannedFile,
    on_disk: Option<Vec<u8>>,
    lock: &LockFile,
    edited: EditPolicy,
) -> Result<FileDecision, Error> {
    let path = file.path.clone();
    Ok(match (&file.content, on_disk) {
        (Content::Generated(text) | Content::Scaffold(text), None) => {
            FileDecision::Change(FileChange::Create {
                path,
                after: text.clone(),
            })
        }
        (Content::Scaffold(_), Some(_)) => FileDecision::Keep,
        (Content::Generated(text), Some(bytes)) => {
            if normalized(&bytes) == text.as_bytes() {
                FileDecision::Keep
            } else if edited == EditPolicy::Overwrite
                || lock.hash_of(&path) == Some(&Sha256Hex::of(&bytes))
            {
                FileDecision::Change(FileChange::Update {
                    path,
                    before: bytes,
                    after: text.clone(),
                })
            } else {
                FileDecision::Conflict(EditConflict {
                    path,
                    on_disk: bytes,
                    planned: text.clone(),
                })
            }
        }
        (Content::Splice { before, after }, Some(bytes)) if bytes == before.as_bytes() => {
            if before == after {
                FileDecision::Keep
            } else {
                FileDecision::Change(FileChange::Update {
                    path,
                    before: bytes,
                    after: after.clone(),
                })
            }
        }
        (Content::Splice { .. }, _) => return Err(Error::ChangedMeanwhile(path)),
    })
}

fn change_to(path: CratePath, before: Option<Vec<u8>>, after: String) -> FileChange {
    match before {
        None => FileChange::Create { path, after },
        Some(before) => FileChange::Update {
            path,
            before,
            after,
        },
    }
}

// === impl FileChange ===

impl FileChange {
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
