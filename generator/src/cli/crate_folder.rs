//! The folder of an operator crate: finds it, names the operator after it, and checks whether it is free.

use std::io;
use std::path::{Component, Path, PathBuf};

use toml_edit::{DocumentMut, Item, Value};

use crate::load::manifest::FILE_NAME;
use crate::model::lower::is_operator_name;
use crate::write::{self, TOOL_FOLDER};

/// Names that Cargo refuses for programs.
const CARGO_FOLDERS: [&str; 4] = ["build", "deps", "examples", "incremental"];

/// Names of the runtime's crates: cargo cannot tell two crates of one name and version apart.
const RUNTIME_CRATES: [&str; 4] = ["kopf-cluster", "kopf-core", "kopf-runtime", "kopf-testing"];

/// Finds the folder of the operator crate: that of `manifest`, or the nearest with a manifest.
pub(super) fn find_root(manifest: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(manifest) = manifest {
        let folder = if manifest.is_dir() {
            Some(manifest)
        } else if manifest.file_name().is_some_and(|name| name == FILE_NAME) {
            manifest.parent()
        } else {
            let manifest = manifest.display();
            return Err(format!(
                "{manifest} is neither a {FILE_NAME} nor a folder with one"
            ));
        };
        let folder = folder
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        return Ok(folder.to_path_buf());
    }
    let here = std::env::current_dir()
        .map_err(|error| format!("the current folder cannot be found: {error}"))?;
    let found = here
        .ancestors()
        .find(|folder| folder.join(FILE_NAME).is_file());
    found.map(Path::to_path_buf).ok_or_else(|| {
        format!(
            "there is no {FILE_NAME} here or above; `kopf-gen new DIR --crd FILE` creates an operator"
        )
    })
}

/// The given name, or else that of the folder.
pub(super) fn operator_name(given: Option<&str>, dir: &Path) -> Result<String, String> {
    let name = match given {
        Some(name) => name.to_owned(),
        None => std::path::absolute(dir)
            .ok()
            .and_then(|dir| {
                dir.file_name()
                    .map(|name| name.to_string_lossy().into_owned())
            })
            .unwrap_or_default(),
    };
    if CARGO_FOLDERS.contains(&name.as_str()) {
        return Err(format!(
            "`{name}` cannot name an operator: Cargo gives this name to a folder of its own; give \
             another one with --name"
        ));
    }
    if RUNTIME_CRATES.contains(&name.as_str()) {
        return Err(format!(
            "`{name}` cannot name an operator: a crate of its runtime has this name; give another \
             one with --name"
        ));
    }
    if is_operator_name(&name) {
        return Ok(name);
    }
    Err(format!(
        "`{name}` cannot name an operator: use lower-case letters, digits and dashes, \
         starting with a letter, and give it with --name"
    ))
}

/// Whether the folder is missing or has nothing but what git and an interrupted run leave.
pub(super) fn is_free(dir: &Path) -> io::Result<bool> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let name = entry?.file_name();
        let unfinished = name == TOOL_FOLDER && !write::is_interrupted(dir);
        if name != ".git" && !unfinished {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The `Cargo.toml` of the workspace above to which cargo counts the crate, if there is one.
pub(super) fn workspace_manifest(root: &Path) -> Option<PathBuf> {
    let root = resolved(root);
    let mut manifests = root.ancestors().skip(1).map(|it| it.join("Cargo.toml"));
    manifests.find(|manifest| takes_as_member(manifest, &root))
}

/// The folder without links and `..`, as cargo sees it; it need not exist yet.
fn resolved(folder: &Path) -> PathBuf {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let existing = |it: &Path| {
        Some((
            it.canonicalize().ok()?,
            folder.strip_prefix(it).ok()?.into(),
        ))
    };
    let found: Option<(PathBuf, PathBuf)> = folder.ancestors().find_map(existing);
    let (mut resolved, rest) = found.unwrap_or_else(|| (folder.clone(), PathBuf::new()));
    for part in rest.components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            part => resolved.push(part),
        }
    }
    resolved
}

/// Whether a manifest is that of a workspace which does not exclude the crate.
fn takes_as_member(manifest: &Path, root: &Path) -> bool {
    let text = std::fs::read_to_string(manifest).unwrap_or_default();
    let document = text.parse::<DocumentMut>().unwrap_or_default();
    let Some(workspace) = document.get("workspace") else {
        return false;
    };
    let excluded = workspace.get("exclude").and_then(Item::as_array);
    let mut excluded = excluded.into_iter().flatten().filter_map(Value::as_str);
    let folder = manifest.parent().unwrap_or(root);
    !excluded.any(|it| root.starts_with(folder.join(it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_refuses_some_names() {
        for name in CARGO_FOLDERS {
            assert!(operator_name(Some(name), Path::new("any")).is_err());
            assert!(operator_name(None, Path::new(name)).is_err());
        }
        for name in RUNTIME_CRATES {
            assert!(operator_name(Some(name), Path::new("any")).is_err());
        }
        let given = operator_name(Some("builds"), Path::new("build"));
        assert_eq!(given, Ok("builds".to_owned()));
    }
}
