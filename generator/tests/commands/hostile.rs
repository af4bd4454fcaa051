//! Files with odd names, definitions that the API server rejects, and options without effect: each is
//! accepted as it is meant, or the message is about the real mistake.

use crate::shell::{CRD, Shell};

const NEW: [&str; 4] = ["new", "op", "--runtime-version", "1.0.0"];

/// A definition of before Kubernetes 1.22, with a name that the API server rejects.
const OLD: &str = "\
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: widget}
spec:
  group: example.com
  version: v1
  names: {kind: Widget, plural: widgets}
  validation: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
";

fn new_with(shell: &Shell, file: &str, options: &[&str]) -> String {
    let arguments = [&NEW[..], &["--crd", file], options].concat();
    shell.run(&arguments)
}

#[test]
fn definitions_in_files_of_any_name_are_copied() {
    for (file, copy) in [
        ("a: b.yaml", "a- b.yaml"),
        ("a\"b.yaml", "a-b.yaml"),
        ("a\\b.yaml", "a-b.yaml"),
        ("a:b.yaml", "a-b.yaml"),
        ("k\")).crd(panic!(\"", "k-)).crd(panic!(-"),
        ("# a.yaml", "# a.yaml"),
        ("{a}.yaml", "{a}.yaml"),
        ("a\nb.yaml", "a-b.yaml"),
    ] {
        let shell = Shell::new();
        shell.write(file, CRD);
        let output = new_with(&shell, file, &[]);
        assert!(output.starts_with("exit 0"), "{file}: {output}");
        assert_eq!(shell.read(&format!("op/crds/{copy}")), CRD);
        let operator = shell.read("op/src/generated.rs");
        assert_eq!(
            operator.matches(".crd(").count(),
            1 + copy.matches(".crd(").count()
        );
        assert!(syn::parse_file(&operator).is_ok(), "{operator}");
    }
}

#[test]
fn one_kind_in_two_groups_is_two_kinds() {
    let shell = Shell::new();
    let other = CRD.replace("example.com", "example.org");
    shell.write("both.yaml", &format!("{CRD}---\n{other}"));
    let output = new_with(&shell, "both.yaml", &[]);
    assert!(output.starts_with("exit 0"), "{output}");
    let manifest = shell.read("op/kopf.yaml");
    assert!(
        manifest.contains("    kind: Widget\n    group: example.com\n"),
        "{manifest}"
    );
    assert!(
        manifest.contains("    kind: Widget\n    group: example.org\n"),
        "{manifest}"
    );
    shell.write(
        "op/kopf.yaml",
        &manifest.replace("    group: example.org\n", ""),
    );
    insta::assert_snapshot!(shell.run(&["generate", "--manifest", "op"]));
    shell.write(
        "op/kopf.yaml",
        &manifest.replace("group: example.org", "group: example.cog"),
    );
    insta::assert_snapshot!(shell.run(&["generate", "--manifest", "op"]));
}

#[test]
fn old_and_misnamed_definitions_are_refused_with_a_question() {
    let shell = Shell::new();
    shell.write("old.yaml", OLD);
    insta::assert_snapshot!(new_with(&shell, "old.yaml", &[]));
    assert!(!shell.here.join("op").exists());
}

#[test]
fn with_fix_names_everything_that_is_installed_is_v1() {
    let shell = Shell::new();
    shell.write("old.yaml", OLD);
    let output = new_with(&shell, "old.yaml", &["--fix-names"]);
    assert!(output.starts_with("exit 0"), "{output}");
    let text = shell.read("op/crds/old.yaml");
    assert!(
        text.contains("apiVersion: apiextensions.k8s.io/v1\n"),
        "{text}"
    );
    assert!(text.contains("  name: widgets.example.com\n"), "{text}");
    assert!(!text.contains("v1beta1"), "{text}");
    insta::assert_snapshot!(text);
    let list = shell.read("op/crds/kustomization.yaml");
    assert!(list.contains("  - old.yaml\n"), "{list}");
    let embedded = shell.read("op/src/generated/types/widget/crd.json");
    assert!(embedded.contains("apiextensions.k8s.io/v1\""), "{embedded}");
    assert!(
        shell
            .read("op/src/generated.rs")
            .contains("../crds/old.yaml")
    );
}

