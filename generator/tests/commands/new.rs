//! `kopf-gen new`, and changes of the definitions of a crate.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::shell::{CRD, Shell};

fn gadget() -> String {
    CRD.replace("widget", "gadget").replace("Widget", "Gadget")
}

#[test]
fn definitions_are_read_from_files_folders_globs_and_stdin() {
    let shell = Shell::new();
    shell.write("many/deep/gadget.yaml", &gadget());
    shell.write("many/widget.yaml", CRD);
    for (name, inputs, files) in [
        ("folder", "many", &["gadget.yaml", "widget.yaml"][..]),
        ("pattern", "many/**/g*.yaml", &["gadget.yaml"][..]),
        ("file", "widget.yaml", &["widget.yaml"][..]),
    ] {
        let output = shell.run(&["new", name, "--crd", inputs, "--runtime-version", "1.0.0"]);
        assert!(output.starts_with("exit 0"), "{output}");
        for file in files {
            assert!(shell.here.join(name).join("crds").join(file).exists());
        }
    }
    let mut piped = Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
        .args(["-q", "new", "piped", "--crd", "-", "--runtime-version", "1"])
        .current_dir(&shell.here)
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut input = piped.stdin.take().expect("a pipe");
    input.write_all(CRD.as_bytes()).expect("the program reads");
    drop(input);
    assert!(piped.wait().expect("it ends").success());
    assert_eq!(shell.read("piped/crds/stdin.yaml"), CRD);
}

#[test]
fn options_choose_the_dependency_on_the_runtime() {
    let shell = Shell::new();
    let new = |name: &str, option: &str, value: &str| {
        let output = shell.run(&["new", name, "--crd", "widget.yaml", option, value]);
        assert!(output.starts_with("exit 0"), "{output}");
        let cargo = shell.read(&format!("{name}/Cargo.toml"));
        let line = cargo
            .lines()
            .find_map(|line| line.strip_prefix("kopf-runtime = "));
        line.expect("there is such a line").to_owned()
    };
    assert_eq!(new("by-version", "--runtime-version", "1.2"), "\"1.2\"");
    assert_eq!(
        new("by-git", "--runtime-git", "https://example.com/x"),
        "{ git = \"https://example.com/x\" }"
    );
    // The path is relative to the crate if both are in one folder, wherever the checkout is.
    let runtime = concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime");
    let line = new("by-path", "--runtime-path", runtime);
    let path = line
        .strip_prefix("{ path = \"")
        .and_then(|rest| rest.strip_suffix("\" }"))
        .expect("a path");
    let there = shell
        .folder()
        .join("by-path")
        .join(path)
        .canonicalize()
        .unwrap();
    assert_eq!(there, Path::new(runtime).canonicalize().unwrap());
    let output = shell.run(&["new", "pinned", "--runtime-git", "git@example.com:a/b#v1"]);
    assert!(output.starts_with("exit 0"), "{output}");
    let cargo = shell.read("pinned/Cargo.toml");
    let pinned = "kopf-runtime = { git = \"ssh://git@example.com/a/b\", rev = \"v1\" }";
    assert!(cargo.contains(pinned), "{cargo}");
    let output = shell.run(&["new", "x", "--runtime-path", "."]);
    assert!(
        output.starts_with("exit 1\nerror: . is not the folder of kopf-runtime"),
        "{output}"
    );
}

#[test]
fn only_a_crate_outside_of_workspaces_has_profiles() {
    let shell = Shell::new();
    let create = |name: &str| {
        let output = shell.run(&["new", name, "--runtime-version", "1.0.0"]);
        assert!(output.starts_with("exit 0"), "{output}");
        (shell.read(&format!("{name}/Cargo.toml")), output)
    };
    let has_profiles = |(cargo, output): (String, String)| {
        let has_profiles = cargo.contains("\n[profile.release]\n");
        assert_eq!(has_profiles, cargo.contains("\n[profile.dev]\n"), "{cargo}");
        // A crate without them says where they belong.
        assert_ne!(
            has_profiles,
            output.contains("\nbuild profiles: "),
            "{output}"
        );
        has_profiles
    };
    assert!(has_profiles(create("alone")));
    shell.write("inner/Cargo.toml", "[workspace]\nmembers = [\"*\"]\n");
    assert!(has_profiles(create("inner/../beside")));
    shell.write("Cargo.toml", "[package]\nname = \"outer\"\n");
    assert!(has_profiles(create("below-a-package")));
    let workspace = "[workspace]\nmembers = [\"*\"]\nexclude = [\"apart\"]\n";
    shell.write("Cargo.toml", workspace);
    assert!(!has_profiles(create("member")));
    assert!(!has_profiles(create("deeper/member")));
    assert!(has_profiles(create("apart")));
    assert!(has_profiles(create("apart/below")));
    shell.write("Cargo.toml", "workspace.members = [\"*\"]\n");
    assert!(!has_profiles(create("dotted")));
}

/// A handler's panic is an error of that handler: it must unwind to the runtime.
#[test]
fn the_release_profile_keeps_panics_that_can_be_caught() {
    let shell = Shell::new();
    let output = shell.run(&["new", "alone", "--runtime-version", "1.0.0"]);
    assert!(output.starts_with("exit 0"), "{output}");
    let cargo = shell.read("alone/Cargo.toml");
    let (_, release) = cargo.split_once("[profile.release]").expect("it has one");
    for option in ["codegen-units = 1", "lto = \"thin\"", "strip = true"] {
        assert!(release.contains(option), "{release}");
    }
    assert!(!release.contains("panic ="), "{release}");
}

