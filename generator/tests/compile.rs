//! The code of every fixture compiles without a warning from rustc, clippy or rustdoc.
//!
//! Other folders of definitions are checked in the same way by the package `kopf-corpus`.

#[path = "shapes/definition.rs"]
mod definition;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use definition::definition;
use kopf_gen::diagnostic::{Diagnostics, Sources};
use kopf_gen::model::identifier::TypeName;
use kopf_gen::pipeline;
use kopf_gen::plan;
use kopf_gen::types::{self, TypesRequest};

const MANIFEST: &str = r#"[package]
name = "fixtures"
version = "0.0.0"
edition = "2024"
publish = false

[workspace]

[dependencies]
k8s-openapi = { version = "0.29", default-features = false, features = ["latest", "std"] }
serde = { version = "1", features = ["derive"] }
serde_json = { version = "1", features = ["preserve_order"] }

[profile.dev]
debug = false
"#;

/// Kinds whose names are Rust keywords or types, or do not look like types.
const KINDS: &[&str] = &[
    "BTreeMap",
    "Box",
    "ByteString",
    "Clone",
    "Condition",
    "Copy",
    "Crate",
    "Debug",
    "Default",
    "Deserialize",
    "Deserializer",
    "From",
    "HTTP",
    "IntOrString",
    "Metadata",
    "Mod",
    "None",
    "ObjectMeta",
    "Ok",
    "Option",
    "Quantity",
    "RawExtension",
    "Resource",
    "Result",
    "Self",
    "Send",
    "Serialize",
    "SerializeMap",
    "Serializer",
    "Some",
    "String",
    "Super",
    "Time",
    "TryFrom",
    "Type",
    "V1",
    "Value",
    "Vec",
    "postgresql",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return;
    }
    fs::write(path, text).expect("a file");
}

#[test]
fn fixtures_compile_without_warnings() {
    let mut sources = Sources::new();
    let mut ids = Vec::new();
    for path in files(&root().join("tests/shapes")) {
        let stem = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let text = definition(TypeName::new(&stem).as_str(), &read(&path));
        ids.push(sources.add(path.display().to_string(), text));
    }
    let properties = read(&root().join("tests/kinds.yaml"));
    for kind in KINDS {
        ids.push(sources.add(*kind, definition(kind, &properties)));
    }
    assert!(ids.len() > KINDS.len());
    let mut diagnostics = Diagnostics::new();
    let request = TypesRequest::default();
    let resources = types::resources(&sources, &ids, &request, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{diagnostics:?}");

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile");
    let generated = folder.join("src/generated");
    for file in pipeline::formatted(plan::types(&resources, &sources)) {
        put(&file.path.below(&generated), file.content.text());
    }
    put(&folder.join("src/lib.rs"), "pub mod generated;\n");
    put(&folder.join("Cargo.toml"), MANIFEST);
    put(
        &folder.join("Cargo.lock"),
        &read(&root().join("../Cargo.lock")),
    );
    cargo(&["clippy", "--", "-D", "warnings"], &folder);
    cargo(&["doc", "--no-deps"], &folder);
}

fn cargo(arguments: &[&str], folder: &Path) {
    let output = Command::new(env!("CARGO"))
        .args(["--offline", "--quiet"])
        .args(arguments)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("RUSTDOCFLAGS", "-D warnings")
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
