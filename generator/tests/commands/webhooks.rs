//! Webhooks in the manifest: adding, removing, and errors.

use crate::shell::Shell;

#[test]
fn webhooks_are_added_and_removed_by_commands() {
    let shell = Shell::with_operator();
    let check = [
        "add",
        "webhook",
        "Widget",
        "check_size",
        "--operation",
        "create,update",
        "--label",
        "tier",
        "--persistent",
    ];
    insta::assert_snapshot!(shell.run(&check), @r"
    exit 0
    note[KG0621]: while no operator runs, the API server rejects requests for Widget
      --> kopf.yaml:12:74
       |
    12 |       - {validate: check_size, operations: [CREATE, UPDATE], persistent: true, labels: {tier: present}}
       |                                                                          ^^^^ it stays when the operator stops
       |
       = help: with `ignore_failures: true` the API server admits them

    updated src/generated/widget.rs
    updated deploy/base/kustomization.yaml
    updated deploy/base/rbac.yaml
    created deploy/base/webhooks.yaml
    updated src/handlers/widget.rs
    updated kopf.yaml
    ");
    let list = shell.read("deploy/kustomization.yaml");
    let list = list.replace("- rbac.yaml", "- rbac.yaml\n  - webhooks.yaml");
    shell.write("deploy/kustomization.yaml", &list);
    let added = shell.run(&["add", "webhook", "widget", "fill_in", "--mutate"]);
    assert!(added.starts_with("exit 0"), "{added}");
    assert!(!added.contains("KG0622"), "{added}");
    let written = shell.read("kopf.yaml");
    let entries: Vec<_> = written
        .lines()
        .skip_while(|line| !line.contains("admission"))
        .collect();
    assert_eq!(
        entries,
        [
            "    admission:",
            "      - {validate: check_size, operations: [CREATE, UPDATE], persistent: true, labels: {tier: present}}",
            "      - {mutate: fill_in}",
        ]
    );
    let stubs = shell.read("src/handlers/widget.rs");
    assert!(stubs.contains(
        "async fn check_size(&self, cx: &mut ValidationContext<Widget>) -> AdmissionResult"
    ));
    assert!(
        stubs.contains(
            "async fn fill_in(&self, cx: &mut MutationContext<Widget>) -> AdmissionResult"
        )
    );
    assert!(
        shell
            .read("deploy/base/rbac.yaml")
            .contains("resourceNames: [widgets.kopf-gen.dev]")
    );

    let removed = shell.run(&["remove", "webhook", "Widget", "check_size"]);
    assert!(removed.starts_with("exit 0"), "{removed}");
    insta::assert_snapshot!(shell.run(&["remove", "webhook", "Widget", "fillin"]), @r"
    exit 1
    error: Widget has no webhook `fillin`; did you mean `fill_in`?
    ");
    let removed = shell.run(&["remove", "webhook", "Widget", "fill_in"]);
    assert!(
        removed.contains("deleted deploy/base/webhooks.yaml"),
        "{removed}"
    );
    let list = shell.read("deploy/base/kustomization.yaml");
    assert!(!list.contains("webhooks.yaml"), "{list}");
}

#[test]
fn all_errors_in_webhooks_are_reported() {
    let shell = Shell::with_operator();
    shell.write(
        "kopf.yaml",
        "apiVersion: kopf-gen.dev/v1
operator: {name: widgets, admission: {name: nodot}}
resources:
  - crd: crds/widget.yaml
    admission:
      - {validate: a, mutate: b}
      - {operations: [CREATE]}
      - {validate: a, operations: [CREATED]}
      - {validate: c, operations: [CREATE, CREATE], timeout: 1m}
      - {mutate: d, subresource: status}
      - {validate: e, field: spec.sizes, errors: ignored}
      - {validate: f}
      - {validate: f}
      - {mutate: g, when: f}
  - builtin: v1/Pod
    admission: [{validate: check_pod}]
",
    );
    let output = shell.run(&["generate", "--color", "never"]);
    for expected in [
        "`nodot` cannot name webhook configurations",
        "a webhook either validates or mutates",
        "a webhook needs `validate` or `mutate`",
        "`operations` cannot be `CREATED`",
        "`operations` names the same operation twice",
        "the `timeout` of a webhook is a number of seconds from 1 to 30",
        "Widget has no subresource `status`",
        "a webhook has no key `errors`",
    ] {
        assert!(output.contains(expected), "{expected}: {output}");
    }
}

#[test]
fn webhooks_that_can_block_the_cluster_are_reported() {
    let shell = Shell::with_operator();
    shell.write(
        "kopf.yaml",
        "apiVersion: kopf-gen.dev/v1
operator: {name: widgets}
resources:
  - crd: crds/widget.yaml
    admission: [{validate: stays, persistent: true}]
  - builtin: v1/Pod
    admission: [{validate: strict}, {validate: lenient, ignore_failures: true}]
",
    );
    let output = shell.run(&["generate", "--color", "never"]);
    assert_eq!(output.matches("warning[KG0621]").count(), 1, "{output}");
    assert!(
        output.contains("the API server rejects requests for Pod in the whole cluster"),
        "{output}"
    );
}

#[test]
fn requests_that_are_not_checked_while_no_operator_runs_are_noted() {
    let shell = Shell::with_operator();
    let with = |options: &str| {
        shell.write(
            "kopf.yaml",
            &format!(
                "apiVersion: kopf-gen.dev/v1
operator: {{name: widgets}}
resources:
  - crd: crds/widget.yaml
    admission:
      - {{validate: check{options}}}
      - {{mutate: complete{options}}}
"
            ),
        );
        shell.run(&["validate"])
    };
    insta::assert_snapshot!(with(""), @r"
    exit 0
    note[KG0624]: while no operator runs, `check`, `complete` of Widget are not called, and requests pass
     --> kopf.yaml:6:20
      |
    6 |       - {validate: check}
      |                    ^^^^^ removed when the operator stops
      |
      = help: `persistent: true` keeps it, and the API server rejects requests then; `persistent: false` confirms

    widgets is valid: kinds: 1, handlers: 0
    ");
    for decided in [
        ", persistent: true",
        ", persistent: false",
        ", ignore_failures: true",
    ] {
        let output = with(decided);
        assert!(!output.contains("KG0624"), "{output}");
    }
}