#[test]
fn generate_corrects_definitions_of_a_crate_when_asked_to() {
    let shell = Shell::with_operator();
    shell.write("crds/widget.yaml", OLD);
    let output = shell.run(&["generate"]);
    assert!(
        output.starts_with("exit 1") && output.contains("--fix-names"),
        "{output}"
    );
    assert_eq!(shell.read("crds/widget.yaml"), OLD);
    let output = shell.run(&["generate", "--fix-names"]);
    assert!(output.starts_with("exit 0"), "{output}");
    let text = shell.read("crds/widget.yaml");
    assert!(text.contains("  name: widgets.example.com\n"), "{text}");
    let output = shell.run(&["generate", "--check"]);
    assert!(output.starts_with("exit 0"), "{output}");
}

#[test]
fn options_about_the_runtime_are_checked() {
    let shell = Shell::new();
    let version = |text: &str| shell.run(&["new", "op", "--runtime-version", text]);
    for good in ["1", "1.2.*", ">=1.2, <2", "^0.1.0-rc.1", "*"] {
        assert!(version(good).starts_with("exit 0"), "{good}");
        std::fs::remove_dir_all(shell.here.join("op")).expect("it was created");
    }
    for bad in ["lol", "", "1.2.3.4", "1\"\n[x]"] {
        let output = version(bad);
        assert!(
            output.contains("is not a version; write it as in Cargo.toml"),
            "{bad}: {output}"
        );
    }
    let shell = Shell::with_operator();
    for (option, value) in [
        ("--runtime-git", "https://example.com/x"),
        ("--runtime-path", "/nonexistent"),
        ("--runtime-version", "1"),
    ] {
        let output = shell.run(&["generate", option, value]);
        assert_eq!(
            output,
            format!(
                "exit 1\nerror: {option} is for a new crate; in this one, `kopf-gen runtime` changes the source of the runtime\n"
            )
        );
    }
}

#[test]
fn a_predicate_that_is_no_function_is_called_by_its_key() {
    let shell = Shell::with_operator();
    shell.manifest("      - {on: create, fn: create, when: \"not a fn\"}\n");
    insta::assert_snapshot!(shell.run(&["generate"]));
}

#[test]
fn a_rust_file_with_endless_expressions_is_an_error_of_that_file() {
    let shell = Shell::new();
    shell.write("crd.yaml", CRD);
    let output = new_with(&shell, "crd.yaml", &[]);
    assert!(output.starts_with("exit 0"), "{output}");
    let file = "op/src/handlers/widget.rs";
    let before = shell.read(file);
    for (start, repeated, end) in [
        ("const A: bool = ", "!", "true;"),
        ("const A: ", "&", "u8 = 1;"),
        ("type A = ", "fn() -> ", "u8;"),
        ("fn a() { b", " = b", "; }"),
        ("fn a() { ", "return ", "; }"),
        ("fn a() { b", " = {}", "; }"),
        ("fn a() { ", "if b {} else ", "{} }"),
        ("fn a() { b", ".c()", "; }"),
    ] {
        for (count, expected) in [(1_000, "exit 0"), (100_000, "exit 1")] {
            let text = format!("{before}{start}{}{end}\n", repeated.repeat(count));
            shell.write(file, &text);
            let output = shell.run(&["generate", "--manifest", "op"]);
            assert!(output.starts_with(expected), "{repeated}: {output}");
            assert_eq!(expected == "exit 1", output.contains("4096 tokens"));
            assert_eq!(shell.read(file), text);
        }
    }
    let lines = "/// A long text.\n".repeat(10_000);
    shell.write(file, &format!("{before}{lines}fn a() {{}}\n"));
    let output = shell.run(&["generate", "--manifest", "op"]);
    assert!(output.starts_with("exit 0"), "{output}");
}
