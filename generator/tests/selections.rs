//! Selections: manifests, generated files and errors.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

/// A folder with a manifest of these resources.
struct Crate {
    folder: TempDir,
}

impl Crate {
    fn new(resources: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let this = Self { folder };
        let manifest = format!(
            "apiVersion: kopf-gen.dev/v1\noperator: {{name: toys}}\nresources:\n{resources}"
        );
        fs::write(this.folder.path().join("kopf.yaml"), manifest).expect("writable");
        this
    }

    /// Runs the program and returns its exit code and its output.
    fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
            .args(arguments)
            .current_dir(self.folder.path())
            .output()
            .expect("the program runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().expect("it was not killed");
        format!(
            "exit {code}\n{}{}",
            text(&output.stdout),
            text(&output.stderr)
        )
    }

    fn generate(&self) -> String {
        self.run(&["generate", "--runtime-version", "0.0.0"])
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.path().join(file)).unwrap_or_default()
    }
}

#[test]
fn a_selection_becomes_a_module_with_dynamic_objects() {
    let made = Crate::new(
        "  - select: {category: toys}
    as: Toys
    memo: ToyMemo
    handlers:
      - {on: event, fn: echo}
      - {on: field, field: [spec.size, metadata.labels], fn: changed, labels: {owner: present}}
      - {timer: tick, interval: 1m, labels: {owner: present}}
    indices: [{index: by_owner}]
",
    );
    let output = made.generate();
    assert!(output.starts_with("exit 0"), "{output}");
    insta::assert_snapshot!("output", output);
    insta::assert_snapshot!("module", made.read("src/generated/toys.rs"));
    insta::assert_snapshot!("stubs", made.read("src/handlers/toys.rs"));
    insta::assert_snapshot!("rbac", made.read("deploy/base/rbac.yaml"));
}

#[test]
fn handlers_are_added_to_a_selection_by_its_name() {
    let made =
        Crate::new("  - select: {group: example.com}\n    handlers: [{on: event, fn: echo}]\n");
    assert!(made.generate().starts_with("exit 0"));
    let add = [
        "add",
        "handler",
        "ExampleComGroup",
        "gone",
        "--on",
        "event",
        "--id",
        "bye",
    ];
    let output = made.run(&add);
    assert!(output.starts_with("exit 0"), "{output}");
    let manifest = made.read("kopf.yaml");
    assert!(
        manifest.contains("{on: event, fn: gone, id: bye}"),
        "{manifest}"
    );
    let stubs = made.read("src/handlers/example_com_group.rs");
    assert!(
        stubs.contains("async fn gone(&self, cx: &mut EventContext<DynamicObject>)"),
        "{stubs}"
    );
    let explained = made.run(&["rbac", "--explain", "widgets:list"]);
    assert!(
        explained.contains("widgets:list because: needed by echo, bye"),
        "{explained}"
    );
}

#[test]
fn every_way_of_selecting_is_generated() {
    for (select, wired, granted) in [
        (
            "everything",
            "Selector::everything()",
            "apiGroups: [\"*\"]\n    resources: [\"*\"]",
        ),
        (
            "{group: \"\"}",
            "Selector::everything().in_group(\"\")",
            "apiGroups: [\"\"]\n    resources: [\"*\"]",
        ),
        (
            "{kind: Pod}",
            "Selector::kind(\"Pod\")",
            "resources: [\"*\"]",
        ),
        (
            "{plural: jobs, group: batch, version: v1}",
            "Selector::plural(\"jobs\").in_group(\"batch\").in_version(\"v1\")",
            "apiGroups: [\"batch\"]\n    resources: [jobs]",
        ),
        (
            "{singular: pod}",
            "Selector::singular(\"pod\")",
            "resources: [\"*\"]",
        ),
        (
            "{short_name: po}",
            "Selector::short_name(\"po\")",
            "resources: [\"*\"]",
        ),
        (
            "{any_name: po}",
            "Selector::any_name(\"po\")",
            "resources: [\"*\"]",
        ),
    ] {
        let made = Crate::new(&format!(
            "  - {{select: {select}, as: Some, handlers: [{{on: event, fn: echo}}]}}\n"
        ));
        let output = made.generate();
        assert!(output.starts_with("exit 0"), "{output}");
        let module = made.read("src/generated/some.rs");
        let module: String = module.split_whitespace().collect();
        assert!(module.contains(wired), "{module}");
        let rbac = made.read("deploy/base/rbac.yaml");
        assert!(rbac.contains(granted), "{rbac}");
        assert!(rbac.contains("resources: [customresourcedefinitions]\n    verbs: [list, watch]"));
    }
}

