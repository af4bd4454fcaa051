//! The text of a file, with its owner.

use crate::crate_path::CratePath;

/// One file of a run, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormattedFile {
    /// The path.
    pub path: CratePath,
    /// The text and its owner.
    pub content: FileContent,
}

/// The text of one file, by owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// Owned by kopf-gen: every run writes exactly this text.
    Generated(String),
    /// A part of a copy that kopf-gen owns as long as no part of it is edited.
    Vendored(String),
    /// Owned by the user: written if it is missing, and never changed afterwards.
    Scaffold(String),
    /// Owned by the user, with an addition to the present text.
    Splice {
        /// The text that the addition was computed from.
        before: String,
        /// The same text with the addition.
        after: String,
    },
}

// === impl FileContent ===

impl FileContent {
    /// The text that the run wants.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Generated(text) | Self::Vendored(text) | Self::Scaffold(text) => text,
            Self::Splice { after, .. } => after,
        }
    }

    /// The text that the run wants.
    #[must_use]
    pub fn into_text(self) -> String {
        match self {
            Self::Generated(text) | Self::Vendored(text) | Self::Scaffold(text) => text,
            Self::Splice { after, .. } => after,
        }
    }
}
