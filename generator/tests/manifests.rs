//! Every manifest that the JSON Schema accepts causes errors, or becomes a crate: the same every
//! time, valid Rust, and without warnings of the compiler and clippy.

#[path = "schema/accepts.rs"]
mod accepts;
#[path = "schema/samples.rs"]
mod samples;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use accepts::accepts;
use kopf_gen::diagnostic::{Diagnostics, Sources, Style, human};
use kopf_gen::format::FormattedFile;
use kopf_gen::load::manifest;
use kopf_gen::pipeline;
use kopf_gen::plan::{self, CrateEnvironment, InitialHandlers, UserFiles};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use samples::FILES;
use serde_json::{Value, json};

/// The number of crates to compile; each takes about a second.
const COMPILED: usize = 24;

/// Types and functions that the crates refer to.
const CONTEXTS: [&str; 12] = [
    "ChangeContext<",
    "FieldContext<",
    "EventContext<",
    "DaemonContext<",
    "TimerContext<",
    "IndexContext<",
    "ValidationContext<",
    "MutationContext<",
    "StartupContext",
    "CleanupContext",
    "LoginContext",
    "ProbeContext",
];

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(manifest::schema()).expect("a schema is JSON"));

/// Manifests that the schema accepts.
fn manifests() -> impl Strategy<Value = Value> {
    samples::values(&SCHEMA, &SCHEMA, "")
        .prop_filter("accepted by the schema", |it| accepts(&SCHEMA, &SCHEMA, it))
}

/// Every file of a new crate; `None` if the manifest has an error.
fn crate_of(manifest: &Value) -> Option<Vec<FormattedFile>> {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    let source = sources.add("kopf.yaml", manifest.to_string());
    let read = |path: &str| {
        let found = FILES.iter().find(|(name, _)| *name == path);
        let found = found.map(|(_, text)| text.as_bytes().to_vec());
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let operator = pipeline::read_operator(&mut sources, source, &read, &mut diagnostics);
    for diagnostic in &diagnostics {
        assert!(!human(diagnostic, &sources, Style::Plain).is_empty());
    }
    let Some(operator) = operator else {
        assert!(diagnostics.has_errors(), "refused in silence: {manifest}");
        return None;
    };
    let user = UserFiles::default();
    let mut plan = plan::operator(&operator, &sources, &user, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "an empty crate is in order");
    let path = |folder: &str| format!("{{ path = {:?} }}", repository().join(folder));
    let environment = CrateEnvironment {
        runtime: path("runtime"),
        testing: path("runtime/testing"),
        has_workspace: true,
    };
    plan.extend(plan::new_crate(
        &operator,
        environment,
        InitialHandlers::Stubs,
    ));
    Some(pipeline::formatted(plan))
}

fn text(file: &FormattedFile) -> &str {
    file.content.text()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("a checkout")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn manifests_that_the_schema_accepts_make_valid_rust_or_an_error(manifest in manifests()) {
        let made = crate_of(&manifest);
        for file in made.iter().flatten() {
            if file.path.as_str().ends_with(".rs") {
                let valid = syn::parse_file(text(file));
                prop_assert!(valid.is_ok(), "{}:\n{}", file.path, text(file));
            }
        }
        prop_assert_eq!(crate_of(&manifest), made);
    }
}

#[test]
fn manifests_that_the_schema_accepts_make_crates_that_compile() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("manifests");
    let manifests = manifests();
    let mut runner = TestRunner::deterministic();
    let (mut compiled, mut tried) = (0, 0);
    let mut all_functions = String::new();
    while compiled < COMPILED {
        tried += 1;
        assert!(tried < 20_000, "hardly any manifest is accepted");
        let drawn = manifests.new_tree(&mut runner).expect("a manifest");
        let mut manifest = drawn.current();
        let name = format!("case-{compiled}");
        manifest["operator"]["name"] = json!(name);
        let Some(files) = crate_of(&manifest) else {
            continue;
        };
        let written = functions(&files);
        let lacks = |text: &str, context: &str| !text.contains(&format!("cx: &mut {context}"));
        let is_new = |it: &&str| lacks(&all_functions, it) && !lacks(&written, it);
        let has_all = !CONTEXTS.iter().any(|it| lacks(&all_functions, it));
        let is_enough = compiled < COMPILED / 2 || has_all || CONTEXTS.iter().any(is_new);
        if written.matches("fn ").count() < 4 || !is_enough {
            continue;
        }
        all_functions += &written;
        let place = folder.join(&name);
        if place.exists() {
            delete_others(&place, &files);
        }
        for file in &files {
            put(&file.path.below(&place), text(file));
        }
        for (path, text) in FILES {
            put(&place.join(path), text);
        }
        put(&place.join("kopf.yaml"), &manifest.to_string());
        compiled += 1;
    }
    for context in CONTEXTS {
        let argument = format!("cx: &mut {context}");
        assert!(
            all_functions.contains(&argument),
            "no function has {context}"
        );
    }
    let workspace = "[workspace]\nresolver = \"3\"\nmembers = [\"case-*\"]\n\n\
                     [profile.dev]\ndebug = false\n";
    put(&folder.join("Cargo.toml"), workspace);
    let lock = fs::read_to_string(repository().join("Cargo.lock")).expect("a lock");
    put(&folder.join("Cargo.lock"), &lock);
    let output = Command::new(env!("CARGO"))
        .args([
            "--offline",
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
        ])
        .args(["--", "-D", "warnings"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The stubs of the user.
fn functions(files: &[FormattedFile]) -> String {
    let is_ours = |file: &&FormattedFile| file.path.as_str().starts_with("src/handlers/");
    files.iter().filter(is_ours).map(text).collect()
}

/// Deletes files of an earlier run that this crate does not have.
fn delete_others(folder: &Path, files: &[FormattedFile]) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            delete_others(&path, files);
        } else if !files.iter().any(|file| path.ends_with(file.path.as_str())) {
            fs::remove_file(path).expect("writable");
        }
    }
}

fn put(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return;
    }
    fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
    fs::write(path, text).expect("writable");
}
