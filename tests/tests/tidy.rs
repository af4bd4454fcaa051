//! House rules that a machine can check: the layers of ARCHITECTURE.md, and how files begin.

#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/sources.rs"]
mod sources;

use std::fs;

use layers::{Layers, Violation, violations};
use sources::{SourceFile, crate_sources, repository};

fn layers_of(crate_name: &str) -> Layers {
    let text = fs::read_to_string(repository().join("ARCHITECTURE.md"))
        .expect("ARCHITECTURE.md is readable");
    Layers::parse(&text, crate_name).expect("ARCHITECTURE.md has a table for this crate")
}

fn assert_layered(crate_name: &str, folder: &str) {
    let files = crate_sources(folder);
    let layers = layers_of(crate_name);
    assert_eq!(
        layers.ring(),
        None,
        "the table of {crate_name} goes in a ring"
    );
    assert!(!files.is_empty(), "{folder} has no source files");
    let found = violations(&layers, &files);
    let report: Vec<String> = found.iter().map(Violation::to_string).collect();
    assert!(found.is_empty(), "\n{}\n", report.join("\n"));
}

#[test]
fn the_generator_imports_only_downwards() {
    assert_layered("kopf-gen", "generator/src");
}

#[test]
fn the_runtime_imports_only_downwards() {
    assert_layered("kopf-runtime", "runtime/src");
}

#[test]
fn the_core_imports_only_downwards() {
    assert_layered("kopf-core", "runtime/core/src");
}

#[test]
fn the_core_depends_on_nothing_that_does_io_or_logging() {
    let manifest = fs::read_to_string(repository().join("runtime/core/Cargo.toml"))
        .expect("the core has a manifest");
    for banned in ["tokio", "kube", "hyper", "tracing", "log", "rand"] {
        assert!(
            !manifest
                .lines()
                .any(|line| line.split(['.', ' ', '=']).next() == Some(banned)),
            "kopf-core is pure, so it cannot depend on `{banned}`"
        );
    }
}

#[test]
fn every_source_file_opens_with_its_purpose() {
    let folders = [
        "generator/src",
        "runtime/src",
        "runtime/core/src",
        "tests/bench/src",
        "tests/src",
        "tests/tests",
        "tests/corpus/src",
        "tests/corpus/tests",
    ];
    let silent: Vec<String> = folders
        .iter()
        .flat_map(|folder| crate_sources(folder))
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| file.path)
        .collect();
    assert!(
        silent.is_empty(),
        "these files do not open with a `//!` sentence: {silent:#?}"
    );
}

#[test]
fn an_upward_import_is_reported_however_it_is_spelled() {
    let layers = Layers::parse(
        "### kopf-toy\n\n| module | may import |\n|---|---|\n| `low` | nothing of ours |\n| `high` | `low` |\n",
        "kopf-toy",
    )
    .expect("the table is well formed");
    let spellings = [
        "use crate::high;",
        "use crate::{high::Thing};",
        "use super::high::Thing;",
        "fn f() -> crate::high::Thing { todo() }",
        "mod inner { use super::super::high::Thing; }",
        "fn f() { some_macro!(crate::high::Thing) }",
        "pub(crate) use crate::{low::A, high::B};",
    ];
    for spelling in spellings {
        let files = [
            SourceFile::new("src/low.rs", &["low"], spelling),
            SourceFile::new("src/high.rs", &["high"], "use crate::low::A;"),
        ];
        let found = violations(&layers, &files);
        assert_eq!(
            found.len(),
            1,
            "`{spelling}` in `low` must be reported once, got {found:?}"
        );
        assert_eq!(
            (found[0].importer.as_str(), found[0].imported.as_str()),
            ("low", "high")
        );
    }
}

#[test]
fn a_table_that_goes_in_a_ring_is_reported() {
    let table = "### kopf-toy\n\n| module | may import |\n|---|---|\n| `a` | `b` |\n| `b` | `c` |\n| `c` | `a` |\n";
    let layers = Layers::parse(table, "kopf-toy").expect("the table is well formed");
    assert_eq!(layers.ring(), Some(vec!["a", "b", "c"]));
}

#[test]
fn a_module_without_a_row_is_reported() {
    let layers = Layers::parse(
        "### kopf-toy\n\n| module | may import |\n|---|---|\n| `low` | nothing of ours |\n",
        "kopf-toy",
    )
    .expect("the table is well formed");
    let found = violations(&layers, &[SourceFile::new("src/stray.rs", &["stray"], "")]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].to_string().contains("no row"), "{}", found[0]);
}

#[test]
fn downward_and_inner_imports_and_tests_are_free() {
    let layers = Layers::parse(
        "### kopf-toy\n\n| module | may import |\n|---|---|\n| `low` | nothing of ours |\n| `high` | `low` |\n",
        "kopf-toy",
    )
    .expect("the table is well formed");
    let files = [
        SourceFile::new(
            "src/low.rs",
            &["low"],
            "mod part; use self::part::X; #[cfg(test)] mod tests { use crate::high::Y; }",
        ),
        SourceFile::new(
            "src/low/part.rs",
            &["low", "part"],
            "use super::Z; use crate::low::Z as W; // crate::high in a comment",
        ),
        SourceFile::new(
            "src/high.rs",
            &["high"],
            "use crate::low::part::X; const S: &str = \"crate::high\";",
        ),
    ];
    assert_eq!(violations(&layers, &files), []);
}
