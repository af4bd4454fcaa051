//! Random requests, by seed.

use std::env;

use fastrand::Rng;
use kopf_simulation::server::{KindId, ListOptions, ObjectForm, Verb, WatchOptions};
use kopf_tests::{TestFailure, TestResult};
use serde_json::{Value, json};

use super::pair::Pair;
use super::requests::{
    delete, delete_if, get, json_patch, json_patch_status, list, list_by_fields, list_by_labels,
    merge, merge_status, object, page, put, put_status,
};

/// The sequences of the test command.
const CASES: u64 = 4;

const REQUESTS: usize = 150;

const FINALIZERS: &[&str] = &["kopf.test/a", "kopf.test/b", "kopf.test/c"];

#[tokio::test]
async fn random_requests_are_answered_alike() -> TestResult {
    let cases = number("KOPF_SIMULATION_CASES").unwrap_or(CASES);
    let first = number("KOPF_SIMULATION_SEED").unwrap_or(1);
    let mut pair = Pair::open("sim-random").await?;
    for seed in first..first + cases {
        play(&mut pair, seed).await?;
        if pair.differs_often() {
            break;
        }
    }
    pair.finish()
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

/// Plays the requests of a seed, and compares the watch events of all of them.
async fn play(pair: &mut Pair, seed: u64) -> TestResult {
    let mut rng = Rng::with_seed(seed);
    let kinds = [
        pair.kinds.widgets,
        pair.kinds.gadgets,
        pair.kinds.regions,
        pair.kinds.leases,
        pair.kinds.config_maps,
    ];
    let start = format!("start-{seed}");
    let marker = pair.request(pair.kinds.gadgets, create(pair, pair.kinds.gadgets, &start));
    pair.send(&format!("seed {seed}"), &marker).await?;
    for number in 0..REQUESTS {
        let kind = one_of(&mut rng, &kinds);
        let verb = random_verb(pair, kind, &mut rng, seed);
        let request = pair.request(kind, verb);
        let context = format!("seed {seed}, request {number}");
        pair.send(&context, &request).await?;
        if pair.differs_often() {
            return Ok(());
        }
    }
    for kind in kinds {
        let last = format!("zz-{seed}");
        let request = pair.request(kind, create(pair, kind, &last));
        pair.send(&format!("seed {seed}"), &request).await?;
        for labels in [None, Some("app=one"), Some("app!=two")] {
            let options = WatchOptions {
                resource_version: Some(format!("$first-version/{start}")),
                labels: labels.map(str::to_owned),
                form: if rng.bool() {
                    ObjectForm::Whole
                } else {
                    ObjectForm::Metadata
                },
                ..WatchOptions::default()
            };
            pair.compare_watch(&format!("seed {seed}"), kind, &options, Some(&last))
                .await?;
        }
    }
    clear(pair, &kinds, seed).await
}

/// Deletes everything, so that sequences do not depend on each other.
async fn clear(pair: &mut Pair, kinds: &[KindId], seed: u64) -> Result<(), TestFailure> {
    for kind in kinds.iter().copied() {
        let request = pair.request(kind, list_by_labels("app"));
        let listed = pair.send(&format!("clear {seed}"), &request).await?;
        for item in listed["items"].as_array().into_iter().flatten() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            for verb in [
                merge(name, json!({"metadata": {"finalizers": null}})),
                delete(name),
            ] {
                let request = pair.request(kind, verb);
                pair.send(&format!("clear {seed}"), &request).await?;
            }
        }
    }
    Ok(())
}

/// A labelled object without content: it matches the selectors of the watches.
fn create(pair: &Pair, kind: KindId, name: &str) -> Verb {
    let metadata = json!({"metadata": {"labels": {"app": "one"}}});
    Verb::Create {
        body: object(pair, kind, name, metadata),
    }
}

fn random_verb(pair: &Pair, kind: KindId, rng: &mut Rng, seed: u64) -> Verb {
    let name = format!("{}-{seed}", one_of(rng, &["a", "b", "c"]));
    let version = one_of(rng, &["$version", "$version", "$first-version"]);
    let version = format!("{version}/{name}");
    let uid = format!("{}/{name}", one_of(rng, &["$uid", "$uid", "$first-uid"]));
    match rng.u32(..100) {
        0..20 => {
            let mut body = content(pair, kind, rng);
            body["metadata"]["labels"]["app"] = json!(app(rng));
            Verb::Create {
                body: object(pair, kind, &name, body),
            }
        }
        20..26 => get(&name),
        26..50 => {
            let mut patch = content(pair, kind, rng);
            if rng.u32(..4) == 0 {
                patch["metadata"]["resourceVersion"] = json!(version);
            }
            if rng.u32(..4) == 0 {
                patch["metadata"]["uid"] = json!(uid);
            }
            merge(&name, patch)
        }
        50..58 => {
            let mut patch = json!({"status": status(rng)});
            if rng.bool() {
                patch["metadata"] = json!({"resourceVersion": version, "uid": uid});
            }
            merge_status(&name, patch)
        }
        58..70 => json_patch(&name, operations(rng, &version, &uid)),
        70..73 => {
            let operation = json!({"op": "add", "path": "/status", "value": status(rng)});
            json_patch_status(&name, json!([operation]))
        }
        73..79 => {
            let mut body = content(pair, kind, rng);
            body["metadata"]["resourceVersion"] = json!(version);
            body["metadata"]["labels"]["app"] = json!(app(rng));
            put(&name, object(pair, kind, &name, body))
        }
        79..81 => {
            let body = json!({"metadata": {"resourceVersion": version}, "status": status(rng)});
            put_status(&name, object(pair, kind, &name, body))
        }
        81..90 => delete(&name),
        90..92 => delete_if(&name, Some(&uid), rng.bool().then_some(&*version)),
        _ => random_list(pair, kind, rng, &name),
    }
}

