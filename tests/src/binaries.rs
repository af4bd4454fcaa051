//! Finds the control plane's binaries: in a given folder, in the cache, or by a build with Go.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

mod build;

/// The Kubernetes minor that the tests run on unless [`KUBERNETES_VARIABLE`] says otherwise.
pub const DEFAULT_KUBERNETES: &str = "1.36";

/// Selects another of the minors under `tests/control-plane/`.
pub const KUBERNETES_VARIABLE: &str = "KOPF_TEST_KUBERNETES";

/// Names a folder that holds ready binaries, as Go's `envtest` does.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// Names the kubeconfig of a running cluster to use as the shared control plane.
pub const KUBECONFIG_VARIABLE: &str = "KOPF_TEST_KUBECONFIG";

/// The environment variables that decide where binaries come from.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The requested Kubernetes minor.
    pub kubernetes: String,
    /// A folder with ready binaries.
    pub given: Option<PathBuf>,
    /// The folder in which this project keeps files between runs.
    pub cache: PathBuf,
    /// `PATH`, in which `go` is searched.
    pub path: OsString,
}

/// The paths of the control plane's binaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    /// The etcd server.
    pub etcd: PathBuf,
    /// The API server.
    pub kube_apiserver: PathBuf,
    /// The controller manager; without it owner references do not cascade, namespaces do not go
    /// away, and service accounts do not appear.
    pub kube_controller_manager: Option<PathBuf>,
}

/// One Kubernetes release whose Go module is pinned in this repository.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    /// The folder of `go.mod` and `go.sum`.
    module: PathBuf,
    /// The full version, such as `v1.36.3`.
    version: String,
    /// A hash of all pinned modules.
    fingerprint: String,
}

/// The reasons why there are no binaries.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The requested version is not pinned in this repository.
    #[error("{KUBERNETES_VARIABLE}={requested}: no such version under tests/control-plane; there are: {}", known.join(", "))]
    UnknownKubernetes {
        /// The value of the variable.
        requested: String,
        /// The accepted values.
        known: Vec<String>,
    },
    /// The given folder lacks a binary.
    #[error("{ASSETS_VARIABLE}={}: the folder has no `{missing}`; `etcd` and `kube-apiserver` must be there, and `kube-controller-manager` should be", folder.display())]
    Incomplete {
        /// The given folder.
        folder: PathBuf,
        /// The binary that is not there.
        missing: &'static str,
    },
    /// There are no binaries and they cannot be built.
    #[error(
        "the tests need a Kubernetes {version} control plane, and there is none: {reason}.\n\
         Provide one of these:\n\
         \x20 1. Go 1.26 or newer in PATH and a reachable module proxy (see GOPROXY): etcd, kube-apiserver and\n\
         \x20    kube-controller-manager are then built once, in about 10 minutes on 2 cores, into\n\
         \x20    {}\n\
         \x20 2. {ASSETS_VARIABLE}=<folder>, a folder that already holds these three binaries\n\
         \x20 3. {KUBECONFIG_VARIABLE}=<file>, the kubeconfig of a cluster in which the tests may create and\n\
         \x20    delete anything; tests that break their control plane still need 1 or 2",
        cache.display()
    )]
    Unobtainable {
        /// The full version.
        version: String,
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

/// Finds the binaries, building them first where needed, which takes minutes.
pub fn obtain(environment: &Environment) -> Result<Binaries, Error> {
    if let Some(folder) = &environment.given {
        return Binaries::given(folder);
    }
    let release = Release::pinned(&environment.kubernetes)?;
    let folder = environment.folder_of(&release);
    if let Some(binaries) = Binaries::built(&folder) {
        return Ok(binaries);
    }
    build::build(environment, &release, &folder)?;
    Binaries::built(&folder).ok_or(Error::Unobtainable {
        version: release.version,
        reason: "the build left no binaries".to_owned(),
        cache: folder,
    })
}

// === impl Environment ===

impl Environment {
    /// Reads the variables of this process.
    pub fn from_process() -> Self {
        let non_empty = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let home = || non_empty("HOME").map(|home| PathBuf::from(home).join(".cache"));
        Self {
            kubernetes: env::var(KUBERNETES_VARIABLE)
                .ok()
                .filter(|it| !it.is_empty())
                .unwrap_or_else(|| DEFAULT_KUBERNETES.to_owned()),
            given: non_empty(ASSETS_VARIABLE).map(PathBuf::from),
            cache: non_empty("XDG_CACHE_HOME")
                .map(PathBuf::from)
                .or_else(home)
                .unwrap_or_else(env::temp_dir)
                .join("kopf-gen"),
            path: env::var_os("PATH").unwrap_or_default(),
        }
    }

    fn folder_of(&self, release: &Release) -> PathBuf {
        let name = format!("{}-{}", release.version, release.fingerprint);
        self.cache.join("control-plane").join(name)
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        env::split_paths(&self.path)
            .map(|folder| folder.join(program))
            .find(|file| file.is_file())
    }
}

// === impl Binaries ===

impl Binaries {
    fn given(folder: &Path) -> Result<Self, Error> {
        let required = |missing: &'static str| {
            let file = folder.join(missing);
            if file.is_file() {
                Ok(file)
            } else {
                Err(Error::Incomplete {
                    folder: folder.to_owned(),
                    missing,
                })
            }
        };
        Ok(Self {
            etcd: required("etcd")?,
            kube_apiserver: required("kube-apiserver")?,
            kube_controller_manager: required("kube-controller-manager").ok(),
        })
    }

    fn built(folder: &Path) -> Option<Self> {
        Self::given(folder)
            .ok()
            .filter(|binaries| binaries.kube_controller_manager.is_some())
    }
}

