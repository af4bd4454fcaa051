//! Lock files of other versions of kopf-gen.

use std::fs;

use serde_json::{Value, json};

use crate::shell::Shell;

const LOCK: &str = ".kopf-gen/lock.json";

fn lock(shell: &Shell) -> Value {
    serde_json::from_str(&shell.read(LOCK)).expect("JSON")
}

/// Every format before the current one.
const OLDER: [u32; 2] = [0, 1];

/// Rewrites the lock file to an older format.
fn downgrade(shell: &Shell, format: u32) {
    let mut lock = lock(shell);
    let keys = lock.as_object_mut().expect("an object");
    let current = keys
        .remove("format")
        .expect("the current format has a number");
    assert_eq!(current, OLDER.len(), "every format needs its own test");
    assert!(
        keys.remove("notes").is_some(),
        "older formats have no notes"
    );
    // The first one had no number.
    if format > 0 {
        keys.insert("format".to_owned(), json!(format));
    }
    shell.write(LOCK, &lock.to_string());
}

#[test]
fn an_older_lock_file_is_rewritten_and_nothing_else_changes() {
    for format in OLDER {
        let shell = Shell::with_operator();
        let current = shell.read(LOCK);
        downgrade(&shell, format);
        let check = shell.run(&["generate", "--check"]);
        assert!(check.starts_with("exit 3"), "{check}");
        assert!(
            check.ends_with("would update .kopf-gen/lock.json\n"),
            "{check}"
        );
        let output = shell.run(&["generate"]);
        assert!(output.starts_with("exit 0\nnote[KG0611]"), "{output}");
        assert!(
            output.ends_with("\n\nupdated .kopf-gen/lock.json\n"),
            "{output}"
        );
        assert_eq!(shell.read(LOCK), current);
    }
}

#[test]
fn an_older_lock_file_still_protects_edited_files() {
    let shell = Shell::with_operator();
    let edited = shell.read("src/generated.rs") + "// mine\n";
    shell.write("src/generated.rs", &edited);
    downgrade(&shell, 0);
    let refused = shell.run(&["generate"]);
    assert!(refused.starts_with("exit 4"), "{refused}");
    assert_eq!(shell.read("src/generated.rs"), edited);

    // kopf-gen still updates and deletes generated files without edits.
    let shell = Shell::with_operator();
    downgrade(&shell, 0);
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
    assert_eq!(lock(&shell)["format"], json!(2));
}

#[test]
fn a_newer_lock_file_stops_the_run() {
    let shell = Shell::with_operator();
    let newer = shell.read(LOCK).replace("\"format\": 2", "\"format\": 3");
    shell.write(LOCK, &newer);
    shell.manifest("      - {on: create, fn: create}\n      - {on: update, fn: update}\n");
    insta::assert_snapshot!(shell.run(&["generate"]), @r"
    exit 1
    error: [FOLDER]/widgets/.kopf-gen/lock.json was written by a newer kopf-gen: it has format 3, and this one reads formats up to 2; update kopf-gen
    ");
    assert_eq!(shell.read(LOCK), newer);
    assert!(!shell.read("src/handlers/widget.rs").contains("fn update"));
}

#[test]
fn a_damaged_lock_file_is_an_error_with_instructions() {
    let shell = Shell::with_operator();
    let current = shell.read(LOCK);
    shell.write(LOCK, &format!("<<<<<<< ours\n{current}"));
    insta::assert_snapshot!(shell.run(&["generate"]), @r"
    exit 1
    error: [FOLDER]/widgets/.kopf-gen/lock.json is damaged; after a merge conflict take either side of it, or delete it, and run `kopf-gen generate`: expected value at line 1 column 1
    ");
    fs::remove_file(shell.here.join(LOCK)).expect("there");
    assert!(shell.run(&["generate"]).starts_with("exit 0"));
    assert_eq!(shell.read(LOCK), current);
}
