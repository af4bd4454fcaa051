//! A crate that another version of kopf-gen made last.

use std::fs;

use serde_json::{Value, json};

use crate::shell::Shell;

const LOCK: &str = ".kopf-gen/lock.json";

fn lock(shell: &Shell) -> Value {
    serde_json::from_str(&shell.read(LOCK)).expect("JSON")
}

/// The lock as it was before formats had numbers.
fn age(shell: &Shell) {
    let mut lock = lock(shell);
    let format = lock
        .as_object_mut()
        .and_then(|lock| lock.remove("format"))
        .expect("today's lock has a number");
    assert_eq!(format, 1, "every format needs its own test");
    shell.write(LOCK, &lock.to_string());
}

#[test]
fn an_older_lock_is_written_anew_and_nothing_else() {
    let shell = Shell::with_operator();
    let today = shell.read(LOCK);
    age(&shell);
    insta::assert_snapshot!(shell.run(&["generate", "--check"]), @r"
    exit 3
    would update .kopf-gen/lock.json
    ");
    insta::assert_snapshot!(shell.run(&["generate"]), @r"
    exit 0
    updated .kopf-gen/lock.json
    ");
    assert_eq!(shell.read(LOCK), today);
}

#[test]
fn what_an_older_lock_knows_is_not_forgotten() {
    let shell = Shell::with_operator();
    let edited = shell.read("src/generated.rs") + "// mine\n";
    shell.write("src/generated.rs", &edited);
    age(&shell);
    let refused = shell.run(&["generate"]);
    assert!(refused.starts_with("exit 4"), "{refused}");
    assert_eq!(shell.read("src/generated.rs"), edited);

    // What was generated and not edited is still ours to change and to delete.
    let shell = Shell::with_operator();
    age(&shell);
    shell.write(
        "kopf.yaml",
        "apiVersion: kopf-gen.dev/v1\noperator: {name: widgets}\nresources: [{builtin: v1/Pod}]\n",
    );
    let output = shell.run(&["generate"]);
    assert!(output.contains("updated src/generated.rs"), "{output}");
    assert!(
        output.contains("deleted src/generated/widget.rs"),
        "{output}"
    );
    assert_eq!(lock(&shell)["format"], json!(1));
}

#[test]
fn a_newer_lock_is_left_alone() {
    let shell = Shell::with_operator();
    let newer = shell.read(LOCK).replace("\"format\": 1", "\"format\": 2");
    shell.write(LOCK, &newer);
    shell.manifest("      - {on: create, fn: create_fn}\n      - {on: update, fn: update_fn}\n");
    insta::assert_snapshot!(shell.run(&["generate"]), @r"
    exit 1
    error: [FOLDER]/widgets/.kopf-gen/lock.json was written by a newer kopf-gen: it has format 2, and this one knows formats up to 1; update kopf-gen
    ");
    assert_eq!(shell.read(LOCK), newer);
    assert!(!shell.read("src/handlers/widget.rs").contains("update_fn"));
}

#[test]
fn a_damaged_lock_says_what_to_do() {
    let shell = Shell::with_operator();
    let today = shell.read(LOCK);
    shell.write(LOCK, &format!("<<<<<<< ours\n{today}"));
    insta::assert_snapshot!(shell.run(&["generate"]), @r"
    exit 1
    error: [FOLDER]/widgets/.kopf-gen/lock.json is damaged; after a merge conflict take either side of it, or delete it, and run `kopf-gen generate`: expected value at line 1 column 1
    ");
    fs::remove_file(shell.here.join(LOCK)).expect("there");
    assert!(shell.run(&["generate"]).starts_with("exit 0"));
    assert_eq!(shell.read(LOCK), today);
}
