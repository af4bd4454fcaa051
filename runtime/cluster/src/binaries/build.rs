//! Builds the binaries from their pinned Go modules, once per machine, and prints progress.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::release::PinnedRelease;
use super::{Binaries, Environment, Error, print_status, unobtainable};
use crate::child_process::{ChildProcess, ChildProcessBuilder, Ending};

/// The number of lines of Go's output that a failure shows.
const OUTPUT_LINES: usize = 15;

/// The interval between progress lines.
const PROGRESS_EVERY: Duration = Duration::from_secs(15);

struct GoProgram {
    name: &'static str,
    package: &'static str,
}

const PROGRAMS: [GoProgram; 3] = [
    GoProgram {
        name: "etcd",
        package: "go.etcd.io/etcd/server/v3",
    },
    GoProgram {
        name: "kube-apiserver",
        package: "k8s.io/kubernetes/cmd/kube-apiserver",
    },
    GoProgram {
        name: "kube-controller-manager",
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
];

/// Builds the binaries into `folder`, unless another process did while this one waited for the lock.
pub(super) fn build(
    environment: &Environment,
    release: &PinnedRelease,
    folder: &Path,
) -> Result<(), Error> {
    let unobtainable = |reason: String| unobtainable(environment, release, reason);
    let go = environment
        .find("go")
        .ok_or_else(|| unobtainable("no source has it, and `go` is not in PATH".to_owned()))?;

    let parent = folder.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(|source| file("create", parent, source))?;
    let _lock = lock(&sibling(folder, "lock"))?;
    if Binaries::in_folder(folder).is_ok_and(|it| it.kube_controller_manager.is_some()) {
        return Ok(());
    }

    // An interrupted build leaves incomplete folders.
    let partial = sibling(folder, "partial");
    for incomplete in [&partial, folder] {
        if incomplete.exists() {
            fs::remove_dir_all(incomplete).map_err(|source| file("remove", incomplete, source))?;
        }
    }
    fs::create_dir(&partial).map_err(|source| file("create", &partial, source))?;
    let module = sibling(folder, "module");
    fs::create_dir_all(&module).map_err(|source| file("create", &module, source))?;
    for (name, text) in [("go.mod", release.requirements), ("go.sum", release.sums)] {
        let path = module.join(name);
        fs::write(&path, text).map_err(|source| file("write", &path, source))?;
    }
    let started = Instant::now();
    for (index, program) in PROGRAMS.iter().enumerate() {
        let (name, version, total) = (program.name, release.version, PROGRAMS.len());
        let label = format!("{name} for Kubernetes {version} ({} of {total})", index + 1);
        let go = match &environment.program {
            Some(program) => ChildProcess::command(&go).under(program.clone()),
            None => ChildProcess::command(&go),
        };
        let go = go
            .current_dir(&module)
            .env("CGO_ENABLED", "0")
            .args(["build", "-trimpath", "-ldflags"])
            .arg(format!(
                "-s -w -X k8s.io/component-base/version.gitVersion={version}"
            ))
            .arg("-o")
            .arg(partial.join(name))
            .arg(program.package);
        run_with_progress(go, &label, started).map_err(unobtainable)?;
    }
    fs::rename(&partial, folder).map_err(|source| file("rename", &partial, source))?;
    print_status(&format!(
        "built in {} s: {}",
        started.elapsed().as_secs(),
        folder.display()
    ));
    Ok(())
}

/// Takes the file lock that keeps two processes from building the same folder.
fn lock(path: &Path) -> Result<File, Error> {
    let lock = File::create(path).map_err(|source| file("create", path, source))?;
    if lock.try_lock().is_err() {
        print_status("another process is building the control plane; waiting for it");
        lock.lock().map_err(|source| file("lock", path, source))?;
    }
    Ok(lock)
}

/// Runs `go` as a [`ChildProcess`], which ends with an interrupted test run.
fn run_with_progress(go: ChildProcessBuilder, label: &str, started: Instant) -> Result<(), String> {
    print_status(&format!("building {label}; this happens once"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime to watch `go` from: {error}"))?;
    let go = go
        .start()
        .map_err(|error| format!("`go` could not be run: {error}"))?;
    let ending = loop {
        match runtime.block_on(async { go.wait_within(PROGRESS_EVERY).await }) {
            Ok(ending) => break ending,
            Err(_) => print_status(&format!(
                "still building {label}: {} s",
                started.elapsed().as_secs()
            )),
        }
    };
    if ending == Ending::Exit(0) {
        return Ok(());
    }
    let text = go.log();
    let lines: Vec<_> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(OUTPUT_LINES)..].join("\n    ");
    Err(format!(
        "building {label} failed ({ending:?}):\n    {tail}\n"
    ))
}

/// A file or folder beside `folder`, whose name has dots of its own.
fn sibling(folder: &Path, extension: &str) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

fn file(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::File {
        action,
        path: path.to_owned(),
        source,
    }
}
