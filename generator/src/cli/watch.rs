//! `kopf-gen generate --watch`: again and again, whenever an input has changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::load::manifest::FILE_NAME;

/// How often the inputs are looked at; polling needs no help of the system and misses nothing.
const LOOK_EVERY: Duration = Duration::from_millis(150);

/// When each input was changed last, and how long it was then.
type Snapshot = BTreeMap<PathBuf, (SystemTime, u64)>;

/// Calls `generate` once, and again after each change of the manifest or of a file beside it that
/// could be a CRD. Files are only looked at once they rest, as editors write in several steps.
pub(super) fn forever(root: &Path, mut generate: impl FnMut()) -> ! {
    let mut seen = snapshot(root);
    generate();
    loop {
        std::thread::sleep(LOOK_EVERY);
        let mut now = snapshot(root);
        if now == seen {
            continue;
        }
        loop {
            std::thread::sleep(LOOK_EVERY);
            let later = snapshot(root);
            if later == now {
                break;
            }
            now = later;
        }
        generate();
        // What the run itself wrote is no reason for another one.
        seen = snapshot(root);
    }
}

fn snapshot(root: &Path) -> Snapshot {
    let mut files = Snapshot::new();
    note(&root.join(FILE_NAME), &mut files);
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
                note(&path, &mut files);
            }
        }
    }
    files
}

fn note(path: &Path, files: &mut Snapshot) {
    if let Ok(metadata) = std::fs::metadata(path) {
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        files.insert(path.to_path_buf(), (modified, metadata.len()));
    }
}