#[test]
fn presets_differ_in_their_handlers() {
    let shell = Shell::new();
    let manifest = |preset: &str| {
        let new = ["-q", "new", preset, "--preset", preset];
        let rest = ["--crd", "widget.yaml", "--runtime-version", "1.0.0"];
        let output = shell.run(&[&new[..], &rest[..]].concat());
        assert_eq!(output, "exit 0\n");
        let text = shell.read(&format!("{preset}/kopf.yaml"));
        text.split_once("operator:")
            .expect("it has one")
            .1
            .to_owned()
    };
    insta::assert_snapshot!(manifest("minimal"), @r"

      name: minimal
    resources:
      - crd: crds/widget.yaml
        handlers:
          - {on: create, fn: create}
    ");
    insta::assert_snapshot!(manifest("child"), @r"
      name: child
    resources:
      - crd: crds/widget.yaml
        children: [v1/ConfigMap]
        handlers:
          - {on: reconcile, fn: reconcile}
    ");
    insta::assert_snapshot!(manifest("full"), @r"

      name: full
      handlers:
        - {startup: startup}
        - {cleanup: cleanup}
        - {login: login}
        - {probe: probe}
    resources:
      - crd: crds/widget.yaml
        handlers:
          - {on: create, fn: create}
          - {on: update, fn: update}
          - {on: delete, fn: delete}
          - {on: resume, fn: resume}
          - {on: field, field: metadata.labels, fn: relabel}
          - {on: event, fn: observe}
          - {timer: check, interval: 1m}
          - {daemon: monitor}
        indices:
          - {index: by_label}
        admission:
          - {validate: validate}
          - {mutate: set_defaults}
    ");
    insta::assert_snapshot!(shell.read("child/src/handlers/widget.rs"));
    assert!(shell.read("child/deploy/base/rbac.yaml").contains(
        "resources: [configmaps]\n    verbs: [get, list, watch, create, patch, delete]\n"
    ));
}

#[test]
fn handlers_of_a_renamed_kind_stay() {
    let shell = Shell::with_operator();
    let mine = shell
        .read("src/handlers/widget.rs")
        .replace("Ok(())", "/* mine */ Ok(())");
    shell.write("src/handlers/widget.rs", &mine);
    shell.write("crds/widget.yaml", &gadget());
    insta::assert_snapshot!(shell.run(&["generate"]));
    assert_eq!(shell.read("src/handlers/widget.rs"), mine);
    assert!(shell.read("src/handlers/gadget.rs").contains("fn create("));
}

#[test]
fn a_removed_version_is_reported_and_nothing_is_written() {
    let shell = Shell::with_operator();
    let manifest = shell.read("kopf.yaml");
    shell.write(
        "kopf.yaml",
        &manifest.replace("    handlers:", "    version: v1\n    handlers:"),
    );
    assert!(shell.run(&["generate"]).starts_with("exit 0"));
    let before = shell.read("src/generated/types/widget/v1.rs");
    shell.write("crds/widget.yaml", &CRD.replace("name: v1\n", "name: v2\n"));
    insta::assert_snapshot!(shell.run(&["generate"]));
    assert_eq!(shell.read("src/generated/types/widget/v1.rs"), before);
    fs::write(shell.here.join("kopf.yaml"), manifest).expect("writable");
    let moved = shell.run(&["generate"]);
    assert!(
        moved.contains("deleted src/generated/types/widget/v1.rs"),
        "{moved}"
    );
    assert!(
        shell
            .read("src/generated/widget.rs")
            .contains("types::widget::v2")
    );
}

#[test]
fn other_files_of_a_folder_are_skipped() {
    let shell = Shell::new();
    shell.write("config/crd/widget.yaml", CRD);
    let sample = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: sample}\n";
    shell.write("config/samples/widget.yaml", sample);
    shell.write("config/kustomization.yaml", "resources: [crd]\n");
    let new = |name: &str, inputs: &[&str]| {
        let runtime = ["--runtime-version", "1.0.0"];
        shell.run(&[&["new", name], &runtime, inputs].concat())
    };
    let output = new("folder", &["--crd", "config"]);
    assert!(output.starts_with("exit 0"), "{output}");
    assert_eq!(shell.read("folder/kopf.yaml").matches("crd:").count(), 1);
    // A file that the command line names must have a definition.
    let named = [
        "--crd",
        "widget.yaml",
        "--crd",
        "config/samples/widget.yaml",
    ];
    insta::assert_snapshot!(new("named", &named), @r"
    exit 1
    error[KG0206]: there is no CustomResourceDefinition in config/samples/widget.yaml
    ");
    insta::assert_snapshot!(new("none", &["--crd", "config/samples"]), @r"
    exit 1
    error[KG0206]: there is no CustomResourceDefinition in the inputs
    ");
    assert!(!shell.folder().join("named").exists());
}

#[test]
fn errors_in_a_definition_are_reported_with_their_place() {
    let shell = Shell::new();
    shell.write("broken.yaml", &CRD.replace("scope: Namespaced", "scope: ["));
    let output = shell.run(&["new", "widgets", "--crd", "broken.yaml"]);
    assert!(output.starts_with("exit 1\nerror[KG0102]"), "{output}");
    assert!(output.contains(" --> broken.yaml:"), "{output}");
    assert!(!shell.folder().join("widgets").exists());
}

#[test]
fn new_without_crds_prints_how_to_add_them() {
    let shell = Shell::new();
    let output = shell.run(&["new", "empty", "--runtime-version", "1.0.0"]);
    assert!(output.starts_with("exit 0"), "{output}");
    assert!(output.contains("\n  kopf-gen generate FILE "), "{output}");
    assert!(!output.contains("kubectl"), "{output}");
}
