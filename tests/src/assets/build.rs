//! Builds the binaries from their pinned Go modules, once per machine, and shows that it is working.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Assets, Environment, Error, Release, say};
use crate::operator::{self, Ending, Operator};

/// How many lines of Go's output a failure shows.
const OUTPUT_LINES: usize = 15;

/// How often a running build says so.
const PROGRESS_EVERY: Duration = Duration::from_secs(15);

struct Program {
    name: &'static str,
    package: &'static str,
}

const PROGRAMS: [Program; 3] = [
    Program {
        name: "etcd",
        package: "go.etcd.io/etcd/server/v3",
    },
    Program {
        name: "kube-apiserver",
        package: "k8s.io/kubernetes/cmd/kube-apiserver",
    },
    Program {
        name: "kube-controller-manager",
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
];

/// Fills `folder` unless another process has done so while this one waited for its turn.
pub(super) fn build(
    environment: &Environment,
    release: &Release,
    folder: &Path,
) -> Result<(), Error> {
    let unobtainable = |reason: String| Error::Unobtainable {
        version: release.version.clone(),
        reason,
        cache: folder.to_owned(),
    };
    let go = environment.find("go").ok_or_else(|| {
        unobtainable(
            "`go` is not in PATH, and the cache has no binaries of this version".to_owned(),
        )
    })?;

    let parent = folder.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(|source| file("create", parent, source))?;
    let _turn = take_turn(&sibling(folder, "lock"))?;
    if Assets::built(folder).is_some() {
        return Ok(());
    }

    // What an interrupted build has left is of no use.
    let workshop = sibling(folder, "partial");
    for rest in [&workshop, folder] {
        if rest.exists() {
            fs::remove_dir_all(rest).map_err(|source| file("remove", rest, source))?;
        }
    }
    fs::create_dir(&workshop).map_err(|source| file("create", &workshop, source))?;
    let started = Instant::now();
    for (index, program) in PROGRAMS.iter().enumerate() {
        let (name, version, total) = (program.name, &release.version, PROGRAMS.len());
        let label = format!("{name} for Kubernetes {version} ({} of {total})", index + 1);
        let go = Operator::of(&go)
            .current_dir(&release.module)
            .env("CGO_ENABLED", "0")
            .args(["build", "-trimpath", "-ldflags"])
            .arg(format!(
                "-s -w -X k8s.io/component-base/version.gitVersion={version}"
            ))
            .arg("-o")
            .arg(workshop.join(name))
            .arg(program.package);
        run_with_progress(go, &label, started).map_err(unobtainable)?;
    }
    fs::rename(&workshop, folder).map_err(|source| file("rename", &workshop, source))?;
    say(&format!(
        "built in {} s: {}",
        started.elapsed().as_secs(),
        folder.display()
    ));
    Ok(())
}

/// Waits until no other process builds the same folder.
fn take_turn(lock: &Path) -> Result<File, Error> {
    let turn = File::create(lock).map_err(|source| file("create", lock, source))?;
    if turn.try_lock().is_err() {
        say("another process is building the control plane; waiting for it");
        turn.lock().map_err(|source| file("lock", lock, source))?;
    }
    Ok(turn)
}

/// Runs on a leash, so that an interrupted test run leaves no compiler behind.
fn run_with_progress(go: operator::Builder, label: &str, started: Instant) -> Result<(), String> {
    say(&format!("building {label}; this happens once"));
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
            Err(_) => say(&format!(
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