fn random_list(pair: &Pair, kind: KindId, rng: &mut Rng, name: &str) -> Verb {
    // Controllers create objects of this kind.
    if kind == pair.kinds.config_maps {
        return list_by_labels("app");
    }
    match rng.u32(..6) {
        0 => list(),
        1 => list_by_labels(one_of(
            rng,
            &["app=one", "app!=one", "app in (one,two)", "!app"],
        )),
        2 => list_by_fields(&format!("metadata.name={name}")),
        3 => page(2, None),
        4 => page(rng.u32(1..4), Some("$token")),
        _ => Verb::List(ListOptions {
            form: ObjectForm::Metadata,
            ..ListOptions::default()
        }),
    }
}

fn one_of<T: Clone>(rng: &mut Rng, items: &[T]) -> T {
    items[rng.usize(..items.len())].clone()
}

fn app(rng: &mut Rng) -> &'static str {
    one_of(rng, &["one", "two"])
}

fn status(rng: &mut Rng) -> Value {
    match rng.u32(..6) {
        0 => Value::Null,
        1 => json!({"phase": 1}),
        2 => json!({"phase": null, "list": [1, null, {"x": null}]}),
        _ => json!({"phase": one_of(rng, &["Ready", "Failed"])}),
    }
}

/// Some fields of an object: as a body they are its content, as a merge patch its changes.
fn content(pair: &Pair, kind: KindId, rng: &mut Rng) -> Value {
    let mut content = json!({"metadata": {"labels": {"app": app(rng)}}});
    if rng.u32(..3) == 0 {
        let annotation = one_of(rng, &[json!("x"), json!("y"), Value::Null]);
        content["metadata"]["annotations"] = json!({"kopf.test/note": annotation});
    }
    if rng.u32(..3) == 0 {
        let count = rng.usize(..=FINALIZERS.len());
        content["metadata"]["finalizers"] = json!(&FINALIZERS[..count]);
    }
    if rng.u32(..3) > 0 {
        let (field, value) = if kind == pair.kinds.leases {
            ("spec", lease_spec(rng))
        } else if kind == pair.kinds.config_maps {
            ("data", config_data(rng))
        } else {
            ("spec", custom_spec(rng))
        };
        content[field] = value;
    }
    if rng.u32(..8) == 0 {
        content["status"] = status(rng);
    }
    content
}

fn lease_spec(rng: &mut Rng) -> Value {
    let holder = one_of(rng, &[json!("one"), json!("two"), Value::Null]);
    let seconds = one_of(rng, &[json!(15), json!(1), json!(0), json!("x")]);
    match rng.u32(..3) {
        0 => json!({"holderIdentity": holder}),
        1 => json!({"leaseDurationSeconds": seconds}),
        _ => json!({"holderIdentity": holder, "renewTime": "2026-01-01T00:00:00.000001Z"}),
    }
}

fn config_data(rng: &mut Rng) -> Value {
    match rng.u32(..5) {
        0 => Value::Null,
        1 => json!({"key": null}),
        2 => json!({"key": 1}),
        _ => json!({"key": one_of(rng, &["x", "y"])}),
    }
}

fn custom_spec(rng: &mut Rng) -> Value {
    match rng.u32(..10) {
        0 => json!({"size": one_of(rng, &[json!(3), json!(11), json!("x"), Value::Null])}),
        1 => json!({"color": one_of(rng, &["red", "blue"]), "size": 1}),
        2 => json!({"list": [{"key": "a", "n": rng.u32(..2), "more": 1}, {"key": "b"}]}),
        3 => json!({"list": [{"n": null}]}),
        4 => json!({"any": {"a": {"b": rng.u32(..2), "c": null}, "l": [1, null, {"d": null}]}}),
        5 => json!({"any": {"a": null}, "maybe": null, "filled": null}),
        6 => json!({"unknown": rng.u32(..2), "maybe": "x"}),
        7 => json!({"texts": {"k": one_of(rng, &["x", "y"]), "n": null}}),
        8 => Value::Null,
        _ => json!({"size": rng.u32(..3)}),
    }
}

fn operations(rng: &mut Rng, version: &str, uid: &str) -> Value {
    let finalizer = one_of(rng, FINALIZERS);
    let mut operations = Vec::new();
    if rng.bool() {
        let test = json!({"op": "test", "path": "/metadata/resourceVersion", "value": version});
        operations.push(test);
    }
    if rng.u32(..3) == 0 {
        operations.push(json!({"op": "test", "path": "/metadata/uid", "value": uid}));
    }
    operations.push(match rng.u32(..9) {
        0 => json!({"op": "add", "path": "/metadata/finalizers", "value": [finalizer]}),
        1 => json!({"op": "add", "path": "/metadata/finalizers/-", "value": finalizer}),
        2 => json!({"op": "remove", "path": "/metadata/finalizers/0"}),
        3 => json!({"op": "remove", "path": "/metadata/finalizers"}),
        4 => json!({"op": "replace", "path": "/metadata/finalizers", "value": []}),
        5 => json!({"op": "replace", "path": "/spec/size", "value": rng.u32(..3)}),
        6 => json!({"op": "add", "path": "/spec", "value": {"size": rng.u32(..3)}}),
        7 => json!({"op": "test", "path": "/metadata/finalizers", "value": null}),
        _ => {
            json!({"op": "add", "path": "/metadata/annotations", "value": {"kopf.test/note": "z"}})
        }
    });
    Value::Array(operations)
}
