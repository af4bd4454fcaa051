//! What a manifest implies is told when it is new, and not again and again.

use serde_json::Value;

use crate::shell::{CRD, Shell};

const HOLDING: &str = "note[KG0610]: objects of Widget wait for handlers when they are deleted";

/// An operator for widgets that keep whatever results there are, so that only finalizers are told of.
fn keeping_results() -> Shell {
    let shell = Shell::with_operator();
    let status = "status: {type: object, x-kubernetes-preserve-unknown-fields: true}";
    let crd = CRD.replace(
        "            spec:",
        &format!("            {status}\n            spec:"),
    );
    shell.write("crds/widget.yaml", &crd);
    shell.run(&["-q", "generate"]);
    shell
}

#[test]
fn new_tells_what_its_handlers_imply() {
    let shell = Shell::new();
    let said = shell.run(&[
        "new",
        "widgets",
        "--preset",
        "full",
        "--crd",
        "widget.yaml",
        "--runtime-version",
        "1.0.0",
    ]);
    let (notes, files) = said.split_once("created ").expect("files");
    insta::assert_snapshot!(notes);
    assert!(!files.contains("note["), "{files}");
}

#[test]
fn generate_tells_a_note_once() {
    let shell = keeping_results();
    let two = "      - {on: create, fn: create_fn}\n      - {on: delete, fn: delete_fn}\n";
    shell.manifest(two);
    // Nobody knows of it as long as nothing is written.
    for _ in 0..2 {
        let check = shell.run(&["generate", "--check"]);
        assert!(check.starts_with("exit 3"), "{check}");
        assert!(check.contains(HOLDING), "{check}");
    }
    let first = shell.run(&["generate"]);
    assert!(first.starts_with("exit 0"), "{first}");
    assert!(first.contains(HOLDING), "{first}");
    insta::assert_snapshot!(shell.run(&["generate"]), @r"
    exit 0
    everything is up to date
    ");
    // Whatever else changes, and wherever it moves to.
    shell.manifest(&format!("      - {{on: update, fn: update_fn}}\n{two}"));
    let other = shell.run(&["generate"]);
    assert!(other.contains("updated"), "{other}");
    assert!(!other.contains("note["), "{other}");
    // It is told again after it was gone.
    shell.manifest("      - {on: create, fn: create_fn}\n");
    shell.run(&["generate"]);
    shell.manifest(two);
    assert!(shell.run(&["generate"]).contains(HOLDING));
}

#[test]
fn who_asks_is_told_again_and_who_wants_silence_has_it() {
    let shell = keeping_results();
    shell.manifest("      - {on: create, fn: create_fn}\n      - {on: delete, fn: delete_fn}\n");
    let quiet = shell.run(&["-q", "generate"]);
    assert_eq!(quiet, "exit 0\n");
    for telling in [&["validate"][..], &["generate", "-v"]] {
        for _ in 0..2 {
            let said = shell.run(telling);
            assert!(said.starts_with("exit 0"), "{said}");
            assert!(said.contains(HOLDING), "{said}");
        }
    }
    assert_eq!(shell.run(&["-q", "validate"]), "exit 0\n");
}

#[test]
fn add_and_remove_tell_only_what_they_bring() {
    let shell = keeping_results();
    let add = |arguments: &[&str]| {
        let said = shell.run(&[&["add"], arguments].concat());
        assert!(said.starts_with("exit 0"), "{said}");
        said
    };
    assert!(add(&["handler", "Widget", "delete_fn", "--on", "delete"]).contains(HOLDING));
    assert!(!add(&["handler", "Widget", "update_fn", "--on", "update"]).contains("note["));
    // The objects are held already.
    assert!(!add(&["daemon", "Widget", "follow"]).contains("note["));
    let gone = shell.run(&["remove", "handler", "Widget", "update_fn"]);
    assert!(!gone.contains("note["), "{gone}");
}

#[test]
fn programs_get_notes_by_the_same_rule() {
    let shell = keeping_results();
    shell.manifest("      - {on: create, fn: create_fn}\n      - {on: delete, fn: delete_fn}\n");
    let notes = |arguments: &[&str]| -> Vec<Value> {
        let said = shell.run(&[&["--format", "json"], arguments].concat());
        let objects = said.lines().skip(1).map(serde_json::from_str::<Value>);
        let objects = objects.map(|object| object.expect("one object per line"));
        objects.filter(|it| it["severity"] == "note").collect()
    };
    assert_eq!(notes(&["validate"]).len(), 1);
    let first = notes(&["generate"]);
    assert_eq!(first.len(), 1);
    assert_eq!(first[0]["code"], "KG0610");
    assert_eq!(first[0]["labels"][0]["start"]["line"], 7);
    assert_eq!(notes(&["generate"]).len(), 0);
    assert_eq!(notes(&["generate", "-v"]).len(), 1);
    assert_eq!(notes(&["-q", "validate"]).len(), 0);
}

#[test]
fn what_has_to_be_mended_comes_first() {
    let shell = Shell::with_operator();
    shell.manifest("      - {on: delete, fn: delete_fn}\n      - {on: crate, fn: create_fn}\n");
    let said = shell.run(&["generate"]);
    assert!(said.starts_with("exit 1\nerror[KG0504]"), "{said}");
    assert!(!said.contains("note["), "{said}");
}

#[test]
fn details_are_for_those_who_ask() {
    let shell = Shell::with_operator();
    let other = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n";
    shell.write("crds/widget.yaml", &format!("{CRD}{other}"));
    assert!(!shell.run(&["validate"]).contains("KG0201"));
    let said = shell.run(&["validate", "-v"]);
    assert!(
        said.contains("info[KG0201]: skipped: a ConfigMap of v1"),
        "{said}"
    );
}
