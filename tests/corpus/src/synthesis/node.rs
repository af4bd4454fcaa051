//! One value for one schema node, and the search for a value that satisfies its unions.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Filling, scalar};
use crate::schema::{Additional, Kind, Schema};
use crate::validation::{accepts, identical};

/// How to fill, and whose turn it is among alternatives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    pub(super) filling: Filling,
    pub(super) turn: usize,
}

/// Where in the object the search is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Arrays and maps around this node.
    lists: usize,
    /// Objects around this node.
    depth: usize,
    /// The index within the innermost array or map.
    salt: usize,
}

/// How many shapes a node that allows anything takes in turn.
pub(super) const ANYTHING: usize = 5;

/// The most combinations of branches that are tried for one node.
const MOST_COMBINATIONS: usize = 48;

/// Members that every object of the API has, whatever its schema says.
pub(super) const IMPLIED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The members of a whole object, without those that every object has.
pub(super) fn root(schema: &Schema, recipe: Recipe) -> Option<Map<String, Value>> {
    let mut own = schema.clone();
    for name in IMPLIED {
        own.properties.shift_remove(name);
    }
    own.required
        .retain(|name| !IMPLIED.contains(&name.as_str()));
    own.kind = Some(Kind::Object);
    match value(
        &own,
        recipe,
        Place {
            lists: 0,
            depth: 0,
            salt: 0,
        },
    )? {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

fn value(schema: &Schema, recipe: Recipe, place: Place) -> Option<Value> {
    if recipe.filling == Filling::Null && schema.nullable && accepts(schema, &Value::Null) {
        return Some(Value::Null);
    }
    if schema.unions.is_empty() && schema.nots.is_empty() {
        return plain(schema, recipe, place);
    }
    let combinations = combinations(schema).clamp(1, MOST_COMBINATIONS);
    (0..combinations).find_map(|attempt| {
        let settled = settle(schema, recipe.turn + place.salt + attempt);
        let candidate = plain(&settled, recipe, place)?;
        repair(schema, &settled.required, candidate)
    })
}

fn combinations(schema: &Schema) -> usize {
    schema
        .unions
        .iter()
        .map(|union| union.branches.iter().map(combinations).sum::<usize>())
        .fold(1, usize::saturating_mul)
}

/// Chooses one branch of every union and demands what it demands.
fn settle(schema: &Schema, mut choice: usize) -> Schema {
    let mut settled = schema.clone();
    while let Some(union) = settled.unions.pop() {
        let count = union.branches.len();
        settled.restrict(&union.branches[choice % count]);
        choice /= count;
    }
    settled
}

/// Takes away the members that unions speak of, then gives back each that does no harm.
fn repair(schema: &Schema, required: &[String], candidate: Value) -> Option<Value> {
    if accepts(schema, &candidate) {
        return Some(candidate);
    }
    let Value::Object(mut members) = candidate else {
        return None;
    };
    let mut named = BTreeSet::new();
    mentioned(schema, &mut named);
    let doubtful: Vec<(String, Value)> = named
        .into_iter()
        .filter(|name| !required.contains(name))
        .filter_map(|name| Some((name.clone(), members.shift_remove(&name)?)))
        .collect();
    let mut object = Value::Object(members);
    if !accepts(schema, &object) {
        return None;
    }
    for (name, member) in doubtful {
        let mut fuller = object.clone();
        fuller[&name] = member;
        if accepts(schema, &fuller) {
            object = fuller;
        }
    }
    Some(object)
}

fn mentioned(schema: &Schema, names: &mut BTreeSet<String>) {
    let branches = schema.unions.iter().flat_map(|union| &union.branches);
    for part in branches.chain(&schema.nots) {
        names.extend(part.required.iter().cloned());
        names.extend(part.properties.keys().cloned());
        mentioned(part, names);
    }
}

fn plain(schema: &Schema, recipe: Recipe, place: Place) -> Option<Value> {
    let salt = recipe.turn + place.salt;
    if let Some(values) = &schema.values {
        let fitting: Vec<&Value> = values
            .iter()
            .filter(|value| !value.is_null() && accepts(schema, value))
            .collect();
        let turn = salt.checked_rem(fitting.len())?;
        return fitting.get(turn).map(|value| (*value).clone());
    }
    let hollow = recipe.filling == Filling::Hollow;
    if schema.int_or_string {
        return if salt.is_multiple_of(2) {
            scalar::integer(&as_integer(schema), salt / 2)
        } else {
            scalar::string(schema, salt / 2).map(Value::String)
        };
    }
    match schema.effective_kind() {
        Some(Kind::Object) => object(schema, recipe, place).map(Value::Object),
        Some(Kind::Array) => array(schema, recipe, place),
        Some(Kind::Boolean) => Some(Value::Bool(!hollow && salt.is_multiple_of(2))),
        Some(Kind::String) if hollow => scalar::shortest(schema).map(Value::String),
        Some(Kind::String) => scalar::string(schema, salt).map(Value::String),
        Some(Kind::Integer) => scalar::integer(schema, if hollow { 1 } else { salt }),
        Some(Kind::Number) => scalar::number(schema, salt),
        None if hollow => Some(json!({})),
        None => Some(anything(salt)),
    }
}

/// The integers of an int-or-string.
fn as_integer(schema: &Schema) -> Schema {
    Schema {
        bounds: schema.bounds.clone(),
        ..Schema::default()
    }
}

fn object(schema: &Schema, recipe: Recipe, place: Place) -> Option<Map<String, Value>> {
    let mut members = Map::new();
    let inner = Place {
        depth: place.depth + 1,
        ..place
    };
    let wanted = match recipe.filling {
        Filling::Minimal => recipe.turn == 1 && place.depth == 0,
        Filling::Maximal | Filling::Hollow | Filling::Null => true,
    };
    for (name, property) in &schema.properties {
        let required = schema.required.contains(name);
        if !wanted && !required {
            continue;
        }
        match value(property, recipe, inner) {
            Some(member) => {
                members.insert(name.clone(), member);
            }
            None if required => return None,
            None => {}
        }
    }
    if schema.embedded_resource {
        embed(&mut members);
    }
    undeclared(schema, recipe, inner, &mut members)?;
    fit_count(schema, recipe, inner, members)
}

/// Adds the members that the schema does not declare but demands or allows.
fn undeclared(
    schema: &Schema,
    recipe: Recipe,
    place: Place,
    members: &mut Map<String, Value>,
) -> Option<()> {
    let missing: Vec<&String> = schema
        .required
        .iter()
        .filter(|name| !members.contains_key(*name))
        .collect();
    for name in missing {
        let member = match &schema.additional {
            Some(Additional::Of(of)) => value(of, recipe, place)?,
            _ if schema.keeps_unknown() => json!("undeclared"),
            _ => return None,
        };
        members.insert(name.clone(), member);
    }
    let full = matches!(recipe.filling, Filling::Maximal | Filling::Null);
    if let (Some(Additional::Of(of)), true) = (&schema.additional, full) {
        for salt in 0..several(recipe, place) {
            let within = Place {
                lists: place.lists + 1,
                salt,
                ..place
            };
            if let Some(member) = value(of, recipe, within) {
                members.insert(format!("key-{salt}"), member);
            }
        }
    } else if schema.keeps_unknown() && full {
        members.insert("unknownScalar".to_owned(), json!(7));
        members.insert(
            "unknown-object".to_owned(),
            json!({"a": [1.5, null, {"b": "c"}], "d": {}}),
        );
    }
    Some(())
}

/// Adds or takes away optional members until their number is allowed.
fn fit_count(
    schema: &Schema,
    recipe: Recipe,
    place: Place,
    mut members: Map<String, Value>,
) -> Option<Map<String, Value>> {
    let range = schema.bounds.members;
    if let Some(max) = range.max {
        while members.len() as u64 > max {
            let last = members
                .keys()
                .rfind(|name| !schema.required.contains(*name))?
                .clone();
            members.shift_remove(&last);
        }
    }
    let least = usize::try_from(range.min.unwrap_or(0)).ok()?;
    for (name, property) in &schema.properties {
        if members.len() < least
            && !members.contains_key(name)
            && let Some(member) = value(property, recipe, place)
        {
            members.insert(name.clone(), member);
        }
    }
    for salt in 0..least {
        if members.len() >= least {
            break;
        }
        let member = match &schema.additional {
            Some(Additional::Of(of)) => value(of, recipe, Place { salt, ..place })?,
            _ if schema.keeps_unknown() => json!("undeclared"),
            _ => return None,
        };
        members.insert(format!("least-{salt}"), member);
    }
    Some(members)
}

fn embed(members: &mut Map<String, Value>) {
    members.insert("apiVersion".to_owned(), json!("example.com/v1"));
    members.insert("kind".to_owned(), json!("Embedded"));
    members.insert(
        "metadata".to_owned(),
        json!({"name": "embedded", "labels": {"example.com/label": "value"}}),
    );
}

fn array(schema: &Schema, recipe: Recipe, place: Place) -> Option<Value> {
    let range = schema.bounds.items;
    let wanted = match recipe.filling {
        Filling::Maximal | Filling::Null => several(recipe, place),
        Filling::Minimal | Filling::Hollow => 0,
    };
    let least = usize::try_from(range.min.unwrap_or(0)).ok()?;
    let most = usize::try_from(range.max.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let count = wanted.max(least).min(most);
    let mut items: Vec<Value> = Vec::new();
    for salt in 0..count * 4 {
        if items.len() == count {
            break;
        }
        let within = Place {
            lists: place.lists + 1,
            salt,
            ..place
        };
        let item = match &schema.items {
            // One real item beside the null.
            Some(of) if salt % 2 == 1 && of.nullable => value(
                of,
                Recipe {
                    filling: Filling::Maximal,
                    ..recipe
                },
                within,
            ),
            Some(of) => value(of, recipe, within),
            None => Some(anything(recipe.turn + salt)),
        };
        let Some(item) = item else { break };
        if !items
            .iter()
            .any(|other| identical(&schema.identity, other, &item))
        {
            items.push(item);
        }
    }
    (items.len() >= least).then_some(Value::Array(items))
}

/// How many items or keys: two where that cannot explode, else one.
fn several(recipe: Recipe, place: Place) -> usize {
    if place.lists < 2 && recipe.turn == 0 {
        2
    } else {
        1
    }
}

fn anything(salt: usize) -> Value {
    match salt % ANYTHING {
        0 => json!({"any": [1, "two", {"three": null}], "empty": {}, "list": []}),
        1 => json!("any text"),
        2 => json!([1.5, "two", {"three": 3}]),
        3 => json!(9_007_199_254_740_993_i64),
        _ => json!(true),
    }
}
