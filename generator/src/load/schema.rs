//! Reads the OpenAPI v3 schemas of a CustomResourceDefinition, as the API server does.

use serde_json::Value as Json;

use super::names::server_reason;
use super::yaml::{MapEntry, MapKey, Node, Value};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Span};

/// A schema; absent keywords are `None`, empty or false.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// Its place in the text.
    pub span: Span,
    /// `type`.
    pub kind: Option<SchemaType>,
    /// `format`.
    pub format: Option<String>,
    /// `description`, or else `title`.
    pub description: Option<String>,
    /// `properties`, in the order of the text.
    pub properties: Vec<Property>,
    /// `required`.
    pub required: Vec<String>,
    /// `additionalProperties`.
    pub additional: Option<AdditionalProperties>,
    /// `items`.
    pub items: Option<Box<Schema>>,
    /// `enum`.
    pub values: Option<Vec<Json>>,
    /// `default`.
    pub default: Option<Json>,
    /// The place of `default`.
    pub default_span: Span,
    /// `nullable`.
    pub nullable: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `oneOf`.
    pub one_of: Vec<Schema>,
    /// `anyOf`.
    pub any_of: Vec<Schema>,
    /// `allOf`.
    pub all_of: Vec<Schema>,
    /// Keywords that only restrict values.
    pub limits: SchemaLimits,
    /// Whether the reason for a missing type is reported already.
    pub is_reported: bool,
}

/// The value of `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemaType {
    /// `array`
    Array,
    /// `boolean`
    Boolean,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `object`
    Object,
    /// `string`
    String,
}

/// A named property.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// The name in JSON.
    pub name: String,
    /// The place of the name.
    pub span: Span,
    /// The schema.
    pub schema: Schema,
}

/// The value of `additionalProperties`.
#[derive(Clone, Debug, PartialEq)]
pub enum AdditionalProperties {
    /// `true` or an empty schema.
    Any,
    /// `false`.
    None,
    /// Values of this schema.
    Schema(Box<Schema>),
}

