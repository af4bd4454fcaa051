//! One planned file: its path inside the crate, its owner, and what it is made of.

use std::borrow::Cow;

use super::inside;
use super::source::{DeploySource, FileSource, ModuleSource, ScaffoldSource};
use crate::crate_path::CratePath;

/// One file of a run.
#[derive(Clone, Debug)]
pub struct PlannedFile<'a> {
    /// The path.
    pub path: CratePath,
    /// The owner.
    pub owner: FileOwner<'a>,
    /// What it is made of.
    pub source: FileSource<'a>,
}

/// The owner of a file, and so the fate of what is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOwner<'a> {
    /// Owned by kopf-gen: every run writes exactly this file.
    Generated,
    /// A part of a copy that kopf-gen owns as long as no part of it is edited.
    Vendored,
    /// Owned by the user: written if it is missing, and never changed afterwards.
    Scaffold,
    /// Owned by the user, with an addition to this text.
    Splice {
        /// The text that the addition was planned for.
        before: Cow<'a, str>,
    },
}

// === impl PlannedFile ===

impl<'a> PlannedFile<'a> {
    pub(super) fn module(path: &str, source: ModuleSource<'a>) -> Self {
        Self::generated(path, FileSource::Module(source))
    }

    pub(super) fn deploy(path: &str, source: DeploySource<'a>) -> Self {
        Self::generated(path, FileSource::Deploy(source))
    }

    /// A file that kopf-gen owns.
    pub(super) fn generated(path: &str, source: FileSource<'a>) -> Self {
        Self {
            path: inside(path),
            owner: FileOwner::Generated,
            source,
        }
    }

    /// A file that the user owns once it exists.
    pub(super) fn scaffold(path: &str, source: ScaffoldSource<'a>) -> Self {
        Self {
            path: inside(path),
            owner: FileOwner::Scaffold,
            source: FileSource::Scaffold(source),
        }
    }

    /// A part of a copy.
    #[must_use]
    pub fn vendored(path: CratePath, text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            path,
            owner: FileOwner::Vendored,
            source: FileSource::Verbatim(text.into()),
        }
    }

    /// A text from elsewhere that the user owns: a new file, or instead of the text `before`.
    #[must_use]
    pub fn given(
        path: CratePath,
        before: Option<Cow<'a, str>>,
        text: impl Into<Cow<'a, str>>,
    ) -> Self {
        let owner = match before {
            None => FileOwner::Scaffold,
            Some(before) => FileOwner::Splice { before },
        };
        Self {
            path,
            owner,
            source: FileSource::Verbatim(text.into()),
        }
    }
}
