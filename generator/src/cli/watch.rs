//! `kopf-gen generate --watch`: again and again, whenever an input has changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::diagnostic::{Diagnostics, Sources};
use crate::load::manifest::{self, FILE_NAME};

/// How often the inputs are looked at; polling needs no help of the system and misses nothing.
const POLL_EVERY: Duration = Duration::from_millis(150);

/// When each input was changed last, and how long it was then.
type InputSnapshot = BTreeMap<PathBuf, (SystemTime, u64)>;

/// Calls `generate` once, and again after each change of the manifest, of a CRD that it names, or
/// of a file in `crds/`. Files are only looked at once they rest, as editors write in several steps.
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
        // Before the run, whose own writing is its business: what is changed by others meanwhile
        // is a reason for another one.
        named = named_files(root);
        last = snapshot(root, &named);
        generate();
    }
}

/// The definitions that the manifest names, wherever they are; none while it cannot be read.
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
            } else {
                record(&path, &mut files);
            }
        }
    }
    files
}

fn record(path: &Path, files: &mut InputSnapshot) {
    if let Ok(metadata) = std::fs::metadata(path) {
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        files.insert(path.to_path_buf(), (modified, metadata.len()));
    }
}
