//! Errors and notes about manifests that are well-formed.

use crate::shell::{CRD, Shell};

/// The output of `validate` for these handlers of widgets.
fn about(handlers: &str) -> String {
    let shell = Shell::with_operator();
    shell.manifest(&format!("      - {handlers}\n"));
    shell.run(&["validate"])
}

/// The same for widgets whose spec has these fields, in the flow style of YAML.
fn about_fields(fields: &str, handlers: &str) -> String {
    let shell = Shell::with_operator();
    let spec = "spec: {type: object, properties: {";
    let crd = CRD.replace(spec, &format!("{spec}{fields}, "));
    assert_ne!(crd, CRD);
    shell.write("crds/widget.yaml", &crd);
    shell.manifest(&format!("      - {handlers}\n"));
    shell.run(&["validate"])
}

#[track_caller]
fn expect(output: &str, severity: &str, code: &str, message: &str) {
    let line = format!("{severity}[{code}]: {message}");
    assert!(output.contains(&line), "no `{line}` in\n{output}");
    let ending = if severity == "error" {
        "exit 1"
    } else {
        "exit 0"
    };
    assert!(output.starts_with(ending), "{output}");
}

#[test]
fn options_that_contradict_each_other_are_errors() {
    for (handler, message) in [
        (
            "{on: field, field: spec.size, fn: f, value: 1, old: 2}",
            "`value` and `old` exclude each other",
        ),
        (
            "{on: field, field: spec.size, fn: f, value: 1, new: 2}",
            "`value` and `new` exclude each other",
        ),
        ("{on: field, fn: f}", "a field handler needs `field`"),
        ("{on: update, fn: f, old: 1}", "`old` needs `field`"),
        (
            "{on: event, fn: f, field: spec.size, old: 1}",
            "an event handler has no `old`",
        ),
        (
            "{on: event, fn: f, errors: permanent}",
            "`errors` means nothing here: an event handler is called once for each event",
        ),
        (
            "{on: event, fn: f, backoff: 5s}",
            "`backoff` means nothing here: an event handler is called once for each event",
        ),
        (
            "{on: create, fn: f, optional: true}",
            "`optional` is for delete handlers",
        ),
        (
            "{on: create, fn: f, deleted: true}",
            "`deleted` is for resume handlers",
        ),
        (
            "{on: create, fn: f, retries: 0}",
            "with `retries: 0` the handler would never be called",
        ),
        (
            "{on: create, fn: f, interval: 1s}",
            "`interval` is for timers",
        ),
        ("{timer: f}", "a timer needs `interval` or `idle`"),
        ("{timer: f, interval: 0}", "`interval` must not be zero"),
        (
            "{timer: f, idle: 5s, sharp: true}",
            "`sharp` needs `interval`",
        ),
        ("{daemon: f, idle: 5s}", "`idle` is for timers"),
    ] {
        expect(&about(handler), "error", "KG0602", message);
    }
}

#[test]
fn a_misspelt_key_is_one_error() {
    for (handler, message) in [
        ("{tmer: f, interval: 1s}", "a handler has no key `tmer`"),
        ("{on: create, fm: f}", "a handler has no key `fm`"),
        (
            "{timer: f, intervl: 1s, idle: 1s}",
            "a handler has no key `intervl`",
        ),
    ] {
        let output = about(handler);
        expect(&output, "error", "KG0501", message);
        assert_eq!(output.matches("error[").count(), 1, "{output}");
    }
    let output = about("{timer: f, interval: 5x}");
    expect(&output, "error", "KG0504", "`interval` is not a duration");
    assert_eq!(output.matches("error[").count(), 1, "{output}");
    let output = about("{fn: f}");
    expect(&output, "error", "KG0502", "a handler needs `on`");
}

#[test]
fn filters_that_never_match_are_errors() {
    for (handler, message) in [
        (
            "{on: field, field: spec.size, fn: f, value: big}",
            "`spec.size` can never be `\"big\"`",
        ),
        (
            "{on: field, field: spec.names, fn: f, old: 1}",
            "`spec.names` can never be `1`",
        ),
        (
            "{on: create, fn: f, labels: {'a b': present}}",
            "no object has a label `a b`",
        ),
        (
            "{on: create, fn: f, annotations: {'/x': present}}",
            "no object has an annotation `/x`",
        ),
        (
            "{on: create, fn: f, labels: {tier: 'a b'}}",
            "no object has a label of the value `a b`",
        ),
        (
            "{on: create, field: spec.size, fn: f, old: 1}",
            "a new object has no old value",
        ),
    ] {
        expect(&about(handler), "error", "KG0609", message);
    }
    for sound in [
        "{on: create, fn: f, labels: {tier: ''}, annotations: {note: 'a b'}}",
        "{on: field, field: metadata.labels.tier, fn: f, value: gold}",
        "{on: field, field: spec.size, fn: f, old: absent, new: present}",
        "{on: field, field: spec.names, fn: f, value: {value: [a]}}",
    ] {
        assert!(about(sound).starts_with("exit 0"), "{}", about(sound));
    }
}

