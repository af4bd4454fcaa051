//! The place from which an operator crate takes the runtime: a registry, a git repository, a copy
//! of its own, or a folder. Only this module knows how `Cargo.toml` names them.

mod cargo_manifest;
mod folder;
mod remote;
mod vendored;

use std::fmt;
use std::path::{Path, PathBuf};

use toml_writer::{ToTomlValue as _, TomlStringBuilder};

pub use self::cargo_manifest::{CargoManifest, DeclaredSource};
pub use self::vendored::{VENDOR_FOLDER, is_of_copy, vendored_files};

/// The environment variable with the folder of the runtime, for those who work on both.
pub const PATH_VARIABLE: &str = "KOPF_GEN_RUNTIME_PATH";

/// The place from which an operator crate takes the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeSource {
    /// A published version.
    Registry {
        /// The version, as Cargo accepts it.
        version: String,
    },
    /// A git repository.
    Git {
        /// Its address, as Cargo accepts it.
        url: String,
        /// The commit, tag or branch; the default branch if none.
        revision: Option<String>,
    },
    /// A copy inside the crate, made from what this program carries.
    Vendored,
    /// A folder, as it is written in `Cargo.toml`.
    Folder(PathBuf),
}

/// The crates of the runtime that an operator depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeCrate {
    /// `kopf-runtime`.
    Runtime,
    /// `kopf-testing`.
    Testing,
}

/// A place is not one of the runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The folder is missing, or another crate.
    #[error("{} is not the folder of kopf-runtime: {reason}", folder.display())]
    NotTheRuntime {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Cargo cannot fetch from this address.
    #[error(
        "`{0}` is not the address of a git repository; write it like `https://host/owner/name`"
    )]
    NotARemote(String),
    /// Cargo would reject the version.
    #[error("`{0}` is not a version; write it as in Cargo.toml, such as `1.2`")]
    NotAVersion(String),
    /// The manifest cannot be edited.
    #[error("Cargo.toml cannot be read: {0}")]
    Unreadable(String),
    /// The crate does not depend on the runtime, or its workspace says from where.
    #[error("{0}")]
    NotDeclaredHere(String),
}

// === impl RuntimeSource ===

impl RuntimeSource {
    /// The source for new crates: that from which this program comes.
    ///
    /// # Errors
    /// If `PATH_VARIABLE` names no folder of the runtime.
    pub fn of_this_program(dir: &Path) -> Result<Self, Error> {
        if let Some(folder) = std::env::var_os(PATH_VARIABLE) {
            return Self::folder(Path::new(&folder), dir);
        }
        if option_env!("KOPF_GEN_FROM_REGISTRY").is_some() {
            return Self::registry(env!("CARGO_PKG_VERSION"));
        }
        if let (Some(remote), Some(commit)) = (
            option_env!("KOPF_GEN_REMOTE"),
            option_env!("KOPF_GEN_COMMIT"),
        ) && let Ok(source) = Self::git(remote, Some(commit.to_owned()))
        {
            return Ok(source);
        }
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime");
        // The checkout may be gone, or on another machine.
        Ok(Self::folder(&checkout, dir).unwrap_or(Self::Vendored))
    }

    /// The shell command that installs a kopf-gen of the same source.
    #[must_use]
    pub fn install_command(&self) -> String {
        let version = match self {
            Self::Git { url, revision } => {
                let revision = revision.iter().map(|it| format!(" --rev {}", quoted(it)));
                let revision: String = revision.collect();
                return format!(
                    "cargo install --locked --git {}{revision} kopf-gen",
                    quoted(url)
                );
            }
            Self::Registry { version } => version,
            Self::Vendored | Self::Folder(_) => env!("CARGO_PKG_VERSION"),
        };
        format!(
            "cargo install --locked kopf-gen --version {}",
            quoted(version)
        )
    }

    /// A published version.
    ///
    /// # Errors
    /// If Cargo would reject the version.
    pub fn registry(version: &str) -> Result<Self, Error> {
        let version = version.trim().to_owned();
        if is_requirement(&version) {
            Ok(Self::Registry { version })
        } else {
            Err(Error::NotAVersion(version))
        }
    }

    /// A git repository.
    ///
    /// # Errors
    /// If the address is none that Cargo can fetch from.
    pub fn git(remote: &str, revision: Option<String>) -> Result<Self, Error> {
        let url = remote::cargo_url(remote).ok_or_else(|| Error::NotARemote(remote.to_owned()))?;
        Ok(Self::Git { url, revision })
    }

    /// The folder of a checkout or of the runtime itself, for a crate in `dir`.
    ///
    /// # Errors
    /// If it is not the folder of the runtime.
    pub fn folder(folder: &Path, dir: &Path) -> Result<Self, Error> {
        folder::of_runtime(folder, dir).map(Self::Folder)
    }

    /// The dependency on a crate, as a TOML value.
    #[must_use]
    pub fn dependency(&self, of: RuntimeCrate) -> String {
        if let Self::Registry { version } = self {
            return toml_string(version);
        }
        let keys = self.keys(of);
        let keys = keys
            .iter()
            .map(|(key, value)| format!("{key} = {}", toml_string(value)));
        format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
    }

