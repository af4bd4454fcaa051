//! Where an operator works and how it is tuned: wiring, permissions, and what is refused.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

/// What became of a manifest with these lines in its section of the operator.
struct Made {
    folder: TempDir,
    told: String,
    succeeded: bool,
}

impl Made {
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
            told: String::from_utf8_lossy(&output.stderr).into_owned(),
            succeeded: output.status.success(),
        }
    }

    fn text(&self, file: &str) -> String {
        assert!(self.succeeded, "{}", self.told);
        fs::read_to_string(self.folder.path().join(file)).expect("it is made")
    }
}

#[test]
fn namespaces_that_are_named_get_roles_of_their_own() {
    let made = Made::with("namespaces: [prod, staging]");
    insta::assert_snapshot!(made.text("deploy/rbac.yaml"));
    let wiring = made.text("src/generated.rs");
    assert!(
        wiring.contains(r#"Namespaces::matching(["prod", "staging"])"#),
        "{wiring}"
    );
    assert!(
        !made
            .text("deploy/deployment.yaml")
            .contains("--all-namespaces")
    );
}

#[test]
fn patterns_of_namespaces_take_the_permission_to_follow_them() {
    let rule = "resources: [namespaces]\n    verbs: [list, watch]";
    let made = Made::with("namespaces: 'prod-*,!*-pr-*'");
    let rbac = made.text("deploy/rbac.yaml");
    assert!(
        rbac.contains(rule) && !rbac.contains("kind: Role\n"),
        "{rbac}"
    );
    let blind = Made::with("namespaces: 'prod-*', settings: {scanning: {disabled: true}}");
    assert!(!blind.text("deploy/rbac.yaml").contains(rule));
    let everywhere = Made::with("");
    assert!(!everywhere.text("deploy/rbac.yaml").contains(rule));
    assert!(
        everywhere
            .text("deploy/deployment.yaml")
            .contains("--all-namespaces")
    );
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let made = Made::with(
        "namespaces: [\"a,b\", Prod, \"\"], settings: {watching: {page_size: 0, server_timeout: 0}, \
         posting: {level: loud, reporting_component: \"\", error_backoffs: [soon]}}",
    );
    assert!(!made.succeeded);
    insta::assert_snapshot!(made.told);
}

#[test]
fn places_for_facts_have_names_that_the_api_server_accepts() {
    let made = Made::with(
        "settings: {persistence: {finalizer: '', prefix: My.dev/x, progress: files, status_field: a.b, \
         ignored: [spec..size, ''], diffbase_storage: mine}, networking: {request_timeout: 0}}",
    );
    assert!(!made.succeeded);
    insta::assert_snapshot!(made.told);
}

#[test]
fn settings_of_kopf_without_a_meaning_here_say_what_takes_their_place() {
    let made = Made::with(
        "settings: {queueing: {idle_timeout: 5, exit_timeout: 2}, execution: {max_workers: 20}, \
         networking: {error_backoffs: [1]}, watching: {client_timeout: 60}, process: {}}",
    );
    assert!(!made.succeeded);
    insta::assert_snapshot!(made.told);
}
