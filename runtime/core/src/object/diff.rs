//! The differences between two states of an object, field by field; null equals absent.

use std::fmt;

use serde_json::{Map, Value};

use crate::object::{
    essence::Essence,
    hashed::{HashNode, HashTree, HashedState},
    member,
    path::FieldPath,
};

/// The last handled state, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Baseline {
    /// No cycle of the object has ended.
    Absent,
    /// The state in full.
    Known(Essence),
    /// Digests: they show changes, but not the old values.
    Hashed(HashedState),
}

/// The old value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum OldValue {
    /// Nothing.
    Absent,
    /// This value.
    Known(Value),
    /// A value that differs from the new one, but was not kept.
    Unknown,
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffOp {
    /// The field appeared.
    Add,
    /// The field has another value.
    Change,
    /// The field disappeared.
    Remove,
}

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffItem {
    /// The kind of the difference.
    pub op: DiffOp,
    /// The field; empty for the object (or the reduced field) as a whole.
    pub path: FieldPath,
    /// The value before.
    pub old: OldValue,
    /// The value after, none if it was removed.
    pub new: Option<Value>,
}

/// All differences: added keys, then removed ones, then changed ones, in document order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff(Vec<DiffItem>);

// === impl Baseline ===

impl Baseline {
    /// Whether there is no last handled state.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The value of a field in this state; of digests, only a value that `now` still has is known.
    #[must_use]
    pub fn value_at(&self, path: &FieldPath, now: &Essence) -> OldValue {
        match self {
            Self::Absent => OldValue::Absent,
            Self::Known(essence) => path
                .resolve(essence.as_value())
                .cloned()
                .map_or(OldValue::Absent, OldValue::Known),
            Self::Hashed(state) if state.same_at(path, now.as_value()) => path
                .resolve(now.as_value())
                .cloned()
                .map_or(OldValue::Absent, OldValue::Known),
            Self::Hashed(state) => match state.at(path) {
                HashNode::Absent => OldValue::Absent,
                HashNode::Tree(_) | HashNode::Inside => OldValue::Unknown,
            },
        }
    }

    /// Whether a field certainly has the same value in `now` as in this state.
    #[must_use]
    pub fn same_at(&self, path: &FieldPath, now: &Essence) -> bool {
        match self {
            Self::Absent => path.resolve(now.as_value()).is_none(),
            Self::Known(essence) => same(
                path.resolve(essence.as_value()),
                path.resolve(now.as_value()),
            ),
            Self::Hashed(state) => state.same_at(path, now.as_value()),
        }
    }

    /// All differences of `now` from this state.
    #[must_use]
    pub fn diff(&self, now: &Essence) -> Diff {
        self.diff_at(&FieldPath::root(), now)
    }

    /// The differences of one field, with paths relative to it.
    #[must_use]
    pub fn diff_at(&self, path: &FieldPath, now: &Essence) -> Diff {
        let new = path.resolve(now.as_value());
        match self {
            Self::Absent => diff(None, new),
            Self::Known(essence) => diff(path.resolve(essence.as_value()), new),
            Self::Hashed(state) => diff_hashed_at(state, path, now.as_value()),
        }
    }
}

// === impl OldValue ===

impl OldValue {
    /// The value if it is known and there was one.
    #[must_use]
    pub fn known(&self) -> Option<&Value> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unknown => None,
        }
    }
}

// === impl DiffItem ===

impl fmt::Display for DiffItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = match self.op {
            DiffOp::Add => "add",
            DiffOp::Change => "change",
            DiffOp::Remove => "remove",
        };
        write!(f, "{op} {}:", self.path)?;
        match &self.old {
            OldValue::Absent => {}
            OldValue::Known(old) => write!(f, " {old}")?,
            OldValue::Unknown => f.write_str(" (unknown)")?,
        }
        match &self.new {
            Some(new) => write!(f, " -> {new}"),
            None => Ok(()),
        }
    }
}

// === impl Diff ===

impl Diff {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The differences in order.
    pub fn iter(&self) -> std::slice::Iter<'_, DiffItem> {
        self.0.iter()
    }

    /// Applies the differences to the old state; the result is the new state.
    #[must_use]
    pub fn apply(&self, old: &Value) -> Value {
        let mut state = old.clone();
        for item in &self.0 {
            match (&item.new, item.path.parts()) {
                (Some(new), _) => item.path.ensure(&mut state, new.clone()),
                (None, []) => state = Value::Null,
                (None, [parents @ .., last]) => {
                    let parent = parents
                        .iter()
                        .try_fold(&mut state, |value, part| value.get_mut(part))
                        .and_then(Value::as_object_mut);
                    if let Some(map) = parent {
                        map.shift_remove(last);
                    }
                }
            }
        }
        state
    }

    /// The differences as a merge patch for a copy of the object: removed fields are null, and
    /// fields that only the copy has stay.
    #[must_use]
    pub fn merge_patch(&self) -> Value {
        let mut patch = Value::Object(Map::new());
        for item in &self.0 {
            match (&item.new, &item.old, item.path.parts()) {
                (None, OldValue::Known(Value::Object(old)), []) => {
                    patch = old.keys().map(|key| (key.clone(), Value::Null)).collect();
                }
                (new, _, _) => item
                    .path
                    .ensure(&mut patch, new.clone().unwrap_or_default()),
            }
        }
        patch
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, item) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "; " };
            write!(f, "{separator}{item}")?;
        }
        Ok(())
    }
}

