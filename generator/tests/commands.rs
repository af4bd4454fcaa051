//! What each command says and does, as a user sees it.

#[path = "commands/begin.rs"]
mod begin;
#[path = "commands/checks.rs"]
mod checks;
#[path = "commands/endings.rs"]
mod endings;
#[path = "commands/notes.rs"]
mod notes;
#[path = "commands/progress.rs"]
mod progress;
#[path = "commands/shell.rs"]
mod shell;
#[path = "commands/update.rs"]
mod update;
#[path = "commands/watching.rs"]
mod watching;

use std::fs;
use std::process::Command;

use shell::{CRD, Shell};

#[test]
fn new_makes_a_crate_and_says_what_comes_next() {
    let shell = Shell::new();
    insta::assert_snapshot!(shell.run(&["new", "widgets", "--crd", "widget.yaml"]));
    insta::assert_snapshot!(shell.run(&["new", "widgets", "--crd", "widget.yaml"]), @r"
    exit 1
    error: widgets is not empty; inside an operator crate, use `kopf-gen generate`
    ");
    insta::assert_snapshot!(shell.run(&["new", "Bad_Name", "--crd", "widget.yaml"]), @r"
    exit 1
    error: `Bad_Name` cannot name an operator: use lower-case letters, digits and dashes, starting with a letter, and give it with --name
    ");
}

#[test]
fn second_run_has_nothing_to_do() {
    let shell = Shell::with_operator();
    insta::assert_snapshot!(shell.run(&["generate"]), @r"
    exit 0
    everything is up to date
    ");
    insta::assert_snapshot!(shell.run(&["generate", "--check"]), @r"
    exit 0
    everything is up to date
    ");
}

#[test]
fn new_handler_becomes_a_stub_and_nothing_else_changes() {
    let shell = Shell::with_operator();
    let path = "src/handlers/widget.rs";
    let mine = shell
        .read(path)
        .replace("        Ok(())", "        // mine\n        Ok(())");
    shell.write(path, &mine);
    shell.manifest(
        "      - {on: create, fn: create_fn}\n      - {on: field, field: spec.size, fn: resize}\n",
    );
    insta::assert_snapshot!(shell.run(&["generate", "--check"]), @r"
    exit 3
    would update src/generated/widget.rs
    would update deploy/rbac.yaml
    would update src/handlers/widget.rs
    ");
    insta::assert_snapshot!(shell.run(&["generate"]), @r"
    exit 0
    updated src/generated/widget.rs
    updated deploy/rbac.yaml
    updated src/handlers/widget.rs
    ");
    insta::assert_snapshot!(shell.read(path));
}

#[test]
fn removed_handler_is_pointed_out_and_never_deleted() {
    let shell = Shell::with_operator();
    shell.manifest("      - {on: update, fn: update_fn}\n");
    insta::assert_snapshot!(shell.run(&["generate"]));
    assert!(
        shell
            .read("src/handlers/widget.rs")
            .contains("fn create_fn")
    );
}

#[test]
fn edited_generated_file_is_refused_with_the_difference() {
    let shell = Shell::with_operator();
    let edited = shell.read("src/generated.rs").replace("widgets", "gadgets");
    shell.write("src/generated.rs", &edited);
    insta::assert_snapshot!(shell.run(&["generate"]));
    assert_eq!(shell.read("src/generated.rs"), edited);
    assert!(shell.run(&["generate", "--check"]).starts_with("exit 4"));
    assert!(shell.run(&["generate", "--force"]).starts_with("exit 0"));
    assert!(!shell.read("src/generated.rs").contains("gadgets"));
}

#[test]
fn mistakes_are_shown_together_and_nothing_is_written() {
    let shell = Shell::with_operator();
    shell.manifest(
        "      - {on: field, field: spec.sizes, fn: resize}
      - {on: field, field: spec.names.first, fn: rename}
      - {on: [create, event], fn: seen}
      - {on: create, fn: createFn}
      - {on: create, fn: twice}
      - {on: update, fn: twice}
      - {on: update, fn: x, optional: true, value: 1}
",
    );
    insta::assert_snapshot!(shell.run(&["generate"]));
    assert!(!shell.read("src/handlers/widget.rs").contains("resize"));
}

#[test]
fn unknown_kinds_and_versions_are_explained() {
    let shell = Shell::with_operator();
    shell.write(
        "kopf.yaml",
        "apiVersion: kopf-gen.dev/v1
operator: {name: Widgets}
resources:
  - builtin: v1/pods
  - builtin: batch/v1/Jobb
  - crd: crds/missing.yaml
  - {crd: crds/widget.yaml, version: v2}
  - {crd: crds/widget.yaml, kind: Gadget}
  - handlers: []
",
    );
    insta::assert_snapshot!(shell.run(&["generate"]));
}

#[test]
fn crd_given_to_generate_is_added_with_comments_kept() {
    let shell = Shell::with_operator();
    let manifest = shell.read("kopf.yaml") + "# the end\n";
    shell.write("kopf.yaml", &manifest);
    let gadget = CRD
        .replace("widget", "gadget")
        .replace("Widget", "Gadget")
        .replace("size", "length");
    fs::write(shell.folder().join("gadget.yaml"), gadget).expect("writable");
    insta::assert_snapshot!(shell.run(&["generate", "../gadget.yaml"]));
    insta::assert_snapshot!(shell.read("kopf.yaml"));
    insta::assert_snapshot!(shell.run(&["generate", "../gadget.yaml"]), @r"
    exit 0
    Gadget is in kopf.yaml already
    everything is up to date
    ");
}

#[test]
fn crd_in_an_empty_folder_makes_a_crate() {
    let mut shell = Shell::new();
    shell.here = shell.folder().join("fresh-operator");
    fs::create_dir(&shell.here).expect("writable");
    let said = shell.run(&["generate", "../widget.yaml", "--runtime-version", "1.0.0"]);
    assert!(said.starts_with("exit 0"), "{said}");
    assert!(shell.read("kopf.yaml").contains("name: fresh-operator"));
    assert!(
        shell
            .read("Cargo.toml")
            .contains("kopf-runtime = \"1.0.0\"")
    );
}

#[test]
fn user_may_move_the_handlers_anywhere() {
    let shell = Shell::with_operator();
    let text = shell
        .read("src/handlers/widget.rs")
        .replace("use super::Operator", "use crate::handlers::Operator");
    fs::remove_file(shell.here.join("src/handlers/widget.rs")).expect("there");
    shell.write("src/widget_logic.rs", &text);
    shell.write("src/handlers.rs", "pub struct Operator {}\n");
    shell.manifest("      - {on: create, fn: create_fn}\n      - {on: delete, fn: delete_fn}\n");
    assert!(shell.run(&["generate"]).starts_with("exit 0"));
    assert!(
        shell
            .read("src/widget_logic.rs")
            .contains("async fn delete_fn")
    );
    assert_eq!(shell.read("src/handlers.rs"), "pub struct Operator {}\n");
}

#[test]
fn file_that_does_not_parse_is_refused_with_its_place() {
    let shell = Shell::with_operator();
    let broken = shell
        .read("src/handlers/widget.rs")
        .replace("HandlerResult {", "HandlerResult {{");
    shell.write("src/handlers/widget.rs", &broken);
    insta::assert_snapshot!(shell.run(&["generate"]));
}

#[test]
fn diff_is_printed_and_nothing_written() {
    let shell = Shell::with_operator();
    shell.manifest("      - {on: create, fn: create_fn, retries: 3}\n");
    let before = shell.read("src/generated/widget.rs");
    insta::assert_snapshot!(shell.run(&["generate", "--diff", "-q"]));
    assert_eq!(shell.read("src/generated/widget.rs"), before);
}

#[test]
fn folder_without_manifest_says_how_to_begin() {
    insta::assert_snapshot!(Shell::new().run(&["generate"]), @r"
    exit 1
    error: there is no kopf.yaml here or above; `kopf-gen new DIR --crd FILE` makes an operator
    ");
}

#[test]
fn handlers_are_added_and_removed_by_commands() {
    let shell = Shell::with_operator();
    let mut arguments = vec![
        "add",
        "handler",
        "Widget",
        "resize",
        "--on",
        "field",
        "--field",
        "spec.size",
    ];
    arguments.extend([
        "--retries",
        "5",
        "--backoff",
        "30s",
        "--label",
        "tier=gold",
        "--label",
        "!old",
    ]);
    insta::assert_snapshot!(shell.run(&arguments), @r"
    exit 0
    updated src/generated/widget.rs
    updated deploy/rbac.yaml
    updated src/handlers/widget.rs
    updated kopf.yaml
    ");
    insta::assert_snapshot!(shell.read("kopf.yaml"), @r"
    # yaml-language-server: $schema=.kopf-gen/schema.json
    # What this operator handles. After a change here or in a CRD, run `kopf-gen generate`.
    apiVersion: kopf-gen.dev/v1
    operator:
      name: widgets
    resources:
      - crd: crds/widget.yaml
        handlers:
          - {on: create, fn: create_fn}
          - {on: field, field: spec.size, fn: resize, retries: 5, backoff: 30s, labels: {tier: gold, old: absent}}
    ");
    assert!(
        shell
            .run(&["remove", "handler", "widgets", "create_fn"])
            .starts_with("exit 0")
    );
    assert!(!shell.read("kopf.yaml").contains("create_fn"));
    insta::assert_snapshot!(shell.run(&["remove", "handler", "widget", "resise"]), @r"
    exit 1
    error: widget has no handler `resise`; did you mean `resize`?
    ");
    insta::assert_snapshot!(shell.run(&["add", "handler", "Wigdet", "x", "--on", "create"]), @r"
    exit 1
    error: kopf.yaml has no kind `Wigdet`; did you mean `Widget`?
    ");
}

#[test]
fn timers_and_daemons_are_added_and_removed_by_commands() {
    let shell = Shell::with_operator();
    let add = |arguments: &[&str]| {
        let arguments = [&["add"], arguments].concat();
        let answer = shell.run(&arguments);
        assert!(answer.starts_with("exit 0"), "{answer}");
    };
    add(&["timer", "Widget", "expire", "--idle", "10s"]);
    let sharp = ["--interval", "30s", "--sharp", "--label", "tier=gold"];
    add(&[&["timer", "Widget", "beat"], &sharp[..]].concat());
    let stop = [
        "--cancellation-backoff",
        "1s",
        "--cancellation-timeout",
        "5s",
    ];
    add(&[&["daemon", "Widget", "follow"], &stop[..]].concat());
    insta::assert_snapshot!(shell.read("kopf.yaml"));
    insta::assert_snapshot!(shell.read("src/handlers/widget.rs"));
    insta::assert_snapshot!(shell.read("src/generated/widget.rs"));
    insta::assert_snapshot!(shell.run(&["rbac", "--explain", "widgets:patch"]), @r"
    exit 0
    widgets:patch because: progress of create_fn; finalizer of expire, beat, follow
    ");
    let removed = shell.run(&["remove", "handler", "Widget", "follow"]);
    assert!(removed.contains("updated kopf.yaml"), "{removed}");
    assert!(!shell.read("kopf.yaml").contains("follow"));
    let answer = shell.run(&["add", "timer", "Widget", "tick"]);
    assert!(answer.contains("--interval <DURATION>"), "{answer}");
}

#[test]
fn timers_and_daemons_that_make_no_sense_are_refused() {
    let shell = Shell::with_operator();
    shell.manifest(
        "      - {timer: restless}
      - {timer: sharp_idle, idle: 0, sharp: true}
      - {timer: compared, interval: 1s, field: spec.size, old: 1, cancellation_timeout: 5s}
      - {daemon: ticking, interval: 1s, initial_delay: {fn: Not A Name}}
      - {on: create, fn: create_fn, initial_delay: 5s, idle: 1m}
      - {timer: both, interval: 1s}
      - {daemon: both}
",
    );
    insta::assert_snapshot!(shell.run(&["validate"]));
    shell.manifest("      - {daemon: follow}\n      - {timer: beat, interval: 1s}\n");
    insta::assert_snapshot!(shell.run(&["validate", "--verbose"]));
}

#[test]
fn inspection_commands_write_nothing() {
    let shell = Shell::with_operator();
    insta::assert_snapshot!(shell.run(&["validate"]), @r"
    exit 0
    note[KG0611]: the schema of Widget drops results of its handlers
     --> kopf.yaml:9:26
      |
    9 |       - {on: create, fn: create_fn}
      |                          ^^^^^^^^^ there is no `status.create_fn`
      |
      = help: this matters to functions that call `set_result`: declare these fields in the schema, or `x-kubernetes-preserve-unknown-fields: true` for all of `status`

    widgets is valid: kinds: 1, handlers: 1
    ");
    insta::assert_snapshot!(shell.run(&["rbac", "--explain", "widgets:patch"]), @r"
    exit 0
    widgets:patch because: progress of create_fn
    ");
    insta::assert_snapshot!(shell.run(&["rbac", "--explain", "widgets:delete"]), @r"
    exit 1
    error: the operator does not need `widgets:delete`; of widgets it needs get, list, watch, patch
    ");
    insta::assert_snapshot!(shell.run(&["rbac", "--explain", "pods"]), @r"
    exit 1
    error: the operator needs nothing of `pods`; `kopf-gen rbac` prints all
    ");
    assert!(shell.run(&["rbac"]).contains("kind: ClusterRole"));
    assert!(shell.run(&["schema"]).contains("\"title\": \"kopf.yaml\""));
    for name in ["bash", "zsh", "fish"] {
        assert!(
            shell.run(&["completions", name]).contains("kopf-gen"),
            "{name}"
        );
    }
    assert!(shell.run(&["man", "pages"]).starts_with("exit 0"));
    assert!(shell.here.join("pages/kopf-gen-generate.1").exists());
}

#[test]
fn removed_kind_leaves_the_user_code_and_says_so() {
    let shell = Shell::with_operator();
    shell.write(
        "kopf.yaml",
        "apiVersion: kopf-gen.dev/v1\noperator: {name: widgets}\nresources: [{builtin: v1/Pod}]\n",
    );
    insta::assert_snapshot!(shell.run(&["generate"]), @r"
    exit 0
    warning[KG0622]: `kubectl apply -k deploy` fails: there is no deploy/crds.yaml
     --> deploy/kustomization.yaml:4:5
      |
    4 |   - crds.yaml
      |     ^^^^^^^^^ nothing in kopf.yaml needs it any more
      |
      = help: remove it from the `resources`

    kopf.yaml no longer handles what src/handlers/widget.rs is for: the file stays; move what you need, then delete it and `mod widget;`
    updated src/generated.rs
    created src/generated/pod.rs
    updated deploy/rbac.yaml
    created src/handlers/pod.rs
    updated src/handlers.rs
    deleted deploy/crds.yaml
    deleted src/generated/types.rs
    deleted src/generated/types/widget.rs
    deleted src/generated/types/widget/crd.json
    deleted src/generated/types/widget/v1.rs
    deleted src/generated/widget.rs
    ");
    assert!(shell.here.join("src/handlers/widget.rs").exists());
    assert!(!shell.here.join("src/generated/types").exists());
}

#[test]
fn killed_run_is_completed_by_the_next() {
    let shell = Shell::with_operator();
    let handlers: String = (0..40)
        .map(|n| format!("      - {{on: create, fn: f{n}}}\n"))
        .collect();
    for delay in 0..25 {
        shell.manifest(if delay % 2 == 0 {
            &handlers
        } else {
            "      - {on: create, fn: create_fn}\n"
        });
        let mut child = Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
            .args(["generate", "-q"])
            .current_dir(&shell.here)
            .spawn()
            .expect("the program runs");
        // Wherever the run is by then, the next one has to cope.
        std::thread::sleep(std::time::Duration::from_millis(delay * 2));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        let next = shell.run(&["generate", "-q"]);
        assert_eq!(next, "exit 0\n", "after {delay}");
        assert_eq!(
            shell.run(&["generate", "--check", "-q"]),
            "exit 0\n",
            "after {delay}"
        );
    }
}

#[test]
fn programs_get_one_object_per_line() {
    let shell = Shell::with_operator();
    shell.manifest(
        "      - {on: create, fn: create_fn, retries: 2}\n      - {on: update, fnn: x}\n",
    );
    insta::assert_snapshot!(shell.run(&["generate", "--format", "json"]));
    shell.manifest("      - {on: create, fn: create_fn, retries: 2}\n");
    insta::assert_snapshot!(shell.run(&["generate", "--format", "json"]), @r#"
    exit 0
    {"action":"updated","path":"src/generated/widget.rs"}
    "#);
}

#[test]
fn operator_can_begin_without_kinds() {
    let mut shell = Shell::new();
    assert!(
        shell
            .run(&["new", "empty", "--runtime-version", "1.0.0"])
            .starts_with("exit 0")
    );
    shell.here = shell.folder().join("empty");
    insta::assert_snapshot!(shell.read("src/handlers.rs"), @r"
    //! What the operator knows, and the handlers of each kind.

    /// Lives as long as the operator and is shared by all handlers: the place for clients and pools.
    #[derive(Debug, Default)]
    pub struct Operator {}
    ");
    insta::assert_snapshot!(shell.read("src/generated.rs"), @r#"
    // @generated by kopf-gen. Do not edit: change kopf.yaml or a CRD, then run `kopf-gen generate`.
    //! The empty as `kopf.yaml` describes it: types, handler traits, and the wiring between them.
    #![allow(dead_code, reason = "an operator rarely uses every field of every type")]

    const _: () = kopf_runtime::assert_codegen_abi(1);

    /// The operator, with the methods of `state` as its handlers.
    pub fn operator<S>(_state: S) -> kopf_runtime::Operator {
        kopf_runtime::Operator::new("empty")
    }
    "#);
    assert!(
        shell
            .run(&["generate", "../widget.yaml"])
            .starts_with("exit 0")
    );
    assert!(
        shell
            .read("src/handlers.rs")
            .contains("\n\nmod widget;\n\n")
    );
}

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
    note[KG0621]: while no operator runs, requests for Widget are refused
      --> kopf.yaml:11:74
       |
    11 |       - {validate: check_size, operations: [CREATE, UPDATE], persistent: true, labels: {tier: present}}
       |                                                                          ^^^^ it stays when the operator stops
       |
       = help: `ignore_failures: true` lets them pass

    warning[KG0622]: `kubectl apply -k deploy` leaves out deploy/webhooks.yaml
     --> deploy/kustomization.yaml:3:1
      |
    3 | resources:
      | ^^^^^^^^^^ not in this list
      |
      = help: add `- webhooks.yaml` to the `resources`

    updated src/generated/widget.rs
    updated deploy/rbac.yaml
    created deploy/webhooks.yaml
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
    assert!(
        stubs
            .contains("async fn check_size(&self, cx: &mut Validation<Widget>) -> AdmissionResult")
    );
    assert!(
        stubs.contains("async fn fill_in(&self, cx: &mut Mutation<Widget>) -> AdmissionResult")
    );
    assert!(
        shell
            .read("deploy/rbac.yaml")
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
        removed.contains("deleted deploy/webhooks.yaml"),
        "{removed}"
    );
    assert!(
        removed.contains("fails: there is no deploy/webhooks.yaml"),
        "{removed}"
    );
}

#[test]
fn mistakes_in_webhooks_are_shown_together() {
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
fn a_probe_becomes_a_stub_and_is_not_repeated() {
    let shell = Shell::with_operator();
    let manifest = |handlers: &str| {
        format!(
            "apiVersion: kopf-gen.dev/v1\noperator: {{name: widgets, handlers: [{handlers}]}}\n\
             resources: [{{crd: crds/widget.yaml}}]\n"
        )
    };
    for (mistaken, expected) in [
        (
            "{probe: disk, retries: 3}",
            "`retries` makes no sense for a probe",
        ),
        (
            "{probe: disk, backoff: 5s}",
            "`backoff` makes no sense for a probe",
        ),
        ("{probe: disk}, {startup: disk}", "`disk` is named twice"),
        (
            "{probe: a, startup: b}",
            "a handler of the operator has one of `startup`, `cleanup`, `login` and `probe`",
        ),
    ] {
        shell.write("kopf.yaml", &manifest(mistaken));
        let output = shell.run(&["generate", "--color", "never"]);
        assert!(output.contains(expected), "{expected}: {output}");
    }
    shell.write("kopf.yaml", &manifest("{probe: disk, timeout: 2s}"));
    shell.run(&["generate"]);
    let stub = "    async fn disk(&self, cx: &mut Probe) -> HandlerResult {\n        \
                cx.set_result(&\"well\")?;\n        Ok(())\n    }\n";
    let hooks = fs::read_to_string(shell.here.join("src/handlers/hooks.rs")).expect("a file");
    assert!(hooks.contains(stub), "{hooks}");
}

#[test]
fn webhooks_that_could_lock_the_cluster_are_pointed_out() {
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
        output.contains("requests for Pod are refused in the whole cluster"),
        "{output}"
    );
}

#[test]
fn folder_of_types_follows_its_inputs() {
    let shell = Shell::new();
    let gadget = CRD
        .replace("widget", "gadget")
        .replace("Widget", "Gadget")
        .replace("size", "length");
    shell.write("gadget.yaml", &gadget);
    insta::assert_snapshot!(shell.run(&["types", "widget.yaml", "gadget.yaml", "-o", "out"]), @r"
    exit 0
    created gadget.rs
    created gadget/crd.json
    created gadget/v1.rs
    created widget.rs
    created widget/crd.json
    created widget/v1.rs
    created mod.rs
    ");
    insta::assert_snapshot!(shell.run(&["types", "widget.yaml", "-o", "out"]), @r"
    exit 0
    updated mod.rs
    deleted gadget.rs
    deleted gadget/crd.json
    deleted gadget/v1.rs
    ");
    insta::assert_snapshot!(shell.run(&["types", "widget.yaml", "-o", "out"]), @r"
    exit 0
    everything is up to date
    ");
    shell.write("out/widget.rs", "// mine\n");
    let refused = shell.run(&["types", "widget.yaml", "-o", "out"]);
    assert!(
        refused.starts_with("exit 4\nwidget.rs was edited by hand\n"),
        "{refused}"
    );
    assert_eq!(shell.read("out/widget.rs"), "// mine\n");
    shell.run(&["types", "widget.yaml", "-o", "out", "--force"]);
    assert!(shell.read("out/widget.rs").starts_with("// @generated by"));
}

#[test]
fn file_of_types_never_replaces_another_one() {
    let shell = Shell::new();
    shell.write("src/main.rs", "fn main() {}\n");
    insta::assert_snapshot!(shell.run(&["types", "widget.yaml", "-o", "src/main.rs"]), @r"
    exit 1
    error: src/main.rs was not written by kopf-gen; `--force` overwrites it
    ");
    assert_eq!(shell.read("src/main.rs"), "fn main() {}\n");
    insta::assert_snapshot!(shell.run(&["types", "widget.yaml", "-o", "src/widget.rs"]), @"exit 0");
    insta::assert_snapshot!(shell.run(&["types", "widget.yaml", "-o", "src/widget.rs"]), @"exit 0");
}

#[test]
fn definitions_without_the_wanted_version_are_left_out() {
    let shell = Shell::new();
    let gadget = CRD
        .replace("widget", "gadget")
        .replace("Widget", "Gadget")
        .replace("name: v1\n", "name: v2\n");
    shell.write("gadget.yaml", &gadget);
    let inputs = ["types", "widget.yaml", "gadget.yaml"];
    let with = |more: &[&'static str]| shell.run(&[&inputs[..], more].concat());
    insta::assert_snapshot!(with(&["--version", "v2", "-o", "out", "-v"]), @r"
    exit 0
    info[KG0204]: `widgets.example.com` has no such version and is left out
     --> widget.yaml:1:1
      |
    1 | apiVersion: apiextensions.k8s.io/v1
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    created gadget.rs
    created gadget/crd.json
    created gadget/v2.rs
    created mod.rs
    ");
    insta::assert_snapshot!(with(&["--version", "v3"]), @r"
    exit 1
    error[KG0204]: no definition has a version `v3`
     --> gadget.yaml:1:1
      |
    1 | apiVersion: apiextensions.k8s.io/v1
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: there is v1, v2
    ");
}

/// The page about the types.
const TYPES_PAGE: &str = include_str!("../../docs/types.md");

#[test]
fn commands_of_the_page_about_types_work_as_written() {
    let shell = Shell::new();
    shell.write("widgets.yaml", CRD);
    shell.write("crds/widget.yaml", CRD);
    let block = TYPES_PAGE.split("```").nth(1).expect("a block of commands");
    let commands: Vec<&str> = block.lines().filter(|line| !line.is_empty()).collect();
    assert!(!commands.is_empty());
    for command in commands {
        // Charts are not part of what is tested.
        let command = command.replace("helm template chart", "cat crds/widget.yaml");
        shell.script(&command);
    }
}

#[test]
fn options_of_the_page_about_types_work_as_written() {
    let shell = Shell::new();
    let part = "{type: object, properties: {name: {type: string}}}";
    let more = format!(
        "size: {{type: integer}}, template: {part}, rules: {{type: array, items: {part}}}, \
         created: {{type: string, format: date-time}}, mode: {{type: string, enum: [a, b]}}"
    );
    shell.write("widgets.yaml", &CRD.replace("size: {type: integer}", &more));
    let table = TYPES_PAGE
        .split("## Options")
        .nth(1)
        .expect("the section of options");
    let mut tried = 0;
    for row in table.lines().filter(|line| line.starts_with("| `--")) {
        let cell = row
            .trim_start_matches("| ")
            .split(" | ")
            .next()
            .expect("a cell");
        for option in cell.split('`').filter(|text| text.starts_with("--")) {
            let (option, values) = match option.rsplit_once(' ') {
                Some((option, values)) if values.contains("\\|") => (option, values),
                _ => ("", option),
            };
            for value in values.split("\\|") {
                shell.script(&format!("kopf-gen types widgets.yaml {option} {value}"));
                tried += 1;
            }
        }
    }
    assert!(tried > 8, "only {tried} options were found");
}

#[test]
fn handlers_of_the_operator_are_added_and_removed_by_commands() {
    let shell = Shell::with_operator();
    for line in [
        "add startup prepare --retries 3 --backoff 5s",
        "add cleanup tear_down --id Widgets.end",
        "add probe disk --timeout 2s --id free",
    ] {
        let output = shell.run(&line.split(' ').collect::<Vec<_>>());
        assert!(output.starts_with("exit 0"), "{output}");
    }
    let manifest = shell.read("kopf.yaml");
    for entry in [
        "{startup: prepare, retries: 3, backoff: 5s}",
        "{cleanup: tear_down, id: Widgets.end}",
        "{probe: disk, id: free, timeout: 2s}",
    ] {
        assert!(manifest.contains(entry), "{manifest}");
    }
    let stubs = shell.read("src/handlers/hooks.rs");
    for stub in [
        "async fn prepare(&self, cx: &mut Startup) -> HandlerResult",
        "async fn tear_down(&self, cx: &mut Cleanup) -> HandlerResult",
        "async fn disk(&self, cx: &mut Probe) -> HandlerResult",
    ] {
        assert!(stubs.contains(stub), "{stubs}");
    }
    assert!(
        shell
            .run(&["remove", "hook", "tear_donw"])
            .contains("did you mean `tear_down`?")
    );
    let output = shell.run(&["remove", "hook", "Widgets.end"]);
    assert!(
        output.contains("is not a handler of the operator any more"),
        "{output}"
    );
    assert!(!shell.read("src/generated/hooks.rs").contains("tear_down"));
    let refused = shell.run(&["add", "probe", "other", "--retries", "3"]);
    assert!(refused.starts_with("exit 2"), "{refused}");
    let output = shell.run(&["remove", "hook", "free"]);
    assert!(output.starts_with("exit 0"), "{output}");
    assert!(!shell.read("src/generated/hooks.rs").contains("disk"));
}

#[test]
fn memo_becomes_a_type_of_the_user_in_new_and_old_files() {
    let shell = Shell::with_operator();
    let manifest = shell.read("kopf.yaml");
    shell.write(
        "kopf.yaml",
        &manifest.replace("handlers:", "memo: WidgetMemo\n    handlers:"),
    );
    let output = shell.run(&["generate"]);
    assert!(output.starts_with("exit 0"), "{output}");
    let handlers = shell.read("src/handlers/widget.rs");
    for part in [
        "    type Memo = WidgetMemo;\n",
        "#[derive(Debug, Default)]\npub struct WidgetMemo {}\n",
        "Memo<Widget> for WidgetMemo {}\n",
    ] {
        assert_eq!(handlers.matches(part).count(), 1, "{handlers}");
    }
    assert!(
        shell
            .run(&["generate"])
            .contains("everything is up to date")
    );
    shell.write(
        "kopf.yaml",
        &manifest.replace("handlers:", "memo: widget\n    handlers:"),
    );
    let output = shell.run(&["generate"]);
    assert!(
        output.contains("`widget` cannot name the type of a memo"),
        "{output}"
    );
    assert!(output.contains("write it like `WidgetMemo`"), "{output}");
}

#[test]
fn objects_are_tracked_always_where_the_manifest_says_so_and_somebody_compares_them() {
    let shell = Shell::with_operator();
    let manifest = shell.read("kopf.yaml");
    let with = |track: &str| {
        let track = format!("track: {track}\n    handlers:");
        shell.write("kopf.yaml", &manifest.replace("handlers:", &track));
        shell.run(&["generate"])
    };
    let wiring = || shell.read("src/generated/widget.rs");
    let output = with("always");
    assert!(output.starts_with("exit 0"), "{output}");
    assert!(wiring().contains(".track_always()"), "{}", wiring());
    let output = with("matching");
    assert!(output.starts_with("exit 0"), "{output}");
    assert!(!wiring().contains(".track_always()"), "{}", wiring());
    let output = with("never");
    assert!(
        output.contains("KG0504") && output.contains("`always`"),
        "{output}"
    );
    let spy = "resources:\n  - builtin: v1/Pod\n    track: always\n    handlers:\n      - {on: event, fn: spy}\n";
    let (operator, _) = manifest.split_once("resources:").unwrap();
    shell.write("kopf.yaml", &format!("{operator}{spy}"));
    let output = shell.run(&["generate"]);
    assert!(
        output.contains("KG0626") && output.contains("no handler needs the last states of Pod"),
        "{output}"
    );
}

#[test]
fn mistakes_in_handlers_of_the_operator_are_shown_together() {
    let shell = Shell::with_operator();
    let handlers = "{startup: a, cleanup: b}, {retries: 3}, {startup: c}, {cleanup: c}, {startup: Bad}, {startup: d, interval: 1s}";
    shell.write(
        "kopf.yaml",
        &format!(
            "apiVersion: kopf-gen.dev/v1\noperator: {{name: widgets, handlers: [{handlers}]}}\n"
        ),
    );
    let output = shell.run(&["generate"]);
    for fault in [
        "one is too many",
        "what is it called for?",
        "`c` is named twice",
        "`startup` must be a Rust function name, and `Bad` is not",
        "`interval`",
    ] {
        assert!(output.contains(fault), "no {fault} in {output}");
    }
}
