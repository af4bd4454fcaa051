//! Finds the control plane's binaries in the first of several sources that has them.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::download::Mirrors;
use crate::program::Program;

mod build;
mod official;
mod release;
mod source;

pub use release::{KubernetesVersion, PINNED_MINORS};
pub use source::{BinarySource, SourceFolders};

use release::PinnedRelease;

/// The Kubernetes minor to run unless another is asked for.
pub const DEFAULT_KUBERNETES: &str = "1.36";

/// Selects another Kubernetes minor for tests.
pub const KUBERNETES_VARIABLE: &str = "KOPF_TEST_KUBERNETES";

/// Names a folder that holds ready binaries, as Go's `envtest` does.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// Names the kubeconfig of a running cluster to test on instead of a control plane on this machine.
pub const KUBECONFIG_VARIABLE: &str = "KOPF_TEST_KUBECONFIG";

/// Everything that decides where binaries come from.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The requested Kubernetes minor.
    pub kubernetes: String,
    /// The folders that may hold binaries.
    pub folders: SourceFolders,
    /// The servers of official releases; none if nothing may be downloaded.
    pub mirrors: Option<Mirrors>,
    /// `PATH`, in which `go` is searched.
    pub path: OsString,
    /// The program that runs `go`, so that it ends with this process.
    pub program: Option<Program>,
}

/// The paths of the control plane's binaries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binaries {
    /// The etcd server.
    pub etcd: PathBuf,
    /// The API server.
    pub kube_apiserver: PathBuf,
    /// The controller manager; [`WITHOUT_CONTROLLER_MANAGER`] says what does not work without it.
    pub kube_controller_manager: Option<PathBuf>,
}

/// What a control plane without a controller manager does not do.
pub const WITHOUT_CONTROLLER_MANAGER: &str = "there is no kube-controller-manager: owner references \
     do not cascade, namespaces do not go away, service accounts do not appear, and Deployments, \
     Jobs and the like make no Pods";

/// The binaries that were found, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBinaries {
    /// Their paths.
    pub binaries: Binaries,
    /// The version of the API server, if it tells one.
    pub version: Option<KubernetesVersion>,
    /// The source of etcd and kube-apiserver.
    pub source: BinarySource,
    /// The source of the controller manager, if there is one.
    pub manager_source: Option<BinarySource>,
}

