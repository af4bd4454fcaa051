//! Puts the sources of the runtime into the program, for crates with a copy of their own, and the
//! origin of this build, for crates that take the runtime from there.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

/// The crates that an operator and its tests are built from, and their folders.
const CRATES: [(&str, &str); 4] = [
    ("kopf-cluster", "runtime/cluster"),
    ("kopf-core", "runtime/core"),
    ("kopf-runtime", "runtime"),
    ("kopf-testing", "runtime/testing"),
];

/// The files and folders of each crate; unit tests are left out.
const PARTS: [&str; 3] = ["build.rs", "kubernetes", "src"];

/// A package has no folder with a Cargo.toml: in `runtime-sources`, which links to the sources of this
/// repository, the manifests have this name.
const PACKAGED_MANIFEST: &str = "Cargo.toml.in";

type SourceFiles = Vec<(String, String)>;

fn main() -> Result<(), Box<dyn Error>> {
    let generator = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let repository = generator.join("..");
    let is_packaged = !repository.join("runtime/core/Cargo.toml").is_file();
    let root = if is_packaged {
        generator.join("runtime-sources")
    } else {
        repository
    };
    let workspace = read_manifest(&root)?;
    let mut files = SourceFiles::new();
    for (_, folder) in CRATES {
        let manifest = standalone(read_manifest(&root.join(folder))?, folder, &workspace);
        files.push((format!("{folder}/Cargo.toml"), manifest));
        for part in PARTS {
            collect(&root, &format!("{folder}/{part}"), &mut files)?;
        }
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("runtime_sources.rs"), format!("&{files:?}"))?;
    if is_packaged {
        println!("cargo::rustc-env=KOPF_GEN_FROM_REGISTRY=1");
    } else {
        set_origin(&generator);
    }
    Ok(())
}

fn read_manifest(folder: &Path) -> Result<DocumentMut, Box<dyn Error>> {
    let packaged = folder.join(PACKAGED_MANIFEST);
    let manifest = if packaged.is_file() {
        packaged
    } else {
        folder.join("Cargo.toml")
    };
    println!("cargo::rerun-if-changed={}", manifest.display());
    Ok(fs::read_to_string(manifest)?.parse()?)
}

/// Adds a file, or the files of a folder.
fn collect(root: &Path, path: &str, files: &mut SourceFiles) -> Result<(), Box<dyn Error>> {
    let place = root.join(path);
    if !place.exists() {
        return Ok(());
    }
    println!("cargo::rerun-if-changed={}", place.display());
    if place.is_file() {
        files.push((path.to_owned(), fs::read_to_string(&place)?));
        return Ok(());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&place)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    names.retain(|name| !matches!(name.as_str(), "tests" | "tests.rs"));
    for name in names {
        collect(root, &format!("{path}/{name}"), files)?;
    }
    Ok(())
}

/// A manifest that inherits nothing from a workspace, and does not name what is left out.
fn standalone(mut manifest: DocumentMut, folder: &str, workspace: &DocumentMut) -> String {
    for section in ["dev-dependencies", "test", "lints"] {
        manifest.remove(section);
    }
    let inherited = &workspace["workspace"];
    if let Some(package) = manifest["package"].as_table_mut() {
        for (key, item) in package.iter_mut() {
            if is_inherited(item) {
                *item = inherited["package"][key.get()].clone();
            }
        }
        for key in ["readme", "keywords", "categories", "exclude"] {
            package.remove(key);
        }
        // It is a copy: never publish it under its name.
        package["publish"] = value(false);
    }
    for section in ["dependencies", "build-dependencies"] {
        let Some(dependencies) = manifest.get_mut(section).and_then(Item::as_table_mut) else {
            continue;
        };
        for (key, item) in dependencies.iter_mut() {
            if is_inherited(item) {
                let whole = &inherited["dependencies"][key.get()];
                *item = Item::Value(resolved(item, whole, key.get(), folder).into());
            }
        }
    }
    // Warnings of a later compiler are not for the user to mend.
    let mut lints = Table::new();
    lints["rust"]["warnings"] = value("allow");
    lints.set_implicit(true);
    manifest["lints"] = Item::Table(lints);
    manifest.to_string()
}

fn is_inherited(item: &Item) -> bool {
    let inherits = item.get("workspace").and_then(Item::as_bool);
    inherits == Some(true)
}

/// A dependency with what the workspace says about it.
fn resolved(item: &Item, inherited: &Item, name: &str, folder: &str) -> InlineTable {
    let mut table = InlineTable::new();
    match inherited.as_str() {
        Some(version) => {
            table.insert("version", version.into());
        }
        None => {
            let inherited = inherited.as_inline_table().into_iter().flatten();
            for (key, value) in inherited {
                table.insert(key, value.clone().decorated("", ""));
            }
        }
    }
    if let Some((_, target)) = CRATES.iter().find(|(known, _)| *known == name) {
        let up = "../".repeat(folder.split('/').count());
        table.insert("path", format!("{up}{target}").into());
        table.remove("version");
    }
    for (key, value) in item.as_table_like().into_iter().flat_map(|it| it.iter()) {
        let Item::Value(value) = value else { continue };
        match (key, table.get_mut("features").and_then(Value::as_array_mut)) {
            ("workspace", _) => {}
            ("features", Some(present)) => add_features(present, value),
            _ => {
                table.insert(key, value.clone().decorated("", ""));
            }
        }
    }
    table.fmt();
    table
}

fn add_features(present: &mut Array, added: &Value) {
    for feature in added.as_array().into_iter().flatten() {
        let is_known = present.iter().any(|it| it.as_str() == feature.as_str());
        if !is_known {
            present.push(feature.clone().decorated("", ""));
        }
    }
    present.fmt();
}

/// Tells the program the commit that it comes from, if others can fetch it.
fn set_origin(generator: &Path) {
    if let Some((remote, commit)) = published_commit(generator) {
        println!("cargo::rustc-env=KOPF_GEN_REMOTE={remote}");
        println!("cargo::rustc-env=KOPF_GEN_COMMIT={commit}");
    }
}

/// The remote and the commit of a checkout without changes, if the remote has the commit.
fn published_commit(generator: &Path) -> Option<(String, String)> {
    let git = |arguments: &[&str]| -> Option<String> {
        let mut command = Command::new("git");
        let output = command.arg("-C").arg(generator).args(arguments).output();
        let output = output.ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        output.status.success().then_some(text)
    };
    let remote = git(&["remote", "get-url", "origin"])?;
    let commit = git(&["rev-parse", "HEAD"])?;
    let branches = git(&["branch", "--remotes", "--contains", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--", "../runtime", "../Cargo.toml"])?;
    let is_published = !branches.is_empty() && changes.is_empty() && !remote.contains('\n');
    is_published.then_some((remote, commit))
}
