//! The operator as its users meet it: as a program.

use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_preset-minimal");

fn printed_definitions() -> String {
    let mut program = Command::new(PROGRAM);
    let output = program.arg("crd").output().expect("it runs");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn it_brings_the_definitions_of_its_kinds_along() {
    let printed = printed_definitions();
    assert!(printed.contains("kopfexamples.kopf.dev"));
}