/// The reasons why there are no binaries.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The requested version is neither installed nor pinned.
    #[error("Kubernetes {requested} is not on this machine, and can be had only as {}; setup-envtest installs others: setup-envtest use {requested}", known.join(" or "))]
    UnknownKubernetes {
        /// The requested version.
        requested: String,
        /// The versions that can be built.
        known: Vec<String>,
    },
    /// A folder that was named lacks a binary.
    #[error("{named_by} {}: the folder has no `{missing}`; `etcd` and `kube-apiserver` must be there, and `kube-controller-manager` should be", folder.display())]
    Incomplete {
        /// The variable or option that names the folder.
        named_by: &'static str,
        /// The folder.
        folder: PathBuf,
        /// The binary that is not there.
        missing: &'static str,
    },
    /// There are no binaries and they cannot be made.
    #[error(
        "there is no Kubernetes {version} control plane on this machine: {reason}.\n\
         Provide one of these:\n\
         \x20 1. {ASSETS_VARIABLE}=<folder>, a folder with etcd, kube-apiserver and kube-controller-manager\n\
         \x20 2. setup-envtest use {minor}: its store is found without a variable\n\
         \x20 3. on Linux, a connection to dl.k8s.io and github.com, or to mirrors\n\
         \x20    (KOPF_CLUSTER_KUBERNETES_MIRROR, KOPF_CLUSTER_ETCD_MIRROR): all three are then downloaded\n\
         \x20 4. Go 1.26 or newer in PATH and a reachable module proxy (see GOPROXY): all three are then\n\
         \x20    built once, in about 10 minutes on 2 cores, into\n\
         \x20    {}\n\
         \x20 5. for tests, {KUBECONFIG_VARIABLE}=<file>, the kubeconfig of a cluster in which the tests may\n\
         \x20    create and delete anything",
        cache.display()
    )]
    Unobtainable {
        /// The full version.
        version: KubernetesVersion,
        /// Its minor.
        minor: String,
        /// The missing prerequisite or failed build.
        reason: String,
        /// The folder for the binaries.
        cache: PathBuf,
    },
    /// A file could not be handled.
    #[error("{action} {}", path.display())]
    File {
        /// The failed operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// Finds the binaries, making them first where needed, which takes minutes.
pub fn obtain(environment: &Environment) -> Result<FoundBinaries, Error> {
    let mut found: Option<FoundBinaries> = None;
    for source in BinarySource::ORDER {
        // Only a missing API server is worth minutes.
        if found.is_some() && source == BinarySource::Build {
            break;
        }
        let Some(candidate) = source.find(environment, found.as_ref())? else {
            continue;
        };
        let merged = match found.take() {
            None => candidate,
            Some(first) => first.with_manager_of(candidate),
        };
        if merged.binaries.kube_controller_manager.is_some() {
            return Ok(merged);
        }
        found = Some(merged);
    }
    match found {
        Some(found) => Ok(found),
        None => Err(unobtainable(
            environment,
            &PinnedRelease::of(&environment.kubernetes)?,
            "no source has it".to_owned(),
        )),
    }
}

fn unobtainable(environment: &Environment, release: &PinnedRelease, reason: String) -> Error {
    Error::Unobtainable {
        version: release.version,
        minor: environment.kubernetes.clone(),
        reason,
        cache: environment.folders.built(release),
    }
}

// === impl Environment ===

impl Environment {
    /// Reads the variables of this process.
    pub fn from_process(program: Option<&Program>) -> Self {
        Self {
            kubernetes: env::var(KUBERNETES_VARIABLE)
                .ok()
                .filter(|it| !it.is_empty())
                .unwrap_or_else(|| DEFAULT_KUBERNETES.to_owned()),
            folders: SourceFolders::from_process(),
            mirrors: Mirrors::from_process(),
            path: env::var_os("PATH").unwrap_or_default(),
            program: program.cloned(),
        }
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        env::split_paths(&self.path)
            .map(|folder| folder.join(program))
            .find(|file| file.is_file())
    }
}

// === impl Binaries ===

impl Binaries {
    /// The binaries in a folder; the name of the first one that is missing.
    fn in_folder(folder: &Path) -> Result<Self, &'static str> {
        let required = |name: &'static str| {
            let file = folder.join(name);
            if file.is_file() { Ok(file) } else { Err(name) }
        };
        Ok(Self {
            etcd: required("etcd")?,
            kube_apiserver: required("kube-apiserver")?,
            kube_controller_manager: required("kube-controller-manager").ok(),
        })
    }
}

// === impl FoundBinaries ===

impl FoundBinaries {
    fn with_manager_of(self, other: Self) -> Self {
        Self {
            binaries: Binaries {
                kube_controller_manager: other.binaries.kube_controller_manager,
                ..self.binaries
            },
            manager_source: other.manager_source,
            ..self
        }
    }
}

impl fmt::Display for FoundBinaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = |file: &Path| file.parent().unwrap_or(file).display().to_string();
        match self.version {
            Some(version) => write!(f, "Kubernetes {version}")?,
            None => write!(f, "Kubernetes of an unknown version")?,
        }
        write!(
            f,
            " from {} ({})",
            self.source,
            folder(&self.binaries.kube_apiserver)
        )?;
        match (&self.manager_source, &self.binaries.kube_controller_manager) {
            (Some(source), Some(file)) if *source != self.source => {
                write!(
                    f,
                    "; kube-controller-manager from {source} ({})",
                    folder(file)
                )
            }
            (_, Some(_)) => Ok(()),
            (_, None) => write!(f, "; {WITHOUT_CONTROLLER_MANAGER}"),
        }
    }
}

/// Writes past the test harness, which would hold the text back until the end.
pub(crate) fn print_status(text: &str) {
    // A closed standard error must not fail a test.
    let _ = writeln!(io::stderr(), "kopf-cluster: {text}");
}

/// FNV-1a, which unlike the standard library's hasher gives the same name with every compiler.
pub(crate) fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in parts.into_iter().flat_map(|part| part.iter().chain([&0])) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests;
