//! `.kopf-gen/lock.json`: the hashes of generated files, by which kopf-gen recognises edits and obsolete files.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::{Error, LockFileError};
use super::files::{TOOL_FOLDER, read_if_exists};
use crate::crate_path::CratePath;

/// The format that this version writes. It also reads every older one, and the next run writes the
/// file in the new format.
const FORMAT: u32 = 2;

/// The files that the last run generated, each with the hash of its text, and the notes that it printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockFile {
    /// As read, so that a file in an older format is never equal to its replacement. A file without
    /// a number has format 0, which is otherwise the same as 1; notes came with 2.
    #[serde(default)]
    format: u32,
    files: BTreeMap<CratePath, Sha256Hex>,
    /// The titles of the notes that were printed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    notes: BTreeSet<String>,
}

/// A SHA-256 sum in hexadecimal that treats `\r\n` as `\n`.
///
/// A checkout may translate line endings, which is not an edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sha256Hex(String);

// === impl LockFile ===

impl Default for LockFile {
    fn default() -> Self {
        Self {
            format: FORMAT,
            files: BTreeMap::new(),
            notes: BTreeSet::new(),
        }
    }
}

impl LockFile {
    /// Reads the lock file of the crate in `root`; without one, nothing was generated yet.
    pub fn read(root: &Path) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct LockFormat {
            #[serde(default)]
            format: u32,
        }

        let path = Self::location().below(root);
        let Some(bytes) = read_if_exists(&path)? else {
            return Ok(Self::default());
        };
        let damaged = |source| LockFileError::Damaged {
            path: path.clone(),
            source,
        };
        let LockFormat { format } = serde_json::from_slice(&bytes).map_err(damaged)?;
        if format > FORMAT {
            return Err(LockFileError::Newer {
                path,
                found: format,
                known: FORMAT,
            }
            .into());
        }
        Ok(serde_json::from_slice(&bytes).map_err(damaged)?)
    }

    /// The path of the lock file.
    #[must_use]
    pub fn location() -> CratePath {
        CratePath::new(format!("{TOOL_FOLDER}/lock.json")).expect("the lock is inside the crate")
    }

    /// The text of the lock file.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a map of texts is JSON");
        text.push('\n');
        text
    }

    /// A lock without files, with these notes.
    pub(super) fn with_notes(notes: &BTreeSet<String>) -> Self {
        Self {
            notes: notes.clone(),
            ..Self::default()
        }
    }

    /// The titles of the notes that earlier runs printed.
    #[must_use]
    pub fn notes(&self) -> &BTreeSet<String> {
        &self.notes
    }

    /// Whether the last run generated the file.
    #[must_use]
    pub fn has(&self, path: &CratePath) -> bool {
        self.files.contains_key(path)
    }

    pub(super) fn record(&mut self, path: CratePath, hash: Sha256Hex) {
        self.files.insert(path, hash);
    }

    pub(super) fn hash_of(&self, path: &CratePath) -> Option<&Sha256Hex> {
        self.files.get(path)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&CratePath, &Sha256Hex)> {
        self.files.iter()
    }
}

// === impl Sha256Hex ===

impl Sha256Hex {
    /// The sum of a text or of bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let digest = Sha256::digest(normalized(bytes));
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Display for Sha256Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The bytes with `\n` for every `\r\n`.
pub(super) fn normalized(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !bytes.contains(&b'\r') {
        return Cow::Borrowed(bytes);
    }
    let mut unix = Vec::with_capacity(bytes.len());
    for (at, &byte) in bytes.iter().enumerate() {
        if byte != b'\r' || bytes.get(at + 1) != Some(&b'\n') {
            unix.push(byte);
        }
    }
    Cow::Owned(unix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_endings_do_not_change_the_sum() {
        assert_eq!(Sha256Hex::of(b"a\r\nb\n"), Sha256Hex::of(b"a\nb\n"));
        assert_ne!(Sha256Hex::of(b"a\rb\n"), Sha256Hex::of(b"a\nb\n"));
    }

    #[test]
    fn sum_is_the_standard_one() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Sha256Hex::of(b"abc").to_string(), abc);
    }

    #[test]
    fn a_newer_format_is_rejected_with_its_number() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join(TOOL_FOLDER)).expect("the tool folder");
        let place = LockFile::location().below(root.path());
        std::fs::write(place, r#"{"format": 7, "objects": []}"#).expect("a lock");
        let error = LockFile::read(root.path()).expect_err("format 7 is unknown");
        assert!(error.to_string().contains("format 7"), "{error}");
        assert!(error.to_string().contains("update kopf-gen"), "{error}");
    }
}
