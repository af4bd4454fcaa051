//! Applies many file changes atomically: stages every new text, writes a journal, then moves the files.
//!
//! A run that is killed before the journal exists has changed no file of the crate; after that,
//! [`recover`] completes it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::compare::FileChange;
use super::error::Error;
use super::files::{TOOL_FOLDER, check_inside, read_if_exists};
use super::lock::Sha256Hex;
use crate::crate_path::CratePath;

/// Called before each visible step; tests return an error to stop the run there, as a kill would.
pub(super) type BeforeStep<'a> = &'a mut dyn FnMut() -> io::Result<()>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteJournal {
    steps: Vec<JournalStep>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalStep {
    path: CratePath,
    before: Option<Sha256Hex>,
    action: JournalAction,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalAction {
    Replace {
        staged: StagedName,
        after: Sha256Hex,
    },
    Delete,
}

/// The name of a staged file: a number, so that no journal moves another file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct StagedName(usize);

/// Locks the staging folder against other runs until it is dropped.
struct StagingLock {
    _file: File,
}

pub(super) fn path(root: &Path) -> PathBuf {
    root.join(TOOL_FOLDER).join("journal.json")
}

fn staging(root: &Path) -> PathBuf {
    root.join(TOOL_FOLDER).join("staging")
}

pub(super) fn commit(
    root: &Path,
    changes: &[FileChange],
    before_step: BeforeStep<'_>,
) -> Result<(), Error> {
    let lock = StagingLock::take(root)?;
    let mut steps = Vec::with_capacity(changes.len());
    for (number, change) in changes.iter().enumerate() {
        let target = change.path().below(root);
        if read_if_exists(&target)?.as_deref() != change.before() {
            return Err(Error::ChangedMeanwhile(change.path().clone()));
        }
        let action = match change.after() {
            None => JournalAction::Delete,
            Some(text) => {
                let staged = StagedName(number);
                at(&target, before_step())?;
                stage(&staged.below(root), &target, text)?;
                JournalAction::Replace {
                    staged,
                    after: Sha256Hex::of(text.as_bytes()),
                }
            }
        };
        steps.push(JournalStep {
            path: change.path().clone(),
            before: change.before().map(Sha256Hex::of),
            action,
        });
    }
    let journal = WriteJournal { steps };
    write_journal(root, &journal, before_step)?;
    replay(root, &journal, before_step)?;
    clean_up(root, lock, before_step)
}

pub(super) fn recover(root: &Path, before_step: BeforeStep<'_>) -> Result<bool, Error> {
    let place = path(root);
    if read_if_exists(&place)?.is_none() && !staging(root).exists() {
        return Ok(false);
    }
    let lock = StagingLock::take(root)?;
    let found = read_if_exists(&place)?;
    if let Some(bytes) = &found {
        let journal = serde_json::from_slice(bytes).map_err(|source| Error::Journal {
            path: place.clone(),
            source,
        })?;
        replay(root, &journal, before_step)?;
    }
    clean_up(root, lock, before_step)?;
    Ok(found.is_some())
}

fn stage(staged: &Path, target: &Path, text: &str) -> Result<(), Error> {
    let write = || {
        let mut file = File::create(staged)?;
        file.write_all(text.as_bytes())?;
        match fs::metadata(target) {
            Ok(existing) => file.set_permissions(existing.permissions())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        file.sync_all()
    };
    at(target, write())
}

fn write_journal(
    root: &Path,
    journal: &WriteJournal,
    before_step: BeforeStep<'_>,
) -> Result<(), Error> {
    let place = path(root);
    let draft = staging(root).join("journal");
    let bytes = serde_json::to_vec(journal).expect("paths and sums are JSON");
    let mut write = || {
        before_step()?;
        let mut file = File::create(&draft)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        before_step()?;
        fs::rename(&draft, &place)
    };
    at(&place, write())
}

fn replay(root: &Path, journal: &WriteJournal, before_step: BeforeStep<'_>) -> Result<(), Error> {
    let mut emptied = BTreeSet::new();
    for step in &journal.steps {
        let target = step.path.below(root);
        check_inside(root, target.parent().unwrap_or(root))?;
        let current = read_if_exists(&target)?.map(|bytes| Sha256Hex::of(&bytes));
        match &step.action {
            JournalAction::Replace { after, .. } if current.as_ref() == Some(after) => {}
            JournalAction::Replace { staged, .. } => {
                let staged = staged.below(root);
                if current != step.before {
                    let (path, journal) = (step.path.clone(), path(root));
                    return Err(Error::EditedAfterInterruption {
                        path,
                        staged,
                        journal,
                    });
                }
                at(&target, before_step())?;
                at(&target, move_into_place(&staged, &target))?;
            }
            JournalAction::Delete if current.is_some() && current == step.before => {
                at(&target, before_step())?;
                at(&target, fs::remove_file(&target))?;
                emptied.extend(target.parent().map(Path::to_path_buf));
            }
            JournalAction::Delete => {}
        }
    }
    for folder in emptied {
        remove_while_empty(root, &folder);
    }
    Ok(())
}

fn move_into_place(staged: &Path, target: &Path) -> io::Result<()> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    // A symbolic link stays: the file that it points to gets the new text.
    match fs::canonicalize(target) {
        Ok(real) => fs::rename(staged, real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(staged, target),
        Err(error) => Err(error),
    }
}

/// Removes the folder and its parents up to `root`, as long as they are empty.
fn remove_while_empty(root: &Path, folder: &Path) {
    let mut folder = folder;
    while folder != root && fs::remove_dir(folder).is_ok() {
        match folder.parent() {
            Some(parent) => folder = parent,
            None => break,
        }
    }
}

fn clean_up(root: &Path, lock: StagingLock, before_step: BeforeStep<'_>) -> Result<(), Error> {
    let place = path(root);
    at(&place, before_step())?;
    match fs::remove_file(&place) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            return Err(Error::Write {
                path: place,
                source,
            });
        }
        _ => {}
    }
    drop(lock);
    let folder = staging(root);
    at(&folder, before_step())?;
    at(&folder, fs::remove_dir_all(&folder))
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, Error> {
    result.map_err(|source| Error::Write {
        path: path.to_path_buf(),
        source,
    })
}

// === impl StagedName ===

impl StagedName {
    fn below(&self, root: &Path) -> PathBuf {
        staging(root).join(self.0.to_string())
    }
}

impl TryFrom<String> for StagedName {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

impl From<StagedName> for String {
    fn from(name: StagedName) -> Self {
        name.0.to_string()
    }
}

// === impl StagingLock ===

impl StagingLock {
    fn take(root: &Path) -> Result<Self, Error> {
        let folder = staging(root);
        check_inside(root, &folder)?;
        at(&folder, fs::create_dir_all(&folder))?;
        let place = folder.join("in-use");
        let file = at(
            &place,
            File::options().create(true).append(true).open(&place),
        )?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(fs::TryLockError::WouldBlock) => Err(Error::Busy(root.to_path_buf())),
            Err(fs::TryLockError::Error(source)) => Err(Error::Write {
                path: place,
                source,
            }),
        }
    }
}
