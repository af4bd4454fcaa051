//! Reads the user's files of an operator crate.

use std::io;
use std::path::{Path, PathBuf};

use crate::diagnostic::Sources;
use crate::plan::{CRD_KUSTOMIZATION, CratePath, DEPLOYMENT, KUSTOMIZATION, UserFiles};

/// Why the user's files could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}")]
pub struct ReadError {
    path: PathBuf,
    source: io::Error,
}

/// Reads every Rust file below `src/` that is not generated, the Kustomizations and the Deployment.
pub fn read_user_files(root: &Path, sources: &mut Sources) -> Result<UserFiles, ReadError> {
    let mut files = UserFiles::default();
    let mut folders = vec!["src".to_owned()];
    while let Some(folder) = folders.pop() {
        for name in names(&root.join(&folder))? {
            let path = format!("{folder}/{name}");
            if path == "src/generated" || path == "src/generated.rs" {
                continue;
            }
            let place = root.join(&path);
            if place.is_dir() {
                folders.push(path);
            } else if let (true, Ok(path)) = (name.ends_with(".rs"), CratePath::new(path)) {
                files.add(sources, path, read(place)?);
            }
        }
    }
    for path in [KUSTOMIZATION, CRD_KUSTOMIZATION, DEPLOYMENT] {
        let place = root.join(path);
        if place.exists() {
            files.add_kustomization(sources, path, &read(place)?);
        }
    }
    Ok(files)
}

fn read(path: PathBuf) -> Result<String, ReadError> {
    std::fs::read_to_string(&path).map_err(|source| ReadError { path, source })
}

/// The entries of a folder, sorted; a folder that does not exist has none.
fn names(folder: &Path) -> Result<Vec<String>, ReadError> {
    let failed = |source| ReadError {
        path: folder.to_path_buf(),
        source,
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(failed)?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}
