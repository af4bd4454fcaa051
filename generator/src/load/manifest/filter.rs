//! Filters of the manifest on fields, labels and annotations.

use std::borrow::Cow;

use kopf_core::handler::filter::Combined;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::Spanned;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::load::yaml::{Node, Value};

/// Filters on labels or annotations, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetadataFilters {
    /// The filters in the order of the text.
    pub list: Vec<(Spanned<String>, Conditions<ValueFilter>)>,
}

/// Conditions that `all`, `any`, `none` and `not` combine.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions<T> {
    /// The combination; each condition has its place.
    pub combined: Combined<Spanned<T>>,
    /// The place of the whole.
    pub span: Span,
}

/// The name of a function that decides about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredicateName(pub String);

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
        let filter = generator.subschema_for::<TextConditions>();
        json_schema!({"type": "object", "additionalProperties": filter})
    }
}

/// The schema of conditions on a text.
struct TextConditions;

impl JsonSchema for TextConditions {
    fn schema_name() -> Cow<'static, str> {
        "TextFilter".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = json_schema!({"type": "string"});
        combined_schema::<Self>(generator, explicit_schemas(text.clone(), &text))
    }
}

impl JsonSchema for Conditions<ValueFilter> {
    fn schema_name() -> Cow<'static, str> {
        "ValueFilter".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let scalar = json_schema!({"type": ["string", "number", "boolean"]});
        let value = json_schema!({"not": {"type": "null"}});
        combined_schema::<Self>(generator, explicit_schemas(scalar, &value))
    }
}

impl JsonSchema for Conditions<PredicateName> {
    fn schema_name() -> Cow<'static, str> {
        "When".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        combined_schema::<Self>(generator, vec![json_schema!({"type": "string"})])
    }
}

/// A plain value, `{value: …}` and `{predicate: name}`.
fn explicit_schemas(plain: Schema, value: &Schema) -> Vec<Schema> {
    let name = json_schema!({"type": "string"});
    vec![
        plain,
        entry_schema("value", value),
        entry_schema("predicate", &name),
    ]
}

/// One of these conditions, or a combination of conditions of the type `T`.
fn combined_schema<T: JsonSchema>(
    generator: &mut SchemaGenerator,
    mut conditions: Vec<Schema>,
) -> Schema {
    let part = generator.subschema_for::<T>();
    let parts = json_schema!({"type": "array", "minItems": 1, "items": part});
    for key in ["all", "any", "none"] {
        conditions.push(entry_schema(key, &parts));
    }
    conditions.push(entry_schema("not", &part));
    json_schema!({"anyOf": conditions})
}

/// A map with this key only.
fn entry_schema(key: &str, value: &Schema) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": false,
        "required": [key],
        "properties": {key: value},
    })
}

