//! The output and the effects of each command.

#[path = "commands/add.rs"]
mod add;
#[path = "commands/crate_files.rs"]
mod crate_files;
#[path = "commands/exit_codes.rs"]
mod exit_codes;
#[path = "commands/hooks.rs"]
mod hooks;
#[path = "commands/hostile.rs"]
mod hostile;
#[path = "commands/lock_file.rs"]
mod lock_file;
#[path = "commands/new.rs"]
mod new;
#[path = "commands/notes.rs"]
mod notes;
#[path = "commands/progress.rs"]
mod progress;
#[path = "commands/runtime.rs"]
mod runtime;
#[path = "commands/shell.rs"]
mod shell;
#[path = "commands/types.rs"]
mod types;
#[path = "commands/validate.rs"]
mod validate;
#[path = "commands/watch.rs"]
mod watch;
#[path = "commands/webhooks.rs"]
mod webhooks;

use std::fs;
use std::process::Command;

use shell::{CRD, Shell};

#[test]
fn new_creates_a_crate_and_prints_the_next_steps() {
    let shell = Shell::new();
    let new = [
        "new",
        "widgets",
        "--crd",
        "widget.yaml",
        "--runtime-version",
        "1.0.0",
    ];
    insta::assert_snapshot!(shell.run(&new));
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
fn a_second_run_changes_nothing() {
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
fn a_new_handler_becomes_a_stub_and_nothing_else_changes() {
    let shell = Shell::with_operator();
    let path = "src/handlers/widget.rs";
    let mine = shell
        .read(path)
        .replace("        Ok(())", "        // mine\n        Ok(())");
    shell.write(path, &mine);
    shell.manifest(
        "      - {on: create, fn: create}\n      - {on: field, field: spec.size, fn: resize}\n",
    );
    insta::assert_snapshot!(shell.run(&["generate", "--check"]), @r"
    exit 3
    would update src/generated/widget.rs
    would update deploy/base/rbac.yaml
    would update src/handlers/widget.rs
    ");
    insta::assert_snapshot!(shell.run(&["generate"]), @r"
    exit 0
    updated src/generated/widget.rs
    updated deploy/base/rbac.yaml
    updated src/handlers/widget.rs
    ");
    insta::assert_snapshot!(shell.read(path));
}

#[test]
fn a_removed_handler_is_reported_and_its_method_stays() {
    let shell = Shell::with_operator();
    shell.manifest("      - {on: update, fn: update}\n");
    insta::assert_snapshot!(shell.run(&["generate"]));
    assert!(shell.read("src/handlers/widget.rs").contains("fn create"));
}

#[test]
fn an_edited_generated_file_stops_the_run_with_a_diff() {
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
fn all_errors_are_reported_and_nothing_is_written() {
    let shell = Shell::with_operator();
    shell.manifest(
        "      - {on: field, field: spec.sizes, fn: resize}
      - {on: field, field: spec.names.first, fn: rename}
      - {on: [create, event], fn: echo}
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
fn unknown_kinds_and_versions_are_reported() {
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
fn generate_adds_a_crd_and_keeps_comments() {
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
fn generate_with_a_crd_creates_a_crate_in_an_empty_folder() {
    let mut shell = Shell::new();
    shell.here = shell.folder().join("fresh-operator");
    fs::create_dir(&shell.here).expect("writable");
    let output = shell.run(&["generate", "../widget.yaml", "--runtime-version", "1.0.0"]);
    assert!(output.starts_with("exit 0"), "{output}");
    assert!(shell.read("kopf.yaml").contains("name: fresh-operator"));
    assert!(
        shell
            .read("Cargo.toml")
            .contains("kopf-runtime = \"1.0.0\"")
    );
}

#[test]
fn stubs_are_added_where_the_user_moved_the_handlers() {
    let shell = Shell::with_operator();
    let text = shell
        .read("src/handlers/widget.rs")
        .replace("use super::Operator", "use crate::handlers::Operator");
    fs::remove_file(shell.here.join("src/handlers/widget.rs")).expect("there");
    shell.write("src/widget_logic.rs", &text);
    shell.write("src/handlers.rs", "pub struct Operator {}\n");
    shell.manifest("      - {on: create, fn: create}\n      - {on: delete, fn: delete}\n");
    assert!(shell.run(&["generate"]).starts_with("exit 0"));
    assert!(
        shell
            .read("src/widget_logic.rs")
            .contains("async fn delete")
    );
    assert_eq!(shell.read("src/handlers.rs"), "pub struct Operator {}\n");
}

#[test]
fn a_file_that_does_not_parse_is_reported_with_its_place() {
    let shell = Shell::with_operator();
    let broken = shell
        .read("src/handlers/widget.rs")
        .replace("HandlerResult {", "HandlerResult {{");
    shell.write("src/handlers/widget.rs", &broken);
    insta::assert_snapshot!(shell.run(&["generate"]));
}

#[test]
fn diff_prints_the_changes_and_writes_nothing() {
    let shell = Shell::with_operator();
    shell.manifest("      - {on: create, fn: create, retries: 3}\n");
    let before = shell.read("src/generated/widget.rs");
    insta::assert_snapshot!(shell.run(&["generate", "--diff", "-q"]));
    assert_eq!(shell.read("src/generated/widget.rs"), before);
}

#[test]
fn generate_without_a_manifest_names_the_command_new() {
    insta::assert_snapshot!(Shell::new().run(&["generate"]), @r"
    exit 1
    error: there is no kopf.yaml here or above; `kopf-gen new DIR --crd FILE` creates an operator
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
    updated deploy/base/rbac.yaml
    updated src/handlers/widget.rs
    updated kopf.yaml
    ");
    insta::assert_snapshot!(shell.read("kopf.yaml"), @r"
    # yaml-language-server: $schema=.kopf-gen/schema.json
    # The kinds and handlers of this operator. After a change here or in a CRD, run `kopf-gen generate`.
    # For completion in your editor, run `kopf-gen schema --write` once.
    apiVersion: kopf-gen.dev/v1
    operator:
      name: widgets
    resources:
      - crd: crds/widget.yaml
        handlers:
          - {on: create, fn: create}
          - {on: field, field: spec.size, fn: resize, retries: 5, backoff: 30s, labels: {tier: gold, old: absent}}
    ");
    assert!(
        shell
            .run(&["remove", "handler", "widgets", "create"])
            .starts_with("exit 0")
    );
    assert!(!shell.read("kopf.yaml").contains("fn: create}"));
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
    widgets:patch because: progress of create; finalizer of expire, beat, follow
    ");
    let removed = shell.run(&["remove", "handler", "Widget", "follow"]);
    assert!(removed.contains("updated kopf.yaml"), "{removed}");
    assert!(!shell.read("kopf.yaml").contains("follow"));
    let answer = shell.run(&["add", "timer", "Widget", "tick"]);
    assert!(answer.contains("--interval <DURATION>"), "{answer}");
}

#[test]
fn invalid_timers_and_daemons_are_errors() {
    let shell = Shell::with_operator();
    shell.manifest(
        "      - {timer: restless}
      - {timer: sharp_idle, idle: 0, sharp: true}
      - {timer: compared, interval: 1s, field: spec.size, old: 1, cancellation_timeout: 5s}
      - {daemon: ticking, interval: 1s, initial_delay: {fn: Not A Name}}
      - {on: create, fn: create, initial_delay: 5s, idle: 1m}
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
      --> kopf.yaml:10:26
       |
    10 |       - {on: create, fn: create}
       |                          ^^^^^^ there is no `status.create`
       |
       = help: this matters to functions that call `set_result`: declare these fields in the schema, or `x-kubernetes-preserve-unknown-fields: true` for all of `status`

    widgets is valid: kinds: 1, handlers: 1
    ");
    insta::assert_snapshot!(shell.run(&["rbac", "--explain", "widgets:patch"]), @r"
    exit 0
    widgets:patch because: progress of create
    ");
    insta::assert_snapshot!(shell.run(&["rbac", "--explain", "widgets:delete"]), @r"
    exit 1
    error: the operator does not need `widgets:delete`; on widgets it needs get, list, watch, patch
    ");
    insta::assert_snapshot!(shell.run(&["rbac", "--explain", "pods"]), @r"
    exit 1
    error: the operator needs no permission on `pods`; `kopf-gen rbac` prints all permissions
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
fn handlers_of_a_removed_kind_stay_with_a_message() {
    let shell = Shell::with_operator();
    shell.write(
        "kopf.yaml",
        "apiVersion: kopf-gen.dev/v1\noperator: {name: widgets}\nresources: [{builtin: v1/Pod}]\n",
    );
    insta::assert_snapshot!(shell.run(&["generate"]), @r"
    exit 0
    warning[KG0622]: `kubectl apply -k deploy` fails: there is no crds/kustomization.yaml
     --> deploy/kustomization.yaml:6:5
      |
    6 |   - ../crds
      |     ^^^^^^^ nothing in kopf.yaml needs it any more
      |
      = help: remove it from the `resources`

    kopf.yaml no longer handles what src/handlers/widget.rs is for: the file stays; move what you need, then delete it and `mod widget;`
    updated src/generated.rs
    created src/generated/pod.rs
    updated deploy/base/rbac.yaml
    created src/handlers/pod.rs
    updated src/handlers.rs
    deleted crds/kustomization.yaml
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
fn the_next_run_completes_a_killed_one() {
    let shell = Shell::with_operator();
    let handlers: String = (0..40)
        .map(|n| format!("      - {{on: create, fn: f{n}}}\n"))
        .collect();
    for delay in 0..25 {
        shell.manifest(if delay % 2 == 0 {
            &handlers
        } else {
            "      - {on: create, fn: create}\n"
        });
        let mut child = Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
            .args(["generate", "-q"])
            .current_dir(&shell.here)
            .spawn()
            .expect("the program runs");
        // The next run must succeed wherever this one is killed.
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
fn json_output_has_one_object_per_line() {
    let shell = Shell::with_operator();
    shell.manifest("      - {on: create, fn: create, retries: 2}\n      - {on: update, fnn: x}\n");
    insta::assert_snapshot!(shell.run(&["generate", "--format", "json"]));
    shell.manifest("      - {on: create, fn: create, retries: 2}\n");
    insta::assert_snapshot!(shell.run(&["generate", "--format", "json"]), @r#"
    exit 0
    {"action":"updated","path":"src/generated/widget.rs"}
    "#);
}

#[test]
fn a_memo_becomes_a_type_in_the_file_of_the_handlers() {
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
fn track_always_needs_a_handler_of_changes() {
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
