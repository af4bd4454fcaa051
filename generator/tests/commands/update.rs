//! A crate that another version of kopf-gen made last.

use std::fs;

use serde_json::{Value, json};

use crate::shell::Shell;

const LOCK: &str = ".kopf-gen/lock.json";

fn lock(shell: &Shell) -> Value {
    serde_json::from_str(&shell.read(LOCK)).expect("JSON")
}

/// Every format before today's.
const OLDER: [u32; 2] = [0, 1];

/// The lock as it was in an older format.
fn age(shell: &Shell, format: u32) {
    let mut lock = lock(shell);
    let keys = lock.as_object_mut().expect("an object");
    let today = keys.remove("format").expect("today's lock has a number");
    assert_eq!(today, OLDER.len(), "every format needs its own test");
    assert!(keys.remove("notes").is_some(), "of this, they knew nothing");
    // The first one had no number.
    if format > 0 {
        keys.insert("format".to_owned(), json!(format));
    }
    shell.write(LOCK, &lock.to_string());
}

#[test]
fn an_older_lock_is_written_anew_and_nothing_else() {
    for format in OLDER {
        let shell = Shell::with_operator();
        let today = shell.read(LOCK);
        age(&shell, format);
        let check = shell.run(&["generate", "--check"]);
        assert!(check.starts_with("exit 3"), "{check}");
        assert!(
            check.ends_with("would update .kopf-gen/lock.json\n"),
            "{check}"
        );
        let said = shell.run(&["generate"]);
        assert!(said.starts_with("exit 0\nnote[KG0611]"), "{said}");
        assert!(
            said.ends_with("\n\nupdated .kopf-gen/lock.json\n"),
            "{said}"
        );
        assert_eq!(shell.read(LOCK), today);
    }
}

#[test]
fn what_an_older_lock_knows_is_not_forgotten() {
    let shell = Shell::with_operator();
    let edited = shell.read("src/generated.rs") + "// mine\n";
    shell.write("src/generated.rs", &edited);
    age(&shell, 0);
    let refused = shell.run(&["generate"]);
    assert!(refused.starts_with("exit 4"), "{refused}");
    assert_eq!(shell.read("src/generated.rs"), edited);

    // What was generated and not edited is still ours to change and to delete.
    let shell = Shell::with_operator();
    age(&shell, 0);
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
fn a_newer_lock_is_left_alone() {
    let shell = Shell::with_operator();
    let newer = shell.read(LOCK).replace("\"format\": 2", "\"format\": 3");
    shell.write(LOCK, &newer);
    shell.manifest("      - {on: create, fn: create_fn}\n      - {on: update, fn: update_fn}\n");
    insta::assert_snapshot!(shell.run(&["generate"]), @r"
    exit 1
    error: [FOLDER]/widgets/.kopf-gen/lock.json was written by a newer kopf-gen: it has format 3, and this one knows formats up to 2; update kopf-gen
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
