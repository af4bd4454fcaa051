//! The exit codes of all commands.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use crate::shell::Shell;

/// The exit code alone.
fn code(shell: &Shell, line: &str) -> String {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let output = shell.run(&arguments);
    output.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn exit_codes_match_the_help() {
    let shell = Shell::with_operator();
    for done in [
        "generate",
        "generate --check",
        "generate --dry-run",
        "generate --diff",
        "generate -m kopf.yaml",
        "generate -m .",
        "validate",
        "rbac",
        "schema",
        "explain",
        "explain kg0610",
        "completions zsh",
        "man pages",
        "types crds/widget.yaml",
        "--help",
        "--version",
    ] {
        assert_eq!(code(&shell, done), "exit 0", "{done}");
    }
    for invalid in [
        "generate -m nowhere/kopf.yaml",
        "generate -m other.yaml",
        "generate nothing.yaml",
        "generate nothing/*.yaml",
        "rbac --explain pods:list",
        "add handler Gadget f --on create",
        "add handler Widget create --on update",
        "remove handler Widget nothing",
        "remove hook nothing",
        "types nothing.yaml",
        "new .",
        "man kopf.yaml/pages",
    ] {
        assert_eq!(code(&shell, invalid), "exit 1", "{invalid}");
    }
    for wrong in [
        "",
        "generates",
        "generate --checked",
        "generate --watch --check",
        "-q -v validate",
        "validate --format yaml",
        "explain KG9999",
        "add handler Widget f",
        "add timer Widget tick",
        "new x --preset tiny",
        "new x --runtime-version 1 --runtime-git url",
        "completions tcl",
        "man",
    ] {
        assert_eq!(code(&shell, wrong), "exit 2", "{wrong}");
    }
    shell.manifest("      - {on: update, fn: create}\n");
    assert_eq!(code(&shell, "generate --check"), "exit 3");
    assert_eq!(code(&shell, "generate --dry-run"), "exit 0");
    assert_eq!(code(&shell, "generate --diff --check -q"), "exit 3");
    shell.write("src/generated/widget.rs", "// mine\n");
    for refused in ["generate", "generate --check", "generate --dry-run"] {
        assert_eq!(code(&shell, refused), "exit 4", "{refused}");
    }
    let help = shell.run(&["--help"]);
    for code in 0..=4 {
        assert!(help.contains(&format!("\n  {code}  ")), "{help}");
    }
}

#[test]
fn a_manifest_with_another_file_name_is_an_error() {
    let shell = Shell::with_operator();
    shell.write("other.yaml", "nonsense");
    insta::assert_snapshot!(shell.run(&["validate", "-m", "other.yaml"]), @r"
    exit 1
    error: other.yaml is neither a kopf.yaml nor a folder with one
    ");
}

#[test]
fn a_full_output_device_causes_no_panic() {
    let shell = Shell::with_operator();
    for line in [
        "completions bash",
        "schema",
        "rbac",
        "explain",
        "types crds/widget.yaml",
        "--format json generate --force",
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full");
        let output = Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
            .args(line.split_whitespace())
            .current_dir(&shell.here)
            .stdout(full.expect("a device that is always full"))
            .stderr(Stdio::piped())
            .output()
            .expect("the program runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{line}: {errors}"
        );
        assert!(!errors.contains("panicked"), "{line}: {errors}");
    }
}
