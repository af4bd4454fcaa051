//! `kopf-gen runtime`, and the copy of the runtime inside a crate.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::shell::Shell;

const COPY: &str = "vendor/kopf-gen";

/// A crate with a copy of the runtime.
fn vendored() -> Shell {
    let mut shell = Shell::new();
    let output = shell.run(&["new", "widgets", "--crd", "widget.yaml", "--vendor"]);
    assert!(output.starts_with("exit 0"), "{output}");
    let said = "kopf-runtime: the copy in vendor/kopf-gen/";
    assert!(output.contains(said), "{output}");
    shell.here = shell.folder().join("widgets");
    shell
}

#[test]
fn a_vendored_runtime_is_found_by_cargo_without_the_checkout() {
    let shell = vendored();
    let cargo = shell.read("Cargo.toml");
    assert!(cargo.contains("kopf-runtime = { path = \"vendor/kopf-gen/runtime\" }"));
    let metadata = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--offline",
            "--no-deps",
            "--format-version",
            "1",
        ])
        .current_dir(shell.here.join(COPY).join("runtime/testing"))
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&metadata.stderr);
    assert!(metadata.status.success(), "{report}");
    // All manifests stand for themselves, and name only what is there.
    for folder in [
        "runtime",
        "runtime/cluster",
        "runtime/core",
        "runtime/testing",
    ] {
        let folder = shell.here.join(COPY).join(folder);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(!manifest.contains("workspace"), "{manifest}");
        for path in manifest.split("path = \"").skip(1) {
            let path = path.split('"').next().unwrap();
            assert!(folder.join(path).join("Cargo.toml").is_file(), "{path}");
        }
        assert!(folder.join("src/lib.rs").is_file());
    }
}

#[test]
fn a_copy_is_updated_unless_it_was_edited() {
    let shell = vendored();
    let lib = format!("{COPY}/runtime/src/lib.rs");
    let original = shell.read(&lib);
    assert_eq!(
        shell.run(&["generate", "--check"]),
        "exit 0\neverything is up to date\n"
    );
    shell.write(&lib, &format!("{original}// mine\n"));
    let output = shell.run(&["generate"]);
    assert!(output.contains("vendor/kopf-gen was edited"), "{output}");
    assert!(shell.read(&lib).ends_with("// mine\n"));
    let output = shell.run(&["generate", "--force"]);
    assert!(output.starts_with("exit 0"), "{output}");
    assert_eq!(shell.read(&lib), original);
    fs::remove_file(shell.here.join(&lib)).unwrap();
    let output = shell.run(&["generate"]);
    assert!(output.contains("vendor/kopf-gen was edited"), "{output}");
}

#[test]
fn an_edited_copy_is_whole_after_another_source_and_back() {
    let shell = vendored();
    let (lib, other) = (
        format!("{COPY}/runtime/src/lib.rs"),
        format!("{COPY}/runtime/src/prelude.rs"),
    );
    let (edited, unedited) = (format!("{}// mine\n", shell.read(&lib)), shell.read(&other));
    shell.write(&lib, &edited);
    for command in [
        &["runtime", "version", "1.0"][..],
        &["generate", "--force"],
        &["runtime", "vendor"],
    ] {
        let output = shell.run(command);
        assert!(output.starts_with("exit 0"), "{output}");
        let said = "vendor/kopf-gen was edited: the copy of the runtime stays";
        assert!(output.contains(said), "{command:?}: {output}");
        assert_eq!(shell.read(&lib), edited, "{command:?}");
        assert_eq!(shell.read(&other), unedited, "{command:?}");
    }
}

#[test]
fn a_copy_that_was_deleted_is_made_anew() {
    let shell = vendored();
    fs::remove_dir_all(shell.here.join(COPY)).unwrap();
    let output = shell.run(&["generate"]);
    assert!(output.contains("created vendor/kopf-gen/ ("), "{output}");
    assert_eq!(
        shell.run(&["generate", "--check"]),
        "exit 0\neverything is up to date\n"
    );
    shell.write(&format!("{COPY}/runtime/src/lib.rs"), "// mine\n");
    shell.run(&["runtime", "version", "1.0"]);
    fs::remove_dir_all(shell.here.join(COPY)).unwrap();
    let output = shell.run(&["generate"]);
    assert!(!output.contains("vendor/kopf-gen"), "{output}");
}

#[test]
fn the_source_of_the_runtime_can_be_changed() {
    let shell = vendored();
    let output = shell.run(&["runtime", "git", "https://example.com/a#v1"]);
    assert!(
        output.contains("kopf-runtime: https://example.com/a at v1"),
        "{output}"
    );
    assert!(output.contains("deleted vendor/kopf-gen/ ("), "{output}");
    let cargo = shell.read("Cargo.toml");
    assert!(cargo.contains("kopf-testing = { git = \"https://example.com/a\", rev = \"v1\" }"));
    let shown = shell.run(&["runtime"]);
    assert_eq!(shown, "exit 0\nkopf-runtime: https://example.com/a at v1\n");
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let checkout = checkout.to_string_lossy();
    let output = shell.run(&["runtime", "path", &checkout]);
    assert!(output.contains("kopf-runtime: the folder "), "{output}");
    let shown = shell.run(&["runtime"]);
    assert!(
        shown.contains("the crate builds only where this is"),
        "{shown}"
    );
    let output = shell.run(&["runtime", "version", "1.2"]);
    assert!(output.contains("version 1.2 of the registry"), "{output}");
    let output = shell.run(&["runtime", "vendor"]);
    assert!(output.contains("created vendor/kopf-gen/ ("), "{output}");
}

#[test]
fn a_source_that_does_not_exist_is_refused_and_nothing_is_written() {
    let shell = vendored();
    let before = shell.read("Cargo.toml");
    for (source, message) in [
        (
            ["path", "/nonexistent"],
            "is not the folder of kopf-runtime",
        ),
        (["version", "latest"], "`latest` is not a version"),
        (
            ["git", "ftp://x"],
            "`ftp://x` is not the address of a git repository",
        ),
    ] {
        let output = shell.run(&["runtime", source[0], source[1]]);
        assert!(output.starts_with("exit 1"), "{output}");
        assert!(output.contains(message), "{output}");
    }
    assert_eq!(shell.read("Cargo.toml"), before);
    let output = shell.run(&["generate", "--vendor"]);
    assert!(output.contains("--vendor is for a new crate"), "{output}");
    let missing = before.replace("vendor/kopf-gen/runtime", "../elsewhere");
    shell.write("Cargo.toml", &missing);
    let shown = shell.run(&["runtime"]);
    assert!(shown.starts_with("exit 1"), "{shown}");
}
