//! The files that a run wants on disk.

use std::collections::BTreeSet;

use crate::format::FormattedFile;

/// All files of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedFiles {
    /// The files.
    pub files: Vec<FormattedFile>,
    /// The notes on the manifest, which the lock file keeps so that each is printed once.
    pub notes: BTreeSet<String>,
    /// Whether the API server rejects a definition of the crate.
    pub has_rejected_definitions: bool,
}

// === impl WantedFiles ===

impl From<Vec<FormattedFile>> for WantedFiles {
    fn from(files: Vec<FormattedFile>) -> Self {
        Self {
            files,
            ..Self::default()
        }
    }
}
