//! The writes to an object: one merge patch, and edits of the newest body as JSON patches.
//!
//! Diff and merge are hand-written. The `json-patch` crate compares lists by position, so that the
//! removal of one finalizer replaces all that follow, and its merge reorders the remaining keys,
//! while stored states must have the bytes that Kopf writes. The tests use it as the reference.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value, json};

use crate::object::{ObjectView, path::FieldPath};

/// An edit of the newest body, sent as a JSON patch that fails if the body has changed since.
pub type PatchFn = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// All writes of one turn, accumulated.
#[derive(Clone, Default)]
pub struct ObjectPatch {
    merge: Map<String, Value>,
    edits: Vec<PatchFn>,
}

/// The requests of a patch, in the order in which they must be sent.
///
/// Results go to the status before the record of success goes to the body: in the other
/// order a crash in between would lose the results.
#[derive(Clone, Default)]
pub struct PatchRequests {
    /// Merge patch for `/status`, only where that subresource exists.
    pub status: Option<Value>,
    /// Merge patch for the object itself.
    pub body: Option<Value>,
    /// Edits of the newest body that is known after these requests.
    pub edits: Vec<PatchFn>,
}

/// An RFC 6902 patch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonPatch(Vec<JsonOp>);

/// One operation of a JSON patch.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonOp {
    /// Fails the patch unless the value is the expected one.
    Test {
        /// JSON pointer.
        path: String,
        /// The expected value.
        value: Value,
    },
    /// Adds a member or inserts an item.
    Add {
        /// JSON pointer.
        path: String,
        /// The new value.
        value: Value,
    },
    /// Replaces the value.
    Replace {
        /// JSON pointer.
        path: String,
        /// The new value.
        value: Value,
    },
    /// Removes the value.
    Remove {
        /// JSON pointer.
        path: String,
    },
}

// === impl ObjectPatch ===

impl ObjectPatch {
    /// Nothing to write.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.merge.is_empty() && self.edits.is_empty()
    }

    /// Whether all writes are to this stanza of the object.
    #[must_use]
    pub fn is_confined_to(&self, stanza: &str) -> bool {
        self.edits.is_empty() && self.merge.keys().all(|key| key == stanza)
    }

    /// Whether there are edits beside the merge patch.
    #[must_use]
    pub fn has_edits(&self) -> bool {
        !self.edits.is_empty()
    }

    /// The merge patch so far.
    #[must_use]
    pub fn merge_patch(&self) -> &Map<String, Value> {
        &self.merge
    }

    /// Adds a merge patch on top: maps merge, null deletes, all else replaces.
    pub fn merge(&mut self, patch: Value) {
        if let Value::Object(patch) = patch {
            combine(&mut self.merge, patch);
        }
    }

    /// Adds all writes of another patch.
    pub fn absorb(&mut self, other: Self) {
        combine(&mut self.merge, other.merge);
        self.edits.extend(other.edits);
    }

    /// Sets a field.
    pub fn set(&mut self, path: &FieldPath, value: Value) {
        let mut patch = Value::Object(Map::new());
        path.ensure(&mut patch, value);
        self.merge(patch);
    }

    /// Removes a field.
    pub fn unset(&mut self, path: &FieldPath) {
        self.set(path, Value::Null);
    }

    /// The value of a field in the merge patch; null stands for its removal.
    #[must_use]
    pub fn get(&self, path: &FieldPath) -> Option<&Value> {
        let (first, rest) = path.parts().split_first()?;
        rest.iter()
            .try_fold(self.merge.get(first)?, |value, part| value.get(part))
    }

    /// Drops the write to a field.
    pub fn forget(&mut self, path: &FieldPath) {
        let mut merge = Value::Object(std::mem::take(&mut self.merge));
        path.remove(&mut merge);
        if let Value::Object(merge) = merge {
            self.merge = merge;
        }
    }

    /// Sets an annotation.
    pub fn set_annotation(&mut self, key: &str, value: &str) {
        self.set(&annotation(key), value.into());
    }

    /// Removes an annotation that the object has, and drops a pending write of it.
    pub fn purge_annotation(&mut self, key: &str, view: ObjectView<'_>) {
        let pending = self
            .merge
            .get("metadata")
            .and_then(|metadata| metadata.get("annotations")?.get(key));
        if pending.is_some() || view.annotation(key).is_some() {
            self.purge(&annotation(key), view);
        }
    }

    /// Removes a field that the object has, and drops a pending write of it.
    pub fn purge(&mut self, path: &FieldPath, view: ObjectView<'_>) {
        if path.resolve(view.body()).is_some() {
            self.unset(path);
        } else {
            self.forget(path);
        }
    }

    /// The size of all annotations after this patch, without some keys.
    #[must_use]
    pub fn annotations_size(
        &self,
        view: ObjectView<'_>,
        without: impl Fn(&String) -> bool,
    ) -> usize {
        let pending = self
            .get(&FieldPath::new(["metadata", "annotations"]))
            .and_then(Value::as_object);
        let is_pending = |key: &String| pending.is_some_and(|pending| pending.contains_key(key));
        let present = view.annotations().into_iter().flatten();
        present
            .filter(|(key, _)| !is_pending(key))
            .chain(pending.into_iter().flatten())
            .filter(|(key, _)| !without(key))
            .filter_map(|(key, value)| Some(key.len() + value.as_str()?.len()))
            .sum()
    }

    /// Writes the result of a handler to the status, under the unchanged id.
    pub fn store_result(&mut self, id: &str, result: &Value) {
        let path = FieldPath::new(["status", id]);
        match (result, self.get(&path)) {
            (Value::Null, _) => {}
            (Value::Object(new), Some(Value::Object(present))) => {
                let mut merged = present.clone();
                merged.extend(new.iter().map(|(key, value)| (key.clone(), value.clone())));
                self.set(&path, Value::Object(merged));
            }
            _ => self.set(&path, result.clone()),
        }
    }

    /// Adds an edit of the newest body.
    pub fn edit(&mut self, edit: impl Fn(&mut Value) + Send + Sync + 'static) {
        self.edits.push(Arc::new(edit));
    }

    /// Splits the patch into requests.
    #[must_use]
    pub fn into_requests(mut self, status_subresource: bool) -> PatchRequests {
        let status = if status_subresource {
            self.merge.shift_remove("status")
        } else {
            None
        };
        PatchRequests {
            status: status.map(|status| json!({ "status": status })),
            body: (!self.merge.is_empty()).then_some(Value::Object(self.merge)),
            edits: self.edits,
        }
    }
}

