//! Children and reconcile: generated files, permissions, commands and errors.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const WEBSITE: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: websites.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Website, plural: websites}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size: {type: integer}
                secretRef: {type: object, properties: {name: {type: string}, namespace: {type: string}}}
                secrets: {type: array, items: {type: object, properties: {name: {type: string}}}}
            status: {type: object, properties: {phase: {type: string}}}
";

const WIDGET: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.other.org}
spec:
  group: other.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {color: {type: string}}}}
";

/// An operator crate whose first kind is Website, with these keys.
struct Crate {
    folder: TempDir,
}

impl Crate {
    fn new(keys: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it is in the folder")).expect("writable");
            fs::write(path, text).expect("writable");
        };
        let manifest = format!(
            "apiVersion: kopf-gen.dev/v1\noperator: {{name: sites}}\nresources:\n  \
             - crd: crds/websites.yaml\n{keys}"
        );
        write("kopf.yaml", &manifest);
        write("crds/websites.yaml", WEBSITE);
        write("crds/widgets.yaml", WIDGET);
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the program and returns its exit code and its output.
    fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
            .args(arguments)
            .current_dir(self.path())
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
        let output = self.run(&["generate", "--runtime-version", "0.0.0"]);
        assert!(output.starts_with("exit 0"), "{output}");
        output
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path().join(file)).unwrap_or_default()
    }

    /// The rules of the role, by resource: the verbs.
    fn verbs(&self, resource: &str) -> Vec<String> {
        let rbac = self.read("deploy/base/rbac.yaml");
        let lines: Vec<&str> = rbac.lines().map(str::trim).collect();
        let wanted = format!("resources: [{resource}]");
        let rules = lines.iter().enumerate().filter(|(_, it)| **it == wanted);
        rules
            .filter_map(|(number, _)| lines.get(number + 1))
            .map(|verbs| verbs.trim_start_matches("verbs: ").to_owned())
            .collect()
    }
}

const EVERYTHING: &str = "    children:
      - v1/ConfigMap
      - {kind: apps/v1/Deployment, update: in-place}
      - {kind: batch/v1/Job, update: recreate, one_at_a_time: true, prune: false, bodies: true}
      - {crd: crds/widgets.yaml}
      - {kind: third.net/v1/Gadget, plural: gadgets, scope: Cluster}
    uses:
      - {kind: v1/Secret, by: spec.secretRef.name, namespace: spec.secretRef.namespace}
    handlers:
      - {on: reconcile, fn: reconcile, interval: 10m, status: true, retries: 5}
      - {on: child, kind: batch/v1/Job, fn: job_changed}
";

#[test]
fn children_become_types_registrations_and_permissions() {
    let made = Crate::new(EVERYTHING);
    made.generate();
    insta::assert_snapshot!("module", made.read("src/generated/website.rs"));
    insta::assert_snapshot!("stubs", made.read("src/handlers/website.rs"));
    insta::assert_snapshot!("rbac", made.read("deploy/base/rbac.yaml"));
    insta::assert_snapshot!("undefined", made.read("src/generated/types/gadget/v1.rs"));
    assert!(
        !made
            .path()
            .join("src/generated/types/gadget/crd.json")
            .exists()
    );
    assert!(
        made.path()
            .join("src/generated/types/widget/crd.json")
            .exists()
    );
}

#[test]
fn the_definition_of_a_child_belongs_to_others() {
    let made = Crate::new(EVERYTHING);
    made.generate();
    let installed = made.read("crds/kustomization.yaml");
    assert!(installed.contains("websites.yaml"), "{installed}");
    assert!(!installed.contains("widgets.yaml"), "{installed}");
}

#[test]
fn permissions_are_those_that_the_options_need() {
    let all = "[get, list, watch, create, patch, delete]";
    let without_delete = "[get, list, watch, create, patch]";
    for (child, verbs) in [
        ("v1/ConfigMap", all),
        ("{kind: v1/ConfigMap, prune: false}", without_delete),
        ("{kind: v1/ConfigMap, prune: false, update: recreate}", all),
        (
            "{kind: v1/ConfigMap, prune: false, update: on-delete}",
            without_delete,
        ),
    ] {
        let keys = format!("    children: [{child}]\n");
        let made = Crate::new(&keys);
        made.generate();
        assert_eq!(made.verbs("configmaps"), [verbs], "{child}");
    }
    // What is not pruned stays, also where no owner reference reaches it.
    let made = Crate::new("    children: [{kind: v1/PersistentVolume, prune: false}]\n");
    made.generate();
    assert_eq!(made.verbs("persistentvolumes"), [without_delete]);
    let made = Crate::new(
        "    uses: [{kind: v1/Secret, by: 'spec.secrets[].name'}]\n    \
         handlers: [{on: reconcile, fn: reconcile}]\n",
    );
    made.generate();
    assert_eq!(made.verbs("secrets"), ["[get, list, watch]"]);
    assert_eq!(made.verbs("websites"), ["[get, list, watch, patch]"]);
    assert_eq!(made.verbs("websites/finalizers"), ["[update]"]);
}

