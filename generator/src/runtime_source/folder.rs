//! The folder of the runtime: checked, and relative to the crate if both can move together.

use std::path::{Component, Path, PathBuf};

use super::Error;

/// The folder of the runtime as a crate in `dir` names it; `path` may be the whole checkout.
pub(super) fn of_runtime(path: &Path, dir: &Path) -> Result<PathBuf, Error> {
    let wrong = |reason: String| Error::NotTheRuntime {
        folder: path.to_path_buf(),
        reason,
    };
    let nested = path.join("runtime");
    let folder = if nested.join("Cargo.toml").is_file() {
        nested.as_path()
    } else {
        path
    };
    let folder = folder
        .canonicalize()
        .map_err(|error| wrong(error.to_string()))?;
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml"))
        .map_err(|error| wrong(error.to_string()))?;
    if !manifest.contains("name = \"kopf-runtime\"") {
        return Err(wrong("its Cargo.toml names another crate".to_owned()));
    }
    let place = existing(dir).and_then(|(base, rest)| {
        let base = base.canonicalize().ok()?;
        relative(&folder, &base.join(rest))
    });
    Ok(place.unwrap_or(folder))
}

/// Splits a path into the part that exists and the part that does not yet.
fn existing(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let path = std::path::absolute(path).ok()?;
    let base = path
        .ancestors()
        .find(|folder| folder.exists())?
        .to_path_buf();
    let rest = path.strip_prefix(&base).ok()?.to_path_buf();
    Some((base, rest))
}

/// The path from `base` to `target` if they are near each other, so that both can move together.
fn relative(target: &Path, base: &Path) -> Option<PathBuf> {
    /// Enough for siblings of the checkout and folders inside of it; otherwise the path is absolute.
    const FURTHEST: usize = 3;

    let shared = target
        .components()
        .zip(base.components())
        .take_while(|(a, b)| a == b)
        .count();
    let up = base.components().count() - shared;
    let has_common_folder = target
        .components()
        .take(shared)
        .any(|part| matches!(part, Component::Normal(_)));
    if !has_common_folder || up > FURTHEST {
        return None;
    }
    let ups = std::iter::repeat_n(Component::ParentDir, up);
    Some(ups.chain(target.components().skip(shared)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_nearby_gets_a_relative_path() {
        let path = |target: &str, base: &str| {
            relative(Path::new(target), Path::new(base))
                .map(|path| path.to_string_lossy().into_owned())
        };
        assert_eq!(
            path("/src/kopf-gen/runtime", "/src/kopf-gen/examples/01-minimal").as_deref(),
            Some("../../runtime")
        );
        assert_eq!(
            path("/src/kopf-gen/runtime", "/src/evc").as_deref(),
            Some("../kopf-gen/runtime")
        );
        assert_eq!(path("/src/kopf-gen/runtime", "/tmp/evc"), None);
    }
}
