//! The JSON Schema of the manifest accepts exactly what the parser accepts.

#[path = "schema/accepts.rs"]
mod accepts;

use accepts::accepts;
use kopf_gen::diagnostic::{Diagnostics, Sources};
use kopf_gen::load::manifest;
use kopf_gen::load::yaml::{self, Dialect};
use serde_json::Value;

/// Whether the parser accepts a manifest, and whether the schema does.
fn both(text: &str) -> (bool, bool) {
    let mut sources = Sources::new();
    let source = sources.add("kopf.yaml", text);
    let mut diagnostics = Diagnostics::new();
    let parsed =
        manifest::parse(&sources, source, &mut diagnostics).is_some() && !diagnostics.has_errors();
    let documents = yaml::parse(&sources, source, Dialect::Core, &mut Diagnostics::new());
    let value = documents.first().map_or(Value::Null, yaml::Node::to_json);
    let schema = serde_json::to_value(manifest::schema()).expect("a schema is JSON");
    (parsed, accepts(&schema, &schema, &value))
}

fn operator(options: &str) -> String {
    format!("{{apiVersion: kopf-gen.dev/v1, operator: {{name: a, {options}}}}}")
}

fn with(handler: &str) -> String {
    format!(
        "{{apiVersion: kopf-gen.dev/v1, operator: {{name: a}}, resources: [{{crd: a.yaml, handlers: [{handler}]}}]}}"
    )
}

#[test]
fn schema_and_parser_agree_on_whole_manifests() {
    let head = "apiVersion: kopf-gen.dev/v1\noperator: {name: a}\n";
    for good in [
        head.to_owned(),
        format!("{head}resources:\n"),
        format!("{head}resources: []\n"),
        format!("{head}resources: [{{crd: a.yaml}}, {{builtin: v1/Pod, handlers: }}]\n"),
        format!("{head}resources: [{{crd: a.yaml, kind: A, version: v1, builtin: ~}}]\n"),
        format!(
            "{head}resources: [{{crd: a.yaml, children: [v1/Pod, {{crd: b.yaml, kind: B}}]}}]\n"
        ),
        format!(
            "{head}resources: [{{crd: a.yaml, children: [{{kind: v1/Pod, update: on-delete, prune: false}}]}}]\n"
        ),
        format!(
            "{head}resources: [{{crd: a.yaml, children: ~, uses: [{{kind: v1/Secret, by: spec.a}}]}}]\n"
        ),
        with("{on: reconcile, fn: a, interval: 10m, status: true}"),
        with("{on: child, kind: v1/Pod, fn: a}"),
        operator("peering: standalone"),
        operator("settings: {background: {cancellation_polling: 10s, initial_spread: 0}}"),
        operator("settings: {background: ~}"),
        operator("peering: {}, leader_election: {}"),
        operator(
            "peering: {name: a, mandatory: false, clusterwide: true, priority: -5, lifetime: 30s, stealth: true, ties: first-identity}",
        ),
        operator("peering: {priority: 5.0, ties: pause}, leader_election: ~"),
        operator(
            "leader_election: {lease: a, lease_duration: 15, renew_deadline: 10s, retry_period: 500ms}",
        ),
    ] {
        assert_eq!(both(&good), (true, true), "{good}");
    }
    for bad in [
        "[]".to_owned(),
        "apiVersion: kopf-gen.dev/v1\n".to_owned(),
        "apiVersion: kopf-gen.dev/v2\noperator: {name: a}\n".to_owned(),
        "apiVersion: kopf-gen.dev/v1\noperator: {}\n".to_owned(),
        "apiVersion: kopf-gen.dev/v1\noperator: {name: 1}\n".to_owned(),
        format!("{head}resources: {{}}\n"),
        format!("{head}resources: [a]\n"),
        format!("{head}resources: [{{crd: 1}}]\n"),
        format!("{head}resources: [{{crds: a}}]\n"),
        format!("{head}peering: {{name: a}}\n"),
        format!("{head}resources: [{{crd: a.yaml, children: [{{update: recreate}}]}}]\n"),
        format!("{head}resources: [{{crd: a.yaml, children: [{{kind: a, update: never}}]}}]\n"),
        format!("{head}resources: [{{crd: a.yaml, children: [1]}}]\n"),
        format!("{head}resources: [{{crd: a.yaml, uses: [{{kind: v1/Secret}}]}}]\n"),
        operator("peering: alone"),
        operator("peering: true"),
        operator("peering: {names: a}"),
        operator("peering: {priority: 1.5}"),
        operator("peering: {priority: 2147483648}"),
        operator("peering: {ties: random}"),
        operator("peering: {mandatory: maybe}"),
        operator("leader_election: true"),
        operator("leader_election: {lease: 1}"),
        operator("leader_election: {duration: 15s}"),
        operator("settings: fast"),
        operator("settings: {background: {initial_spread: soon}}"),
        operator("settings: {background: {spread: 1s}}"),
    ] {
        assert_eq!(both(&bad), (false, false), "{bad}");
    }
}