// === impl Release ===

impl Release {
    fn pinned(minor: &str) -> Result<Self, Error> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("control-plane");
        let module = root.join(minor);
        if !module.join("go.mod").is_file() {
            return Err(Error::UnknownKubernetes {
                requested: minor.to_owned(),
                known: folders_in(&root)?,
            });
        }
        let read = |name: &str| {
            let path = module.join(name);
            fs::read_to_string(&path).map_err(|source| Error::File {
                action: "read",
                path,
                source,
            })
        };
        let (requirements, sums) = (read("go.mod")?, read("go.sum")?);
        let version = required_kubernetes(&requirements).ok_or_else(|| Error::File {
            action: "find a requirement on k8s.io/kubernetes in",
            path: module.join("go.mod"),
            source: io::ErrorKind::InvalidData.into(),
        })?;
        Ok(Self {
            version: version.to_owned(),
            fingerprint: fingerprint([requirements.as_bytes(), sums.as_bytes()]),
            module,
        })
    }
}

fn required_kubernetes(requirements: &str) -> Option<&str> {
    requirements.lines().find_map(|line| {
        let line = line.trim().trim_start_matches("require ");
        line.strip_prefix("k8s.io/kubernetes ")?
            .split_whitespace()
            .next()
    })
}

fn folders_in(root: &Path) -> Result<Vec<String>, Error> {
    let failed = |source| Error::File {
        action: "list",
        path: root.to_owned(),
        source,
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(root).map_err(failed)? {
        names.push(
            entry
                .map_err(failed)?
                .file_name()
                .to_string_lossy()
                .into_owned(),
        );
    }
    names.sort();
    Ok(names)
}

/// Writes past the test harness, which would hold the text back until the end.
pub(crate) fn print_status(text: &str) {
    // A closed standard error must not fail a test.
    let _ = writeln!(io::stderr(), "kopf-tests: {text}");
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
mod tests {
    use super::*;

    fn nothing_but(cache: &Path) -> Environment {
        Environment {
            kubernetes: DEFAULT_KUBERNETES.to_owned(),
            given: None,
            cache: cache.to_owned(),
            path: OsString::new(),
        }
    }

    fn touch(folder: &Path, names: &[&str]) {
        for name in names {
            fs::write(folder.join(name), "").expect("a temporary folder is writable");
        }
    }

    #[test]
    fn without_go_and_cache_the_message_names_three_ways_to_provide_binaries() {
        let cache = tempfile::tempdir().expect("a temporary folder");

        let message = obtain(&nothing_but(cache.path()))
            .expect_err("nothing is there")
            .to_string();

        for part in [
            "`go` is not in PATH",
            "1. Go 1.26",
            "2. KUBEBUILDER_ASSETS=",
            "3. KOPF_TEST_KUBECONFIG=",
        ] {
            assert!(message.contains(part), "{part} is not in:\n{message}");
        }
    }

    #[test]
    fn a_given_folder_needs_only_etcd_and_kube_apiserver() {
        let given = tempfile::tempdir().expect("a temporary folder");
        let mut environment = nothing_but(given.path());
        environment.given = Some(given.path().to_owned());

        touch(given.path(), &["etcd"]);
        let message = obtain(&environment).expect_err("incomplete").to_string();
        assert!(message.contains("no `kube-apiserver`"), "{message}");

        touch(given.path(), &["kube-apiserver"]);
        let binaries = obtain(&environment).expect("both are there");
        assert_eq!(binaries.kube_controller_manager, None);
    }

    #[test]
    fn cached_binaries_are_used_without_go() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let environment = nothing_but(cache.path());
        let release = Release::pinned(DEFAULT_KUBERNETES).expect("the default is pinned");
        let folder = environment.folder_of(&release);
        fs::create_dir_all(&folder).expect("a temporary folder is writable");
        touch(
            &folder,
            &["etcd", "kube-apiserver", "kube-controller-manager"],
        );

        let binaries = obtain(&environment).expect("the cache is complete");

        assert_eq!(binaries.etcd, folder.join("etcd"));
    }

    #[test]
    fn an_unknown_version_is_rejected_with_the_known_ones() {
        let mut environment = nothing_but(Path::new("/nonexistent"));
        environment.kubernetes = "1.7".to_owned();

        let message = obtain(&environment)
            .expect_err("1.7 is not pinned")
            .to_string();

        assert!(message.contains("1.35, 1.36"), "{message}");
    }

    #[test]
    fn every_pinned_module_requires_a_release_of_its_folder() {
        for minor in folders_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("control-plane"))
            .expect("the folder exists")
        {
            let release = Release::pinned(&minor).expect("a module");
            assert!(
                release.version.starts_with(&format!("v{minor}.")),
                "{}",
                release.version
            );
        }
    }
}