/// Keywords that only restrict values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaLimits {
    /// `minimum`, `maxLength`, `pattern` and the like, in the order of the text.
    pub keywords: Vec<(&'static str, Json)>,
    /// `x-kubernetes-validations`.
    pub rules: Vec<CelRule>,
    /// `x-kubernetes-list-type`.
    pub list_type: Option<String>,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`.
    pub map_type: Option<String>,
}

/// A CEL rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CelRule {
    /// `rule`.
    pub rule: String,
    /// `message`.
    pub message: Option<String>,
}

/// Keywords of [`SchemaLimits::keywords`].
const LIMITS: &[&str] = &[
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Keywords without information for types, or that other code reads.
const IGNORED: &[&str] = &["title", "example", "externalDocs", "id", "$schema"];

/// The type that the value of a keyword must have.
#[derive(Clone, Copy)]
enum KeywordType {
    Boolean,
    Integer,
    Mapping,
    Number,
    String,
}

/// The types of the keywords that are not interpreted.
const KEYWORD_TYPES: &[(&str, KeywordType)] = &[
    ("$ref", KeywordType::String),
    ("$schema", KeywordType::String),
    ("definitions", KeywordType::Mapping),
    ("dependencies", KeywordType::Mapping),
    ("exclusiveMaximum", KeywordType::Boolean),
    ("exclusiveMinimum", KeywordType::Boolean),
    ("externalDocs", KeywordType::Mapping),
    ("id", KeywordType::String),
    ("maxItems", KeywordType::Integer),
    ("maxLength", KeywordType::Integer),
    ("maxProperties", KeywordType::Integer),
    ("maximum", KeywordType::Number),
    ("minItems", KeywordType::Integer),
    ("minLength", KeywordType::Integer),
    ("minProperties", KeywordType::Integer),
    ("minimum", KeywordType::Number),
    ("multipleOf", KeywordType::Number),
    ("pattern", KeywordType::String),
    ("patternProperties", KeywordType::Mapping),
    ("title", KeywordType::String),
    ("uniqueItems", KeywordType::Boolean),
];

/// Keywords for which the API server rejects a definition.
pub(super) const UNSUPPORTED: [&str; 6] = [
    "id",
    "$ref",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
];

/// Keywords that the API server forbids or does not know in structural schemas.
const FORBIDDEN: &[&str] = &[
    "$ref",
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "patternProperties",
    "readOnly",
    "writeOnly",
    "xml",
    "additionalItems",
];

/// Reads schemas and reports what the API server would reject.
pub(super) struct SchemaReader<'a> {
    pub(super) source: SourceId,
    /// Whether the reasons of the API server against the definition are reported.
    pub(super) is_judged: bool,
    pub(super) diagnostics: &'a mut Diagnostics,
}

// === impl Schema ===

impl Schema {
    /// The schema of a property.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Self> {
        let property = self.properties.iter().find(|p| p.name == name)?;
        Some(&property.schema)
    }

    /// Whether a property is required.
    #[must_use]
    pub fn requires(&self, name: &str) -> bool {
        self.required.iter().any(|required| required == name)
    }

    /// The value of a restricting keyword.
    #[must_use]
    pub fn limit(&self, keyword: &str) -> Option<&Json> {
        let (_, value) = self
            .limits
            .keywords
            .iter()
            .find(|(name, _)| *name == keyword)?;
        Some(value)
    }

    /// The text of `pattern`.
    #[must_use]
    pub fn pattern(&self) -> Option<&str> {
        self.limit("pattern").and_then(Json::as_str)
    }
}

// === impl SchemaReader ===

impl SchemaReader<'_> {
    pub(super) fn schema(&mut self, node: &Node) -> Schema {
        let mut schema = Schema {
            span: node.span,
            is_reported: self.is_judged,
            ..Schema::default()
        };
        let Some(entries) = node.as_map() else {
            if !node.is_null() {
                self.expected("a schema is a mapping", node);
            }
            return schema;
        };
        for entry in entries {
            self.keyword(&mut schema, &entry.key, &entry.value);
        }
        if schema.description.is_none() {
            schema.description = node.get("title").and_then(Node::as_str).map(str::to_owned);
        }
        schema
    }

    fn keyword(&mut self, schema: &mut Schema, key: &MapKey, node: &Node) {
        match key.name.as_str() {
            "type" => {
                schema.kind = self.kind(node);
                schema.is_reported |= schema.kind.is_none() && node.as_str() != Some("");
            }
            "format" => schema.format = self.string(key, node),
            "description" => schema.description = self.string(key, node),
            "properties" => schema.properties = self.properties(node),
            "required" => schema.required = self.strings(key, node),
            "additionalProperties" => schema.additional = Some(self.additional(node)),
            "items" => schema.items = self.items(node),
            "enum" => {
                schema.values = self
                    .list(key, node)
                    .map(|l| l.iter().map(Node::to_json).collect())
            }
            "default" => {
                schema.default = (!node.is_null()).then(|| node.to_json());
                schema.default_span = key.span;
            }
            "nullable" => schema.nullable = self.boolean(key, node),
            "x-kubernetes-int-or-string" => schema.int_or_string = self.boolean(key, node),
            "x-kubernetes-preserve-unknown-fields" => {
                schema.preserve_unknown = self.boolean(key, node);
            }
            "x-kubernetes-embedded-resource" => schema.embedded_resource = self.boolean(key, node),
            "oneOf" => schema.one_of = self.schemas(key, node),
            "anyOf" => schema.any_of = self.schemas(key, node),
            "allOf" => schema.all_of = self.schemas(key, node),
            // It says nothing about types, but must be a schema.
            "not" => drop(self.schema(node)),
            "x-kubernetes-validations" => schema.limits.rules = self.rules(key, node),
            "x-kubernetes-list-type" => schema.limits.list_type = self.string(key, node),
            "x-kubernetes-list-map-keys" => schema.limits.list_map_keys = self.strings(key, node),
            "x-kubernetes-map-type" => schema.limits.map_type = self.string(key, node),
            other => self.restricting_or_unknown(schema, other, key, node),
        }
    }

    fn restricting_or_unknown(
        &mut self,
        schema: &mut Schema,
        keyword: &str,
        key: &MapKey,
        node: &Node,
    ) {
        let known = KEYWORD_TYPES.iter().find(|(name, _)| *name == keyword);
        if let Some((_, kind)) = known.filter(|(_, kind)| !kind.accepts(node)) {
            return self.expected(&format!("`{keyword}` is {}", kind.article()), node);
        }
        if let Some(name) = LIMITS.iter().find(|name| **name == keyword) {
            schema.limits.keywords.push((name, node.to_json()));
        } else if FORBIDDEN.contains(&keyword) {
            self.unread_schemas(keyword, node);
            let warning = Diagnostic::warning(
                Code::NotStructural,
                format!("`{keyword}` is not allowed in a structural schema"),
            );
            let reason = UNSUPPORTED.contains(&keyword);
            let reason = reason.then(|| server_reason(&format!("{keyword} is not supported")));
            let warning = warning.at(self.source, key.span, "ignored");
            self.diagnostics.push(warning.maybe_help(reason));
            schema.is_reported = true;
        } else if !IGNORED.contains(&keyword) && !keyword.starts_with("x-") {
            self.diagnostics.push(
                Diagnostic::warning(
                    Code::InvalidSchema,
                    format!("`{keyword}` is not a keyword of schemas"),
                )
                .at(self.source, key.span, "ignored"),
            );
        }
    }

    /// Checks the schemas under a keyword that is forbidden: the API server reads them first.
    fn unread_schemas(&mut self, keyword: &str, node: &Node) {
        let entries = node.as_map().unwrap_or_default();
        match keyword {
            "definitions" | "patternProperties" => {
                for entry in entries {
                    drop(self.schema(&entry.value));
                }
            }
            "dependencies" => {
                for entry in entries {
                    match &entry.value.value {
                        Value::Map(_) => drop(self.schema(&entry.value)),
                        Value::Seq(_) => drop(self.strings(&entry.key, &entry.value)),
                        _ => {}
                    }
                }
            }
            "additionalItems" if !matches!(node.value, Value::Bool(_)) => drop(self.schema(node)),
            _ => {}
        }
    }

    fn kind(&mut self, node: &Node) -> Option<SchemaType> {
        let kind = match node.as_str() {
            Some("array") => SchemaType::Array,
            Some("boolean") => SchemaType::Boolean,
            Some("integer") => SchemaType::Integer,
            Some("number") => SchemaType::Number,
            Some("object") => SchemaType::Object,
            Some("string") => SchemaType::String,
            Some("") => return None,
            other => {
                let reason = match other {
                    Some(other) => format!("Unsupported value: {other:?}"),
                    None => format!("cannot unmarshal {} into Go struct field", json_type(node)),
                };
                let what = "`type` is one of array, boolean, integer, number, object, string";
                let error = self.unexpected(what, node);
                self.diagnostics.push(error.help(server_reason(&reason)));
                return None;
            }
        };
        Some(kind)
    }

    fn properties(&mut self, node: &Node) -> Vec<Property> {
        if node.is_null() {
            return Vec::new();
        }
        let Some(entries) = node.as_map() else {
            self.expected("`properties` is a mapping", node);
            return Vec::new();
        };
        entries
            .iter()
            .map(|entry| Property {
                name: entry.key.name.clone(),
                span: entry.key.span,
                schema: self.schema(&entry.value),
            })
            .collect()
    }

    fn additional(&mut self, node: &Node) -> AdditionalProperties {
        match &node.value {
            Value::Bool(true) | Value::Null => AdditionalProperties::Any,
            Value::Bool(false) => AdditionalProperties::None,
            Value::Map(entries) if entries.is_empty() => AdditionalProperties::Any,
            _ => AdditionalProperties::Schema(Box::new(self.schema(node))),
        }
    }

    /// `items` may be a list of schemas in JSON Schema, but never in a structural schema.
    fn items(&mut self, node: &Node) -> Option<Box<Schema>> {
        match &node.value {
            Value::Null => None,
            Value::Seq(_) => {
                let error = self.unexpected("`items` is one schema", node);
                let reason = "items must be a schema object and not an array";
                self.diagnostics.push(error.help(server_reason(reason)));
                None
            }
            _ => Some(Box::new(self.schema(node))),
        }
    }

    fn schemas(&mut self, key: &MapKey, node: &Node) -> Vec<Schema> {
        let nodes = self.list(key, node).unwrap_or_default();
        nodes.iter().map(|node| self.schema(node)).collect()
    }

    fn rules(&mut self, key: &MapKey, node: &Node) -> Vec<CelRule> {
        let nodes = self.list(key, node).unwrap_or_default();
        for node in nodes {
            match node.as_map() {
                Some(entries) => entries.iter().for_each(|it| self.rule_part(it)),
                None if node.is_null() => {}
                None => self.expected("a rule is a mapping", node),
            }
        }
        nodes
            .iter()
            .map(|node| CelRule {
                rule: text(node, "rule").unwrap_or_default(),
                message: text(node, "message"),
            })
            .collect()
    }

    /// Checks the type of a part of a CEL rule.
    fn rule_part(&mut self, entry: &MapEntry) {
        let name = entry.key.name.as_str();
        let kind = match name {
            "rule" | "message" | "messageExpression" | "reason" | "fieldPath" => {
                KeywordType::String
            }
            "optionalOldSelf" => KeywordType::Boolean,
            _ => return,
        };
        if !kind.accepts(&entry.value) {
            let what = format!("`{name}` is {}", kind.article());
            self.expected(&what, &entry.value);
        }
    }

    fn strings(&mut self, key: &MapKey, node: &Node) -> Vec<String> {
        let nodes = self.list(key, node).unwrap_or_default();
        nodes
            .iter()
            .filter_map(|node| self.string(key, node))
            .collect()
    }

    fn list<'n>(&mut self, key: &MapKey, node: &'n Node) -> Option<&'n [Node]> {
        match &node.value {
            Value::Seq(nodes) => Some(nodes),
            Value::Null => None,
            _ => {
                self.expected(&format!("`{}` is a list", key.name), node);
                None
            }
        }
    }

    fn string(&mut self, key: &MapKey, node: &Node) -> Option<String> {
        match &node.value {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            _ => {
                self.expected(&format!("`{}` takes strings", key.name), node);
                None
            }
        }
    }

    fn boolean(&mut self, key: &MapKey, node: &Node) -> bool {
        match node.value {
            Value::Bool(value) => value,
            Value::Null => false,
            _ => {
                self.expected(&format!("`{}` is a boolean", key.name), node);
                false
            }
        }
    }

    fn expected(&mut self, what: &str, node: &Node) {
        let error = self.unexpected(what, node);
        let reason = format!("cannot unmarshal {} into Go", json_type(node));
        self.diagnostics.push(error.help(server_reason(&reason)));
    }

    fn unexpected(&self, what: &str, node: &Node) -> Diagnostic {
        let label = format!("this is {}", node.kind());
        Diagnostic::error(Code::InvalidSchema, what).at(self.source, node.span, label)
    }
}

// === impl KeywordType ===

impl KeywordType {
    /// Whether the API server reads a value as one of this type; null is absent.
    fn accepts(self, node: &Node) -> bool {
        match (self, &node.value) {
            (_, Value::Null)
            | (Self::Boolean, Value::Bool(_))
            | (Self::Mapping, Value::Map(_))
            | (Self::Number, Value::Int(_) | Value::Float(_))
            | (Self::String, Value::String(_)) => true,
            (Self::Integer, Value::Int(value)) => i64::try_from(*value).is_ok(),
            _ => false,
        }
    }

    const fn article(self) -> &'static str {
        match self {
            Self::Boolean => "a boolean",
            Self::Integer => "an integer of 64 bits",
            Self::Mapping => "a mapping",
            Self::Number => "a number",
            Self::String => "a string",
        }
    }
}

/// The name that the JSON reader of the API server has for the type of a value.
const fn json_type(node: &Node) -> &'static str {
    match node.value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Seq(_) => "array",
        Value::Map(_) => "object",
    }
}

fn text(node: &Node, key: &str) -> Option<String> {
    node.get(key).and_then(Node::as_str).map(str::to_owned)
}