impl ManifestReader<'_> {
    pub(super) fn value_filter(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
    ) -> Option<Conditions<ValueFilter>> {
        let node = fields.optional(key)?;
        self.conditions(node, &mut |this, node| this.value_condition(node, key))
    }

    /// The conditions under `when`: names of predicates.
    pub(super) fn when(
        &mut self,
        fields: &mut MappingFields<'_>,
    ) -> Option<Conditions<PredicateName>> {
        let node = fields.optional("when")?;
        self.conditions(node, &mut |this, node| {
            let name = this.string(node, "`when`")?;
            Some(PredicateName(name.value))
        })
    }

    fn conditions<T>(
        &mut self,
        node: &Node,
        read: &mut impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Option<Conditions<T>> {
        Some(Conditions {
            combined: self.combined(node, read)?,
            span: node.span,
        })
    }

    fn combined<T>(
        &mut self,
        node: &Node,
        read: &mut impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Option<Combined<Spanned<T>>> {
        let entry = match node.as_map() {
            Some([entry]) => Some((entry.key.name.as_str(), &entry.value)),
            _ => None,
        };
        let (key, parts) = match entry {
            Some(("not", part)) => return self.combined(part, read).map(|part| !part),
            Some((key @ ("all" | "any" | "none"), parts)) => (key, parts),
            _ => {
                let value = read(self, node)?;
                let span = node.span;
                return Some(Combined::One(Spanned { value, span }));
            }
        };
        let nodes = match parts.as_seq() {
            Some([]) => {
                let message = format!("`{key}` combines nothing");
                self.error(Code::ManifestValue, parts.span, message, "an empty list");
                return None;
            }
            Some(nodes) => nodes,
            None => {
                self.wrong_type(parts, &format!("`{key}`"), "a list");
                return None;
            }
        };
        let read_parts: Vec<_> = nodes
            .iter()
            .filter_map(|part| self.combined(part, read))
            .collect();
        let parts = (read_parts.len() == nodes.len()).then_some(read_parts)?;
        Some(match key {
            "all" => Combined::All(parts),
            "any" => Combined::Any(parts),
            _ => Combined::NoneOf(parts),
        })
    }

    fn value_condition(&mut self, node: &Node, key: &str) -> Option<ValueFilter> {
        match &node.value {
            Value::String(word) if word == "present" => Some(ValueFilter::Present),
            Value::String(word) if word == "absent" => Some(ValueFilter::Absent),
            Value::Map(_) => self.explicit_filter(node, "a value filter"),
            Value::Seq(_) => {
                self.push(
                    Diagnostic::error(Code::ManifestType, format!("`{key}` cannot be a list"))
                        .at(self.source, node.span, "a list")
                        .help(
                            "to compare with a list, write `{value: [...]}`; \
                             for one of several values, write `{any: [...]}`",
                        ),
                );
                None
            }
            _ => Some(ValueFilter::Equals(node.to_json())),
        }
    }

    /// `{value: …}` or `{predicate: name}`.
    fn explicit_filter(&mut self, node: &Node, what: &'static str) -> Option<ValueFilter> {
        let entries = node.as_map().unwrap_or_default();
        let alone = entries.len() == 1;
        let mut entries = entries.iter();
        let combination = entries
            .find(|entry| matches!(&*entry.key.name, "all" | "any" | "none" | "not"))
            .filter(|_| !alone);
        if let Some(entry) = combination {
            let key = &entry.key.name;
            self.push(
                Diagnostic::error(
                    Code::ManifestValue,
                    format!("`{key}` is the only key of its map"),
                )
                .at(self.source, entry.key.span, "beside others")
                .help("to combine it with others, write `{all: [{…}, {…}]}`"),
            );
            return None;
        }
        let mut fields = self.fields(node, what)?;
        let value = fields.optional("value");
        let predicate = fields
            .optional("predicate")
            .and_then(|node| self.string(node, "`predicate`"));
        fields.finish(self);
        match (value, predicate) {
            (Some(value), None) if alone => Some(ValueFilter::Equals(value.to_json())),
            (None, Some(predicate)) if alone => Some(ValueFilter::Predicate(predicate)),
            _ => {
                let message =
                    format!("{what} is `value`, `predicate`, `all`, `any`, `none` or `not`");
                self.error(
                    Code::ManifestValue,
                    node.span,
                    message,
                    "one of them is required",
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
            let read = &mut |this: &mut Self, node: &Node| this.text_condition(node, key);
            let conditions = self.conditions(&entry.value, read);
            let name = Spanned {
                value: entry.key.name.clone(),
                span: entry.key.span,
            };
            list.extend(conditions.map(|conditions| (name, conditions)));
        }
        Some(MetadataFilters { list })
    }

    fn text_condition(&mut self, node: &Node, key: &str) -> Option<ValueFilter> {
        let filter = match &node.value {
            Value::String(word) if word == "present" => ValueFilter::Present,
            Value::String(word) if word == "absent" => ValueFilter::Absent,
            Value::String(text) => ValueFilter::Equals(text.as_str().into()),
            Value::Map(_) => self.explicit_filter(node, "a filter")?,
            _ => {
                self.not_text(node, key);
                return None;
            }
        };
        if matches!(&filter, ValueFilter::Equals(value) if !value.is_string()) {
            self.not_text(node, key);
            return None;
        }
        Some(filter)
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
