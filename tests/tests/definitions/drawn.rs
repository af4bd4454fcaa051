//! Drawn schemas, in which the rules meet in ways that no table lists.

use fastrand::Rng;
use kopf_tests::{Sandbox, TestResult};
use serde_json::{Map, Value, json};

use crate::judges::{difference, of_generator};
use crate::schemas::with_root;

/// The number of drawn schemas.
const SCHEMAS: u64 = 1500;

const TYPES: &[&str] = &[
    "array", "boolean", "integer", "number", "object", "object", "object", "string",
];

/// Keywords that are often wrong in their place, with values that are right in some places.
fn extra(random: &mut Rng, depth: usize) -> (&'static str, Value) {
    match random.usize(0..26) {
        0 => ("nullable", json!(random.bool())),
        1 => ("default", value(random, 2)),
        2 => ("x-kubernetes-preserve-unknown-fields", json!(true)),
        3 => ("x-kubernetes-int-or-string", json!(random.bool())),
        4 => ("x-kubernetes-embedded-resource", json!(true)),
        5 => (
            "x-kubernetes-list-type",
            json!(pick(random, &["atomic", "set", "map"])),
        ),
        6 => ("x-kubernetes-list-map-keys", json!([name(random)])),
        7 => (
            "x-kubernetes-map-type",
            json!(pick(random, &["atomic", "granular"])),
        ),
        8 => ("additionalProperties", json!(random.bool())),
        9 => ("additionalProperties", schema(random, depth)),
        10 => ("required", json!([name(random)])),
        11 => ("enum", json!([value(random, 0), value(random, 0)])),
        12 => ("minLength", json!(random.u8(0..3))),
        13 => ("maxLength", json!(random.u8(0..3))),
        14 => ("minimum", json!(random.u8(0..3))),
        15 => ("maxItems", json!(random.u8(0..3))),
        16 => ("minProperties", json!(random.u8(0..3))),
        17 => ("description", json!(pick(random, &["", "text"]))),
        18 => ("title", json!("t")),
        19 => ("not", branch(random, depth)),
        20 => ("allOf", json!([branch(random, depth)])),
        21 => (
            "anyOf",
            json!([branch(random, depth), branch(random, depth)]),
        ),
        22 => ("oneOf", json!([branch(random, depth)])),
        23 => ("anyOf", json!([{"type": "integer"}, {"type": "string"}])),
        24 => ("uniqueItems", json!(random.u8(0..8) == 0)),
        _ => ("x-kubernetes-validations", json!([{"rule": "true"}])),
    }
}

fn pick<'t>(random: &mut Rng, texts: &[&'t str]) -> &'t str {
    random.choice(texts).copied().unwrap_or_default()
}

fn name(random: &mut Rng) -> &'static str {
    pick(random, &["a", "b", "c", "kind", "metadata", "name"])
}

fn value(random: &mut Rng, depth: usize) -> Value {
    match random.usize(0..if depth == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => json!(random.bool()),
        2 => json!(random.u8(0..4)),
        3 => json!(1.5),
        4 => json!(pick(random, &["", "a", "text"])),
        5 => json!([value(random, depth - 1)]),
        _ => json!({name(random): value(random, depth - 1)}),
    }
}

/// A schema that is valid more often than not.
fn schema(random: &mut Rng, depth: usize) -> Value {
    let mut schema = Map::new();
    let kind = match depth {
        0 => pick(random, &["string", "integer", "boolean"]),
        _ => pick(random, TYPES),
    };
    if random.u8(0..20) > 0 {
        schema.insert("type".to_owned(), json!(kind));
    }
    if depth > 0 && kind == "array" && random.u8(0..10) > 0 {
        schema.insert("items".to_owned(), self::schema(random, depth - 1));
    }
    if depth > 0 && kind == "object" && random.u8(0..4) > 0 {
        let mut properties = Map::new();
        for _ in 0..random.usize(1..4) {
            properties.insert(name(random).to_owned(), self::schema(random, depth - 1));
        }
        schema.insert("properties".to_owned(), properties.into());
    }
    for _ in 0..random.usize(0..3) {
        let (keyword, value) = extra(random, depth.saturating_sub(1));
        if random.bool() {
            schema.insert(keyword.to_owned(), value);
        }
    }
    schema.into()
}

fn branch(random: &mut Rng, depth: usize) -> Value {
    let mut branch = Map::new();
    for _ in 0..random.usize(0..3) {
        let keyword = ["minLength", "pattern", "required", "enum"];
        let value = [json!(1), json!("a"), json!(["a"]), json!(["a", 1])];
        let place = random.usize(0..keyword.len());
        branch.insert(keyword[place].to_owned(), value[place].clone());
    }
    if depth > 0 && random.bool() {
        let inner = self::branch(random, depth - 1);
        branch.insert("properties".to_owned(), json!({name(random): inner}));
    }
    if random.u8(0..10) == 0 {
        let (keyword, value) = extra(random, 0);
        branch.insert(keyword.to_owned(), value);
    }
    branch.into()
}

#[tokio::test]
async fn drawn_schemas_are_judged_as_by_the_api_server() -> TestResult {
    let sandbox = Sandbox::open("drawn-schemas").await?;
    let mut found = Vec::new();
    let mut rejected = 0;
    for seed in 0..SCHEMAS {
        let mut random = Rng::with_seed(seed);
        let properties = json!({"spec": schema(&mut random, 3)});
        let mut root = json!({"type": "object", "properties": properties});
        if random.u8(0..5) == 0 {
            root = schema(&mut random, 3);
        }
        let mut definition = with_root(&root);
        if random.u8(0..5) == 0 {
            definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
        }
        rejected += u64::from(of_generator(&definition.to_string()).rejects);
        let what = format!("seed {seed}, {}", definition["spec"]["versions"][0]);
        found.extend(difference(&sandbox.client(), &what, &definition).await?);
    }
    assert!(found.is_empty(), "{}: {}", found.len(), found.join("\n"));
    let accepted = SCHEMAS - rejected;
    assert!(
        accepted > SCHEMAS / 5 && rejected > SCHEMAS / 5,
        "{accepted}"
    );
    Ok(())
}
