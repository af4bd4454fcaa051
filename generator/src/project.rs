//! Reads the user's files of an operator crate.

use std::io;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item};

use crate::crate_path::CratePath;
use crate::diagnostic::Sources;
use crate::plan::{CRD_KUSTOMIZATION, DEPLOYMENT, KUSTOMIZATION, UserFiles};

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
    files.version = version(root)?;
    for path in [KUSTOMIZATION, CRD_KUSTOMIZATION, DEPLOYMENT] {
        let place = root.join(path);
        if place.exists() {
            files.add_kustomization(sources, path, &read(place)?);
        }
    }
    Ok(files)
}

/// The version in `Cargo.toml`, also if its workspace has it.
fn version(root: &Path) -> Result<Option<String>, ReadError> {
    let Some(manifest) = cargo_manifest(root)? else {
        return Ok(None);
    };
    let version = manifest.get("package").and_then(|it| it.get("version"));
    if let Some(version) = version.and_then(Item::as_str) {
        return Ok(semantic(version));
    }
    let Ok(root) = root.canonicalize() else {
        return Ok(None);
    };
    for folder in root.ancestors().skip(1) {
        let manifest = cargo_manifest(folder)?;
        if let Some(workspace) = manifest.as_ref().and_then(|it| it.get("workspace")) {
            let version = workspace.get("package").and_then(|it| it.get("version"));
            return Ok(version.and_then(Item::as_str).and_then(semantic));
        }
    }
    Ok(None)
}

/// The `Cargo.toml` of a folder, if it has one that can be parsed.
fn cargo_manifest(folder: &Path) -> Result<Option<DocumentMut>, ReadError> {
    let path = folder.join("Cargo.toml");
    if !path.exists() {
        return Ok(None);
    }
    Ok(read(path)?.parse().ok())
}

/// A version as Cargo and Helm take it.
fn semantic(version: &str) -> Option<String> {
    let (numbers, _) = version.split_once(['-', '+']).unwrap_or((version, ""));
    let is_number = |part: &str| part.parse::<u64>().is_ok();
    let is_rest = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
    let is_version = numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && version.chars().all(is_rest);
    is_version.then(|| version.to_owned())
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
