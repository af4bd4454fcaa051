//! The sources of binaries, in their order, and the folders in which they are looked up.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::release::{KubernetesVersion, PinnedRelease};
use super::{ASSETS_VARIABLE, Binaries, Environment, Error, FoundBinaries, build, official};
use crate::download::Platform;

/// A place where binaries can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinarySource {
    /// A folder that the caller names.
    Folder,
    /// The folder of `KUBEBUILDER_ASSETS`.
    Assets,
    /// The store that `setup-envtest` fills.
    EnvtestStore,
    /// The folder in which this project keeps binaries.
    Cache,
    /// The official files of a release.
    Download,
    /// A build from pinned Go modules.
    Build,
}

/// The folders that may hold binaries.
#[derive(Clone, Debug, Default)]
pub struct SourceFolders {
    /// The folder that the caller names.
    pub named: Option<PathBuf>,
    /// The folder of `KUBEBUILDER_ASSETS`.
    pub assets: Option<PathBuf>,
    /// The folder of `setup-envtest` with one folder per version and platform.
    pub envtest_store: Option<PathBuf>,
    /// The folder in which this project keeps files between runs.
    pub cache: PathBuf,
}

// === impl BinarySource ===

impl BinarySource {
    /// All sources, the first choice first.
    pub const ORDER: [Self; 6] = [
        Self::Folder,
        Self::Assets,
        Self::EnvtestStore,
        Self::Cache,
        Self::Download,
        Self::Build,
    ];

    /// The binaries of this source. If an earlier source had all but a controller manager, only
    /// binaries whose controller manager fits that API server.
    pub(super) fn find(
        self,
        environment: &Environment,
        earlier: Option<&FoundBinaries>,
    ) -> Result<Option<FoundBinaries>, Error> {
        let folders = &environment.folders;
        let found = match self {
            Self::Folder => self.named(folders.named.as_deref(), "the folder")?,
            Self::Assets => self.named(folders.assets.as_deref(), ASSETS_VARIABLE)?,
            Self::EnvtestStore => self.newest_in_store(environment),
            Self::Cache => match PinnedRelease::of(&environment.kubernetes) {
                Ok(release) => self
                    .complete(&release, &folders.built(&release))
                    .or_else(|| self.complete(&release, &folders.downloaded(release.version))),
                Err(_) => None,
            },
            Self::Download => official::fetch(environment, earlier)
                .map(|(binaries, version)| self.found(binaries, Some(version))),
            Self::Build => {
                let release = PinnedRelease::of(&environment.kubernetes)?;
                let folder = folders.built(&release);
                build::build(environment, &release, &folder)?;
                self.complete(&release, &folder)
            }
        };
        Ok(found.filter(|found| earlier.is_none_or(|earlier| found.completes(earlier))))
    }

    fn named(
        self,
        folder: Option<&Path>,
        named_by: &'static str,
    ) -> Result<Option<FoundBinaries>, Error> {
        let Some(folder) = folder else {
            return Ok(None);
        };
        let binaries = Binaries::in_folder(folder).map_err(|missing| Error::Incomplete {
            named_by,
            folder: folder.to_owned(),
            missing,
        })?;
        let version = asked_version(&binaries.kube_apiserver);
        Ok(Some(self.found(binaries, version)))
    }

    /// The newest patch release of the requested minor for this platform.
    fn newest_in_store(self, environment: &Environment) -> Option<FoundBinaries> {
        let store = environment.folders.envtest_store.as_deref()?;
        let suffix = format!("-{}", platform());
        let entries = fs::read_dir(store).ok()?.flatten();
        let versions = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version: KubernetesVersion = name.strip_suffix(&suffix)?.parse().ok()?;
            let binaries = Binaries::in_folder(&entry.path()).ok()?;
            version
                .is_of(&environment.kubernetes)
                .then_some((version, binaries))
        });
        let (version, binaries) = versions.max_by_key(|(version, _)| *version)?;
        Some(self.found(binaries, Some(version)))
    }

    fn complete(self, release: &PinnedRelease, folder: &Path) -> Option<FoundBinaries> {
        let binaries = Binaries::in_folder(folder).ok()?;
        binaries.kube_controller_manager.as_ref()?;
        Some(self.found(binaries, Some(release.version)))
    }

    fn found(self, binaries: Binaries, version: Option<KubernetesVersion>) -> FoundBinaries {
        FoundBinaries {
            manager_source: binaries.kube_controller_manager.as_ref().map(|_| self),
            binaries,
            version,
            source: self,
        }
    }
}

impl FoundBinaries {
    /// Whether the controller manager here may serve the API server there.
    fn completes(&self, other: &Self) -> bool {
        self.binaries.kube_controller_manager.is_some()
            && match (self.version, other.version) {
                (Some(manager), Some(server)) => manager.can_manage(server),
                _ => false,
            }
    }
}

impl fmt::Display for BinarySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Folder => "the given folder",
            Self::Assets => ASSETS_VARIABLE,
            Self::EnvtestStore => "the store of setup-envtest",
            Self::Cache => "the cache",
            Self::Download => "the official release",
            Self::Build => "a build with Go",
        })
    }
}

// === impl SourceFolders ===

impl SourceFolders {
    /// The folders that the variables of this process name.
    pub fn from_process() -> Self {
        let variable = |name: &str| {
            let value = env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let home = variable("HOME");
        let cache = variable("XDG_CACHE_HOME")
            .or_else(|| Some(home.as_ref()?.join(".cache")))
            .unwrap_or_else(env::temp_dir);
        let store = if cfg!(target_os = "macos") {
            let support = home.map(|home| home.join("Library/Application Support"));
            support.map(|support| support.join("io.kubebuilder.envtest"))
        } else {
            let data = variable("XDG_DATA_HOME").or_else(|| Some(home?.join(".local/share")));
            data.map(|data| data.join("kubebuilder-envtest"))
        };
        Self {
            named: None,
            assets: variable(ASSETS_VARIABLE),
            envtest_store: store.map(|store| store.join("k8s")),
            cache: cache.join("kopf-gen"),
        }
    }

    /// The folder into which a release is downloaded.
    pub(super) fn downloaded(&self, version: KubernetesVersion) -> PathBuf {
        let name = format!("{version}-{}", platform());
        self.cache.join("control-plane").join(name)
    }

    /// The folder into which a release is built.
    pub(super) fn built(&self, release: &PinnedRelease) -> PathBuf {
        let name = format!("{}-{}", release.version, release.fingerprint);
        self.cache.join("control-plane").join(name)
    }
}

/// This platform as Kubernetes names it, such as `linux-amd64`.
pub(super) fn platform() -> String {
    let Platform { system, processor } = Platform::of_this_machine();
    format!("{system}-{processor}")
}

/// The version that an API server prints, such as `Kubernetes v1.36.3`.
fn asked_version(kube_apiserver: &Path) -> Option<KubernetesVersion> {
    let output = Command::new(kube_apiserver)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().last()?.parse().ok()
}