#[test]
fn filter_values_that_the_schema_forbids_are_errors() {
    let phase = "phase: {type: string, enum: [Pending, Running, Done]}";
    let output = about_fields(
        phase,
        "{on: field, field: spec.phase, fn: f, value: Runing}",
    );
    insta::assert_snapshot!(output, @r#"
    exit 1
    error[KG0609]: `spec.phase` can never be `"Runing"`
     --> kopf.yaml:6:54
      |
    6 |       - {on: field, field: spec.phase, fn: f, value: Runing}
      |                                                      ^^^^^^ not one of the values that the schema allows
      |
      = help: did you mean `Running`?
    "#);
    let output = about_fields(phase, "{on: field, field: spec.phase, fn: f, new: Broken}");
    let message = "`spec.phase` can never be `\"Broken\"`";
    expect(&output, "error", "KG0609", message);
    assert!(
        output.contains("help: the schema allows `Pending`, `Running`, `Done`"),
        "{output}"
    );
    // An object may have the value from an older schema.
    let output = about_fields(phase, "{on: field, field: spec.phase, fn: f, old: Broken}");
    expect(&output, "warning", "KG0609", message);

    for (field, value, label) in [
        (
            "{type: integer, minimum: 1}",
            "0",
            "the schema says `minimum: 1`",
        ),
        (
            "{type: integer, maximum: 5}",
            "6",
            "the schema says `maximum: 5`",
        ),
        (
            "{type: string, maxLength: 3}",
            "long",
            "the schema says `maxLength: 3`",
        ),
        (
            "{type: string, pattern: '^[a-z]+$'}",
            "A1",
            "the schema says `pattern: \"^[a-z]+$\"`",
        ),
        ("{type: integer}", "'3'", "the field holds a whole number"),
        (
            "{type: object, properties: {a: {type: integer}}}",
            "{value: {b: 1}}",
            "the schema has no `b`",
        ),
        (
            "{type: object, properties: {a: {type: integer}}}",
            "{value: {a: x}}",
            "at `a`, the field holds a whole number",
        ),
    ] {
        let fields = format!("limited: {field}");
        let handler = format!("{{on: field, field: spec.limited, fn: f, value: {value}}}");
        let output = about_fields(&fields, &handler);
        assert!(output.starts_with("exit 1"), "{output}");
        assert!(
            output.contains("error[KG0609]: `spec.limited` can never be"),
            "{output}"
        );
        assert!(output.contains(label), "{output}");
    }
}

#[test]
fn mutating_webhooks_may_filter_values_that_the_schema_forbids() {
    let shell = Shell::with_operator();
    let crd = CRD.replace("size: {type: integer}", "size: {type: integer, minimum: 1}");
    assert_ne!(crd, CRD);
    shell.write("crds/widget.yaml", &crd);
    let about = |role: &str| {
        let webhook = format!("{{{role}: f, field: spec.size, value: 0}}");
        let head = "apiVersion: kopf-gen.dev/v1\noperator: {name: widgets}\n";
        let resource = format!("{{crd: crds/widget.yaml, admission: [{webhook}]}}");
        shell.write("kopf.yaml", &format!("{head}resources: [{resource}]\n"));
        shell.run(&["validate"])
    };
    let message = "`spec.size` can never be `0`";
    expect(&about("validate"), "error", "KG0609", message);
    let output = about("mutate");
    assert!(output.starts_with("exit 0"), "{output}");
}

#[test]
fn filter_values_that_the_schema_allows_are_accepted() {
    for (field, value) in [
        ("{type: string, enum: [present, absent]}", "present"),
        ("{type: string, enum: [present, absent]}", "{value: absent}"),
        ("{type: string, enum: [a], nullable: true}", "absent"),
        ("{type: string, enum: [a]}", "{predicate: odd}"),
        ("{x-kubernetes-int-or-string: true}", "50%"),
        ("{x-kubernetes-int-or-string: true}", "50"),
        (
            "{x-kubernetes-preserve-unknown-fields: true}",
            "{value: [1, a]}",
        ),
        (
            "{type: object, x-kubernetes-preserve-unknown-fields: true}",
            "{value: {any: 1}}",
        ),
        (
            "{type: object, additionalProperties: {type: string}}",
            "{value: {any: text}}",
        ),
        ("{type: number, minimum: 0.5}", "1"),
    ] {
        let fields = format!("open: {field}");
        let handler = format!("{{on: field, field: spec.open, fn: f, value: {value}}}");
        let output = about_fields(&fields, &handler);
        assert!(output.starts_with("exit 0"), "{field} {value}: {output}");
    }
}

#[test]
fn handlers_with_a_finalizer_are_noted() {
    for holding in ["{on: delete, fn: f}", "{daemon: f}", "{timer: f, idle: 5s}"] {
        let message = "objects of Widget wait for handlers when they are deleted";
        expect(&about(holding), "note", "KG0610", message);
    }
    for free in [
        "{on: delete, fn: f, optional: true}",
        "{on: create, fn: f}",
        "{on: event, fn: f}",
    ] {
        assert!(!about(free).contains("KG0610"), "{free}");
    }
}

#[test]
fn pruned_results_are_noted() {
    let message = "the schema of Widget drops results of its handlers";
    for handler in ["{on: create, fn: f}", "{on: event, fn: f}", "{daemon: f}"] {
        let output = about(handler);
        expect(&output, "note", "KG0611", message);
        assert!(output.contains("there is no `status.f`"), "{output}");
    }
    let shell = Shell::with_operator();
    shell.manifest("      - {on: create, fn: f}\n");
    let keeping = [
        "status: {type: object, x-kubernetes-preserve-unknown-fields: true}",
        "status: {type: object, properties: {f: {type: string}}}",
    ];
    for status in keeping {
        let schema = format!("            {status}\n            spec:");
        shell.write(
            "crds/widget.yaml",
            &CRD.replace("            spec:", &schema),
        );
        let output = shell.run(&["validate"]);
        assert!(output.starts_with("exit 0"), "{output}");
        assert!(!output.contains("KG0611"), "{output}");
    }
}

#[test]
fn conflicting_resources_are_reported() {
    let shell = Shell::with_operator();
    let second = "    - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n";
    shell.write("crds/widget.yaml", &format!("{CRD}{second}"));
    let manifest = |resources: &str| {
        let head = "apiVersion: kopf-gen.dev/v1\noperator: {name: widgets}\nresources: ";
        shell.write("kopf.yaml", &format!("{head}[{resources}]\n"));
        shell.run(&["validate"])
    };
    let twice = manifest("{crd: crds/widget.yaml}, {crd: crds/widget.yaml, version: v1}");
    expect(&twice, "error", "KG0608", "Widget is named twice");
    let both = manifest("{crd: crds/widget.yaml}, {crd: crds/widget.yaml, version: v2}");
    expect(
        &both,
        "warning",
        "KG0612",
        "v1 and v2 of Widget are the same objects",
    );
    let memo = manifest("{crd: crds/widget.yaml, memo: Notes, admission: [{validate: f}]}");
    assert!(memo.contains("[KG0625]"), "{memo}");
    let role = manifest("{crd: crds/widget.yaml, admission: [{operations: CREATE}]}");
    expect(
        &role,
        "error",
        "KG0620",
        "a webhook needs `validate` or `mutate`",
    );
    let blocking = "{crd: crds/widget.yaml, admission: [{validate: f, persistent: true}]}";
    let refused = "while no operator runs, the API server rejects requests for Widget";
    expect(&manifest(blocking), "note", "KG0621", refused);
    let pods = manifest("{builtin: v1/Pod, admission: [{validate: f}]}");
    let message = "while the operator does not answer, the API server rejects requests for Pod in the whole cluster";
    expect(&pods, "warning", "KG0621", message);
    let passing = manifest("{builtin: v1/Pod, admission: [{validate: f, ignore_failures: true}]}");
    assert!(!passing.contains("KG0621"), "{passing}");
    let tracked = manifest("{crd: crds/widget.yaml, track: always}");
    expect(
        &tracked,
        "error",
        "KG0626",
        "no handler needs the last states of Widget",
    );
}

#[test]
fn webhooks_that_stay_without_the_operator_are_noted() {
    let shell = Shell::with_operator();
    let about = |configuration: &str, webhook: &str| {
        let operator = format!("{{name: widgets, admission: {{configuration: {configuration}}}}}");
        let resource = format!("{{crd: crds/widget.yaml, admission: [{webhook}]}}");
        let head = format!("apiVersion: kopf-gen.dev/v1\noperator: {operator}\n");
        shell.write("kopf.yaml", &format!("{head}resources: [{resource}]\n"));
        shell.run(&["validate"])
    };
    let message = "while no operator runs, the API server rejects requests for Widget";
    let output = about("cert-manager", "{validate: f}");
    expect(&output, "note", "KG0621", message);
    for (configuration, webhook) in [
        ("managed", "{validate: f}"),
        ("cert-manager", "{validate: f, ignore_failures: true}"),
    ] {
        let output = about(configuration, webhook);
        assert!(output.starts_with("exit 0"), "{output}");
        assert!(!output.contains("KG0621"), "{output}");
    }
}

#[test]
fn a_file_of_handlers_without_an_impl_block_is_an_error() {
    let shell = Shell::with_operator();
    shell.write("src/handlers/widget.rs", "// moved elsewhere\n");
    shell.manifest("      - {on: create, fn: create}\n      - {on: update, fn: update}\n");
    let output = shell.run(&["generate"]);
    let message = "no file implements `WidgetHandlers`, which has the handlers of a Widget";
    expect(&output, "error", "KG0702", message);
    assert_eq!(shell.read("src/handlers/widget.rs"), "// moved elsewhere\n");
}

#[test]
fn definitions_that_the_api_server_rejects_are_warned_about_where_they_are_installed() {
    let shell = Shell::new();
    let bad = CRD
        .replace("{type: integer}", "{type: integer, minimum: 3, default: 2}")
        .replace(
            "names: {type: array, items: {type: string}}",
            "names: {type: array, items: {type: string}, uniqueItems: true}",
        );
    shell.write("bad.yaml", &bad);
    let unique = "warning[KG0304]: the API server rejects this definition: uniqueItems cannot be \
                  set to true since the runtime complexity becomes quadratic\n  --> ";
    let new = [
        "new",
        "bad",
        "--crd",
        "bad.yaml",
        "--runtime-version",
        "1.0.0",
    ];
    let output = shell.run(&new);
    assert!(output.starts_with("exit 0\n"), "{output}");
    assert!(
        output.contains(&format!("{unique}crds/bad.yaml:")),
        "{output}"
    );
    assert!(!output.contains("is ready"), "{output}");
    for command in ["validate", "generate"] {
        let output = shell.run(&[command, "--manifest", "bad/kopf.yaml"]);
        assert!(output.starts_with("exit 0\n"), "{output}");
        assert!(output.contains(unique), "{output}");
        // The API server checks defaults when everything else is right.
        assert!(!output.contains("greater than"), "{output}");
    }
    let types = shell.run(&["types", "bad.yaml"]);
    assert!(
        types.starts_with("exit 0\n") && !types.contains("KG0304"),
        "{types}"
    );

    let default = bad.replace(", uniqueItems: true", "");
    shell.write("bad/crds/bad.yaml", &default);
    let output = shell.run(&["validate", "--manifest", "bad/kopf.yaml"]);
    let reason = "the API server rejects this definition: should be greater than";
    assert!(output.contains(reason), "{output}");
}

#[test]
fn a_definition_has_a_limited_number_of_warnings() {
    let shell = Shell::with_operator();
    let fields: String = (0..50).map(|n| format!("f{n}: {{}}, ")).collect();
    let crd = CRD.replace("properties: {size", &format!("properties: {{{fields}size"));
    shell.write("crds/widget.yaml", &crd);
    let output = shell.run(&["validate"]);
    assert_eq!(output.matches("warning[KG0304]").count(), 21, "{output}");
    let rest = "the API server rejects this definition for 30 more reasons";
    assert!(output.contains(rest), "{output}");
}

#[test]
fn validate_against_a_revision_lists_what_breaks_stored_objects() {
    let shell = Shell::with_operator();
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let output = git
            .current_dir(&shell.here)
            .args(identity)
            .args(arguments)
            .output()
            .expect("git is installed");
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "first"]);
    let same = shell.run(&["validate", "--against", "HEAD"]);
    assert!(same.starts_with("exit 0"), "{same}");
    let crd = shell.read("crds/widget.yaml");
    let narrower = crd.replace("{type: integer}", "{type: integer, maximum: 5}");
    assert_ne!(crd, narrower);
    shell.write("crds/widget.yaml", &narrower);
    insta::assert_snapshot!(shell.run(&["validate", "--against", "HEAD"]), @r"
    exit 1
    error[KG0209]: widgets.example.com: `maximum` of `v1.spec.size` allows less
      --> crds/widget.yaml:16:69
       |
    16 |             spec: {type: object, properties: {size: {type: integer, maximum: 5}, names: {type: array, items: {type: string}}}}
       |                                                                     ^^^^^^^ stored objects may not fit
    ");
    let option = shell.run(&["validate", "--against=--all"]);
    assert!(option.contains("git does not know `--all`"), "{option}");
    insta::assert_snapshot!(shell.run(&["validate", "--against", "nothing"]), @r"
    exit 1
    error: git does not know `nothing`: Needed a single revision
    ");
}
