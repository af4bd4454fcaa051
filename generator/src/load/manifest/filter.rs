//! Filters of the manifest on fields, labels and annotations.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::Spanned;
use crate::diagnostic::{Code, Diagnostic};
use crate::load::yaml::{Node, Value};

/// Filters on labels or annotations, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetadataFilters {
    /// The filters in the order of the text.
    pub list: Vec<(Spanned<String>, Spanned<ValueFilter>)>,
}

/// A filter on one value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueFilter {
    /// It exists, with any value.
    Present,
    /// It does not exist.
    Absent,
    /// It equals this.
    Equals(serde_json::Value),
    /// A function of this name returns true for it.
    Predicate(Spanned<String>),
}

impl JsonSchema for MetadataFilters {
    fn schema_name() -> Cow<'static, str> {
        "Filters".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let predicate = predicate_schema(generator);
        json_schema!({
            "type": "object",
            "additionalProperties": {"anyOf": [
                {"type": "string"},
                {"type": "object", "additionalProperties": false, "required": ["value"], "properties": {"value": {"type": "string"}}},
                predicate,
            ]},
        })
    }
}

impl JsonSchema for ValueFilter {
    fn schema_name() -> Cow<'static, str> {
        "ValueFilter".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let predicate = predicate_schema(generator);
        json_schema!({"anyOf": [
            {"type": ["string", "number", "boolean"]},
            {"type": "object", "additionalProperties": false, "required": ["value"], "properties": {"value": {"not": {"type": "null"}}}},
            predicate,
        ]})
    }
}

fn predicate_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": false,
        "required": ["predicate"],
        "properties": {"predicate": {"type": "string"}},
    })
}

impl ManifestReader<'_> {
    pub(super) fn value_filter(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
    ) -> Option<Spanned<ValueFilter>> {
        let node = fields.optional(key)?;
        let value = match &node.value {
            Value::String(word) if word == "present" => ValueFilter::Present,
            Value::String(word) if word == "absent" => ValueFilter::Absent,
            Value::Map(_) => self.explicit_filter(node, "a value filter")?,
            Value::Seq(_) => {
                self.push(
                    Diagnostic::error(Code::ManifestType, format!("`{key}` cannot be a list"))
                        .at(self.source, node.span, "a list")
                        .help("to compare with a list, write `{value: [...]}`"),
                );
                return None;
            }
            _ => ValueFilter::Equals(node.to_json()),
        };
        Some(Spanned {
            value,
            span: node.span,
        })
    }

    /// `{value: …}` or `{predicate: name}`.
    fn explicit_filter(&mut self, node: &Node, what: &'static str) -> Option<ValueFilter> {
        let mut fields = self.fields(node, what)?;
        let alone = node.as_map().is_some_and(|entries| entries.len() == 1);
        let value = fields.optional("value");
        let predicate = fields
            .optional("predicate")
            .and_then(|node| self.string(node, "`predicate`"));
        fields.finish(self);
        match (value, predicate) {
            (Some(value), None) if alone => Some(ValueFilter::Equals(value.to_json())),
            (None, Some(predicate)) if alone => Some(ValueFilter::Predicate(predicate)),
            _ => {
                let message = format!("{what} has either `value` or `predicate`");
                self.error(
                    Code::ManifestValue,
                    node.span,
                    message,
                    "one of the two is required",
                );
                None
            }
        }
    }

    pub(super) fn filters(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
    ) -> Option<MetadataFilters> {
        let node = fields.optional(key)?;
        let Some(entries) = node.as_map() else {
            self.wrong_type(node, &format!("`{key}`"), "a mapping");
            return None;
        };
        let mut list = Vec::new();
        for entry in entries {
            let filter = match &entry.value.value {
                Value::String(word) if word == "present" => Some(ValueFilter::Present),
                Value::String(word) if word == "absent" => Some(ValueFilter::Absent),
                Value::String(text) => Some(ValueFilter::Equals(text.as_str().into())),
                Value::Map(_) => self
                    .explicit_filter(&entry.value, "a filter")
                    .filter(|filter| {
                        let fits =
                            !matches!(filter, ValueFilter::Equals(value) if !value.is_string());
                        if !fits {
                            self.not_text(&entry.value, key);
                        }
                        fits
                    }),
                _ => {
                    self.not_text(&entry.value, key);
                    None
                }
            };
            let name = Spanned {
                value: entry.key.name.clone(),
                span: entry.key.span,
            };
            list.extend(filter.map(|filter| {
                (
                    name,
                    Spanned {
                        value: filter,
                        span: entry.value.span,
                    },
                )
            }));
        }
        Some(MetadataFilters { list })
    }

    fn not_text(&mut self, node: &Node, key: &str) {
        let message = format!(
            "the values of `{key}` are strings, and this is {}",
            node.kind()
        );
        self.push(
            Diagnostic::error(Code::ManifestType, message)
                .at(self.source, node.span, "not a string")
                .help("put it in quotes, or write `present` or `absent`"),
        );
    }
}