impl fmt::Debug for ObjectPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectPatch")
            .field("merge", &self.merge)
            .field("edits", &self.edits.len())
            .finish()
    }
}

impl fmt::Debug for PatchRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PatchRequests")
            .field("status", &self.status)
            .field("body", &self.body)
            .field("edits", &self.edits.len())
            .finish()
    }
}

// === impl JsonPatch ===

impl JsonPatch {
    /// The patch as it is sent.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.0.iter().map(JsonOp::to_json).collect()
    }
}

impl JsonOp {
    fn to_json(&self) -> Value {
        match self {
            Self::Test { path, value } => json!({"op": "test", "path": path, "value": value}),
            Self::Add { path, value } => json!({"op": "add", "path": path, "value": value}),
            Self::Replace { path, value } => {
                json!({"op": "replace", "path": path, "value": value})
            }
            Self::Remove { path } => json!({"op": "remove", "path": path}),
        }
    }
}

/// The path of an annotation.
#[must_use]
pub fn annotation(key: &str) -> FieldPath {
    FieldPath::new(["metadata", "annotations", key])
}

/// Applies a merge patch as the API server does.
pub fn apply_merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(target) = target {
        for (key, value) in patch {
            if value.is_null() {
                target.shift_remove(key);
            } else {
                apply_merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
    }
}

/// The merge patch that turns one value into another; null equals absent.
#[must_use]
pub fn merge_between(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return without_nulls(new);
    };
    let removed = old
        .iter()
        .filter(|(key, value)| !value.is_null() && new.get(*key).is_none_or(Value::is_null))
        .map(|(key, _)| (key.clone(), Value::Null));
    let changed = new
        .iter()
        .filter(|(key, value)| !value.is_null() && old.get(*key) != Some(*value))
        .map(|(key, value)| {
            let old = old.get(key).unwrap_or(&Value::Null);
            (key.clone(), merge_between(old, value))
        });
    Value::Object(removed.chain(changed).collect())
}

/// The JSON patch between two bodies, with a test of the first one's version; none if equal.
#[must_use]
pub fn json_patch(old: &Value, new: &Value) -> Option<JsonPatch> {
    let mut ops = Vec::new();
    json_ops(&mut ops, String::new(), old, new);
    with_version_test(old, ops)
}

/// The JSON patch between two bodies, without a test of the version; none if equal.
#[must_use]
pub fn plain_json_patch(old: &Value, new: &Value) -> Option<JsonPatch> {
    let mut ops = Vec::new();
    json_ops(&mut ops, String::new(), old, new);
    (!ops.is_empty()).then_some(JsonPatch(ops))
}

fn combine(earlier: &mut Map<String, Value>, later: Map<String, Value>) {
    for (key, value) in later {
        match (earlier.get_mut(&key), value) {
            (Some(Value::Object(earlier)), Value::Object(later)) => combine(earlier, later),
            (Some(earlier), later) => *earlier = later,
            (None, later) => {
                earlier.insert(key, later);
            }
        }
    }
}

pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.clone(), without_nulls(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

fn with_version_test(body: &Value, ops: Vec<JsonOp>) -> Option<JsonPatch> {
    if ops.is_empty() {
        return None;
    }
    let test = ObjectView::new(body)
        .resource_version()
        .map(|version| JsonOp::Test {
            path: "/metadata/resourceVersion".to_owned(),
            value: version.into(),
        });
    Some(JsonPatch(test.into_iter().chain(ops).collect()))
}

fn json_ops(ops: &mut Vec<JsonOp>, path: String, old: &Value, new: &Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                ops.push(JsonOp::Remove {
                    path: pointer(&path, key),
                });
            }
            for (key, value) in new {
                let path = pointer(&path, key);
                match old.get(key) {
                    Some(old) => json_ops(ops, path, old, value),
                    None => ops.push(JsonOp::Add {
                        path,
                        value: value.clone(),
                    }),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => list_ops(ops, &path, old, new),
        _ if old == new => {}
        _ => ops.push(JsonOp::Replace {
            path,
            value: new.clone(),
        }),
    }
}

/// Replaces the items between the common head and the common tail.
fn list_ops(ops: &mut Vec<JsonOp>, path: &str, old: &[Value], new: &[Value]) {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..]
        .iter()
        .rev()
        .zip(new[head..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    for index in (head..old.len() - tail).rev() {
        ops.push(JsonOp::Remove {
            path: format!("{path}/{index}"),
        });
    }
    for (index, value) in new.iter().enumerate().take(new.len() - tail).skip(head) {
        ops.push(JsonOp::Add {
            path: format!("{path}/{index}"),
            value: value.clone(),
        });
    }
}

fn pointer(parent: &str, key: &str) -> String {
    format!("{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
pub(crate) mod tests;