#[test]
fn a_child_that_is_handled_too_has_one_type() {
    let made = Crate::new(
        "    children: [{kind: other.org/v1/Widget}]
    handlers: [{on: reconcile, fn: reconcile}]
  - crd: crds/widgets.yaml
    handlers: [{on: create, fn: create}]
",
    );
    made.generate();
    let module = made.read("src/generated/website.rs");
    assert!(
        module.contains("impl ChildOf<WebsiteChildren> for Widget"),
        "{module}"
    );
}

#[test]
fn mistakes_are_reported_at_their_place() {
    let mut reports = String::new();
    for keys in [
        "    children: [v1/Confgmap]\n",
        "    children: [example.com/v1/Website]\n",
        "    children: [example.com/v1/Gadget]\n",
        "    children: [v1/Pod, {kind: v1/Pod}]\n",
        "    children: [{kind: v1/Pod, plural: pods}]\n",
        "    children: [{kind: v1/Pod, update: replace}]\n",
        "    children: [{kind: v1/Pod, update: on-delete, one_at_a_time: true}]\n",
        "    children: [{update: recreate}]\n",
        "    children: [{crd: crds/widgets.yaml, kind: Wodget}]\n",
        "    children: [{kind: example.com/v1/Gadget, plural: Gad gets}]\n",
        "    children: [v1/Pod]\n    handlers: [{on: child, kind: v1/Secret, fn: changed}]\n",
        "    children: [v1/Pod]\n    handlers: [{on: child, fn: changed}]\n",
        "    children: [v1/Pod]\n    handlers: [{on: [child, create], kind: v1/Pod, fn: changed}]\n",
        "    children: [v1/Pod]\n    handlers: [{on: child, kind: v1/Pod, fn: changed, labels: {a: b}}]\n",
        "    handlers: [{on: reconcile, fn: one}, {on: reconcile, fn: two}]\n",
        "    handlers: [{on: reconcile, fn: one, field: spec.size}]\n",
        "    handlers: [{on: create, fn: one, kind: v1/Pod, status: true, interval: 1m}]\n",
        "    handlers: [{on: reconcile, fn: one, interval: 0s}]\n",
        "    uses: [{kind: v1/Secret, by: spec.secretRef.name}]\n",
        "    uses: [{kind: v1/Secret, by: spec.secretref.name}]\n    handlers: [{on: reconcile, fn: one}]\n",
        "    uses: [{kind: v1/Secret, by: spec.secrets.name}]\n    handlers: [{on: reconcile, fn: one}]\n",
        "    uses: [{kind: v1/Secret, by: spec.size}]\n    handlers: [{on: reconcile, fn: one}]\n",
        "    uses: [{kind: v1/Secret}]\n    handlers: [{on: reconcile, fn: one}]\n",
        "  - select: {group: apps}\n    children: [v1/Pod]\n    handlers: [{on: reconcile, fn: one}]\n",
    ] {
        let report = Crate::new(keys).run(&["validate", "--color", "never"]);
        assert!(report.starts_with("exit 1"), "{keys}{report}");
        reports += &format!("{keys}{report}\n");
    }
    insta::assert_snapshot!("mistakes", reports);
}

#[test]
fn children_and_their_handlers_are_added_and_removed_by_commands() {
    let made = Crate::new("    handlers: []\n");
    made.generate();
    let run = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = made.run(&arguments);
        assert!(output.starts_with("exit 0"), "{output}");
    };
    run("add child Website v1/ConfigMap");
    run("add child Website batch/v1/Job --update recreate --one-at-a-time --prune false --bodies");
    run("add child Website --crd crds/widgets.yaml");
    run("add child Website third.net/v1/Gadget --plural gadgets --scope Cluster");
    run("add handler Website reconcile --on reconcile --interval 10m --status");
    run("add handler Website job_changed --on child --kind batch/v1/Job");
    run("remove child Website v1/ConfigMap");
    insta::assert_snapshot!("commands", made.read("kopf.yaml"));
}

#[test]
fn the_schema_for_editors_has_the_keys() {
    let made = Crate::new("");
    let schema = made.run(&["schema"]);
    for key in [
        "\"children\"",
        "\"uses\"",
        "\"one_at_a_time\"",
        "\"on-delete\"",
        "\"reconcile\"",
    ] {
        assert!(schema.contains(key), "{key}");
    }
}