    /// The keys of the dependency on a crate, and their values.
    fn keys(&self, of: RuntimeCrate) -> Vec<(&'static str, String)> {
        let below = |folder: &Path| {
            let folder = match of {
                RuntimeCrate::Runtime => folder.to_path_buf(),
                RuntimeCrate::Testing => folder.join("testing"),
            };
            vec![("path", folder.to_string_lossy().replace('\\', "/"))]
        };
        match self {
            Self::Registry { version } => vec![("version", version.clone())],
            Self::Git { url, revision } => {
                let revision = revision.iter().map(|it| ("rev", it.clone()));
                [("git", url.clone())].into_iter().chain(revision).collect()
            }
            Self::Vendored => below(&Path::new(VENDOR_FOLDER).join("runtime")),
            Self::Folder(folder) => below(folder),
        }
    }

    /// Whether the crate builds on other machines too.
    #[must_use]
    pub fn is_portable(&self) -> bool {
        match self {
            Self::Registry { .. } | Self::Vendored => true,
            Self::Git { url, .. } => !url.starts_with("file:"),
            Self::Folder(_) => false,
        }
    }
}

impl fmt::Display for RuntimeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry { version } => write!(f, "version {version} of the registry"),
            Self::Git {
                url,
                revision: Some(revision),
            } => write!(f, "{url} at {revision}"),
            Self::Git {
                url,
                revision: None,
            } => write!(f, "{url}, its default branch"),
            Self::Vendored => write!(f, "the copy in {VENDOR_FOLDER}/"),
            Self::Folder(folder) => write!(f, "the folder {}", folder.display()),
        }
    }
}

// === impl RuntimeCrate ===

impl RuntimeCrate {
    const ALL: [Self; 2] = [Self::Runtime, Self::Testing];

    /// The name of the package.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Runtime => "kopf-runtime",
            Self::Testing => "kopf-testing",
        }
    }
}

/// Checks a version as Cargo would.
fn is_requirement(text: &str) -> bool {
    const NUMBER: &str = "(0|[1-9][0-9]{0,18})";
    const LABEL: &str = "(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)";
    const BUILD: &str = r"[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*";
    const ANY: &str = "[*xX]";
    let major = format!(r"{NUMBER}(\.{ANY}){{0,2}}");
    let minor = format!(r"{NUMBER}\.{NUMBER}(\.{ANY})?");
    let patch = format!(r"{NUMBER}\.{NUMBER}\.{NUMBER}(-{LABEL}(\.{LABEL})*)?(\+{BUILD})?");
    let comparator =
        regex::Regex::new(&format!("^ *([=^~]|[<>]=?)? *({major}|{minor}|{patch}) *$"));
    matches!(text, "*" | "x" | "X")
        || comparator.is_ok_and(|comparator| text.split(',').all(|it| comparator.is_match(it)))
}

fn toml_string(text: &str) -> String {
    TomlStringBuilder::new(text).as_basic().to_toml_value()
}

/// A word of a shell command.
fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:@+=".contains(it);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_is_written_as_cargo_reads_it() {
        let git = RuntimeSource::git("https://example.com/x", Some("abc".to_owned()));
        for (source, runtime, testing) in [
            (RuntimeSource::registry("1.2"), "\"1.2\"", "\"1.2\""),
            (
                git,
                "{ git = \"https://example.com/x\", rev = \"abc\" }",
                "{ git = \"https://example.com/x\", rev = \"abc\" }",
            ),
            (
                Ok(RuntimeSource::Vendored),
                "{ path = \"vendor/kopf-gen/runtime\" }",
                "{ path = \"vendor/kopf-gen/runtime/testing\" }",
            ),
            (
                Ok(RuntimeSource::Folder("../a\"b".into())),
                "{ path = \"../a\\\"b\" }",
                "{ path = \"../a\\\"b/testing\" }",
            ),
        ] {
            let source = source.unwrap();
            assert_eq!(source.dependency(RuntimeCrate::Runtime), runtime);
            assert_eq!(source.dependency(RuntimeCrate::Testing), testing);
        }
    }

    #[test]
    fn versions_that_cargo_rejects_are_refused() {
        for version in [
            "",
            "latest",
            "1.2.3.4",
            "1.2 || 2",
            "\"1\"",
            "1.*.3",
            "01.2",
            "^*",
            "*, 1",
            ">=1,",
            "1.2-rc.1",
            "1.2.3-01",
            "1.2.3-a..b",
            "99999999999999999999",
        ] {
            assert!(RuntimeSource::registry(version).is_err(), "{version}");
        }
        for version in [
            "1",
            "=1.2.3",
            "^0.1",
            ">=1, <2",
            "1.2.0-rc.1",
            "1.2.3-0a.b+01",
            "*",
            "=1.*",
            "1.2.x",
        ] {
            assert!(RuntimeSource::registry(version).is_ok(), "{version}");
        }
    }
}
