//! Tests of the choice between sources.

use std::fs;

use tempfile::TempDir;

use super::source::platform;
use super::*;
use crate::download::tests::{MirrorFiles, StandIn, etcd_release, sum_of};

const ALL: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

/// An environment whose folders are below one temporary folder, and that has no Go.
struct Machine {
    root: TempDir,
    environment: Environment,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        let environment = Environment {
            kubernetes: DEFAULT_KUBERNETES.to_owned(),
            folders: SourceFolders {
                named: None,
                assets: None,
                envtest_store: Some(root.path().join("store")),
                cache: root.path().join("cache"),
            },
            mirrors: None,
            path: OsString::new(),
            program: None,
        };
        Self { root, environment }
    }

    fn install(&self, folder: impl AsRef<Path>, names: &[&str]) -> PathBuf {
        let folder = self.root.path().join(folder);
        fs::create_dir_all(&folder).expect("a temporary folder is writable");
        for name in names {
            fs::write(folder.join(name), "").expect("a temporary folder is writable");
        }
        folder
    }

    /// An API server that prints this version, and etcd.
    fn install_version(&self, folder: &str, version: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = self.install(folder, &["etcd"]);
        let server = folder.join("kube-apiserver");
        fs::write(&server, format!("#!/bin/sh\necho Kubernetes {version}\n")).expect("writable");
        fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).expect("ours");
        folder
    }

    fn install_cache(&self) -> PathBuf {
        let release = PinnedRelease::of(DEFAULT_KUBERNETES).expect("the default is pinned");
        self.install(self.environment.folders.built(&release), &ALL)
    }

    fn install_store(&self, version: &str) -> PathBuf {
        let name = format!("store/{version}-{}", platform());
        self.install(name, &["etcd", "kube-apiserver", "kubectl"])
    }

    fn obtain(&self) -> Result<FoundBinaries, Error> {
        obtain(&self.environment)
    }
}

#[test]
fn with_nothing_the_message_names_the_ways_to_get_binaries() {
    let message = Machine::new()
        .obtain()
        .expect_err("nothing is there")
        .to_string();

    for part in [
        "`go` is not in PATH",
        "1. KUBEBUILDER_ASSETS=",
        "2. setup-envtest use 1.36",
        "3. on Linux, a connection",
        "4. Go 1.26",
        "5. for tests, KOPF_TEST_KUBECONFIG=",
    ] {
        assert!(message.contains(part), "{part} is not in:\n{message}");
    }
}

#[test]
fn a_named_folder_needs_only_etcd_and_kube_apiserver() {
    let mut machine = Machine::new();
    machine.environment.folders.assets = Some(machine.install("assets", &["etcd"]));
    let message = machine.obtain().expect_err("incomplete").to_string();
    assert!(message.contains("no `kube-apiserver`"), "{message}");

    machine.install("assets", &["kube-apiserver"]);
    let found = machine.obtain().expect("both are there");

    assert_eq!(found.binaries.kube_controller_manager, None);
    let shown = found.to_string();
    assert!(shown.contains("from KUBEBUILDER_ASSETS"), "{shown}");
    assert!(shown.contains("no kube-controller-manager"), "{shown}");
}

#[test]
fn each_source_goes_before_the_ones_after_it() {
    let mut machine = Machine::new();
    let cache = machine.install_cache();
    let choice = |machine: &Machine| {
        let found = machine.obtain().expect("there is one");
        (found.source, found.binaries.etcd)
    };
    assert_eq!(choice(&machine), (BinarySource::Cache, cache.join("etcd")));

    let store = machine.install_store("1.36.1");
    assert_eq!(
        choice(&machine),
        (BinarySource::EnvtestStore, store.join("etcd"))
    );

    let assets = machine.install("assets", &ALL);
    machine.environment.folders.assets = Some(assets.clone());
    assert_eq!(
        choice(&machine),
        (BinarySource::Assets, assets.join("etcd"))
    );

    let named = machine.install("named", &ALL);
    machine.environment.folders.named = Some(named.clone());
    assert_eq!(choice(&machine), (BinarySource::Folder, named.join("etcd")));
}

#[test]
fn the_store_of_setup_envtest_gives_the_newest_patch_of_the_minor_for_this_platform() {
    let machine = Machine::new();
    machine.install_store("1.36.2");
    let newest = machine.install_store("1.36.10");
    machine.install_store("1.35.11");
    machine.install("store/1.36.99-plan9-mips", &ALL);

    let found = machine.obtain().expect("the store has it");

    assert_eq!(found.binaries.etcd, newest.join("etcd"));
    let shown = found.to_string();
    assert!(
        shown.starts_with("Kubernetes v1.36.10 from the store of setup-envtest"),
        "{shown}"
    );
}

