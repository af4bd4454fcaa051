//! A fair part of the corpus, on every run: types for all of it, and no object changes on its way.

use std::io::{self, Write as _};
use std::process::Command;

use kopf_corpus::corpus::{Corpus, Part};
use kopf_corpus::generated::{Which, generate};

/// The corpus, or a banner that nobody can overlook: output of a passing test is usually hidden.
fn corpus() -> Option<Corpus> {
    match Corpus::locate() {
        Ok(corpus) => Some(corpus),
        Err(missing) => {
            let rule = "=".repeat(100);
            writeln!(io::stderr(), "\n{rule}\nNOT MEASURED: {missing}\n{rule}")
                .expect("standard error can be written to");
            None
        }
    }
}

/// Runs a command of this package, which must succeed.
#[track_caller]
fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kopf-corpus"))
        .args(arguments)
        .output()
        .expect("the command can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "kopf-corpus {}\n{text}{}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn every_definition_has_types_whatever_the_order() {
    if let Some(corpus) = corpus() {
        let files = corpus.files(Part::Every(4)).len();
        let told = run(&["determinism", "--every=4"]);
        assert_eq!(told, format!("{files} modules twice, 0 different\n"));
    }
}

#[test]
fn the_definition_inside_the_types_is_the_original() {
    let Some(corpus) = corpus() else { return };
    let files = corpus.files(Part::Every(4));
    let generated = generate(&files, Which::Served).expect("the files can be read");
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
fn no_object_changes_on_its_way_through_the_types() {
    if corpus().is_some() {
        let told = run(&["roundtrip", "--every=40"]);
        assert!(told.contains("0 lossy, 0 refused"), "{told}");
    }
}

#[test]
fn every_definition_becomes_an_operator_or_is_refused_with_a_reason() {
    if corpus().is_some() {
        kopf_tests::workspace::build("kopf-gen").expect("it can be built");
        let told = run(&["new", "--every=20"]);
        assert_eq!(told.matches(" 0 break the program").count(), 3, "{told}");
    }
}
