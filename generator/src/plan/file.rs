//! One planned file: its path inside the crate, and its text with the owner of that text.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A path inside the operator crate, always with forward slashes and never leaving the crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CratePath(String);

/// The text is not a [`CratePath`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a path inside the operator crate")]
pub struct NotACratePath(String);

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

/// One file of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// The path.
    pub path: CratePath,
    /// The text and its owner.
    pub content: FileContent,
}

/// The output of a template, with one line break at the end.
pub(crate) fn text(view: &impl askama::Template) -> String {
    let mut text = view.render().expect("writing to a string cannot fail");
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

pub(super) fn inside(path: &str) -> CratePath {
    CratePath::new(path).expect("module names make paths inside the crate")
}

// === impl CratePath ===

impl CratePath {
    /// Checks that `path` stays inside the crate.
    pub fn new(path: impl Into<String>) -> Result<Self, NotACratePath> {
        let path = path.into();
        let inside = !path.is_empty()
            && !path.contains('\\')
            && !path.contains(':')
            && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if inside {
            Ok(Self(path))
        } else {
            Err(NotACratePath(path))
        }
    }

    /// The text, with forward slashes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path on disk for a crate in `root`.
    #[must_use]
    pub fn below(&self, root: &Path) -> PathBuf {
        self.0
            .split('/')
            .fold(root.to_path_buf(), |path, part| path.join(part))
    }
}

impl fmt::Display for CratePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for CratePath {
    type Error = NotACratePath;

    fn try_from(path: String) -> Result<Self, NotACratePath> {
        Self::new(path)
    }
}

impl From<CratePath> for String {
    fn from(path: CratePath) -> Self {
        path.0
    }
}

// === impl PlannedFile ===

impl PlannedFile {
    /// A file that kopf-gen owns.
    #[must_use]
    pub fn generated(path: CratePath, text: String) -> Self {
        Self {
            path,
            content: FileContent::Generated(text),
        }
    }

    /// A part of a copy.
    #[must_use]
    pub fn vendored(path: CratePath, text: String) -> Self {
        Self {
            path,
            content: FileContent::Vendored(text),
        }
    }

    /// A file that the user owns once it exists.
    #[must_use]
    pub fn scaffold(path: CratePath, text: String) -> Self {
        Self {
            path,
            content: FileContent::Scaffold(text),
        }
    }

    /// An addition to a file of the user.
    #[must_use]
    pub fn splice(path: CratePath, before: String, after: String) -> Self {
        Self {
            path,
            content: FileContent::Splice { before, after },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_crate_are_refused() {
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a//b",
            "./a",
            "a\\b",
            "C:/x",
        ] {
            assert!(CratePath::new(bad).is_err(), "{bad}");
        }
        assert_eq!(
            CratePath::new("src/main.rs").map(|path| path.to_string()),
            Ok("src/main.rs".into())
        );
    }
}
