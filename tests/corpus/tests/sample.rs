//! The commands on our own definitions: types for every definition, and unchanged objects.

use std::path::PathBuf;
use std::process::{Command, Output};

use kopf_corpus::corpus::{Corpus, DefinitionFile, Subset, repository};
use kopf_corpus::definition;
use kopf_corpus::generated::{VersionSubset, generate};

/// Every command that measures definitions.
const COMMANDS: [&str; 9] = [
    "synthesise",
    "generate",
    "determinism",
    "check",
    "roundtrip",
    "kopium",
    "new",
    "operator",
    "versus",
];

fn corpus() -> Corpus {
    Corpus::own().expect("our definitions are there")
}

fn definitions() -> PathBuf {
    repository().join("tests/corpus/definitions")
}

fn start(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kopf-corpus"))
        .args(arguments)
        .env_remove("KOPF_CORPUS")
        .output()
        .expect("the command can be started")
}

/// Runs a command of this package on our definitions, which must succeed.
#[track_caller]
fn run(command: &str) -> String {
    let folder = definitions().display().to_string();
    let output = start(&[command, "--corpus", &folder]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "kopf-corpus {command}\n{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// The number of versions that get types: all served ones, or the stored one if none is served.
fn with_types(file: &DefinitionFile) -> usize {
    let versions = definition::versions(&file.definition().expect("it can be read"));
    versions.iter().filter(|it| it.served).count().max(1)
}

#[test]
fn every_definition_has_the_same_types_in_any_order() {
    let files = corpus().files(Subset::All).len();
    let output = run("determinism");
    assert_eq!(output, format!("{files} modules twice, 0 different\n"));
}

#[test]
fn the_types_contain_the_original_definition() {
    let corpus = corpus();
    let files = corpus.files(Subset::All);
    let generated = generate(&files, VersionSubset::Served).expect("the files can be read");
    for file in files {
        let root = generated.roots.iter().find(|root| root.index == file.index);
        let original = file.definition().expect("it can be read");
        assert_eq!(
            root.map(|root| &root.definition),
            Some(&original),
            "{}",
            file.stem
        );
    }
}

#[test]
fn no_object_changes_when_the_types_decode_and_encode_it() {
    let output = run("roundtrip");
    let corpus = corpus();
    let versions: usize = corpus
        .files(Subset::All)
        .iter()
        .map(|it| with_types(it))
        .sum();
    let all = format!("all objects: {versions} of {versions} versions identical");
    assert!(output.contains(&all), "{output}");
}

#[test]
fn every_definition_has_valid_objects() {
    let output = run("synthesise");
    assert!(
        output.ends_with(" 0 objects against their schema\n"),
        "{output}"
    );
}

#[test]
fn kopf_gen_new_makes_an_operator_for_every_served_definition() {
    kopf_tests::workspace::build_program("kopf-gen").expect("it can be built");
    let all = corpus().files(Subset::All).len();
    let output = run("new");
    for preset in ["minimal", "child", "full"] {
        let rejected = format!("{preset} no-served-version: KG0204\n");
        let counts = format!(
            "{preset}: {} of {all} definitions become a crate, 1 are refused with a reason, 0 break",
            all - 1
        );
        assert!(output.contains(&rejected), "{output}");
        assert!(output.contains(&counts), "{output}");
    }
}

#[test]
fn a_command_without_a_folder_fails_and_names_the_option() {
    for command in COMMANDS {
        let output = start(&[command]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{command}");
        assert!(text.contains("--corpus <FOLDER>"), "{command}: {text}");
    }
}

#[test]
fn a_folder_without_definitions_is_an_error() {
    let empty = tempfile::tempdir().expect("a folder");
    let folder = empty.path().display().to_string();
    for command in COMMANDS {
        let output = start(&[command, "--corpus", &folder]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{command}");
        assert!(
            text.contains("there is no definition in"),
            "{command}: {text}"
        );
    }
}
