//! Conditions in the status of an object, as the API conventions of Kubernetes have them.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A condition that a handler reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusCondition {
    /// The type, such as `Ready`; an object has one condition of each type.
    pub condition_type: String,
    /// Whether the condition holds.
    pub status: ConditionStatus,
    /// The reason of the last transition in one word, such as `Bound`.
    pub reason: String,
    /// The reason in a sentence.
    pub message: String,
    /// The generation of the object that the handler has seen; none keeps the present one.
    pub observed_generation: Option<i64>,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It cannot be said yet.
    Unknown,
}

// === impl StatusCondition ===

impl StatusCondition {
    /// Puts the condition into the status of an object. The transition time changes only with the
    /// status of the condition, and nothing changes if the object has the condition.
    pub fn set_in(&self, object: &mut Value, now: Timestamp) {
        let conditions = list(member(member(object, "status"), "conditions"));
        let place = conditions
            .iter()
            .position(|it| it.get("type").and_then(Value::as_str) == Some(&self.condition_type));
        let place = place.unwrap_or_else(|| {
            conditions.push(json!({ "type": self.condition_type }));
            conditions.len() - 1
        });
        let condition = &mut conditions[place];
        let status = Value::from(self.status.as_str());
        if condition.get("status") != Some(&status) {
            // Whole seconds, as Kubernetes writes them.
            let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            condition["lastTransitionTime"] = time.into();
        }
        condition["status"] = status;
        condition["reason"] = self.reason.as_str().into();
        condition["message"] = self.message.as_str().into();
        if let Some(generation) = self.observed_generation {
            condition["observedGeneration"] = generation.into();
        }
    }
}

// === impl ConditionStatus ===

impl ConditionStatus {
    /// The word in the condition.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A member of a map; what is not a map becomes one.
fn member<'a>(parent: &'a mut Value, name: &str) -> &'a mut Value {
    if !parent.is_object() {
        *parent = Value::Object(Map::new());
    }
    &mut parent[name]
}

/// A list; what is not a list becomes an empty one.
fn list(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("it is a list now")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(status: ConditionStatus, reason: &str, generation: Option<i64>) -> StatusCondition {
        StatusCondition {
            condition_type: "Ready".to_owned(),
            status,
            reason: reason.to_owned(),
            message: format!("it is {reason}"),
            observed_generation: generation,
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::new(second, 5_000_000).expect("a small number of seconds")
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        let mut object = json!({});
        ready(ConditionStatus::False, "Pending", Some(1)).set_in(&mut object, at(1));
        let condition = json!({
            "type": "Ready",
            "lastTransitionTime": "1970-01-01T00:00:01Z",
            "status": "False",
            "reason": "Pending",
            "message": "it is Pending",
            "observedGeneration": 1,
        });
        assert_eq!(object, json!({"status": {"conditions": [condition]}}));

        ready(ConditionStatus::False, "Pending", Some(1)).set_in(&mut object, at(2));
        assert_eq!(object, json!({"status": {"conditions": [condition]}}));

        ready(ConditionStatus::False, "Waiting", None).set_in(&mut object, at(3));
        let condition = &object["status"]["conditions"][0];
        assert_eq!(condition["lastTransitionTime"], "1970-01-01T00:00:01Z");
        assert_eq!(condition["reason"], "Waiting");
        assert_eq!(condition["observedGeneration"], 1, "it is kept");

        ready(ConditionStatus::True, "Bound", Some(4)).set_in(&mut object, at(4));
        let condition = &object["status"]["conditions"][0];
        assert_eq!(condition["lastTransitionTime"], "1970-01-01T00:00:04Z");
        assert_eq!(condition["status"], "True");
        assert_eq!(condition["observedGeneration"], 4);
    }

    #[test]
    fn other_conditions_and_unknown_fields_stay() {
        let other = json!({"type": "Synced", "status": "True"});
        let ours = json!({"type": "Ready", "status": "True", "severity": "Info"});
        let mut object = json!({"status": {"phase": "New", "conditions": [other, ours]}});
        ready(ConditionStatus::Unknown, "Lost", None).set_in(&mut object, at(1));
        let conditions = &object["status"]["conditions"];
        assert_eq!(conditions[0], other);
        assert_eq!(conditions[1]["severity"], "Info");
        assert_eq!(conditions[1]["status"], "Unknown");
        assert_eq!(object["status"]["phase"], "New");
    }

    #[test]
    fn malformed_conditions_are_replaced() {
        for mut object in [
            json!(null),
            json!({"status": 1}),
            json!({"status": {"conditions": "no"}}),
            json!({"status": {"conditions": null}}),
        ] {
            ready(ConditionStatus::True, "Bound", None).set_in(&mut object, at(1));
            assert_eq!(object["status"]["conditions"][0]["type"], "Ready");
        }
    }
}
