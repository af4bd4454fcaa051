//! The essence of an object: the part whose changes count, without identity and status.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::object::{ObjectView, path::FieldPath};

/// The state of an object as change handlers see it in `old` and `new`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Essence(Value);

/// The fields of a kind that the essence includes or excludes beyond the general rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EssenceRules {
    /// Fields of handlers, included even if the rule excludes them (such as `status.x`).
    pub watched: Vec<FieldPath>,
    /// Fields that are always excluded.
    pub ignored: Vec<FieldPath>,
}

/// The prefix of Kopf's annotations, which operators recognise without a marker.
pub const KOPF_PREFIX: &str = "kopf.zalando.org";

/// The name of the annotation that marks a prefix as one of an operator.
pub const MARKER_NAME: &str = "kopf-managed";

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

// === impl Essence ===

impl Essence {
    /// A state as it is, for example a stored one.
    #[must_use]
    pub fn from_value(value: Value) -> Self {
        Self(value)
    }

    /// Extracts the essence of an object.
    #[must_use]
    pub fn of(view: ObjectView<'_>, rules: &EssenceRules) -> Self {
        let mut essence = Map::new();
        for (key, value) in view.body().as_object().into_iter().flatten() {
            if !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
                essence.insert(key.clone(), value.clone());
            }
        }
        let mut meta = Map::new();
        if let Some(labels) = view.meta("labels") {
            meta.insert("labels".to_owned(), labels.clone());
        }
        if let Some(annotations) = view.annotations() {
            meta.insert(
                "annotations".to_owned(),
                without_operator_annotations(annotations),
            );
        }
        essence.insert("metadata".to_owned(), Value::Object(meta));
        let mut essence = Self(Value::Object(essence));
        for path in &rules.watched {
            if let Some(value) = path.resolve(view.body()) {
                path.ensure(&mut essence.0, value.clone());
            }
        }
        essence.drop_empty_stanzas();
        for path in &rules.ignored {
            path.remove(&mut essence.0);
        }
        essence
    }

    /// The state as JSON.
    #[must_use]
    pub fn as_value(&self) -> &Value {
        &self.0
    }

    /// The state as JSON, owned.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.0
    }

    /// Removes one field, with the stanzas that become empty.
    pub fn remove(&mut self, path: &FieldPath) {
        path.remove(&mut self.0);
    }

    /// Whether there are any annotations.
    #[must_use]
    pub fn has_annotations(&self) -> bool {
        let metadata = self.0.get("metadata");
        metadata.is_some_and(|metadata| metadata.get("annotations").is_some())
    }

    /// Removes the annotations for which `keep` is false.
    pub fn retain_annotations(&mut self, keep: impl Fn(&str) -> bool) {
        let annotations = self
            .0
            .get_mut("metadata")
            .and_then(|meta| meta.get_mut("annotations"))
            .and_then(Value::as_object_mut);
        if let Some(annotations) = annotations {
            annotations.retain(|key, _| keep(key));
        }
        self.drop_empty_stanzas();
    }

    /// The state without any annotations.
    #[must_use]
    pub fn without_annotations(&self) -> Self {
        let mut essence = self.clone();
        essence.retain_annotations(|_| false);
        essence
    }

    fn drop_empty_stanzas(&mut self) {
        let Some(top) = self.0.as_object_mut() else {
            return;
        };
        if let Some(meta) = top.get_mut("metadata").and_then(Value::as_object_mut) {
            for stanza in ["annotations", "labels"] {
                if meta.get(stanza).is_some_and(is_empty) {
                    meta.shift_remove(stanza);
                }
            }
        }
        for stanza in ["metadata", "status"] {
            if top.get(stanza).is_some_and(is_empty) {
                top.shift_remove(stanza);
            }
        }
    }
}

/// The annotations without those that Kopf operators and kubectl write for their own use.
fn without_operator_annotations(annotations: &Map<String, Value>) -> Value {
    let prefixes = marked_prefixes(annotations.keys().map(String::as_str));
    Value::Object(
        annotations
            .iter()
            .filter(|(key, _)| {
                let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
                *key != LAST_APPLIED && !prefixes.contains(prefix)
            })
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

/// The prefixes under which operators of this family keep their annotations.
#[must_use]
pub fn marked_prefixes<'a>(keys: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    keys.filter_map(|key| key.split_once('/'))
        .filter(|(prefix, name)| *name == MARKER_NAME || is_kopf_prefix(prefix))
        .map(|(prefix, _)| prefix)
        .collect()
}

/// Whether operators recognise a prefix as Kopf's without a marker.
#[must_use]
pub fn is_kopf_prefix(prefix: &str) -> bool {
    prefix
        .strip_suffix(KOPF_PREFIX)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
