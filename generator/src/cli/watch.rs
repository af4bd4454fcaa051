//! `kopf-gen generate --watch`: polls the inputs and generates after each change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::diagnostic::{Diagnostics, Sources};
use crate::load::manifest::{self, FILE_NAME};
use crate::plan::is_kustomization;

/// How often the inputs are read; polling works on every file system and misses no change.
const POLL_EVERY: Duration = Duration::from_millis(150);

/// The modification time and the length of each input.
type InputSnapshot = BTreeMap<PathBuf, (SystemTime, u64)>;

/// Calls `generate` once, and again after each change of the manifest, of a CRD that it names, or
/// of a file in `crds/`. It waits until two polls find the same, because editors write in steps.
pub(super) fn generate_on_change(root: &Path, mut generate: impl FnMut()) -> ! {
    let mut named = named_files(root);
    let mut last = snapshot(root, &named);
    generate();
    loop {
        std::thread::sleep(POLL_EVERY);
        let mut now = snapshot(root, &named);
        if now == last {
            continue;
        }
        loop {
            std::thread::sleep(POLL_EVERY);
            let later = snapshot(root, &named);
            if later == now {
                break;
            }
            now = later;
        }
        // Taken before the run, so that a change that the user makes during the run causes another.
        named = named_files(root);
        last = snapshot(root, &named);
        generate();
    }
}

/// The CRD files that the manifest names; none while it cannot be read.
fn named_files(root: &Path) -> Vec<PathBuf> {
    let Ok(text) = std::fs::read_to_string(root.join(FILE_NAME)) else {
        return Vec::new();
    };
    let mut sources = Sources::new();
    let source = sources.add(FILE_NAME, text);
    let manifest = manifest::parse(&sources, source, &mut Diagnostics::new());
    let sections = manifest.into_iter().flat_map(|manifest| manifest.resources);
    sections
        .filter_map(|section| section.crd)
        .map(|file| root.join(file.value))
        .collect()
}

fn snapshot(root: &Path, named: &[PathBuf]) -> InputSnapshot {
    let mut files = InputSnapshot::new();
    record(&root.join(FILE_NAME), &mut files);
    for file in named {
        record(file, &mut files);
    }
    let mut folders = vec![root.join("crds")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if !is_list(&path) {
                record(&path, &mut files);
            }
        }
    }
    files
}

/// Whether the file is the list of the CRDs, which the run itself writes.
fn is_list(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    is_kustomization(&name.to_string_lossy())
}

fn record(path: &Path, files: &mut InputSnapshot) {
    if let Ok(metadata) = std::fs::metadata(path) {
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        files.insert(path.to_path_buf(), (modified, metadata.len()));
    }
}
