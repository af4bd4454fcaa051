//! Makes an object acceptable that the API server refused, by taking away what it complained of.
//!
//! Rules in CEL cannot be foreseen from the schema. The server names the place of each complaint;
//! what can be left out there is left out, as little as possible.

use serde_json::Value;

use crate::schema::Schema;

/// A complaint of the API server: one of the causes in the details of its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The place, such as `spec.ports[0].name`.
    pub field: String,
    /// The complaint.
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Item(usize),
}

/// Takes away what a cause speaks of; tells what, or nothing if nothing there can be left out.
#[must_use]
pub fn amend(schema: &Schema, object: &mut Value, cause: &Cause) -> Option<String> {
    let steps = resolve(object, &cause.field);
    let told = mentioned_member(schema, object, &steps, &cause.message)
        .map(|name| [steps.clone(), vec![Step::Member(name)]].concat());
    let candidates = told
        .into_iter()
        .chain((1..=steps.len()).rev().map(|end| steps[..end].to_vec()));
    let chosen = candidates
        .into_iter()
        .find(|steps| is_removable(schema, object, steps))
        .or_else(|| last_member(schema, object, &steps))?;
    remove(object, &chosen);
    Some(spell(&chosen))
}

/// The steps of a path, as far as the object has them.
fn resolve(object: &Value, field: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = field;
    let mut node = object;
    while !rest.is_empty() {
        rest = rest.trim_start_matches('.');
        let (step, child, tail) = match node {
            Value::Object(members) => {
                let bracketed = rest.strip_prefix('[');
                let text = bracketed.unwrap_or(rest);
                let Some((name, child)) = members
                    .iter()
                    .filter(|(name, _)| {
                        text.strip_prefix(name.as_str()).is_some_and(|tail| {
                            tail.is_empty() || tail.starts_with(['.', '[', ']'])
                        })
                    })
                    .max_by_key(|(name, _)| name.len())
                else {
                    break;
                };
                let tail = &text[name.len()..];
                let tail = bracketed.map_or(tail, |_| tail.strip_prefix(']').unwrap_or(tail));
                (Step::Member(name.clone()), child, tail)
            }
            Value::Array(items) => {
                let Some((index, tail)) = rest
                    .strip_prefix('[')
                    .and_then(|rest| rest.split_once(']'))
                    .and_then(|(index, tail)| Some((index.parse::<usize>().ok()?, tail)))
                else {
                    break;
                };
                let Some(child) = items.get(index) else { break };
                (Step::Item(index), child, tail)
            }
            _ => break,
        };
        steps.push(step);
        (node, rest) = (child, tail);
    }
    steps
}

/// An optional member of the place that the message names.
fn mentioned_member(
    schema: &Schema,
    object: &Value,
    steps: &[Step],
    message: &str,
) -> Option<String> {
    let members = find(object, steps)?.as_object()?;
    let words: Vec<&str> = message
        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
        .collect();
    members
        .keys()
        .rfind(|name| {
            words.contains(&name.as_str())
                && is_removable(
                    schema,
                    object,
                    &[steps, &[Step::Member((*name).clone())]].concat(),
                )
        })
        .cloned()
}

/// The last optional member of the place.
fn last_member(schema: &Schema, object: &Value, steps: &[Step]) -> Option<Vec<Step>> {
    let members = find(object, steps)?.as_object()?;
    members
        .keys()
        .rev()
        .map(|name| [steps, &[Step::Member(name.clone())]].concat())
        .find(|steps| is_removable(schema, object, steps))
}

fn is_removable(schema: &Schema, object: &Value, steps: &[Step]) -> bool {
    let Some((last, around)) = steps.split_last() else {
        return false;
    };
    let (Some(holder), value) = (schema_at(schema, around), find(object, around)) else {
        return true;
    };
    match (last, value) {
        (Step::Member(name), _) if around.is_empty() => {
            // Without its spec an object says nothing about the types.
            !["apiVersion", "kind", "metadata", "spec"].contains(&name.as_str())
                && !holder.required.contains(name)
        }
        (Step::Member(name), Some(Value::Object(members))) => {
            !holder.required.contains(name)
                && members.len() as u64 > holder.bounds.members.min.unwrap_or(0)
        }
        (Step::Item(_), Some(Value::Array(items))) => {
            items.len() as u64 > holder.bounds.items.min.unwrap_or(0)
        }
        _ => false,
    }
}

fn schema_at<'a>(schema: &'a Schema, steps: &[Step]) -> Option<&'a Schema> {
    steps.iter().try_fold(schema, |schema, step| match step {
        Step::Member(name) => schema.member(name),
        Step::Item(_) => schema.items.as_deref(),
    })
}

fn find<'a>(object: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    steps.iter().try_fold(object, |value, step| match step {
        Step::Member(name) => value.get(name),
        Step::Item(index) => value.get(index),
    })
}

fn remove(object: &mut Value, steps: &[Step]) {
    let Some((last, around)) = steps.split_last() else {
        return;
    };
    let holder = around.iter().try_fold(object, |value, step| match step {
        Step::Member(name) => value.get_mut(name),
        Step::Item(index) => value.get_mut(index),
    });
    match (holder, last) {
        (Some(Value::Object(members)), Step::Member(name)) => {
            members.shift_remove(name);
        }
        (Some(Value::Array(items)), Step::Item(index)) => {
            items.remove(*index);
        }
        _ => {}
    }
}

fn spell(steps: &[Step]) -> String {
    steps
        .iter()
        .map(|step| match step {
            Step::Member(name) => format!(".{name}"),
            Step::Item(index) => format!("[{index}]"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::from_json(&json!({"type": "object", "properties": {"spec": {
            "type": "object",
            "required": ["must"],
            "properties": {
                "must": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
                "list": {"type": "array", "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }}}))
    }

    fn amended(mut object: Value, field: &str, message: &str) -> (Option<String>, Value) {
        let cause = Cause {
            field: field.to_owned(),
            message: message.to_owned(),
        };
        let told = amend(&schema(), &mut object, &cause);
        (told, object)
    }

    #[test]
    fn an_optional_member_an_item_and_a_key_are_taken_away() {
        let object = json!({"spec": {"must": {}, "list": ["x", "y"], "map": {"a.b": "c"}}});
        assert_eq!(
            amended(object.clone(), "spec.list[1]", "bad").0.as_deref(),
            Some(".spec.list[1]")
        );
        assert_eq!(
            amended(object.clone(), "spec.map.a.b", "bad").0.as_deref(),
            Some(".spec.map.a.b")
        );
        assert_eq!(
            amended(object, "spec.map[a.b]", "bad").1["spec"]["map"],
            json!({})
        );
    }

    #[test]
    fn of_a_required_place_the_member_that_the_message_names_goes() {
        let object = json!({"spec": {"must": {"a": "1", "b": "2"}}});
        let (told, left) = amended(object, "spec.must", "exactly one of a or c is allowed");
        assert_eq!(told.as_deref(), Some(".spec.must.a"));
        assert_eq!(left, json!({"spec": {"must": {"b": "2"}}}));
    }

    #[test]
    fn of_a_required_place_the_last_optional_member_goes_if_none_is_named() {
        let object = json!({"spec": {"must": {"a": "1", "b": "2"}}});
        assert_eq!(
            amended(object, "spec.must", "no").0.as_deref(),
            Some(".spec.must.b")
        );
    }

    #[test]
    fn nothing_is_taken_away_where_everything_is_required() {
        let object = json!({"spec": {"must": {}}});
        assert_eq!(amended(object.clone(), "spec.must", "no"), (None, object));
    }
}