impl<'a> IntoIterator for &'a Diff {
    type Item = &'a DiffItem;
    type IntoIter = std::slice::Iter<'a, DiffItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Diff {
    type Item = DiffItem;
    type IntoIter = std::vec::IntoIter<DiffItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Whether two values are equal for the diff: null equals absent, in nested maps too.
#[must_use]
pub fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (present(a), present(b)) {
        (None, None) => true,
        (Some(Value::Object(a)), Some(Value::Object(b))) => same_members(a, b),
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

fn same_members(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    // States of one object mostly have the same members in the same order.
    let mut next = b.iter();
    let mut common = 0;
    for (key, value) in a {
        let other = match next.next() {
            Some((other, value)) if other == key => Some(value),
            _ => member(b, key),
        };
        common += usize::from(other.is_some());
        if !same(Some(value), other) {
            return false;
        }
    }
    let mut others = b.iter();
    common == b.len() || others.all(|(key, value)| value.is_null() || member(a, key).is_some())
}

/// The differences between two values.
#[must_use]
pub fn diff(old: Option<&Value>, new: Option<&Value>) -> Diff {
    let mut items = Vec::new();
    diff_into(&mut items, &FieldPath::root(), old, new);
    Diff(items)
}

fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

fn diff_into(
    items: &mut Vec<DiffItem>,
    path: &FieldPath,
    old: Option<&Value>,
    new: Option<&Value>,
) {
    let (op, old, new) = match (present(old), present(new)) {
        (None, None) => return,
        (None, Some(new)) => (DiffOp::Add, OldValue::Absent, Some(new)),
        (Some(old), None) => (DiffOp::Remove, OldValue::Known(old.clone()), None),
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let known = |key: &String| present(member(old, key)).is_some();
            for (key, value) in in_diff_order(new, old.keys(), known) {
                diff_into(items, &path.child(key), member(old, key), value);
            }
            return;
        }
        (Some(old), Some(new)) if old == new => return,
        (Some(old), Some(new)) => (DiffOp::Change, OldValue::Known(old.clone()), Some(new)),
    };
    items.push(DiffItem {
        op,
        path: path.clone(),
        old,
        new: new.cloned(),
    });
}

/// Keys in Kopf's order: added, removed, common.
fn in_diff_order<'a>(
    new: &'a Map<String, Value>,
    old_keys: impl Iterator<Item = &'a String>,
    known: impl Fn(&String) -> bool,
) -> Vec<(&'a String, Option<&'a Value>)> {
    let (common, added): (Vec<_>, Vec<_>) = new
        .iter()
        .map(|(key, value)| (key, Some(value)))
        .filter(|(_, value)| present(*value).is_some())
        .partition(|(key, _)| known(key));
    let removed = old_keys
        .filter(|key| present(member(new, key)).is_none())
        .map(|key| (key, None));
    added.into_iter().chain(removed).chain(common).collect()
}

fn diff_hashed_at(state: &HashedState, path: &FieldPath, now: &Value) -> Diff {
    let mut items = Vec::new();
    let root = FieldPath::root();
    match state.at(path) {
        HashNode::Absent => diff_into(&mut items, &root, None, path.resolve(now)),
        HashNode::Tree(tree) => {
            diff_hashed(&mut items, &root, state, Some(tree), path.resolve(now));
        }
        HashNode::Inside if state.same_at(path, now) => {}
        HashNode::Inside => items.push(unknown(&root, path.resolve(now))),
    }
    Diff(items)
}

fn diff_hashed(
    items: &mut Vec<DiffItem>,
    path: &FieldPath,
    state: &HashedState,
    old: Option<&HashTree>,
    new: Option<&Value>,
) {
    match (old, present(new)) {
        (None, new) => diff_into(items, path, None, new),
        (Some(HashTree::Map(old)), Some(Value::Object(new))) => {
            for (key, value) in in_diff_order(new, old.keys(), |key| old.contains_key(key)) {
                diff_hashed(items, &path.child(key), state, old.get(key), value);
            }
        }
        (Some(old), Some(new)) if state.describes(old, new) => {}
        (Some(_), new) => items.push(unknown(path, new)),
    }
}

fn unknown(path: &FieldPath, new: Option<&Value>) -> DiffItem {
    DiffItem {
        op: match new {
            Some(_) => DiffOp::Change,
            None => DiffOp::Remove,
        },
        path: path.clone(),
        old: OldValue::Unknown,
        new: new.cloned(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
