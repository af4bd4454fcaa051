//! Notices changes of the files that an operator is made of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How often the files are looked at; polling works on every file system and misses no change.
const POLL_EVERY: Duration = Duration::from_millis(200);

/// Folders that a build or a tool writes, and no person.
const SKIPPED: [&str; 4] = ["target", ".git", ".kopf-gen", "generated"];

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputChange {
    /// The manifest or a CRD: the crate has to be generated first.
    Declarations,
    /// Sources only.
    Sources,
}

/// The modification time and the length of each file.
type FileTimes = BTreeMap<PathBuf, (SystemTime, u64)>;

/// The files of a crate as they were last seen.
#[derive(Debug)]
pub(super) struct Inputs {
    root: PathBuf,
    seen: FileTimes,
}

impl Inputs {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            seen: times(root),
        }
    }

    /// Waits until files have changed, and then until they stay the same for a moment, because
    /// editors write in steps.
    pub(super) async fn changed(&mut self) -> InputChange {
        loop {
            tokio::time::sleep(POLL_EVERY).await;
            let mut now = times(&self.root);
            if now == self.seen {
                continue;
            }
            loop {
                tokio::time::sleep(POLL_EVERY).await;
                let later = times(&self.root);
                if later == now {
                    break;
                }
                now = later;
            }
            let change = self.difference(&now);
            self.seen = now;
            return change;
        }
    }

    /// Takes the present files as seen: the session itself has changed them.
    pub(super) fn accept(&mut self) {
        self.seen = times(&self.root);
    }

    fn difference(&self, now: &FileTimes) -> InputChange {
        let all = self.seen.keys().chain(now.keys());
        let mut changed = all.filter(|path| self.seen.get(*path) != now.get(*path));
        if changed.any(|path| is_declaration(path)) {
            InputChange::Declarations
        } else {
            InputChange::Sources
        }
    }
}

fn is_declaration(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

/// The files from which an operator is generated and built.
fn times(root: &Path) -> FileTimes {
    let mut files = FileTimes::new();
    for name in ["kopf.yaml", "Cargo.toml", "Cargo.lock", "build.rs"] {
        record(&root.join(name), &mut files);
    }
    let mut folders = vec![root.join("src"), root.join("crds")];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if !SKIPPED.contains(&&*name) {
                    folders.push(path);
                }
            } else if !name.starts_with('.') && !name.ends_with('~') {
                record(&path, &mut files);
            }
        }
    }
    files
}

fn record(path: &Path, files: &mut FileTimes) {
    if let Ok(metadata) = std::fs::metadata(path) {
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        files.insert(path.to_path_buf(), (modified, metadata.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_of_the_manifest_differs_from_one_of_a_source() {
        let folder = tempfile::tempdir().expect("there is space");
        let root = folder.path();
        std::fs::create_dir_all(root.join("src/generated")).expect("it can be made");
        std::fs::write(root.join("kopf.yaml"), "a").expect("it can be written");
        let mut inputs = Inputs::new(root);
        std::fs::write(root.join("src/handlers.rs"), "x").expect("it can be written");
        // What kopf-gen writes itself does not count.
        std::fs::write(root.join("src/generated/types.rs"), "x").expect("it can be written");
        assert_eq!(inputs.changed().await, InputChange::Sources);
        std::fs::write(root.join("kopf.yaml"), "longer").expect("it can be written");
        std::fs::write(root.join("src/handlers.rs"), "longer").expect("it can be written");
        assert_eq!(inputs.changed().await, InputChange::Declarations);
    }
}
