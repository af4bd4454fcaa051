//! The keywords of a schema as the API server reads them: null, empty and false are absent.

use super::super::yaml::{MapEntry, Node, Value};
use crate::diagnostic::Span;

/// The keywords of a schema, or the entries of another mapping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keywords<'n>(pub(super) &'n Node);

/// The value of `additionalProperties`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Additional<'n> {
    Allowed(bool),
    Schema(Keywords<'n>),
}

pub(super) const TYPE: &str = "type";
pub(super) const ITEMS: &str = "items";
pub(super) const PROPERTIES: &str = "properties";
pub(super) const ADDITIONAL: &str = "additionalProperties";
pub(super) const DEFAULT: &str = "default";
pub(super) const NULLABLE: &str = "nullable";
pub(super) const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
pub(super) const PRESERVE_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";
pub(super) const EMBEDDED: &str = "x-kubernetes-embedded-resource";
pub(super) const LIST_TYPE: &str = "x-kubernetes-list-type";
pub(super) const LIST_MAP_KEYS: &str = "x-kubernetes-list-map-keys";
pub(super) const MAP_TYPE: &str = "x-kubernetes-map-type";
pub(super) const RULES: &str = "x-kubernetes-validations";

/// The keywords that hold lists of schemas which restrict values.
pub(super) const BRANCHES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

// === impl Keywords ===

impl<'n> Keywords<'n> {
    /// The value of a keyword, unless it is null.
    pub(super) fn get(self, key: &str) -> Option<&'n Node> {
        self.0.get(key).filter(|node| !node.is_null())
    }

    /// The place of a keyword, or of the schema if the keyword is absent.
    pub(super) fn at(self, key: &str) -> Span {
        self.0
            .entry(key)
            .map_or_else(|| self.start(), |entry| entry.key.span)
    }

    /// The place of the schema: its first keyword.
    pub(super) fn start(self) -> Span {
        let first = self.0.as_map().and_then(<[MapEntry]>::first);
        first.map_or(self.0.span, |entry| entry.key.span)
    }

    pub(super) fn text(self, key: &str) -> &'n str {
        self.get(key).and_then(Node::as_str).unwrap_or_default()
    }

    pub(super) fn flag(self, key: &str) -> bool {
        self.get(key).and_then(Node::as_bool).unwrap_or_default()
    }

    /// Whether the keyword has a value that is not the default of its type.
    pub(super) fn is_set(self, key: &str) -> bool {
        self.get(key).is_some_and(|node| match &node.value {
            Value::Null => false,
            Value::Bool(value) => *value,
            Value::String(text) => !text.is_empty(),
            Value::Seq(items) => !items.is_empty(),
            Value::Map(entries) => !entries.is_empty() || matches!(key, "not" | ADDITIONAL | ITEMS),
            Value::Int(_) | Value::Float(_) => true,
        })
    }

    pub(super) fn kind(self) -> &'n str {
        self.text(TYPE)
    }

    /// Whether the type is no text, which the API server cannot even read.
    pub(super) fn has_unreadable_type(self) -> bool {
        self.get(TYPE).is_some_and(|node| node.as_str().is_none())
    }

    pub(super) fn properties(self) -> &'n [MapEntry] {
        let properties = self.get(PROPERTIES).and_then(Node::as_map);
        properties.unwrap_or_default()
    }

    pub(super) fn property(self, name: &str) -> Option<Self> {
        let entry = self.properties().iter().find(|it| it.key.name == name)?;
        Some(Self(&entry.value))
    }

    pub(super) fn items(self) -> Option<Self> {
        let items = self.get(ITEMS)?;
        items.as_map().map(|_| Self(items))
    }

    pub(super) fn additional(self) -> Option<Additional<'n>> {
        let node = self.get(ADDITIONAL)?;
        Some(match node.as_bool() {
            Some(allowed) => Additional::Allowed(allowed),
            None => Additional::Schema(Self(node)),
        })
    }

    pub(super) fn not(self) -> Option<Self> {
        self.get("not").map(Self)
    }

    /// The schemas in a list.
    pub(super) fn branches(self, key: &str) -> impl Iterator<Item = Self> + 'n {
        let branches = self.get(key).and_then(Node::as_seq).unwrap_or_default();
        branches.iter().map(Self)
    }

    pub(super) fn strings(self, key: &str) -> Vec<&'n str> {
        let strings = self.get(key).and_then(Node::as_seq).unwrap_or_default();
        strings.iter().filter_map(Node::as_str).collect()
    }

    /// Whether this schema or any below is as asked.
    pub(super) fn any(self, is: &impl Fn(Self) -> bool) -> bool {
        let additional = match self.additional() {
            Some(Additional::Schema(schema)) => Some(schema),
            Some(Additional::Allowed(_)) | None => None,
        };
        let properties = self.properties().iter().map(|it| Self(&it.value));
        let branches = BRANCHES.iter().flat_map(|key| self.branches(key));
        is(self)
            || properties
                .chain(branches)
                .chain(additional)
                .chain(self.items())
                .chain(self.not())
                .any(|schema| schema.any(is))
    }

    /// Whether exactly these keywords are set.
    pub(super) fn has_only(self, keys: &[&str]) -> bool {
        let entries = self.0.as_map().unwrap_or_default().iter();
        let mut set = entries.filter(|entry| self.is_set(&entry.key.name));
        set.all(|entry| keys.contains(&entry.key.name.as_str()))
    }
}
