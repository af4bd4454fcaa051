//! Indices: manifests, generated files and errors.

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
            "apiVersion: kopf-gen.dev/v1\noperator: {{name: pods}}\nresources:\n{resources}"
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
fn indices_are_added_and_removed_by_commands() {
    let made = Crate::new("  - {builtin: v1/Pod, handlers: [{on: event, fn: echo}]} # all\n");
    assert!(made.generate().starts_with("exit 0"));
    let by_node = [
        "add",
        "index",
        "pod",
        "by_node",
        "--keys",
        "(String, String)",
        "--field",
        "spec.nodeName",
        "--label",
        "tier",
    ];
    insta::assert_snapshot!(made.run(&by_node), @r"
    exit 0
    updated src/generated.rs
    updated src/generated/pod.rs
    created src/generated/indices.rs
    updated deploy/base/rbac.yaml
    updated src/handlers/pod.rs
    updated kopf.yaml
    ");
    let added = made.run(&["add", "index", "Pod", "mirror", "--values", "Arc<Pod>"]);
    assert!(added.starts_with("exit 0"), "{added}");
    insta::assert_snapshot!(made.read("kopf.yaml"), @r#"
    apiVersion: kopf-gen.dev/v1
    operator: {name: pods}
    resources:
      - {builtin: v1/Pod, handlers: [{on: event, fn: echo}], indices: [{index: by_node, keys: "(String, String)", field: spec.nodeName, labels: {tier: present}}, {index: mirror, values: "Arc<Pod>"}]} # all
    "#);
    let stubs = made.read("src/handlers/pod.rs");
    let stub = "    async fn mirror(\n        &self,\n        cx: &mut IndexContext<Pod>,\n    ) -> \
                IndexResult<crate::generated::pod::Mirror> {\n";
    assert!(stubs.contains(stub), "{stubs}");
    insta::assert_snapshot!(made.run(&["remove", "index", "Pod", "by_mode"]), @r"
    exit 1
    error: Pod has no index `by_mode`; did you mean `by_node`?
    ");
    for index in ["by_node", "mirror"] {
        let removed = made.run(&["remove", "index", "Pod", index]);
        assert!(removed.starts_with("exit 0"), "{removed}");
    }
    assert!(!made.read("src/generated.rs").contains("indices"));
    assert_eq!(made.read("src/generated/indices.rs"), "");
}

#[test]
fn an_indexed_kind_is_only_listed_and_watched() {
    let made = Crate::new("  - {builtin: v1/Pod, indices: [{index: by_node}]}\n");
    assert!(made.generate().starts_with("exit 0"));
    assert_eq!(
        made.run(&["rbac", "--explain", "pods:list"]),
        "exit 0\npods:list because: fills by_node\n"
    );
    let rules = made.read("deploy/base/rbac.yaml");
    assert!(
        rules.contains("resources: [pods]\n    verbs: [list, watch]\n"),
        "{rules}"
    );
    assert!(!rules.contains("events"), "{rules}");
}

#[test]
fn a_kind_of_which_only_raw_events_are_handled_is_only_listed_and_watched() {
    let made = Crate::new("  - {builtin: v1/Pod, handlers: [{on: event, fn: echo}]}\n");
    assert!(made.generate().starts_with("exit 0"));
    assert_eq!(
        made.run(&["rbac", "--explain", "pods:list"]),
        "exit 0\npods:list because: needed by echo\n"
    );
    let rules = made.read("deploy/base/rbac.yaml");
    assert!(
        rules.contains("resources: [pods]\n    verbs: [list, watch]\n"),
        "{rules}"
    );
}

#[test]
fn one_index_of_several_kinds_is_one_type() {
    let made = Crate::new(
        "  - {builtin: v1/Pod, indices: [{index: by_app}]}
  - {builtin: apps/v1/Deployment, indices: [{index: by_app}]}
",
    );
    assert!(made.generate().starts_with("exit 0"));
    let indices = made.read("src/generated/indices.rs");
    assert_eq!(indices.matches("pub struct ByApp;").count(), 1);
    assert!(indices.contains("of a Pod or a Deployment: keys are `String`"));
}

#[test]
fn all_errors_in_indices_are_reported() {
    let made = Crate::new(
        r#"  - builtin: v1/Pod
    indices:
      - {keys: String}
      - {index: ByNode}
      - {index: string}
      - {index: faulty, keys: f64, values: "&str"}
      - {index: stranger, values: Vec<PodInfo>}
      - {index: broken, keys: "Vec<"}
      - {index: by_value, value: String}
      - {index: by_field, field: spec.nodename}
      - {index: twice}
      - {index: twice}
      - {index: on_event, key: String}
      - {index: two_types}
    handlers:
      - {on: event, fn: on_event}
  - builtin: v1/Service
    indices:
      - {index: two_types, values: u32}
"#,
    );
    insta::assert_snapshot!(made.generate());
    assert_eq!(made.read("src/generated.rs"), "");
}
