//! The dependencies on kopf-runtime and kopf-testing in the `Cargo.toml` of a new operator crate.

use std::path::{Component, Path, PathBuf};

use clap::Args;
use toml_writer::{ToTomlValue as _, TomlStringBuilder};

/// The source of the runtime; by default the checkout that this program was built from.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
pub(super) struct RuntimeArgs {
    /// Take kopf-runtime from this folder
    #[arg(long, value_name = "PATH")]
    runtime_path: Option<PathBuf>,
    /// Take kopf-runtime from this git repository
    #[arg(long, value_name = "URL")]
    runtime_git: Option<String>,
    /// Take this published version of kopf-runtime
    #[arg(long, value_name = "VERSION", value_parser = version_requirement)]
    runtime_version: Option<String>,
}

/// The values of the dependencies in the `Cargo.toml` of a crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RuntimeDependencies {
    pub(super) runtime: String,
    pub(super) testing: String,
}

impl RuntimeDependencies {
    /// Both from the same repository or with the same version.
    fn same(value: String) -> Self {
        Self {
            runtime: value.clone(),
            testing: value,
        }
    }

    fn in_folder(runtime: &Path) -> Self {
        let value = |folder: &Path| {
            let folder = folder.to_string_lossy().replace('\\', "/");
            format!("{{ path = {} }}", toml_string(&folder))
        };
        Self {
            runtime: value(runtime),
            testing: value(&runtime.join("testing")),
        }
    }
}

impl RuntimeArgs {
    /// The option that was given.
    pub(super) fn option(&self) -> Option<&'static str> {
        [
            (self.runtime_path.is_some(), "--runtime-path"),
            (self.runtime_git.is_some(), "--runtime-git"),
            (self.runtime_version.is_some(), "--runtime-version"),
        ]
        .into_iter()
        .find_map(|(is_given, option)| is_given.then_some(option))
    }

    /// The dependencies of a crate in `dir`.
    pub(super) fn resolve(&self, dir: &Path) -> Result<RuntimeDependencies, String> {
        if let Some(path) = &self.runtime_path {
            return from_path(path, dir);
        }
        let git =
            |url: &str| RuntimeDependencies::same(format!("{{ git = {} }}", toml_string(url)));
        if let Some(url) = &self.runtime_git {
            return Ok(git(url));
        }
        if let Some(version) = &self.runtime_version {
            return Ok(RuntimeDependencies::same(toml_string(version)));
        }
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime");
        match from_path(&checkout, dir) {
            Ok(value) => Ok(value),
            // The program runs on another machine, or the checkout was deleted.
            Err(_) => Ok(git(env!("CARGO_PKG_REPOSITORY"))),
        }
    }
}

/// Checks a version as Cargo would.
fn version_requirement(text: &str) -> Result<String, String> {
    const VERSION: &str =
        r"^\s*([=^~]|[<>]=?)?\s*(\*|\d+(\.(\*|\d+)){0,2})(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?\s*$";
    let version = regex::Regex::new(VERSION).map_err(|error| error.to_string())?;
    if text.split(',').all(|part| version.is_match(part)) {
        Ok(text.to_owned())
    } else {
        Err("write a version as in Cargo.toml, such as `1.2`".to_owned())
    }
}

fn from_path(path: &Path, dir: &Path) -> Result<RuntimeDependencies, String> {
    let missing = |why: &str| {
        format!(
            "{} is not the folder of kopf-runtime: {why}",
            path.display()
        )
    };
    let nested = path.join("runtime");
    let folder = if nested.join("Cargo.toml").is_file() {
        nested.as_path()
    } else {
        path
    };
    let folder = folder
        .canonicalize()
        .map_err(|error| missing(&error.to_string()))?;
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml"))
        .map_err(|error| missing(&error.to_string()))?;
    if !manifest.contains("name = \"kopf-runtime\"") {
        return Err(missing("its Cargo.toml names another crate"));
    }
    let place = existing(dir).and_then(|(base, rest)| {
        let base = base.canonicalize().ok()?;
        relative(&folder, &base.join(rest))
    });
    Ok(RuntimeDependencies::in_folder(&place.unwrap_or(folder)))
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

fn toml_string(text: &str) -> String {
    TomlStringBuilder::new(text).as_basic().to_toml_value()
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

    #[test]
    fn strings_are_quoted_for_toml() {
        assert_eq!(toml_string(r#"a"b\c"#), r#""a\"b\\c""#);
    }
}