#[test]
fn schema_and_parser_agree_on_handlers() {
    for good in [
        "{on: create, fn: a}",
        "{on: [create, update], fn: a, id: b, param: {x: [1, null]}, errors: ignored}",
        "{on: field, field: [a.b, c], fn: a, value: present, old: 1, new: {value: [1]}, retries: 4294967295}",
        "{on: event, fn: a, labels: {a: present, b: x, c: {value: absent}, d: {predicate: p}}, annotations: {}}",
        "{on: delete, fn: a, timeout: 1h30m, backoff: 0.5, optional: true, deleted: false, when: p, retries: 5.0}",
        "{on: create, fn: a, labels: ~, when: ~, timeout: ~, value: 1.5}",
        "{on: create, fn: a, when: {any: [p, {not: {all: [q]}}]}, labels: {a: {any: [x, present, {predicate: p}]}}}",
        "{on: field, field: spec.a, fn: a, value: {all: [present, {none: [1, {value: [2]}]}, {not: {not: x}}]}}",
        "{on: create, fn: a, timeout: 999999999d, value: {predicate: p}}",
        "{timer: a, interval: 5s, sharp: true, idle: 1.5, initial_delay: 1m, on: ~}",
        "{timer: a, id: b, labels: {a: present}, retries: 3, backoff: 1s, initial_delay: {fn: c}}",
        "{daemon: a, cancellation_backoff: 1s, cancellation_timeout: 5s, cancellation_polling: 1m}",
    ] {
        assert_eq!(both(&with(good)), (true, true), "{good}");
    }
    for bad in [
        "{on: create}",
        "{fn: a}",
        "{on: [], fn: a}",
        "{on: made, fn: a}",
        "{on: create, fn: [a]}",
        "{on: create, fn: a, retries: -1}",
        "{on: create, fn: a, retries: 4294967296}",
        "{on: create, fn: a, retries: 1.5}",
        "{on: create, fn: a, backoff: 5w}",
        "{on: create, fn: a, backoff: ''}",
        "{on: create, fn: a, backoff: -5}",
        "{on: create, fn: a, backoff: 1e12}",
        "{on: create, fn: a, optional: maybe}",
        "{on: create, fn: a, labels: [a]}",
        "{on: create, fn: a, labels: {a: 1}}",
        "{on: create, fn: a, labels: {a: ~}}",
        "{on: create, fn: a, labels: {a: {value: 1}}}",
        "{on: create, fn: a, labels: {a: {values: x}}}",
        "{on: create, fn: a, value: [1]}",
        "{on: create, fn: a, value: {}}",
        "{on: create, fn: a, value: {value: ~}}",
        "{on: create, fn: a, value: {value: 1, predicate: p}}",
        "{on: create, fn: a, value: {any: []}}",
        "{on: create, fn: a, value: {any: 1}}",
        "{on: create, fn: a, labels: {a: {any: [x], not: y}}}",
        "{on: create, fn: a, labels: {a: {none: [x, 1]}}}",
        "{on: create, fn: a, when: {all: [p, 1]}}",
        "{on: create, fn: a, when: {predicate: p}}",
        "{on: create, fn: a, value: {value: 1, predicate: ~}}",
        "{on: create, fn: a, errors: sometimes}",
        "{on: create, fn: a, unknown: 1}",
        "{timer: a, interval: often}",
        "{timer: a, interval: 5s, sharp: 1}",
        "{timer: a, fn: b}",
        "{timer: a, daemon: b}",
        "{timer: [a]}",
        "{timer: ~}",
        "{on: create, fn: a, timer: b}",
        "{on: create, daemon: a}",
        "{daemon: a, initial_delay: {}}",
        "{daemon: a, initial_delay: {fn: 1}}",
        "{daemon: a, initial_delay: {fn: b, more: 1}}",
        "just_a_name",
    ] {
        assert_eq!(both(&with(bad)), (false, false), "{bad}");
    }
}

