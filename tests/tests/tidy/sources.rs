//! The source files of a crate, each with its module path.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;

/// A file and the module that it defines; the crate's root is the empty path.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) module: Vec<String>,
    pub(crate) text: String,
}

impl SourceFile {
    pub(crate) fn new(path: &str, module: &[&str], text: &str) -> Self {
        Self {
            path: path.to_owned(),
            module: module.iter().map(ToString::to_string).collect(),
            text: text.to_owned(),
        }
    }

    /// # Panics
    /// If the file is not Rust, which the compiler would have said first.
    pub(crate) fn tokens(&self) -> TokenStream {
        self.text
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }

    /// The root ties all modules together, and tests may look at anything: neither has a layer.
    pub(crate) fn is_layered(&self) -> bool {
        !self.module.is_empty() && self.module.iter().all(|part| part != "tests")
    }
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests are a folder of the repository")
        .to_owned()
}

/// Every `.rs` file under `folder`, sorted by path.
pub(crate) fn crate_sources(folder: &str) -> Vec<SourceFile> {
    let root = repository().join(folder);
    let mut files = Vec::new();
    collect(&root, &root, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let inside = path
                .strip_prefix(root)
                .expect("the file is under the root")
                .with_extension("");
            let mut module: Vec<String> = inside
                .components()
                .map(|part| part.as_os_str().to_string_lossy().into_owned())
                .collect();
            if module.len() == 1 && matches!(module[0].as_str(), "lib" | "main") {
                module.clear();
            }
            files.push(SourceFile {
                path: path
                    .strip_prefix(repository())
                    .unwrap_or(&path)
                    .display()
                    .to_string(),
                module,
                text: fs::read_to_string(&path).expect("a source file is readable"),
            });
        }
    }
}
