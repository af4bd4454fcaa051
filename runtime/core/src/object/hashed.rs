//! A state of which only digests are kept: they show changes, but no values.
//!
//! Objects whose state does not fit into annotations are stored so, and sensitive ones.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use serde_json::{Map, Value};

use crate::object::path::FieldPath;

/// Digests of a state, salted with the UID of the object.
///
/// The salt keeps equal secrets of different objects from having equal digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedState {
    salt: String,
    tree: HashTree,
}

/// Maps stay maps, everything else becomes a digest; a digest may also stand for a whole map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashTree {
    /// The digest of any value.
    Digest(String),
    /// A map whose members are digested one by one.
    Map(BTreeMap<String, HashTree>),
}

/// The digests of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashNode<'a> {
    /// There was no value.
    Absent,
    /// There was a value.
    Tree(&'a HashTree),
    /// The path lies inside of something that was digested as a whole.
    Inside,
}

const DIGEST_BYTES: usize = 8;

// === impl HashedState ===

impl HashedState {
    /// Digests every leaf of a value; maps deeper than `depth` are digested as a whole.
    #[must_use]
    pub fn new(value: &Value, salt: &str, depth: usize) -> Self {
        Self {
            salt: salt.to_owned(),
            tree: HashTree::of(value, salt, depth),
        }
    }

    /// A state of which nothing is known: it differs from every state.
    #[must_use]
    pub fn unknown(salt: &str) -> Self {
        Self {
            salt: salt.to_owned(),
            tree: HashTree::Digest(String::new()),
        }
    }

    /// Reads back what [`HashedState::to_json`] wrote.
    #[must_use]
    pub fn from_json(json: &Value, salt: &str) -> Option<Self> {
        Some(Self {
            salt: salt.to_owned(),
            tree: HashTree::from_json(json)?,
        })
    }

    /// Maps and strings only; the salt is not part of it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.tree.to_json()
    }

    /// The digests.
    #[must_use]
    pub fn tree(&self) -> &HashTree {
        &self.tree
    }

    /// The digests of a path.
    #[must_use]
    pub fn at(&self, path: &FieldPath) -> HashNode<'_> {
        let mut tree = &self.tree;
        for part in path.parts() {
            match tree {
                HashTree::Digest(_) => return HashNode::Inside,
                HashTree::Map(map) => match map.get(part) {
                    Some(child) => tree = child,
                    None => return HashNode::Absent,
                },
            }
        }
        HashNode::Tree(tree)
    }

    /// Whether a tree, usually a part of this state, is the digest of exactly this value.
    #[must_use]
    pub fn describes(&self, tree: &HashTree, value: &Value) -> bool {
        tree.describes(value, &self.salt)
    }

    /// Whether the value at a path is certainly the same as in a full state.
    #[must_use]
    pub fn same_at(&self, path: &FieldPath, state: &Value) -> bool {
        match self.at(path) {
            HashNode::Absent => path.resolve(state).is_none(),
            HashNode::Tree(tree) => path
                .resolve(state)
                .is_some_and(|value| self.describes(tree, value)),
            HashNode::Inside => self.same_above(path, state),
        }
    }

    fn same_above(&self, path: &FieldPath, state: &Value) -> bool {
        let parts = path.parts();
        (0..parts.len())
            .rev()
            .map(|length| FieldPath::new(&parts[..length]))
            .find(|above| !matches!(self.at(above), HashNode::Inside))
            .is_some_and(|above| self.same_at(&above, state))
    }
}

// === impl HashTree ===

impl HashTree {
    fn of(value: &Value, salt: &str, depth: usize) -> Self {
        match value {
            Value::Object(map) if depth > 0 => Self::Map(
                map.iter()
                    .filter(|(_, value)| !value.is_null())
                    .map(|(key, value)| (key.clone(), Self::of(value, salt, depth - 1)))
                    .collect(),
            ),
            _ => Self::Digest(digest(value, salt)),
        }
    }

    fn from_json(json: &Value) -> Option<Self> {
        match json {
            Value::String(digest) => Some(Self::Digest(digest.clone())),
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| Some((key.clone(), Self::from_json(value)?)))
                .collect::<Option<_>>()
                .map(Self::Map),
            _ => None,
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Digest(digest) => Value::String(digest.clone()),
            Self::Map(map) => Value::Object(
                map.iter()
                    .map(|(key, tree)| (key.clone(), tree.to_json()))
                    .collect(),
            ),
        }
    }

    fn describes(&self, value: &Value, salt: &str) -> bool {
        match (self, value) {
            (Self::Digest(known), _) => *known == digest(value, salt),
            (Self::Map(trees), Value::Object(map)) => {
                let present = map.values().filter(|value| !value.is_null()).count();
                present == trees.len()
                    && trees.iter().all(|(key, tree)| {
                        map.get(key)
                            .is_some_and(|value| tree.describes(value, salt))
                    })
            }
            (Self::Map(_), _) => false,
        }
    }
}

/// A digest of a value that does not depend on key order or on explicit nulls.
#[must_use]
pub fn digest(value: &Value, salt: &str) -> String {
    let hash = blake2b_simd::Params::new()
        .hash_length(DIGEST_BYTES)
        .to_state()
        .update(salt.as_bytes())
        .update(&[0])
        .update(crate::json::to_ascii(&canonical(value)).as_bytes())
        .finalize();
    STANDARD_NO_PAD.encode(hash.as_bytes())
}

/// One form for all values that count as equal: sorted keys, no nulls in maps.
#[must_use]
pub fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> =
                map.iter().filter(|(_, value)| !value.is_null()).collect();
            Value::Object(
                sorted
                    .into_iter()
                    .map(|(key, value)| (key.clone(), canonical(value)))
                    .collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hashed_state_matches_only_its_own_value() {
        let value = json!({"spec": {"a": 1, "b": [1, 2], "c": {}}, "data": "x", "n": null});
        for depth in 0..5 {
            let state = HashedState::new(&value, "uid", depth);
            assert!(state.describes(state.tree(), &value), "depth {depth}");
            let other = json!({"spec": {"a": 2, "b": [1, 2], "c": {}}, "data": "x"});
            assert!(!state.describes(state.tree(), &other), "depth {depth}");
            assert_eq!(HashedState::from_json(&state.to_json(), "uid"), Some(state));
        }
    }

    #[test]
    fn a_field_inside_a_digested_map_changes_with_the_map() {
        let state = HashedState::new(&json!({"spec": {"a": {"x": 1}}}), "uid", 2);
        let path = FieldPath::from("spec.a.x");
        assert_eq!(state.at(&path), HashNode::Inside);
        assert!(state.same_at(&path, &json!({"spec": {"a": {"x": 1}, "z": 0}})));
        assert!(!state.same_at(&path, &json!({"spec": {"a": {"x": 1, "y": 2}}})));
        assert!(state.same_at(&FieldPath::from("spec.q"), &json!({"spec": {}})));
    }

    #[test]
    fn digests_differ_between_objects() {
        assert_ne!(
            digest(&json!("password"), "a"),
            digest(&json!("password"), "b")
        );
    }
}
