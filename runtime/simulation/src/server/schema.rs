//! Structural schemas: unknown fields are pruned, missing ones get defaults, wrong ones are errors.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

mod validate;

/// The schema of a value: the part of OpenAPI that the simulated kinds use.
#[derive(Debug, Clone, Default)]
pub(crate) struct StructuralSchema {
    value_type: ValueType,
    properties: BTreeMap<String, Self>,
    additional: Option<Box<Self>>,
    items: Option<Box<Self>>,
    required: Vec<String>,
    allowed: Vec<Value>,
    limits: ValueLimits,
    default: Option<Value>,
    nullable: bool,
    preserves_unknown: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ValueType {
    #[default]
    Any,
    Object,
    Array,
    String,
    MicroTime,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

#[derive(Debug, Clone, Default)]
struct ValueLimits {
    minimum: Option<f64>,
    maximum: Option<f64>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    max_items: Option<u64>,
}

// === impl StructuralSchema ===

impl StructuralSchema {
    pub(crate) fn parse(schema: &Value) -> Self {
        let child = |key: &str| {
            let child = schema.get(key).filter(|it| it.is_object());
            child.map(|it| Box::new(Self::parse(it)))
        };
        let properties = schema["properties"].as_object();
        let required = schema["required"].as_array();
        let flag = |key: &str| schema[key] == true;
        Self {
            value_type: ValueType::parse(schema),
            properties: properties
                .into_iter()
                .flatten()
                .map(|(name, it)| (name.clone(), Self::parse(it)))
                .collect(),
            additional: child("additionalProperties"),
            items: child("items"),
            required: required
                .into_iter()
                .flatten()
                .filter_map(|it| it.as_str().map(str::to_owned))
                .collect(),
            allowed: schema["enum"].as_array().cloned().unwrap_or_default(),
            limits: ValueLimits {
                minimum: schema["minimum"].as_f64(),
                maximum: schema["maximum"].as_f64(),
                min_length: schema["minLength"].as_u64(),
                max_length: schema["maxLength"].as_u64(),
                max_items: schema["maxItems"].as_u64(),
            },
            default: schema.get("default").cloned(),
            nullable: flag("nullable"),
            preserves_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        }
    }

    /// Drops what the schema does not know from a whole object, and adds its defaults.
    pub(crate) fn prune_object(&self, object: &mut Map<String, Value>) {
        object.retain(|name, _| {
            matches!(name.as_str(), "apiVersion" | "kind" | "metadata")
                || self.preserves_unknown
                || self.properties.contains_key(name)
        });
        for (name, schema) in &self.properties {
            if name != "metadata" {
                schema.settle(object, name);
            }
        }
    }

    /// Prunes and completes one property of an object.
    fn settle(&self, object: &mut Map<String, Value>, name: &str) {
        let mut members = object.iter_mut();
        let mut present = members.find(|(key, _)| *key == name).map(|(_, it)| it);
        if !self.nullable && present.as_ref().is_some_and(|it| it.is_null()) {
            object.shift_remove(name);
            present = None;
        }
        match (present, &self.default) {
            (Some(value), _) => self.prune(value),
            (None, Some(default)) => {
                let mut value = default.clone();
                self.prune(&mut value);
                object.insert(name.to_owned(), value);
            }
            (None, None) => {}
        }
    }

    fn prune(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                if let Some(additional) = &self.additional {
                    let names: Vec<String> = fields.keys().cloned().collect();
                    for name in names {
                        additional.settle(fields, &name);
                    }
                    return;
                }
                if !self.preserves_unknown {
                    fields.retain(|name, _| self.properties.contains_key(name));
                }
                for (name, schema) in &self.properties {
                    schema.settle(fields, name);
                }
            }
            Value::Array(items) => {
                for (item, schema) in items.iter_mut().zip(std::iter::repeat(&self.items)) {
                    if let Some(schema) = schema {
                        schema.prune(item);
                    }
                }
            }
            _ => {}
        }
    }
}

// === impl ValueType ===

impl ValueType {
    fn parse(schema: &Value) -> Self {
        if schema["x-kubernetes-int-or-string"] == true {
            return Self::IntOrString;
        }
        match schema["type"].as_str() {
            Some("object") => Self::Object,
            Some("array") => Self::Array,
            Some("string") if schema["format"] == "micro-time" => Self::MicroTime,
            Some("string") => Self::String,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            _ => Self::Any,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Object => "object",
            Self::Array => "array",
            Self::String | Self::MicroTime => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::IntOrString => "integer,string",
        }
    }
}
