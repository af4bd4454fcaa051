//! Reading of valid and of invalid manifests.

use std::time::Duration;

use kopf_core::handler::filter::Combined;

use super::*;
use crate::diagnostic::{Style, human};

fn read(text: &str) -> (Option<Manifest>, String) {
    let mut sources = Sources::new();
    let source = sources.add(FILE_NAME, text);
    let mut diagnostics = Diagnostics::new();
    let manifest = parse(&sources, source, &mut diagnostics);
    diagnostics.sort();
    let report = diagnostics
        .iter()
        .map(|diagnostic| human(diagnostic, &sources, Style::Plain) + "\n")
        .collect();
    (manifest, report)
}

fn good(text: &str) -> Manifest {
    let (manifest, report) = read(text);
    assert_eq!(report, "");
    manifest.expect("no errors, so a manifest")
}

#[test]
fn options_are_read_as_written() {
    let manifest = good(
        "apiVersion: kopf-gen.dev/v1
operator: {name: evc-operator}
resources:
  - crd: crds/evc.yaml
    handlers:
      - {on: [create, resume], fn: ensure, retries: 5, backoff: 30s, timeout: 90, errors: permanent}
      - {on: field, field: spec.size, fn: resize, old: absent, new: 10Gi, param: {a: [1]}}
      - {on: delete, fn: release, optional: true, labels: {tier: present, app: x, y: {predicate: is_y}}}
      - {timer: expire, interval: 30s, sharp: true, idle: 10, initial_delay: 1m}
      - {daemon: follow, initial_delay: {fn: patience}, cancellation_timeout: 5s}
  - builtin: v1/Pod
    handlers: [{on: event, fn: pod_seen}]
",
    );
    assert_eq!(manifest.operator.name.value, "evc-operator");
    let handlers = &manifest.resources[0].handlers;
    let on = handlers[0].on.as_ref().expect("it is given");
    let triggers: Vec<_> = on.as_slice().iter().map(|on| on.value).collect();
    assert_eq!(triggers, [Trigger::Create, Trigger::Resume]);
    assert_eq!(
        handlers[0].timeout.map(|it| it.value.0),
        Some(Duration::from_secs(90))
    );
    assert_eq!(
        handlers[0].backoff.map(|it| it.value.0),
        Some(Duration::from_secs(30))
    );
    let only = |filter: &Option<Conditions<ValueFilter>>| match filter.as_ref()?.combined {
        Combined::One(ref condition) => Some(condition.value.clone()),
        _ => None,
    };
    assert_eq!(only(&handlers[1].old), Some(ValueFilter::Absent));
    assert_eq!(
        only(&handlers[1].new),
        Some(ValueFilter::Equals("10Gi".into()))
    );
    assert_eq!(handlers[2].labels.as_ref().map(|it| it.list.len()), Some(3));
    assert_eq!(handlers[3].function.value, "expire");
    assert_eq!(
        handlers[3].interval.map(|it| it.value.0),
        Some(Duration::from_secs(30))
    );
    assert_eq!(handlers[4].function.value, "follow");
    assert!(matches!(
        handlers[4].initial_delay.as_ref().map(|it| &it.value),
        Some(InitialDelay::Computed(name)) if name.value == "patience"
    ));
}

#[test]
fn all_errors_are_reported() {
    let (_, report) = read(
        "apiVersion: kopf-gen.dev/v2
operator: {nam: x}
resources:
  - crd: a.yaml
    handler: []
    handlers:
      - {on: craete, fn: a}
      - {on: create, retires: 5}
      - {on: update, fn: b, backoff: 5w, optional: maybe, labels: {a: 1}}
      - {timer: tick, interval: 30w, fn: tock}
      - {timer: tick, daemon: tock}
      - {on: create, fn: a, daemon: tock}
      - {daemon: tick, initial_delay: {fun: x}}
      - just_a_name
",
    );
    insta::assert_snapshot!(report);
}

#[test]
fn an_empty_manifest_is_an_error_with_help() {
    insta::assert_snapshot!(read("# nothing\n").1);
}