#[test]
fn invalid_selections_are_errors() {
    let report = |resources: &str| {
        let made = Crate::new(resources);
        let output = made.run(&["validate"]);
        assert!(output.starts_with("exit 1"), "{output}");
        output
    };
    let echo = "handlers: [{on: event, fn: echo}]";
    insta::assert_snapshot!(
        "refused",
        report(&format!(
            "  - {{select: {{category: a, kind: B}}, {echo}}}
  - {{select: {{version: v1}}, {echo}}}
  - {{select: {{kind: \"\"}}, {echo}}}
  - {{select: everything, version: v1, {echo}}}
  - {{select: everything, builtin: v1/Pod, {echo}}}
  - {{select: {{group: a}}, as: not_a_type, {echo}}}
  - {{builtin: v1/Node, as: Nodes, {echo}}}
"
        ))
    );
    insta::assert_snapshot!(
        "misspelled",
        report("  - {select: {categroy: all}}\n  - {select: everthing}\n  - {select: [a]}\n")
    );
}

#[test]
fn webhooks_of_a_selection_are_registered_without_permissions_for_its_kinds() {
    let resources = "  - select: {category: toys}
    as: Toys
    admission:
      - {validate: check, persistent: false, labels: {owner: present}}
      - {mutate: complete, ignore_failures: true}
";
    let made = Crate::new(resources);
    let output = made.generate();
    assert!(output.starts_with("exit 0"), "{output}");
    let rejects = "warning[KG0621]: while the operator does not answer, the API server rejects \
                   requests for all kinds of {category: toys}";
    assert_eq!(output.matches(rejects).count(), 1, "{output}");
    let module = made.read("src/generated/toys.rs");
    assert!(module.contains(".validate("), "{module}");
    let stubs = made.read("src/handlers/toys.rs");
    let method = "async fn check(&self, cx: &mut ValidationContext<DynamicObject>)";
    assert!(stubs.contains(method), "{stubs}");
    let rbac = made.read("deploy/base/rbac.yaml");
    assert!(
        rbac.contains("resources: [customresourcedefinitions]"),
        "{rbac}"
    );
    assert!(!rbac.contains("resources: [\"*\"]"), "{rbac}");
    assert!(!output.contains("KG0653"), "{output}");

    let file = made.read("kopf.yaml").replace(
        "{name: toys}",
        "{name: toys, admission: {configuration: cert-manager}}",
    );
    fs::write(made.folder.path().join("kopf.yaml"), file).expect("writable");
    let output = made.run(&["validate"]);
    assert!(output.contains("error[KG0652]"), "{output}");
}

#[test]
fn risky_selections_cause_warnings() {
    let made = Crate::new(
        "  - select: everything
    handlers:
      - {on: create, fn: made}
      - {on: delete, fn: gone, labels: {owner: present}}
  - builtin: v1/Pod
    handlers: [{on: create, fn: made}]
  - select: {group: example.com}
    handlers: [{on: update, fn: made}]
  - select: {group: other.com}
    handlers: [{on: update, fn: updated}]
",
    );
    insta::assert_snapshot!(made.run(&["validate"]));
}
