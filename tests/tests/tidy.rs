//! House rules that a machine can check: the layers of ARCHITECTURE.md, the length of functions,
//! names and words, and how files begin.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/items.rs"]
mod items;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/sources.rs"]
mod sources;
#[path = "tidy/words.rs"]
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use circles::circles;
use items::{ItemKind, items_of};
use layers::{Layers, Violation, violations};
use sources::{SourceFile, crate_sources, repository};
use words::{hidden_actors, outside_folders, retired_names, texts};

/// The folders with our own Rust sources.
const SOURCES: &[&str] = &[
    "generator/src",
    "runtime/src",
    "runtime/cluster/src",
    "runtime/core/src",
    "runtime/simulation/src",
    "runtime/testing/src",
    "tests/bench/src",
    "tests/bench/typed-controller/src",
    "tests/src",
    "tests/corpus/src",
    "tests/faults/src",
    "tests/faults/controller/src",
];

const LONGEST_FUNCTION: usize = 80;

/// Names whose module says the rest, as everywhere in Rust.
const CONVENTIONAL: &[&str] = &[
    "Args",
    "Cli",
    "Command",
    "Config",
    "Error",
    "Options",
    "Settings",
    "State",
    "TestResult",
];

/// Names that two crates share because they mean the same: the manifest mirrors the runtime, and
/// the harness mirrors what users get for their tests.
const SAME_IN_TWO_CRATES: &[&str] = &[
    "ConfigurationOwner",
    "CrdVersion",
    "ErrorMode",
    "HandledKind",
    "Hook",
    "Index",
    "InitialDelay",
    "KindSpec",
    "ObjectRef",
    "Objects",
    "Operation",
    "Operator",
    "Scope",
    "StatusSubresource",
    "Ties",
    "Tracking",
    "Trigger",
    "WebhookEndpoint",
    "WebhookRole",
];

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
fn the_cluster_imports_only_downwards() {
    assert_layered("kopf-cluster", "runtime/cluster/src");
}

#[test]
fn the_core_imports_only_downwards() {
    assert_layered("kopf-core", "runtime/core/src");
}

#[test]
fn the_simulation_imports_only_downwards() {
    assert_layered("kopf-simulation", "runtime/simulation/src");
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

/// The packages of an operator with their features, for these kinds of dependencies.
fn packages_with_features(kinds: &str) -> BTreeSet<String> {
    let output = kopf_tests::workspace::cargo()
        .args(["tree", "--package", "testing-operator", "--locked"])
        .args(["--edges", kinds, "--prefix", "none", "--no-dedupe"])
        .args(["--format", "{p} {f}"])
        .output()
        .expect("cargo tree runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("names are UTF-8");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_tests_of_an_operator_build_none_of_its_dependencies_again() {
    let (build, test) = (
        packages_with_features("normal"),
        packages_with_features("normal,dev,build"),
    );
    assert!(build.len() > 100, "{build:?}");
    let again: Vec<_> = build.difference(&test).cloned().collect();
    assert_none(&again, "with other features in `cargo test`");
}

#[test]
fn every_source_file_opens_with_its_purpose() {
    let silent: Vec<String> = SOURCES
        .iter()
        .chain(&[
            "runtime/simulation/tests",
            "tests/tests",
            "tests/corpus/tests",
        ])
        .flat_map(|folder| crate_sources(folder))
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| file.path)
        .collect();
    assert!(
        silent.is_empty(),
        "these files do not open with a `//!` sentence: {silent:#?}"
    );
}

/// The files that are not tests themselves.
fn product_sources() -> Vec<SourceFile> {
    SOURCES
        .iter()
        .flat_map(|folder| crate_sources(folder))
        .filter(|file| file.module.iter().all(|part| part != "tests"))
        .collect()
}

fn assert_none(found: &[String], rule: &str) {
    assert!(found.is_empty(), "{rule}:\n{}\n", found.join("\n"));
}

#[test]
fn no_file_imports_itself_through_others() {
    let layered = [
        "generator/src",
        "runtime/src",
        "runtime/cluster/src",
        "runtime/core/src",
        "runtime/simulation/src",
    ];
    let found: Vec<String> = layered
        .iter()
        .flat_map(|folder| circles(&crate_sources(folder)))
        .map(|circle| circle.join(", "))
        .collect();
    assert_none(&found, "these files import each other in a circle");
}

#[test]
fn no_function_is_longer_than_eighty_lines() {
    let mut found = Vec::new();
    for file in product_sources() {
        for item in items_of(&file) {
            if item.kind == ItemKind::Function && item.lines > LONGEST_FUNCTION {
                let (path, line) = (&file.path, item.line);
                found.push(format!(
                    "{path}:{line}: {} has {} lines",
                    item.name, item.lines
                ));
            }
        }
    }
    assert_none(&found, "these functions are too long");
}

#[test]
fn retired_names_do_not_come_back() {
    let mut found = Vec::new();
    for file in product_sources() {
        for item in retired_names(&file) {
            found.push(format!("{}:{}: {}", file.path, item.line, item.name));
        }
    }
    assert_none(&found, "these names were retired for plainer ones");
}

#[test]
fn a_type_name_has_one_meaning() {
    let mut homes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for folder in SOURCES {
        for file in crate_sources(folder) {
            for item in items_of(&file) {
                // An associated type has the name that its trait gives it.
                if item.kind == ItemKind::Type && item.depth == 0 {
                    homes
                        .entry(item.name)
                        .or_default()
                        .insert(file.path.clone());
                }
            }
        }
    }
    let mut found = Vec::new();
    for (name, files) in homes {
        let crates: BTreeSet<&str> = SOURCES
            .iter()
            .filter(|folder| {
                files
                    .iter()
                    .any(|file| file.starts_with(&format!("{folder}/")))
            })
            .copied()
            .collect();
        let mirrored = SAME_IN_TWO_CRATES.contains(&name.as_str()) && crates.len() == files.len();
        if files.len() > 1 && !mirrored && !CONVENTIONAL.contains(&name.as_str()) {
            let files: Vec<String> = files.into_iter().collect();
            found.push(format!("{name}: {}", files.join(", ")));
        }
    }
    assert_none(&found, "these names stand for several types");
}

#[test]
fn the_code_map_leads_to_files_that_exist() {
    let text = fs::read_to_string(repository().join("ARCHITECTURE.md"))
        .expect("ARCHITECTURE.md is readable");
    let map = text
        .split("## Code map")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("ARCHITECTURE.md has a code map");
    let paths: Vec<&str> = map
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|quoted| quoted.contains('/'))
        .collect();
    assert!(
        paths.len() > 20,
        "the code map names {} places",
        paths.len()
    );
    let missing: Vec<String> = paths
        .iter()
        .filter(|path| !repository().join(path).exists())
        .map(ToString::to_string)
        .collect();
    assert_none(&missing, "the code map leads to places that do not exist");
}

