//! `kopf-gen add`: built-in kinds, and all options of an entry.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::shell::Shell;

fn add(shell: &Shell, arguments: &[&str]) -> String {
    let output = shell.run(&[&["add"], arguments].concat());
    assert!(output.starts_with("exit 0"), "{arguments:?}: {output}");
    output
}

#[test]
fn built_in_kinds_are_added_with_their_first_entry() {
    let shell = Shell::with_operator();
    let deployment = "apps/v1/Deployment";
    add(&shell, &["handler", deployment, "seen", "--on", "event"]);
    add(&shell, &["handler", deployment, "made", "--on", "create"]);
    add(
        &shell,
        &["timer", "Deployment", "check", "--interval", "1m"],
    );
    add(&shell, &["index", "v1/Pod", "pods_by_node"]);
    add(&shell, &["webhook", "v1/Secret", "check_secret"]);
    let manifest = shell.read("kopf.yaml");
    let (_, added) = manifest.split_once("fn: create}\n").expect("the old entry");
    insta::assert_snapshot!(added, @r"
      - builtin: apps/v1/Deployment
        handlers:
          - {on: event, fn: seen}
          - {on: create, fn: made}
          - {timer: check, interval: 1m}
      - builtin: v1/Pod
        indices:
          - {index: pods_by_node}
      - builtin: v1/Secret
        admission:
          - {validate: check_secret}
    ");
    assert!(
        shell
            .read("src/handlers/deployment.rs")
            .contains("async fn made")
    );
    insta::assert_snapshot!(shell.run(&["add", "handler", "jobs", "x", "--on", "create"]), @r"
    exit 1
    error: kopf.yaml has no kind `jobs`; `add … batch/v1/Job` adds the built-in kind
    ");
    let unknown = shell.run(&["add", "handler", "apps/v1/Deploymnt", "x", "--on", "create"]);
    assert!(unknown.starts_with("exit 1"), "{unknown}");
    assert!(unknown.contains("apps/v1/Deployment"), "{unknown}");
    assert!(!shell.read("kopf.yaml").contains("Deploymnt"));
}

#[test]
fn all_options_are_written_as_values_of_the_manifest() {
    let shell = Shell::with_operator();
    let handler = "handler Widget resize --on field --field spec.size --old 1 --new {any:[2,3]} \
                   --id sized --errors permanent --retries 5 --backoff 30s --timeout 1h \
                   --label tier={any:[gold,silver]} --annotation !old --when {not:is_paused} \
                   --param {least:5} --param-type serde_json::Value --result u32";
    let timer = "timer Widget tick --interval 1m --sharp --idle 5s --initial-delay {fn:later} \
                 --field spec.size --value present --param Hello";
    let daemon = "daemon Widget follow --initial-delay 5s --cancellation-backoff 1s \
                  --cancellation-timeout 2s --cancellation-polling 3s --field spec.names";
    let index = "index Widget by_size --keys i64 --values String --field spec.size --value 3 \
                 --errors temporary --retries 2 --backoff 1s --timeout 5s --annotation a=b";
    let webhook = "webhook Widget check --id checked --operation create,update --side-effects \
                   --persistent=false --timeout 5s --field spec.size --new 7 --param true";
    let resume = "handler Widget back --on resume,delete --optional --deleted";
    let startup = "startup prepare --errors permanent --param [1,2]";
    for command in [handler, timer, daemon, index, webhook, resume, startup] {
        // A colon needs a space after it to be one in YAML.
        let arguments: Vec<String> = command
            .split_whitespace()
            .map(|it| match it.split_once('{') {
                Some(_) => it.replace(':', ": ").replace(",", ", "),
                None => it.to_owned(),
            })
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        add(&shell, &arguments);
    }
    insta::assert_snapshot!(shell.read("kopf.yaml"));
}

#[test]
fn every_key_of_an_entry_has_an_option() {
    let shell = Shell::new();
    let schema = shell.run(&["schema"]);
    let schema: Value = serde_json::from_str(schema.trim_start_matches("exit 0\n")).expect("JSON");
    let keys = |section: &str| -> BTreeSet<String> {
        let properties = schema["$defs"][section]["properties"].as_object();
        let properties = properties.unwrap_or_else(|| panic!("{section} is in the schema"));
        properties.keys().cloned().collect()
    };
    // Arguments without a name of their own, and the options of the other commands.
    let positional = ["fn", "timer", "daemon", "index", "validate", "mutate"];
    let hooks = ["state", "startup", "cleanup", "login", "probe"];
    for (section, commands) in [
        ("HandlerSection", &["handler", "timer", "daemon"][..]),
        ("ChildSection", &["child"]),
        ("IndexSection", &["index"]),
        ("WebhookSection", &["webhook"]),
        ("HookSection", &["startup"]),
    ] {
        let help = commands.iter().map(|it| shell.run(&["add", it, "--help"]));
        let help: String = help.collect();
        for key in keys(section) {
            let is_child = section == "ChildSection" && key == "kind";
            if is_child || positional.contains(&key.as_str()) || hooks.contains(&key.as_str()) {
                continue;
            }
            let name = match key.as_str() {
                "labels" | "annotations" | "operations" => &key[..key.len() - 1],
                key => key,
            };
            let option = format!("--{}", name.replace('_', "-"));
            assert!(
                help.contains(&option),
                "{section} has `{key}`, add has no {option}"
            );
        }
    }
}