#[test]
fn a_missing_controller_manager_comes_from_the_next_source_that_fits() {
    let mut machine = Machine::new();
    machine.install_store("1.36.1");
    let cache = machine.install_cache();

    let found = machine.obtain().expect("the store has the rest");
    let manager = Some(cache.join("kube-controller-manager"));
    assert_eq!(found.source, BinarySource::EnvtestStore);
    assert_eq!(found.binaries.kube_controller_manager, manager);
    assert!(
        found
            .to_string()
            .contains("kube-controller-manager from the cache")
    );

    for (server, fits) in [("v1.37.0", true), ("v1.35.2", false), ("", false)] {
        let folder = machine.install_version("assets", server);
        machine.environment.folders.assets = Some(folder);
        let found = machine.obtain().expect("the assets have the rest");
        assert_eq!(
            found.binaries.kube_controller_manager.is_some(),
            fits,
            "a manager of 1.36 for an API server {server:?}"
        );
    }
}

/// The official files of the default release for this platform.
fn official_release() -> MirrorFiles {
    let release = PinnedRelease::of(DEFAULT_KUBERNETES).expect("the default is pinned");
    let platform = platform();
    let mut files = etcd_release(release.etcd, &platform, b"etcd");
    let folder = platform.replace('-', "/");
    for name in ["kube-apiserver", "kube-controller-manager"] {
        let path = format!("/{}/bin/{folder}/{name}", release.version);
        let sum = sum_of(name.as_bytes());
        files.insert(format!("{path}.sha256"), sum.into_bytes());
        files.insert(path, name.as_bytes().to_vec());
    }
    files
}

#[test]
#[cfg(target_os = "linux")]
fn what_no_folder_has_is_downloaded_once_and_then_in_the_cache() {
    let mut machine = Machine::new();
    let server = StandIn::serve(official_release());
    machine.environment.mirrors = Some(Mirrors {
        kubernetes: server.url(),
        etcd: server.url(),
    });

    let found = machine.obtain().expect("the mirror has all");
    assert_eq!(found.source, BinarySource::Download);
    let text = fs::read_to_string(&found.binaries.kube_apiserver).expect("a file");
    assert_eq!(text, "kube-apiserver");
    assert!(found.binaries.kube_controller_manager.is_some());

    // The second time, no server is needed.
    machine.environment.mirrors = None;
    let again = machine.obtain().expect("the cache has all");
    assert_eq!(again.source, BinarySource::Cache);
    assert_eq!(again.binaries, found.binaries);
}

#[test]
#[cfg(target_os = "linux")]
fn a_missing_controller_manager_is_downloaded_alone() {
    let mut machine = Machine::new();
    let release = PinnedRelease::of(DEFAULT_KUBERNETES).expect("the default is pinned");
    let version = release.version.to_string();
    let store = machine.install_store(version.trim_start_matches('v'));
    let mut files = official_release();
    files.retain(|path, _| path.contains("kube-controller-manager"));
    let server = StandIn::serve(files);
    machine.environment.mirrors = Some(Mirrors {
        kubernetes: server.url(),
        etcd: server.url(),
    });

    let found = machine.obtain().expect("both together have all");
    assert_eq!(found.source, BinarySource::EnvtestStore);
    assert_eq!(found.binaries.etcd, store.join("etcd"));
    assert_eq!(found.manager_source, Some(BinarySource::Download));
}

#[test]
fn an_unknown_version_is_rejected_with_the_known_ones_unless_the_store_has_it() {
    let mut machine = Machine::new();
    machine.environment.kubernetes = "1.30".to_owned();

    let message = machine
        .obtain()
        .expect_err("1.30 is not pinned")
        .to_string();
    assert!(message.contains("1.35 or 1.36"), "{message}");

    machine.install_store("1.30.3");
    let found = machine.obtain().expect("the store has it");
    assert_eq!(found.source, BinarySource::EnvtestStore);
}

#[test]
fn every_pinned_module_requires_a_release_of_its_minor() {
    for minor in PINNED_MINORS {
        let release = PinnedRelease::of(minor).expect("a module");
        assert!(release.version.is_of(minor), "{}", release.version);
        assert!(release.etcd.starts_with("v3."), "{}", release.etcd);
    }
}
