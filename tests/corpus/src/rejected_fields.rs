//! Removes the fields that the API server rejects from an object, as few as possible.
//!
//! The objects are made without regard to rules in CEL. The API server names the path of each
//! rejected value.

use serde_json::Value;

use crate::schema::SchemaNode;

/// A rejected field: one of the causes in the details of the API server's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldCause {
    /// The path, such as `spec.ports[0].name`.
    pub field: String,
    /// The API server's message.
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FieldStep {
    Member(String),
    Item(usize),
}

/// Removes the field of a cause; returns the path of what was removed, or none if nothing can be.
#[must_use]
pub fn remove_rejected_field(
    schema: &SchemaNode,
    object: &mut Value,
    cause: &FieldCause,
) -> Option<String> {
    let steps = resolve(object, &cause.field);
    let mentioned = mentioned_member(schema, object, &steps, &cause.message)
        .map(|name| [steps.clone(), vec![FieldStep::Member(name)]].concat());
    let candidates = mentioned
        .into_iter()
        .chain((1..=steps.len()).rev().map(|end| steps[..end].to_vec()));
    let chosen = candidates
        .into_iter()
        .find(|steps| is_removable(schema, object, steps))
        .or_else(|| last_member(schema, object, &steps))?;
    remove(object, &chosen);
    Some(format_path(&chosen))
}

/// The steps of a path, as far as the object has them.
fn resolve(object: &Value, field: &str) -> Vec<FieldStep> {
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
                (FieldStep::Member(name.clone()), child, tail)
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
                (FieldStep::Item(index), child, tail)
            }
            _ => break,
        };
        steps.push(step);
        (node, rest) = (child, tail);
    }
    steps
}

/// An optional member at the path that the message names.
fn mentioned_member(
    schema: &SchemaNode,
    object: &Value,
    steps: &[FieldStep],
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
                    &[steps, &[FieldStep::Member((*name).clone())]].concat(),
                )
        })
        .cloned()
}

/// The last optional member at the path.
fn last_member(schema: &SchemaNode, object: &Value, steps: &[FieldStep]) -> Option<Vec<FieldStep>> {
    let members = find(object, steps)?.as_object()?;
    members
        .keys()
        .rev()
        .map(|name| [steps, &[FieldStep::Member(name.clone())]].concat())
        .find(|steps| is_removable(schema, object, steps))
}

fn is_removable(schema: &SchemaNode, object: &Value, steps: &[FieldStep]) -> bool {
    let Some((last, around)) = steps.split_last() else {
        return false;
    };
    let (Some(holder), value) = (schema_at(schema, around), find(object, around)) else {
        return true;
    };
    match (last, value) {
        (FieldStep::Member(name), _) if around.is_empty() => {
            // Without its spec an object does not test the types.
            !["apiVersion", "kind", "metadata", "spec"].contains(&name.as_str())
                && !holder.required.contains(name)
        }
        (FieldStep::Member(name), Some(Value::Object(members))) => {
            !holder.required.contains(name)
                && members.len() as u64 > holder.bounds.members.min.unwrap_or(0)
        }
        (FieldStep::Item(_), Some(Value::Array(items))) => {
            items.len() as u64 > holder.bounds.items.min.unwrap_or(0)
        }
        _ => false,
    }
}

fn schema_at<'a>(schema: &'a SchemaNode, steps: &[FieldStep]) -> Option<&'a SchemaNode> {
    steps.iter().try_fold(schema, |schema, step| match step {
        FieldStep::Member(name) => schema.member(name),
        FieldStep::Item(_) => schema.items.as_deref(),
    })
}

fn find<'a>(object: &'a Value, steps: &[FieldStep]) -> Option<&'a Value> {
    steps.iter().try_fold(object, |value, step| match step {
        FieldStep::Member(name) => value.get(name),
        FieldStep::Item(index) => value.get(index),
    })
}

fn remove(object: &mut Value, steps: &[FieldStep]) {
    let Some((last, around)) = steps.split_last() else {
        return;
    };
    let holder = around.iter().try_fold(object, |value, step| match step {
        FieldStep::Member(name) => value.get_mut(name),
        FieldStep::Item(index) => value.get_mut(index),
    });
    match (holder, last) {
        (Some(Value::Object(members)), FieldStep::Member(name)) => {
            members.shift_remove(name);
        }
        (Some(Value::Array(items)), FieldStep::Item(index)) => {
            items.remove(*index);
        }
        _ => {}
    }
}

fn format_path(steps: &[FieldStep]) -> String {
    steps
        .iter()
        .map(|step| match step {
            FieldStep::Member(name) => format!(".{name}"),
            FieldStep::Item(index) => format!("[{index}]"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> SchemaNode {
        SchemaNode::from_json(&json!({"type": "object", "properties": {"spec": {
            "type": "object",
            "required": ["must"],
            "properties": {
                "must": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
                "list": {"type": "array", "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }}}))
    }

    fn after_removal(mut object: Value, field: &str, message: &str) -> (Option<String>, Value) {
        let cause = FieldCause {
            field: field.to_owned(),
            message: message.to_owned(),
        };
        let removed = remove_rejected_field(&schema(), &mut object, &cause);
        (removed, object)
    }

    #[test]
    fn an_optional_member_an_item_and_a_key_are_removed() {
        let object = json!({"spec": {"must": {}, "list": ["x", "y"], "map": {"a.b": "c"}}});
        assert_eq!(
            after_removal(object.clone(), "spec.list[1]", "bad")
                .0
                .as_deref(),
            Some(".spec.list[1]")
        );
        assert_eq!(
            after_removal(object.clone(), "spec.map.a.b", "bad")
                .0
                .as_deref(),
            Some(".spec.map.a.b")
        );
        assert_eq!(
            after_removal(object, "spec.map[a.b]", "bad").1["spec"]["map"],
            json!({})
        );
    }

    #[test]
    fn of_a_required_object_the_member_that_the_message_names_is_removed() {
        let object = json!({"spec": {"must": {"a": "1", "b": "2"}}});
        let (removed, left) =
            after_removal(object, "spec.must", "exactly one of a or c is allowed");
        assert_eq!(removed.as_deref(), Some(".spec.must.a"));
        assert_eq!(left, json!({"spec": {"must": {"b": "2"}}}));
    }

    #[test]
    fn of_a_required_object_the_last_optional_member_is_removed_if_none_is_named() {
        let object = json!({"spec": {"must": {"a": "1", "b": "2"}}});
        assert_eq!(
            after_removal(object, "spec.must", "no").0.as_deref(),
            Some(".spec.must.b")
        );
    }

    #[test]
    fn nothing_is_removed_where_everything_is_required() {
        let object = json!({"spec": {"must": {}}});
        assert_eq!(
            after_removal(object.clone(), "spec.must", "no"),
            (None, object)
        );
    }
}
