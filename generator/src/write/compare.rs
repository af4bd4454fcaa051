//! Decides for each file whether a run creates, updates, deletes or keeps it.

use std::path::Path;

use super::error::Error;
use super::files::{check_inside, read_if_exists};
use super::lock::{LockFile, Sha256Hex, normalized};
use super::wanted::WantedFiles;
use crate::crate_path::CratePath;
use crate::format::{FileContent, FormattedFile};
use crate::runtime_source::is_of_copy;

/// The difference between the wanted files and the disk.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The files to write or delete, the lock file last.
    pub changes: Vec<FileChange>,
    /// Generated files with edits that writing would lose.
    pub conflicts: Vec<EditConflict>,
    /// Whether a copy of the runtime stays as it is, because it was edited.
    pub keeps_copy: bool,
    /// Edited files that are no longer generated: they stay, and are the user's from now on.
    pub released: Vec<CratePath>,
}

/// The treatment of generated files that were edited by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditPolicy {
    /// Keep them: they are conflicts.
    Keep,
    /// Overwrite them, as `--force` asks.
    Overwrite,
}

/// One difference between the wanted files and the disk.
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
        /// Its content on disk.
        before: Vec<u8>,
        /// Its new text.
        after: String,
    },
    /// A file that is no longer generated.
    Delete {
        /// The file.
        path: CratePath,
        /// Its content on disk.
        before: Vec<u8>,
    },
}

/// A generated file that was edited by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditConflict {
    /// The file.
    pub path: CratePath,
    /// Its content on disk.
    pub on_disk: Vec<u8>,
    /// The text that kopf-gen would write.
    pub planned: String,
}

enum FileDecision {
    Keep,
    Change(FileChange),
    Conflict(EditConflict),
}

pub(super) fn compare(
    root: &Path,
    wanted: &WantedFiles,
    lock: &LockFile,
    edited: EditPolicy,
) -> Result<Comparison, Error> {
    let mut next = LockFile::with_notes(&wanted.notes);
    // To overwrite a copy that is not in use would delete it.
    let may_keep_copy = edited == EditPolicy::Keep || !uses_copy(wanted);
    let mut comparison = Comparison {
        keeps_copy: may_keep_copy && is_copy_edited(root, lock)?,
        ..Comparison::default()
    };
    for file in &wanted.files {
        let place = file.path.below(root);
        let written = match &file.content {
            FileContent::Generated(_) | FileContent::Vendored(_) => place.as_path(),
            // A file of the user may itself be a link to anywhere.
            FileContent::Scaffold(_) | FileContent::Splice { .. } => folder_of(&place),
        };
        check_inside(root, written)?;
        let on_disk = read_if_exists(&place)?;
        match &file.content {
            FileContent::Vendored(_) if comparison.keeps_copy => continue,
            FileContent::Generated(text) | FileContent::Vendored(text) => {
                next.record(file.path.clone(), Sha256Hex::of(text.as_bytes()));
            }
            FileContent::Scaffold(_) | FileContent::Splice { .. } => {}
        }
        match decide(file, on_disk, lock, edited)? {
            FileDecision::Keep => {}
            FileDecision::Change(change) => comparison.changes.push(change),
            FileDecision::Conflict(conflict) => comparison.conflicts.push(conflict),
        }
    }
    if comparison.keeps_copy {
        // It is edited until all of its files are as they were.
        let copied = lock.files().filter(|(path, _)| is_of_copy(path));
        copied.for_each(|(path, hash)| next.record(path.clone(), hash.clone()));
    }
    for (path, hash) in lock
        .files()
        .filter(|(path, _)| next.hash_of(path).is_none())
    {
        let place = path.below(root);
        check_inside(root, folder_of(&place))?;
        match read_if_exists(&place)? {
            None => {}
            Some(_) if wanted.files.iter().any(|file| file.path == *path) => {}
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

fn folder_of(place: &Path) -> &Path {
    place.parent().unwrap_or(place)
}

/// Whether a file of the copy is not as the last run wrote it, or is missing. A copy without any
/// file was deleted.
fn is_copy_edited(root: &Path, lock: &LockFile) -> Result<bool, Error> {
    let (mut exists, mut is_edited) = (false, false);
    for (path, hash) in lock.files().filter(|(path, _)| is_of_copy(path)) {
        let on_disk = read_if_exists(&path.below(root))?;
        exists |= on_disk.is_some();
        is_edited |= on_disk.is_none_or(|bytes| Sha256Hex::of(&bytes) != *hash);
    }
    Ok(exists && is_edited)
}

/// Whether the crate takes the runtime from its copy.
fn uses_copy(wanted: &WantedFiles) -> bool {
    let is_vendored = |file: &FormattedFile| matches!(file.content, FileContent::Vendored(_));
    wanted.files.iter().any(is_vendored)
}

fn decide(
    file: &FormattedFile,
    on_disk: Option<Vec<u8>>,
    lock: &LockFile,
    edited: EditPolicy,
) -> Result<FileDecision, Error> {
    let path = file.path.clone();
    Ok(match (&file.content, on_disk) {
        (
            FileContent::Generated(text)
            | FileContent::Vendored(text)
            | FileContent::Scaffold(text),
            None,
        ) => FileDecision::Change(FileChange::Create {
            path,
            after: text.clone(),
        }),
        (FileContent::Scaffold(_), Some(_)) => FileDecision::Keep,
        (FileContent::Generated(text) | FileContent::Vendored(text), Some(bytes)) => {
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
        (FileContent::Splice { before, after }, Some(bytes)) if bytes == before.as_bytes() => {
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
        (FileContent::Splice { .. }, _) => return Err(Error::ChangedMeanwhile(path)),
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
