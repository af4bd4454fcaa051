//! Structural defaulting, as the API server does it for CustomResourceDefinitions.

use serde_json::Value;

use crate::schema::SchemaNode;

/// Fills in the defaults below a value, and replaces `null` where it is not allowed but has one.
pub fn fill(schema: &SchemaNode, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, property) in &schema.properties {
                if let Some(default) = &property.default
                    && members
                        .get(name)
                        .is_none_or(|own| own.is_null() && !property.nullable)
                {
                    members.insert(name.clone(), default.clone());
                }
            }
            for (name, member) in members.iter_mut() {
                if let Some(of) = schema.member(name) {
                    replace_null(of, member);
                    fill(of, member);
                }
            }
        }
        Value::Array(items) => {
            if let Some(of) = &schema.items {
                for item in items {
                    replace_null(of, item);
                    fill(of, item);
                }
            }
        }
        _ => {}
    }
}

/// Drops typed members that are `null` where that means the same as no member: it is optional, and
/// the API server fills in no default.
pub fn drop_nulls(schema: &SchemaNode, value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, member| {
                let of = schema.properties.get(name);
                let is_same = of.is_some_and(|of| {
                    let is_typed = of.kind.is_some() || of.int_or_string || of.values.is_some();
                    of.nullable && is_typed && of.default.is_none()
                });
                !(member.is_null() && is_same && !schema.required.contains(name))
            });
            for (name, member) in members.iter_mut() {
                if let Some(of) = schema.member(name) {
                    drop_nulls(of, member);
                }
            }
        }
        Value::Array(items) => {
            if let Some(of) = &schema.items {
                items.iter_mut().for_each(|item| drop_nulls(of, item));
            }
        }
        _ => {}
    }
}

fn replace_null(schema: &SchemaNode, value: &mut Value) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(schema: &Value, mut value: Value) -> Value {
        fill(&SchemaNode::from_json(schema), &mut value);
        value
    }

    #[test]
    fn a_default_is_filled_in_and_then_filled_itself() {
        let schema = json!({"properties": {
            "a": {"default": {}, "properties": {"b": {"default": 1}}},
            "c": {"properties": {"d": {"default": 2}}},
        }});
        assert_eq!(filled(&schema, json!({})), json!({"a": {"b": 1}}));
        assert_eq!(
            filled(&schema, json!({"c": {}})),
            json!({"a": {"b": 1}, "c": {"d": 2}})
        );
    }

    #[test]
    fn null_stays_only_where_it_is_allowed() {
        let schema = json!({"properties": {
            "a": {"default": 1, "nullable": true},
            "b": {"default": 1},
        }});
        assert_eq!(
            filled(&schema, json!({"a": null, "b": null})),
            json!({"a": null, "b": 1})
        );
    }

    #[test]
    fn null_is_dropped_where_it_means_the_same_as_no_member() {
        let schema = SchemaNode::from_json(&json!({
            "required": ["required"],
            "properties": {
                "list": {"items": {"properties": {"optional": {"type": "string", "nullable": true}}}},
                "required": {"type": "string", "nullable": true},
                "default": {"type": "string", "nullable": true, "default": "x"},
                "untyped": {"nullable": true, "x-kubernetes-preserve-unknown-fields": true},
            },
        }));
        let kept = json!({"required": null, "default": null, "untyped": null, "list": [{}]});
        let mut value = kept.clone();
        value["list"][0]["optional"] = Value::Null;
        drop_nulls(&schema, &mut value);
        assert_eq!(value, kept);
    }

    #[test]
    fn items_and_map_values_are_filled() {
        let schema = json!({
            "properties": {"list": {"items": {"properties": {"x": {"default": true}}}}},
            "additionalProperties": {"properties": {"y": {"default": "z"}}},
        });
        assert_eq!(
            filled(&schema, json!({"list": [{}], "key": {}})),
            json!({"list": [{"x": true}], "key": {"y": "z"}})
        );
    }
}
