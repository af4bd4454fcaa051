//! Makes objects from a schema: maximal, minimal, hollow and null-filled ones.
//!
//! The same schema always gives the same objects. Values of an enum, branches of a union and
//! examples of a format alternate from one object to the next, so that all objects together have
//! every alternative.

mod node;
mod scalar;

use std::fmt;

use serde_json::{Map, Value, json};

use crate::definition::{DefinitionVersion, Scope};
use crate::schema::{SchemaNode, UndeclaredMembers};
use crate::validation::{self, InvalidValue};

/// A synthetic object.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// The filling of the object.
    pub filling: Filling,
    /// The turn, which selects among alternatives.
    pub turn: usize,
    /// The object.
    pub object: Value,
    /// The violation, if the object does not satisfy the schema.
    pub violation: Option<InvalidValue>,
}

/// A way to fill an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Filling {
    /// Every member, several items, unknown members wherever they are allowed.
    Maximal,
    /// Required members only.
    Minimal,
    /// Every member, each as empty as possible.
    Hollow,
    /// As maximal, but `null` wherever it is allowed.
    Null,
}

/// The most objects of one filling; no enum of the corpus has more values.
const MOST_TURNS: usize = 80;

/// Makes all objects for a version of a CustomResourceDefinition.
#[must_use]
pub fn objects(version: &DefinitionVersion) -> Vec<Synthetic> {
    let turns = breadth(&version.schema).clamp(4, MOST_TURNS);
    let mut variants: Vec<(Filling, usize)> =
        (0..turns).map(|turn| (Filling::Maximal, turn)).collect();
    variants.extend([
        (Filling::Minimal, 0),
        (Filling::Minimal, 1),
        (Filling::Hollow, 0),
    ]);
    if allows_null(&version.schema) {
        variants.extend([(Filling::Null, 0), (Filling::Null, 1)]);
    }
    variants
        .into_iter()
        .map(|(filling, turn)| object(version, filling, turn))
        .collect()
}

fn object(version: &DefinitionVersion, filling: Filling, turn: usize) -> Synthetic {
    let schema = &version.schema;
    let members = node::root(schema, node::ObjectVariant { filling, turn });
    let unsatisfied = members.is_none();
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), json!(version.api_version()));
    object.insert("kind".to_owned(), json!(version.kind));
    object.insert("metadata".to_owned(), metadata(version, filling));
    object.extend(members.unwrap_or_default());
    let object = Value::Object(object);
    let violation = validation::check(schema, &object).err().or_else(|| {
        unsatisfied.then(|| InvalidValue {
            path: String::new(),
            keyword: "unsatisfiable",
        })
    });
    Synthetic {
        filling,
        turn,
        object,
        violation,
    }
}

fn metadata(version: &DefinitionVersion, filling: Filling) -> Value {
    let name = version
        .schema
        .properties
        .get("metadata")
        .and_then(|metadata| metadata.properties.get("name"))
        .and_then(|name| match &name.values {
            Some(values) => values.first().and_then(Value::as_str).map(str::to_owned),
            None if name.patterns.is_empty() => None,
            None => scalar::string(name, 3),
        })
        .unwrap_or_else(|| "sample".to_owned());
    let mut metadata = Map::from_iter([("name".to_owned(), json!(name))]);
    if version.scope == Scope::Namespaced {
        metadata.insert("namespace".to_owned(), json!("default"));
    }
    if filling == Filling::Maximal {
        metadata.insert("labels".to_owned(), json!({"example.com/label": "value"}));
        metadata.insert(
            "annotations".to_owned(),
            json!({"example.com/note": "any text\n"}),
        );
    }
    Value::Object(metadata)
}

/// The largest number of alternatives that one node has.
fn breadth(schema: &SchemaNode) -> usize {
    let own = [
        schema.values.as_ref().map_or(0, Vec::len),
        schema
            .unions
            .iter()
            .map(|union| union.branches.len())
            .product(),
        if schema.effective_kind().is_none() && !schema.int_or_string {
            node::ANYTHING
        } else {
            0
        },
    ];
    children(schema).map(breadth).chain(own).max().unwrap_or(0)
}

fn allows_null(schema: &SchemaNode) -> bool {
    schema.nullable || children(schema).any(allows_null)
}

fn children(schema: &SchemaNode) -> impl Iterator<Item = &SchemaNode> {
    let of_map = match &schema.additional {
        Some(UndeclaredMembers::Of(of)) => Some(&**of),
        _ => None,
    };
    schema
        .properties
        .values()
        .chain(schema.items.as_deref())
        .chain(of_map)
}

// === impl Filling ===

impl fmt::Display for Filling {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Maximal => "maximal",
            Self::Minimal => "minimal",
            Self::Hollow => "hollow",
            Self::Null => "null",
        })
    }
}

#[cfg(test)]
mod tests;
