//! The settings for the storages on objects: a word, a name or a field, or a list of them.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::value::{
    DiffBaseStoreWord, ProgressStoreWord, Setting, SettingValue, Words, is_field_name,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::load::manifest::reader::ManifestReader;
use crate::load::names::NameRule;
use crate::load::yaml::{Node, Value};

/// One storage, or several: all are written, and the first that has something is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Stores<W> {
    /// The storages, in the order of reading.
    pub list: Vec<SettingValue>,
    words: PhantomData<W>,
}

/// The storages of one purpose, by their variants in the runtime.
pub(super) trait StoreWords: Words {
    /// Several storages.
    const SEVERAL: &'static str;
    /// A storage in annotations with a name of its own.
    const ANNOTATIONS: &'static str;
    /// The rule for that name.
    const NAME_RULE: NameRule;
    /// An example of such a name.
    const NAME_EXAMPLE: &'static str;
    /// A storage in a field of its own.
    const FIELD: &'static str;
}

impl StoreWords for ProgressStoreWord {
    const SEVERAL: &'static str = "ProgressStore::Several";
    const ANNOTATIONS: &'static str = "ProgressStore::AnnotationsUnder";
    const NAME_RULE: NameRule = NameRule::Subdomain;
    const NAME_EXAMPLE: &'static str = "the prefix of annotations, such as `example.com`";
    const FIELD: &'static str = "ProgressStore::Field";
}

impl StoreWords for DiffBaseStoreWord {
    const SEVERAL: &'static str = "DiffBaseStore::Several";
    const ANNOTATIONS: &'static str = "DiffBaseStore::Annotation";
    const NAME_RULE: NameRule = NameRule::QualifiedName;
    const NAME_EXAMPLE: &'static str = "the name of an annotation, such as `example.com/handled`";
    const FIELD: &'static str = "DiffBaseStore::Field";
}

// === impl Stores ===

impl<W: StoreWords> Setting for Stores<W> {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self> {
        let list = match &node.value {
            Value::Seq(nodes) if nodes.is_empty() => {
                let message = format!("`{key}` has no storage");
                reader.error(Code::ManifestValue, node.span, message, "an empty list");
                return None;
            }
            Value::Seq(nodes) => {
                let stores: Vec<_> = nodes
                    .iter()
                    .filter_map(|node| store::<W>(reader, node, key))
                    .collect();
                (stores.len() == nodes.len()).then_some(stores)?
            }
            _ => vec![store::<W>(reader, node, key)?],
        };
        Some(Self {
            list,
            words: PhantomData,
        })
    }

    fn value(&self) -> SettingValue {
        match &*self.list {
            [store] => store.clone(),
            stores => SettingValue::ListVariant(W::SEVERAL, stores.to_vec()),
        }
    }
}

/// A word, `{annotations: name}`, or `{status: field}`.
fn store<W: StoreWords>(
    reader: &mut ManifestReader<'_>,
    node: &Node,
    key: &str,
) -> Option<SettingValue> {
    let what = format!("`{key}`");
    let Some(entries) = node.as_map() else {
        let word = reader.word(node, &what, W::ALL)?;
        return Some(SettingValue::Variant(word.value.variant()));
    };
    let mut fields = reader.fields(node, "a storage")?;
    let annotations = fields.optional("annotations");
    let status = fields.optional("status");
    fields.finish(reader);
    match (annotations, status) {
        (Some(name), None) if entries.len() == 1 => {
            let text = reader.string(name, "`annotations`")?.value;
            if W::NAME_RULE.accepts(&text) {
                return Some(SettingValue::TextVariant(W::ANNOTATIONS, text));
            }
            let message = format!("`annotations` cannot be {text:?}");
            reader.push(
                Diagnostic::error(Code::ManifestValue, message)
                    .at(reader.source, name.span, "not accepted by the API server")
                    .help(format!("it is {}", W::NAME_EXAMPLE)),
            );
            None
        }
        (None, Some(field)) if entries.len() == 1 => {
            let text = reader.string(field, "`status`")?.value;
            let mut parts = text.split('.');
            if parts.next() == Some("status") && text.contains('.') && parts.all(is_field_name) {
                return Some(SettingValue::TextVariant(W::FIELD, text));
            }
            let message = format!("`status` cannot be {text:?}");
            reader.push(
                Diagnostic::error(Code::ManifestValue, message)
                    .at(reader.source, field.span, "not a field of the status")
                    .help("it is a path such as `status.operator.progress`"),
            );
            None
        }
        _ => {
            reader.push(
                Diagnostic::error(Code::ManifestValue, "a storage is in one place")
                    .at(reader.source, node.span, "not one place")
                    .help("write `{annotations: …}` or `{status: …}`; several storages are a list"),
            );
            None
        }
    }
}

impl<W: StoreWords> JsonSchema for Stores<W> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}s", W::NAME.trim_end_matches("Word")).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = W::ALL.iter().map(|(word, _)| *word).collect();
        let place = |key: &str, value: Schema| {
            json_schema!({
                "type": "object",
                "additionalProperties": false,
                "required": [key],
                "properties": {key: value},
            })
        };
        let store = json_schema!({"anyOf": [
            {"type": "string", "enum": words},
            place("annotations", json_schema!({"type": "string"})),
            place("status", json_schema!({"type": "string", "pattern": "^status(\\.[-_A-Za-z0-9]+)+$"})),
        ]});
        json_schema!({"anyOf": [store, {"type": "array", "minItems": 1, "items": store}]})
    }
}