#[test]
fn prose_names_the_actor() {
    let mut found = Vec::new();
    for (path, text) in texts() {
        // The rule itself has to spell what it forbids.
        if path.starts_with("tests/tests/tidy") {
            continue;
        }
        for (line, phrase) in hidden_actors(&text) {
            found.push(format!("{path}:{line}: \"{phrase}\""));
        }
    }
    assert_none(&found, "say who does it");
}

#[test]
fn no_text_names_a_folder_outside_of_the_repository() {
    let mut found = Vec::new();
    for (path, text) in texts() {
        // The rule itself has to spell what it forbids.
        if path.starts_with("tests/tests/tidy") {
            continue;
        }
        for (line, beginning) in outside_folders(&text) {
            found.push(format!("{path}:{line}: \"{beginning}\""));
        }
    }
    assert_none(&found, "a clone of the repository has no such folder");
}

#[test]
fn a_folder_outside_of_the_repository_is_found() {
    let text = "read `../shared/corpus`\ncd /home/me\nsrc/home/tests and unshared/corpus\n";
    assert_eq!(outside_folders(text), [(1, "shared/"), (2, "/home/")]);
}

#[test]
fn a_long_function_a_retired_name_and_a_hidden_actor_are_found() {
    let body = "    work();\n".repeat(LONGEST_FUNCTION);
    let text = format!(
        "mod vitals {{}}\nstruct ClusterCensus;\nfn long() {{\n{body}}}\nfn was_seen() {{}}\n\
         fn seen() {{}}\n#[cfg(test)]\nmod tests {{\n    fn crew() {{\n{body}    }}\n}}\n"
    );
    let file = SourceFile::new("src/toy.rs", &["toy"], &text);
    let long: Vec<String> = items_of(&file)
        .into_iter()
        .filter(|item| item.lines > LONGEST_FUNCTION)
        .map(|item| item.name)
        .collect();
    assert_eq!(long, ["long"]);
    let retired: Vec<String> = retired_names(&file)
        .into_iter()
        .map(|item| item.name)
        .collect();
    assert_eq!(retired, ["vitals", "ClusterCensus", "seen"]);
    assert_eq!(
        hidden_actors("Whoever asks\nthe API server answers\nfn nobody_is_asked() {}\nit is told"),
        [(1, "whoever"), (3, "nobody"), (4, "is told")]
    );
}

#[test]
fn a_circle_of_files_is_found_and_children_may_use_their_parent() {
    let files = [
        SourceFile::new(
            "src/a.rs",
            &["a"],
            "mod part; use crate::b::X; use self::part::Y;",
        ),
        SourceFile::new("src/a/part.rs", &["a", "part"], "use super::Z;"),
        SourceFile::new("src/b.rs", &["b"], "use crate::c::X;"),
        SourceFile::new("src/c.rs", &["c"], "use crate::b::X; use crate::d::X;"),
        SourceFile::new("src/d.rs", &["d"], ""),
    ];
    assert_eq!(circles(&files), [["b", "c"]]);
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
