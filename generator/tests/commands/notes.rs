//! Notes are printed when they are new, and not repeated.

use serde_json::Value;

use crate::shell::{CRD, Shell};

const HOLDING: &str = "note[KG0610]: objects of Widget wait for handlers when they are deleted";

/// An operator for widgets whose schema keeps all results, so that the only notes are about finalizers.
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
fn new_prints_the_notes_of_its_handlers() {
    let shell = Shell::new();
    let output = shell.run(&[
        "new",
        "widgets",
        "--preset",
        "full",
        "--crd",
        "widget.yaml",
        "--runtime-version",
        "1.0.0",
    ]);
    let (notes, files) = output.split_once("created ").expect("files");
    insta::assert_snapshot!(notes);
    assert!(!files.contains("note["), "{files}");
}

#[test]
fn generate_prints_a_note_once() {
    let shell = keeping_results();
    let two = "      - {on: create, fn: create}\n      - {on: delete, fn: delete}\n";
    shell.manifest(two);
    // A check writes no lock file, so the note is new each time.
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
    // Other changes, and another place of the handler, do not make it new.
    shell.manifest(&format!("      - {{on: update, fn: update}}\n{two}"));
    let other = shell.run(&["generate"]);
    assert!(other.contains("updated"), "{other}");
    assert!(!other.contains("note["), "{other}");
    // It is new again after it was gone.
    shell.manifest("      - {on: create, fn: create}\n");
    shell.run(&["generate"]);
    shell.manifest(two);
    assert!(shell.run(&["generate"]).contains(HOLDING));
}

#[test]
fn validate_and_verbose_repeat_notes_and_quiet_omits_them() {
    let shell = keeping_results();
    shell.manifest("      - {on: create, fn: create}\n      - {on: delete, fn: delete}\n");
    let quiet = shell.run(&["-q", "generate"]);
    assert_eq!(quiet, "exit 0\n");
    for command in [&["validate"][..], &["generate", "-v"]] {
        for _ in 0..2 {
            let output = shell.run(command);
            assert!(output.starts_with("exit 0"), "{output}");
            assert!(output.contains(HOLDING), "{output}");
        }
    }
    assert_eq!(shell.run(&["-q", "validate"]), "exit 0\n");
}

#[test]
fn add_and_remove_print_only_new_notes() {
    let shell = keeping_results();
    let add = |arguments: &[&str]| {
        let output = shell.run(&[&["add"], arguments].concat());
        assert!(output.starts_with("exit 0"), "{output}");
        output
    };
    assert!(add(&["handler", "Widget", "delete", "--on", "delete"]).contains(HOLDING));
    assert!(!add(&["handler", "Widget", "update", "--on", "update"]).contains("note["));
    // The objects have the finalizer already.
    assert!(!add(&["daemon", "Widget", "follow"]).contains("note["));
    let gone = shell.run(&["remove", "handler", "Widget", "update"]);
    assert!(!gone.contains("note["), "{gone}");
}

#[test]
fn json_output_has_notes_by_the_same_rule() {
    let shell = keeping_results();
    shell.manifest("      - {on: create, fn: create}\n      - {on: delete, fn: delete}\n");
    let notes = |arguments: &[&str]| -> Vec<Value> {
        let output = shell.run(&[&["--format", "json"], arguments].concat());
        let objects = output.lines().skip(1).map(serde_json::from_str::<Value>);
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
fn notes_are_not_printed_beside_errors() {
    let shell = Shell::with_operator();
    shell.manifest("      - {on: delete, fn: delete}\n      - {on: crate, fn: create}\n");
    let output = shell.run(&["generate"]);
    assert!(output.starts_with("exit 1\nerror[KG0504]"), "{output}");
    assert!(!output.contains("note["), "{output}");
}

#[test]
fn verbose_prints_details() {
    let shell = Shell::with_operator();
    let other = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n";
    shell.write("crds/widget.yaml", &format!("{CRD}{other}"));
    assert!(!shell.run(&["validate"]).contains("KG0201"));
    let output = shell.run(&["validate", "-v"]);
    assert!(
        output.contains("info[KG0201]: skipped: a ConfigMap of v1"),
        "{output}"
    );
}
