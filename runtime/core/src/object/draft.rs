//! The patch for a typed draft: what a handler changed in its object, and nothing else.
//!
//! A type does not know all fields of an object, and may write a value in another way than the
//! object has it: it drops nulls, fills in defaults, formats times. So the patch is computed from
//! what the type made of the object before and after, and never from the object itself.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::patch::{apply_merge, without_nulls};

/// The fields that identify an item of a list, the first that an item has.
const IDENTITIES: [&str; 5] = ["name", "type", "key", "id", "uid"];

/// The smallest merge patch of an object for the change between two typed states; none without a
/// change.
///
/// `before` is what the type made of the object, `after` what a handler made of that. A merge patch
/// replaces lists as a whole: the items that are still in the list keep the fields that the type
/// does not know.
#[must_use]
pub fn draft_patch(object: &Value, before: &Value, after: &Value) -> Option<Value> {
    change(object, before, after)
}

fn change(object: &Value, before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        _ if before == after => None,
        (Value::Object(before), Value::Object(after)) => {
            let patch = map_change(object, before, after);
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (Value::Array(before), Value::Array(after)) => {
            Some(Value::Array(changed_list(object, before, after)))
        }
        _ => Some(without_nulls(after)),
    }
}

fn map_change(
    object: &Value,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    let removed = before
        .iter()
        .filter(|(key, value)| !value.is_null() && after.get(*key).is_none_or(Value::is_null))
        .map(|(key, _)| (key.clone(), Value::Null));
    let changed = after
        .iter()
        .filter(|(_, value)| !value.is_null())
        .filter_map(|(key, value)| {
            let object = object.get(key).unwrap_or(&Value::Null);
            let before = before.get(key).unwrap_or(&Value::Null);
            Some((key.clone(), change(object, before, value)?))
        });
    removed.chain(changed).collect()
}

/// The new list, in which items that were in the old one are as the object has them.
fn changed_list(object: &Value, before: &[Value], after: &[Value]) -> Vec<Value> {
    let Some(originals) = object.as_array().filter(|it| it.len() == before.len()) else {
        return after.to_vec();
    };
    let head = common(before.iter().zip(after));
    let tail = common(before[head..].iter().rev().zip(after[head..].iter().rev()));
    let (old_end, new_end) = (before.len() - tail, after.len() - tail);
    let mut counterparts = Counterparts::new(&before[head..old_end], new_end - head);
    let middle = after[head..new_end].iter().enumerate().map(|(at, item)| {
        match counterparts.take(at, item) {
            None => item.clone(),
            Some(old) => {
                let (original, before) = (&originals[head + old], &before[head + old]);
                let mut item_now = original.clone();
                if let Some(patch) = change(original, before, item) {
                    apply_merge(&mut item_now, &patch);
                }
                item_now
            }
        }
    });
    let middle: Vec<Value> = middle.collect();
    let head = originals[..head].iter().cloned();
    head.chain(middle)
        .chain(originals[old_end..].iter().cloned())
        .collect()
}

fn common<'a>(pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> usize {
    pairs.take_while(|(old, new)| old == new).count()
}

/// The items of an old list, to be found by what identifies them.
struct Counterparts<'a> {
    items: &'a [Value],
    by_identity: HashMap<String, Vec<usize>>,
    /// Without an identity, an item can only be recognised by its position.
    same_length: bool,
}

impl<'a> Counterparts<'a> {
    fn new(items: &'a [Value], new_length: usize) -> Self {
        let mut by_identity: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, item) in items.iter().enumerate().rev() {
            if let Some(identity) = identity(item) {
                by_identity.entry(identity).or_default().push(at);
            }
        }
        Self {
            items,
            by_identity,
            same_length: items.len() == new_length,
        }
    }

    /// The old item that a new one continues; each is found once.
    fn take(&mut self, at: usize, item: &Value) -> Option<usize> {
        match identity(item) {
            Some(identity) => self.by_identity.get_mut(&identity)?.pop(),
            None => (self.same_length && identity(&self.items[at]).is_none()).then_some(at),
        }
    }
}

fn identity(item: &Value) -> Option<String> {
    let found = IDENTITIES
        .iter()
        .find_map(|key| Some((key, item.get(key).filter(|it| !it.is_null())?)));
    found.map(|(key, value)| format!("{key}={value}"))
}

#[cfg(test)]
mod tests;
