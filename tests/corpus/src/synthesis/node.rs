//! Makes one value for one schema node, and searches for a value that satisfies its unions.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Filling, scalar};
use crate::schema::{NodeType, SchemaNode, UndeclaredMembers};
use crate::validation::{accepts, identical};

/// The filling, and the turn among alternatives.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectVariant {
    pub(super) filling: Filling,
    pub(super) turn: usize,
}

/// The position of a node in the object.
#[derive(Clone, Copy, Debug)]
struct NodePosition {
    /// Arrays and maps around this node.
    lists: usize,
    /// Objects around this node.
    depth: usize,
    /// The index within the innermost array or map.
    salt: usize,
}

/// The number of values for a node that allows anything.
pub(super) const ANYTHING: usize = 5;

/// The most combinations of branches to try for one node.
const MOST_COMBINATIONS: usize = 48;

/// Members that every object of the API has, whatever its schema says.
pub(super) const IMPLIED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The members of a whole object, without those that every object has.
pub(super) fn root(schema: &SchemaNode, variant: ObjectVariant) -> Option<Map<String, Value>> {
    let mut own = schema.clone();
    for name in IMPLIED {
        own.properties.shift_remove(name);
    }
    own.required
        .retain(|name| !IMPLIED.contains(&name.as_str()));
    own.kind = Some(NodeType::Object);
    match value(
        &own,
        variant,
        NodePosition {
            lists: 0,
            depth: 0,
            salt: 0,
        },
    )? {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

fn value(schema: &SchemaNode, variant: ObjectVariant, position: NodePosition) -> Option<Value> {
    if variant.filling == Filling::Null && schema.nullable && accepts(schema, &Value::Null) {
        return Some(Value::Null);
    }
    if schema.unions.is_empty() && schema.nots.is_empty() {
        return plain(schema, variant, position);
    }
    let combinations = combinations(schema).clamp(1, MOST_COMBINATIONS);
    (0..combinations).find_map(|attempt| {
        let settled = choose_branches(schema, variant.turn + position.salt + attempt);
        let candidate = plain(&settled, variant, position)?;
        repair(schema, &settled.required, candidate)
    })
}

fn combinations(schema: &SchemaNode) -> usize {
    schema
        .unions
        .iter()
        .map(|union| union.branches.iter().map(combinations).sum::<usize>())
        .fold(1, usize::saturating_mul)
}

/// Chooses one branch of every union and adds its restrictions.
fn choose_branches(schema: &SchemaNode, mut choice: usize) -> SchemaNode {
    let mut settled = schema.clone();
    while let Some(union) = settled.unions.pop() {
        let count = union.branches.len();
        settled.restrict(&union.branches[choice % count]);
        choice /= count;
    }
    settled
}

/// Removes the members that unions mention, then adds each again that violates nothing.
fn repair(schema: &SchemaNode, required: &[String], candidate: Value) -> Option<Value> {
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

fn mentioned(schema: &SchemaNode, names: &mut BTreeSet<String>) {
    let branches = schema.unions.iter().flat_map(|union| &union.branches);
    for part in branches.chain(&schema.nots) {
        names.extend(part.required.iter().cloned());
        names.extend(part.properties.keys().cloned());
        mentioned(part, names);
    }
}

fn plain(schema: &SchemaNode, variant: ObjectVariant, position: NodePosition) -> Option<Value> {
    let salt = variant.turn + position.salt;
    if let Some(values) = &schema.values {
        let fitting: Vec<&Value> = values
            .iter()
            .filter(|value| !value.is_null() && accepts(schema, value))
            .collect();
        let turn = salt.checked_rem(fitting.len())?;
        return fitting.get(turn).map(|value| (*value).clone());
    }
    let hollow = variant.filling == Filling::Hollow;
    if schema.int_or_string {
        return if salt.is_multiple_of(2) {
            scalar::integer(&as_integer(schema), salt / 2)
        } else {
            scalar::string(schema, salt / 2).map(Value::String)
        };
    }
    match schema.effective_kind() {
        Some(NodeType::Object) => object(schema, variant, position).map(Value::Object),
        Some(NodeType::Array) => array(schema, variant, position),
        Some(NodeType::Boolean) => Some(Value::Bool(!hollow && salt.is_multiple_of(2))),
        Some(NodeType::String) if hollow => scalar::shortest(schema).map(Value::String),
        Some(NodeType::String) => scalar::string(schema, salt).map(Value::String),
        Some(NodeType::Integer) => scalar::integer(schema, if hollow { 1 } else { salt }),
        Some(NodeType::Number) => scalar::number(schema, salt),
        None if hollow => Some(json!({})),
        None => Some(anything(salt)),
    }
}

/// The integers of an int-or-string.
fn as_integer(schema: &SchemaNode) -> SchemaNode {
    SchemaNode {
        bounds: schema.bounds.clone(),
        ..SchemaNode::default()
    }
}

fn object(
    schema: &SchemaNode,
    variant: ObjectVariant,
    position: NodePosition,
) -> Option<Map<String, Value>> {
    let mut members = Map::new();
    let inner = NodePosition {
        depth: position.depth + 1,
        ..position
    };
    let wanted = match variant.filling {
        Filling::Minimal => variant.turn == 1 && position.depth == 0,
        Filling::Maximal | Filling::Hollow | Filling::Null => true,
    };
    for (name, property) in &schema.properties {
        let required = schema.required.contains(name);
        if !wanted && !required {
            continue;
        }
        match value(property, variant, inner) {
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
    undeclared(schema, variant, inner, &mut members)?;
    fit_count(schema, variant, inner, members)
}

/// Adds members that the schema does not declare but requires or allows.
fn undeclared(
    schema: &SchemaNode,
    variant: ObjectVariant,
    position: NodePosition,
    members: &mut Map<String, Value>,
) -> Option<()> {
    let missing: Vec<&String> = schema
        .required
        .iter()
        .filter(|name| !members.contains_key(*name))
        .collect();
    for name in missing {
        let member = match &schema.additional {
            Some(UndeclaredMembers::Of(of)) => value(of, variant, position)?,
            _ if schema.keeps_unknown() => json!("undeclared"),
            _ => return None,
        };
        members.insert(name.clone(), member);
    }
    let full = matches!(variant.filling, Filling::Maximal | Filling::Null);
    if let (Some(UndeclaredMembers::Of(of)), true) = (&schema.additional, full) {
        for salt in 0..several(variant, position) {
            let within = NodePosition {
                lists: position.lists + 1,
                salt,
                ..position
            };
            if let Some(member) = value(of, variant, within) {
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

/// Adds or removes optional members until their number is allowed.
fn fit_count(
    schema: &SchemaNode,
    variant: ObjectVariant,
    position: NodePosition,
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
            && let Some(member) = value(property, variant, position)
        {
            members.insert(name.clone(), member);
        }
    }
    for salt in 0..least {
        if members.len() >= least {
            break;
        }
        let member = match &schema.additional {
            Some(UndeclaredMembers::Of(of)) => {
                value(of, variant, NodePosition { salt, ..position })?
            }
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

fn array(schema: &SchemaNode, variant: ObjectVariant, position: NodePosition) -> Option<Value> {
    let range = schema.bounds.items;
    let wanted = match variant.filling {
        Filling::Maximal | Filling::Null => several(variant, position),
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
        let within = NodePosition {
            lists: position.lists + 1,
            salt,
            ..position
        };
        let item = match &schema.items {
            // One real item beside the null.
            Some(of) if salt % 2 == 1 && of.nullable => value(
                of,
                ObjectVariant {
                    filling: Filling::Maximal,
                    ..variant
                },
                within,
            ),
            Some(of) => value(of, variant, within),
            None => Some(anything(variant.turn + salt)),
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

/// The number of items or keys: two where the object stays small, else one.
fn several(variant: ObjectVariant, position: NodePosition) -> usize {
    if position.lists < 2 && variant.turn == 0 {
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
