//! What a manifest can say that makes no sense, or means more than it seems to.

use crate::shell::{CRD, Shell};

/// What `validate -v` says about the handlers of widgets.
fn about(handlers: &str) -> String {
    let shell = Shell::with_operator();
    shell.manifest(&format!("      - {handlers}\n"));
    shell.run(&["validate", "-v"])
}

#[track_caller]
fn expect(said: &str, severity: &str, code: &str, message: &str) {
    let line = format!("{severity}[{code}]: {message}");
    assert!(said.contains(&line), "no `{line}` in\n{said}");
    let ending = if severity == "error" {
        "exit 1"
    } else {
        "exit 0"
    };
    assert!(said.starts_with(ending), "{said}");
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
fn filters_that_are_never_met_are_errors() {
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
    ] {
        expect(&about(handler), "error", "KG0609", message);
    }
}

#[test]
fn handlers_that_hold_objects_are_told() {
    for holding in ["{on: delete, fn: f}", "{daemon: f}", "{timer: f, idle: 5s}"] {
        let message = "objects of Widget wait for `f` when they are deleted";
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
fn results_that_nobody_keeps_are_told() {
    let message = "a result of `f` would be lost";
    expect(&about("{on: create, fn: f}"), "note", "KG0611", message);
    let shell = Shell::with_operator();
    shell.manifest("      - {on: create, fn: f}\n      - {on: event, fn: g}\n");
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
        let said = shell.run(&["validate", "-v"]);
        assert!(said.starts_with("exit 0"), "{said}");
        assert!(!said.contains("KG0611"), "{said}");
    }
}

#[test]
fn resources_that_get_in_each_others_way_are_told() {
    let shell = Shell::with_operator();
    let second = "    - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n";
    shell.write("crds/widget.yaml", &format!("{CRD}{second}"));
    let manifest = |resources: &str| {
        let head = "apiVersion: kopf-gen.dev/v1\noperator: {name: widgets}\nresources: ";
        shell.write("kopf.yaml", &format!("{head}[{resources}]\n"));
        shell.run(&["validate", "-v"])
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
    let tracked = manifest("{crd: crds/widget.yaml, track: always}");
    expect(
        &tracked,
        "error",
        "KG0626",
        "no handler needs the last states of Widget",
    );
}

#[test]
fn a_file_of_handlers_without_an_implementation_is_refused() {
    let shell = Shell::with_operator();
    shell.write("src/handlers/widget.rs", "// moved elsewhere\n");
    shell.manifest("      - {on: create, fn: create_fn}\n      - {on: update, fn: update_fn}\n");
    let said = shell.run(&["generate"]);
    let message = "nothing implements `WidgetHandlers`, which handles a Widget";
    expect(&said, "error", "KG0702", message);
    assert_eq!(shell.read("src/handlers/widget.rs"), "// moved elsewhere\n");
}
