//! Paths of files inside an operator crate.

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
