//! Namespaces and settings of the operator: generated code, permissions and errors.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

/// The result of `generate` for a manifest with these options under `operator`.
struct GenerateResult {
    folder: TempDir,
    output: String,
    succeeded: bool,
}

impl GenerateResult {
    fn with(options: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let manifest = format!(
            "apiVersion: kopf-gen.dev/v1\noperator: {{name: pods, {options}}}\n\
             resources:\n  - {{builtin: v1/Pod, handlers: [{{on: create, fn: made}}]}}\n  \
             - {{builtin: v1/Node, handlers: [{{on: create, fn: joined}}]}}\n"
        );
        fs::write(folder.path().join("kopf.yaml"), manifest).expect("writable");
        let output = Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
            .args(["generate", "--runtime-version", "0.0.0"])
            .current_dir(folder.path())
            .output()
            .expect("the program runs");
        Self {
            folder,
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
            succeeded: output.status.success(),
        }
    }

    fn text(&self, file: &str) -> String {
        assert!(self.succeeded, "{}", self.output);
        fs::read_to_string(self.folder.path().join(file)).expect("a generated file")
    }
}

#[test]
fn named_namespaces_get_roles() {
    let made = GenerateResult::with("namespaces: [prod, staging]");
    insta::assert_snapshot!(made.text("deploy/base/rbac.yaml"));
    let wiring = made.text("src/generated.rs");
    assert!(
        wiring.contains(r#"Namespaces::matching(["prod", "staging"])"#),
        "{wiring}"
    );
    assert!(
        !made
            .text("deploy/base/deployment.yaml")
            .contains("--all-namespaces")
    );
}

#[test]
fn patterns_of_namespaces_need_permission_to_watch_namespaces() {
    let rule = "resources: [namespaces]\n    verbs: [list, watch]";
    let made = GenerateResult::with("namespaces: 'prod-*,!*-pr-*'");
    let rbac = made.text("deploy/base/rbac.yaml");
    assert!(
        rbac.contains(rule) && !rbac.contains("kind: Role\n"),
        "{rbac}"
    );
    let disabled =
        GenerateResult::with("namespaces: 'prod-*', settings: {scanning: {disabled: true}}");
    assert!(!disabled.text("deploy/base/rbac.yaml").contains(rule));
    let everywhere = GenerateResult::with("");
    assert!(!everywhere.text("deploy/base/rbac.yaml").contains(rule));
    assert!(
        everywhere
            .text("deploy/base/deployment.yaml")
            .contains("--all-namespaces")
    );
}

#[test]
fn invalid_namespaces_and_settings_are_errors() {
    let made = GenerateResult::with(
        "namespaces: [\"a,b\", Prod, \"\"], settings: {watching: {page_size: 0, server_timeout: 0}, \
         posting: {level: loud, reporting_component: \"\", error_backoffs: [soon]}}",
    );
    assert!(!made.succeeded);
    insta::assert_snapshot!(made.output);
}

#[test]
fn invalid_persistence_settings_are_errors() {
    let made = GenerateResult::with(
        "settings: {persistence: {finalizer: '', prefix: My.dev/x, progress: files, status_field: a.b, \
         ignored: [spec..size, ''], diffbase_storage: mine}, networking: {request_timeout: 0}}",
    );
    assert!(!made.succeeded);
    insta::assert_snapshot!(made.output);
}

#[test]
fn storages_are_words_names_fields_or_lists() {
    let made = GenerateResult::with(
        "settings: {persistence: {progress: [annotations, {annotations: old.dev}, {status: status.a.b}], \
         diffbase: {annotations: old.dev/handled}}}",
    );
    let wiring = made.text("src/generated.rs");
    let wiring: String = wiring.split_whitespace().collect();
    for expected in [
        r#"ProgressStore::Several(vec![ProgressStore::Annotations,ProgressStore::AnnotationsUnder("old.dev".to_owned()),ProgressStore::Field("status.a.b".to_owned())"#,
        r#"diffbase:DiffBaseStore::Annotation("old.dev/handled".to_owned())"#,
    ] {
        assert!(wiring.contains(expected), "{expected}: {wiring}");
    }
}

#[test]
fn invalid_storages_are_errors() {
    let made = GenerateResult::with(
        "settings: {persistence: {progress: [annotation, {annotations: Old_Dev}, {status: spec.a}, \
         {annotations: a.dev, status: status.b}], diffbase: []}}",
    );
    assert!(!made.succeeded);
    insta::assert_snapshot!(made.output);
}

#[test]
fn settings_that_only_kopf_has_are_errors_with_their_replacement() {
    let made = GenerateResult::with(
        "settings: {queueing: {idle_timeout: 5, exit_timeout: 2}, execution: {max_workers: 20}, \
         networking: {error_backoffs: [1]}, watching: {client_timeout: 60}, process: {}}",
    );
    assert!(!made.succeeded);
    insta::assert_snapshot!(made.output);
}
