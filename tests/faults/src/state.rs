//! The state of an object as its handlers see it: what users edit, and nothing of the operator's.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The prefix of the annotations in which the operator keeps its facts.
pub(crate) const PREFIX: &str = "kopf.zalando.org/";

/// The annotation with the last handled state.
pub(crate) const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

/// The finalizer of the operator.
pub(crate) const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

/// The label that one of the handlers selects.
pub(crate) const TIER: &str = "tier";

/// The value of that label which the handler wants.
pub(crate) const GOLD: &str = "gold";

/// One state of one object, short enough for a line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "LoggedState")]
pub(crate) struct DigestedState {
    /// Everything that users edit.
    pub(crate) whole: String,
    /// The field `spec.size`.
    pub(crate) size: String,
    /// Whether the object has the label of the filtered handler.
    pub(crate) gold: bool,
    /// The number of the edit, for people.
    pub(crate) edit: u64,
}

/// A state in a line of the journal. Operators in other languages write the object.
#[derive(Deserialize)]
#[serde(untagged)]
enum LoggedState {
    Object {
        raw: Value,
    },
    Digest {
        whole: String,
        size: String,
        gold: bool,
        edit: u64,
    },
}

impl From<LoggedState> for DigestedState {
    fn from(logged: LoggedState) -> Self {
        match logged {
            LoggedState::Object { raw } => Self::of(&raw),
            LoggedState::Digest {
                whole,
                size,
                gold,
                edit,
            } => Self {
                whole,
                size,
                gold,
                edit,
            },
        }
    }
}

// === impl DigestedState ===

impl DigestedState {
    /// The state of an object, or of its last handled state, which has the same form.
    pub(crate) fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let mut annotations = metadata["annotations"].as_object().cloned();
        if let Some(annotations) = &mut annotations {
            annotations.retain(|key, _| !key.starts_with(PREFIX));
        }
        let labels = metadata["labels"].as_object().cloned();
        let mut state = Map::new();
        state.insert("spec".to_owned(), object["spec"].clone());
        for (name, stanza) in [("annotations", annotations), ("labels", labels)] {
            if let Some(stanza) = stanza.filter(|it| !it.is_empty()) {
                state.insert(name.to_owned(), Value::Object(stanza));
            }
        }
        Self {
            whole: digest(&canonical(&Value::Object(state))),
            size: canonical(&object["spec"]["size"]),
            gold: metadata["labels"][TIER] == GOLD,
            edit: object["spec"]["edit"].as_u64().unwrap_or_default(),
        }
    }

    /// The number of children that the object asks for.
    pub(crate) fn children(&self) -> u64 {
        self.size.parse().unwrap_or_default()
    }

    /// The last handled state of an object, if there is one that can be read.
    pub(crate) fn of_base(object: &Value) -> Option<Self> {
        let text = object["metadata"]["annotations"][LAST_HANDLED].as_str()?;
        let base: Value = serde_json::from_str(text).ok()?;
        base.get("spec").is_some().then(|| Self::of(&base))
    }
}

/// A short name of a text, the same in all processes of one build.
pub(crate) fn digest(text: &str) -> String {
    format!("{:016x}", number_of(text))
}

/// A number that depends on a text only.
pub(crate) fn number_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// JSON with sorted keys: the API server and the operator order them differently.
fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let mut keys: Vec<_> = map.iter().collect();
                keys.sort_by_key(|(key, _)| key.as_str());
                let sorted = keys
                    .into_iter()
                    .map(|(key, value)| (key.clone(), sorted(value)));
                Value::Object(sorted.collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
            other => other.clone(),
        }
    }
    sorted(value).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_and_facts_of_the_operator_do_not_count() {
        let object = json!({
            "metadata": {"labels": {}, "annotations": {"kopf.zalando.org/made": "{}"}},
            "spec": {"size": 1, "edit": 2},
            "status": {"made": 1},
        });
        let base = json!({"spec": {"edit": 2, "size": 1}});
        assert_eq!(DigestedState::of(&object), DigestedState::of(&base));
    }

    #[test]
    fn a_state_may_be_logged_as_the_object() {
        let object = json!({"metadata": {"labels": {"tier": "gold"}}, "spec": {"size": 2}});
        let digested = DigestedState::of(&object);
        for logged in [json!({"raw": object}), json!(digested)] {
            let read: DigestedState = serde_json::from_value(logged).expect("a logged state");
            assert_eq!(read, digested);
        }
    }

    #[test]
    fn labels_annotations_and_spec_count() {
        let object = json!({"spec": {"edit": 1}});
        for other in [
            json!({"spec": {"edit": 2}}),
            json!({"spec": {"edit": 1}, "metadata": {"labels": {"tier": "gold"}}}),
            json!({"spec": {"edit": 1}, "metadata": {"annotations": {"note": "x"}}}),
        ] {
            assert_ne!(DigestedState::of(&object), DigestedState::of(&other));
        }
    }
}
