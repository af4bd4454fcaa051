//! The differences of two JSON values, member by member; numbers are compared by value.

use std::fmt;

use serde_json::Value;

use crate::validation::same;

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The JSON path.
    pub path: String,
    /// The change of the value.
    pub change: ValueChange,
}

/// The change of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueChange {
    /// It is gone.
    Gone(Value),
    /// It appeared.
    Added(Value),
    /// It is another one.
    Other(Value, Value),
}

/// All differences, from the first value to the second.
#[must_use]
pub fn between(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    collect(String::new(), before, after, &mut found);
    found
}

fn collect(path: String, before: &Value, after: &Value, found: &mut Vec<Difference>) {
    match (before, after) {
        (Value::Object(left), Value::Object(right)) => {
            for (name, value) in left {
                let path = format!("{path}.{name}");
                match right.get(name) {
                    Some(other) => collect(path, value, other, found),
                    None => found.push(Difference {
                        path,
                        change: ValueChange::Gone(value.clone()),
                    }),
                }
            }
            for (name, value) in right.iter().filter(|(name, _)| !left.contains_key(*name)) {
                let path = format!("{path}.{name}");
                found.push(Difference {
                    path,
                    change: ValueChange::Added(value.clone()),
                });
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (value, other)) in left.iter().zip(right).enumerate() {
                collect(format!("{path}[{index}]"), value, other, found);
            }
        }
        _ if same(before, after) => {}
        _ => found.push(Difference {
            path,
            change: ValueChange::Other(before.clone(), after.clone()),
        }),
    }
}

// === impl Difference ===

impl Difference {
    /// Whether a `null` became absent, which is the same to a reader of an optional member.
    #[must_use]
    pub fn is_dropped_null(&self) -> bool {
        self.change == ValueChange::Gone(Value::Null)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, change } = self;
        match change {
            ValueChange::Gone(value) => write!(formatter, "{path}: {} is gone", short(value)),
            ValueChange::Added(value) => write!(formatter, "{path}: {} appeared", short(value)),
            ValueChange::Other(before, after) => {
                write!(
                    formatter,
                    "{path}: {} became {}",
                    short(before),
                    short(after)
                )
            }
        }
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_have_a_path_and_a_change() {
        let before = json!({"a": [1, {"b": null}], "c": "x", "d": 2});
        let after = json!({"a": [1.0, {}], "c": "y", "d": 2.0, "e": true});
        let found: Vec<String> = between(&before, &after)
            .iter()
            .map(Difference::to_string)
            .collect();
        assert_eq!(
            found,
            [
                ".a[1].b: null is gone",
                ".c: \"x\" became \"y\"",
                ".e: true appeared"
            ]
        );
        assert!(between(&before, &after)[0].is_dropped_null());
    }

    #[test]
    fn equal_values_have_none() {
        assert_eq!(between(&json!({"a": 1}), &json!({"a": 1.0})), []);
    }
}