#[test]
fn schema_and_parser_agree_on_webhooks() {
    let with = |webhook: &str| with("").replace("handlers: []", &format!("admission: [{webhook}]"));
    for good in [
        "{validate: a}",
        "{mutate: a, id: b, operations: CREATE, subresource: '*', side_effects: true, ignore_failures: false}",
        "{validate: a, operations: [CREATE, UPDATE, DELETE, CONNECT], persistent: true, timeout: 5s}",
        "{validate: a, field: spec.a, value: present, labels: {a: b}, annotations: {a: absent}, when: p, param: 1}",
        "{validate: ~, mutate: a, old: 1, new: {predicate: p}}",
    ] {
        assert_eq!(both(&with(good)), (true, true), "{good}");
    }
    for bad in [
        "a",
        "{validate: 1}",
        "{validate: a, operations: []}",
        "{validate: a, operations: [create]}",
        "{validate: a, subresource: [status]}",
        "{validate: a, persistent: maybe}",
        "{validate: a, field: [spec.a]}",
        "{validate: a, retries: 5}",
    ] {
        assert_eq!(both(&with(bad)), (false, false), "{bad}");
    }
    let operator = |admission: &str| {
        format!("{{apiVersion: kopf-gen.dev/v1, operator: {{name: a, admission: {admission}}}}}")
    };
    for (admission, fits) in [
        ("{}", true),
        ("{name: auto.kopf.dev, configuration: managed}", true),
        ("{configuration: cert-manager}", true),
        ("{configuration: helm}", false),
        ("{names: a}", false),
    ] {
        assert_eq!(both(&operator(admission)), (fits, fits), "{admission}");
    }
}

#[test]
fn schema_and_parser_agree_on_indices() {
    let with = |index: &str| with("").replace("handlers: []", &format!("indices: [{index}]"));
    for good in [
        "{index: a}",
        "{index: a, keys: '(String, u32)', values: Vec<u8>, errors: permanent, param: [1]}",
        "{index: a, field: spec.a, value: {predicate: p}, labels: {a: b}, annotations: {a: absent}, when: p}",
        "{index: a, keys: ~, timeout: 1h, retries: 3, backoff: 5s}",
    ] {
        assert_eq!(both(&with(good)), (true, true), "{good}");
    }
    for bad in [
        "a",
        "{}",
        "{index: 1}",
        "{index: a, key: String}",
        "{index: a, keys: [String]}",
        "{index: a, field: [spec.a, spec.b]}",
        "{index: a, errors: never}",
        "{index: a, id: b}",
        "{index: a, old: 1}",
    ] {
        assert_eq!(both(&with(bad)), (false, false), "{bad}");
    }
}

#[test]
fn schema_and_parser_agree_on_selections() {
    let with = |select: &str| {
        format!(
            "apiVersion: kopf-gen.dev/v1\noperator: {{name: a}}\nresources: [{{select: {select}}}]\n"
        )
    };
    for good in [
        "everything",
        "{category: all}",
        "{group: '', version: v1}",
        "{kind: A, plural: b, singular: c, short_name: d, any_name: e}",
        "{}",
        "~",
        "{kind: ~}, as: Toys",
    ] {
        assert_eq!(both(&with(good)), (true, true), "{good}");
    }
    for bad in [
        "nothing",
        "1",
        "[everything]",
        "{everything: true}",
        "{kind: 1}",
        "{kind: [A, B]}",
        "{shortcut: po}",
        "everything, as: 1",
    ] {
        assert_eq!(both(&with(bad)), (false, false), "{bad}");
    }
}
