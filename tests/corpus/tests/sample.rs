//! A fixed subset of the corpus on every run: types for every definition, and unchanged objects.

use std::io::{self, Write as _};
use std::process::Command;

use kopf_corpus::corpus::{Corpus, Subset};
use kopf_corpus::generated::{VersionSubset, generate};

/// The corpus; without one, prints a banner to standard error, which cargo does not hide.
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
fn every_definition_has_the_same_types_in_any_order() {
    if let Some(corpus) = corpus() {
        let files = corpus.files(Subset::Every(4)).len();
        let output = run(&["determinism", "--every=4"]);
        assert_eq!(output, format!("{files} modules twice, 0 different\n"));
    }
}

#[test]
fn the_types_contain_the_original_definition() {
    let Some(corpus) = corpus() else { return };
    let files = corpus.files(Subset::Every(4));
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
    if corpus().is_some() {
        let output = run(&["roundtrip", "--every=40"]);
        assert!(output.contains("0 lossy, 0 refused"), "{output}");
    }
}

#[test]
fn kopf_gen_new_makes_an_operator_or_reports_an_error_for_every_definition() {
    if corpus().is_some() {
        kopf_tests::workspace::build_program("kopf-gen").expect("it can be built");
        let output = run(&["new", "--every=20"]);
        assert_eq!(
            output.matches(" 0 break the program").count(),
            3,
            "{output}"
        );
    }
}
