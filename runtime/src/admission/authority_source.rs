//! The certificates of authorities: in a file, in the files of a folder, or as a text.

use std::path::{Path, PathBuf};

/// Certificates of authorities, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthoritySource {
    /// A file, which the server reads again when it changes.
    File(PathBuf),
    /// All files of a folder, which the server reads again when they change. Names that begin with
    /// a dot are left out.
    Folder(PathBuf),
    /// The certificates themselves.
    Pem(String),
}

/// A file, or a folder, cannot be read.
#[derive(Debug)]
pub(super) struct UnreadableFile {
    pub(super) path: PathBuf,
    pub(super) source: std::io::Error,
}

/// The text of a file.
pub(super) async fn read_file(path: &Path) -> Result<String, UnreadableFile> {
    let text = tokio::fs::read_to_string(path).await;
    text.map_err(|source| UnreadableFile {
        path: path.to_owned(),
        source,
    })
}

/// The texts of all files of a folder, in the order of their names.
async fn read_folder(folder: &Path) -> Result<String, UnreadableFile> {
    let unreadable = |source| UnreadableFile {
        path: folder.to_owned(),
        source,
    };
    let mut entries = tokio::fs::read_dir(folder).await.map_err(unreadable)?;
    let mut files = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(unreadable)? {
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // The files of a mounted ConfigMap are links.
        let is_file = tokio::fs::metadata(entry.path())
            .await
            .is_ok_and(|it| it.is_file());
        if is_file && !is_hidden {
            files.push(entry.path());
        }
    }
    files.sort();
    let mut texts = String::new();
    for file in files {
        texts.push_str(&read_file(&file).await?);
        texts.push('\n');
    }
    Ok(texts)
}

// === impl AuthoritySource ===

impl AuthoritySource {
    pub(super) async fn read(&self) -> Result<String, UnreadableFile> {
        match self {
            Self::File(path) => read_file(path).await,
            Self::Folder(path) => read_folder(path).await,
            Self::Pem(text) => Ok(text.clone()),
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::File(path) | Self::Folder(path) => path.display().to_string(),
            Self::Pem(_) => "the text of the authority".to_owned(),
        }
    }
}

impl From<PathBuf> for AuthoritySource {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}
