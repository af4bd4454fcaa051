//! The types of setting values: reads them, and converts them for the runtime.

use std::borrow::Cow;
use std::time::Duration;

use kopf_core::object::path::FieldPath;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::diagnostic::{Code, Diagnostic};
use crate::load::manifest::duration::ManifestDuration;
use crate::load::manifest::reader::{ManifestReader, whole_number};
use crate::load::manifest::spanned::Spanned;
use crate::load::names::NameRule;
use crate::load::yaml::Node;

/// A value for the runtime.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// A duration.
    Duration(Duration),
    /// Several durations.
    Durations(Vec<Duration>),
    /// A boolean.
    Flag(bool),
    /// A number.
    Count(u32),
    /// A number where the runtime has no limit by default.
    Limit(u32),
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// A variant of an enum of the runtime.
    Variant(&'static str),
    /// A variant with a text.
    TextVariant(&'static str, String),
    /// A variant with a list of values.
    ListVariant(&'static str, Vec<SettingValue>),
}

/// A type of setting values.
pub(super) trait Setting: Sized {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self>;
    fn value(&self) -> SettingValue;
}

/// A number of at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positive(pub u32);

/// A limit of at least one; there is none if it is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperLimit(pub Positive);

/// A duration that is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositiveDuration(pub Duration);

/// The prefix of annotation names, without the slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationPrefix(pub String);

/// The name of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName(pub String);

/// Fields of an object, with dots between their parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldList(pub Vec<String>);

/// Pauses, one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseList(pub Vec<Duration>);

/// One of a few words, each of which is a variant of an enum of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<W>(pub W);

/// A set of words.
pub(super) trait Words: Copy + 'static {
    const NAME: &'static str;
    const ALL: &'static [(&'static str, Self)];
    fn variant(self) -> &'static str;
}

/// Defines words and their values in the runtime.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal => $rust:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$word_doc])* $variant,)*
        }

        impl Words for $name {
            const NAME: &'static str = stringify!($name);
            const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)*];

            fn variant(self) -> &'static str {
                match self {
                    $(Self::$variant => $rust,)*
                }
            }
        }
    };
}

words! {
    /// The order of handlers, and how many run before the next write.
    LifecycleWord {
        /// One at a time, those with the fewest attempts first.
        Asap = "asap" => "Lifecycle::Asap",
        /// One at a time, strictly in order.
        OneByOne = "one-by-one" => "Lifecycle::OneByOne",
        /// All, in order.
        AllAtOnce = "all-at-once" => "Lifecycle::AllAtOnce",
        /// One at a time, at random.
        Randomized = "randomized" => "Lifecycle::Randomized",
        /// All, in random order.
        Shuffled = "shuffled" => "Lifecycle::Shuffled",
    }
}

words! {
    /// The level of an event.
    PostingLevelWord {
        /// For debugging.
        Debug = "debug" => "PostingLevel::Debug",
        /// Normal operation.
        Info = "info" => "PostingLevel::Info",
        /// Needs attention.
        Warning = "warning" => "PostingLevel::Warning",
        /// Failed.
        Error = "error" => "PostingLevel::Error",
    }
}

words! {
    /// The calls of handlers that are posted.
    ProgressPostingWord {
        /// Nothing.
        Nothing = "nothing" => "ProgressPosting::Nothing",
        /// Failures.
        Failures = "failures" => "ProgressPosting::Failures",
        /// Failures, successes, and the end of all handlers.
        Everything = "everything" => "ProgressPosting::Everything",
    }
}

words! {
    /// The store for the progress of handlers.
    ProgressStoreWord {
        /// Annotations; progress in the status is read and removed.
        Smart = "smart" => "ProgressStore::Smart",
        /// In annotations.
        Annotations = "annotations" => "ProgressStore::Annotations",
        /// In the status.
        Status = "status" => "ProgressStore::Status",
    }
}

words! {
    /// The store for the last handled state.
    DiffBaseStoreWord {
        /// In an annotation.
        Annotations = "annotations" => "DiffBaseStore::Annotations",
        /// In the status.
        Status = "status" => "DiffBaseStore::Status",
    }
}

// === impl Setting ===

impl Setting for ManifestDuration {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self> {
        reader.duration_of(node, key).map(|it| it.value)
    }

    fn value(&self) -> SettingValue {
        SettingValue::Duration(self.0)
    }
}

impl Setting for PositiveDuration {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self> {
        let Spanned { value, span } = reader.duration_of(node, key)?;
        if value.0.is_zero() {
            let message = format!("`{key}` must be longer than zero");
            reader.error(Code::ManifestValue, span, message, "zero");
            return None;
        }
        Some(Self(value.0))
    }

    fn value(&self) -> SettingValue {
        SettingValue::Duration(self.0)
    }
}

impl Setting for PauseList {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self> {
        let item = |reader: &mut ManifestReader<'_>, node: &Node| reader.duration_of(node, key);
        let pauses = reader.list(node, &format!("`{key}`"), item)?;
        Some(Self(pauses.into_iter().map(|it| it.value.0).collect()))
    }

    fn value(&self) -> SettingValue {
        SettingValue::Durations(self.0.clone())
    }
}

impl Setting for Positive {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self> {
        match whole_number(node).map(u32::try_from) {
            Some(Ok(value)) if value > 0 => Some(Self(value)),
            Some(_) => {
                let message = format!("`{key}` must be between 1 and {}", u32::MAX);
                reader.error(Code::ManifestValue, node.span, message, "out of range");
                None
            }
            None => {
                reader.wrong_type(node, &format!("`{key}`"), "a whole number");
                None
            }
        }
    }

    fn value(&self) -> SettingValue {
        SettingValue::Count(self.0)
    }
}

impl Setting for UpperLimit {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self> {
        Positive::read(reader, node, key).map(Self)
    }

    fn value(&self) -> SettingValue {
        SettingValue::Limit(self.0.0)
    }
}

impl Setting for bool {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self> {
        let value = node.as_bool();
        if value.is_none() {
            reader.wrong_type(node, &format!("`{key}`"), "true or false");
        }
        value
    }

    fn value(&self) -> SettingValue {
        SettingValue::Flag(*self)
    }
}

impl Setting for String {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self> {
        let text = reader.string(node, &format!("`{key}`"))?.value;
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._/".contains(c);
        if text.is_empty() || text.len() > 128 || !text.chars().all(fits) {
            let message = format!("`{key}` cannot be {text:?}");
            reader.push(
                Diagnostic::error(Code::ManifestValue, message)
                    .at(reader.source, node.span, "not accepted by the API server")
                    .help("use 1 to 128 letters, digits, `-`, `.`, `_` and `/`"),
            );
            return None;
        }
        Some(text)
    }

    fn value(&self) -> SettingValue {
        SettingValue::Text(self.clone())
    }
}

impl Setting for AnnotationPrefix {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self> {
        let text = reader.string(node, &format!("`{key}`"))?.value;
        // The length of the name after the slash does not count.
        if !NameRule::Subdomain.accepts(&text) {
            let message = format!("`{key}` cannot be {text:?}");
            reader.push(
                Diagnostic::error(Code::ManifestValue, message)
                    .at(reader.source, node.span, "not the name of a domain")
                    .help("annotations begin with a name such as `my-operator.example.com`"),
            );
            return None;
        }
        Some(Self(text))
    }

    fn value(&self) -> SettingValue {
        SettingValue::Text(self.0.clone())
    }
}

impl Setting for FieldName {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self> {
        let text = reader.string(node, &format!("`{key}`"))?.value;
        if !is_field_name(&text) {
            let message = format!("`{key}` cannot be {text:?}");
            reader.push(
                Diagnostic::error(Code::ManifestValue, message)
                    .at(reader.source, node.span, "not the name of one field")
                    .help("use letters, digits, `-` and `_`"),
            );
            return None;
        }
        Some(Self(text))
    }

    fn value(&self) -> SettingValue {
        SettingValue::Text(self.0.clone())
    }
}

impl Setting for FieldList {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self> {
        let item = |reader: &mut ManifestReader<'_>, node: &Node| {
            let path = reader.string(node, &format!("`{key}`"))?.value;
            let parts = FieldPath::parse(&path).unwrap_or_default();
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
            if !parts.parts().is_empty() && parts.parts().iter().all(|it| it.chars().all(fits)) {
                return Some(path);
            }
            let message = format!("{path:?} is not the path of a field");
            reader.push(
                Diagnostic::error(Code::ManifestValue, message)
                    .at(reader.source, node.span, "not a path")
                    .help("names with dots between them, such as `spec.replicas`, or `metadata.labels[\"example.com/tier\"]`"),
            );
            None
        };
        Some(Self(reader.list(node, &format!("`{key}`"), item)?))
    }

    fn value(&self) -> SettingValue {
        SettingValue::Texts(self.0.clone())
    }
}

pub(super) fn is_field_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    !text.is_empty() && text.chars().all(fits)
}

impl<W: Words> Setting for Word<W> {
    fn read(reader: &mut ManifestReader<'_>, node: &Node, key: &str) -> Option<Self> {
        let word = reader.word(node, &format!("`{key}`"), W::ALL)?;
        Some(Self(word.value))
    }

    fn value(&self) -> SettingValue {
        SettingValue::Variant(self.0.variant())
    }
}

// === impl JsonSchema ===

impl JsonSchema for Positive {
    fn schema_name() -> Cow<'static, str> {
        "Positive".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": u32::MAX})
    }
}

impl JsonSchema for UpperLimit {
    fn schema_name() -> Cow<'static, str> {
        Positive::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Positive::json_schema(generator)
    }
}

impl JsonSchema for PositiveDuration {
    fn schema_name() -> Cow<'static, str> {
        "PositiveDuration".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        ManifestDuration::json_schema(generator)
    }
}

impl JsonSchema for AnnotationPrefix {
    fn schema_name() -> Cow<'static, str> {
        "Prefix".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": 253,
            "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        })
    }
}

impl JsonSchema for FieldName {
    fn schema_name() -> Cow<'static, str> {
        "FieldName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[-_A-Za-z0-9]+$"})
    }
}

impl JsonSchema for FieldList {
    fn schema_name() -> Cow<'static, str> {
        "Fields".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let path = json_schema!({
            "type": "string",
            "pattern": "^([-_/A-Za-z0-9]+|\\[\"[-_./A-Za-z0-9]+\"\\])(\\.[-_/A-Za-z0-9]+|\\[\"[-_./A-Za-z0-9]+\"\\])*$",
        });
        json_schema!({"type": "array", "items": path})
    }
}

impl JsonSchema for PauseList {
    fn schema_name() -> Cow<'static, str> {
        "Pauses".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "items": generator.subschema_for::<ManifestDuration>()})
    }
}

impl<W: Words> JsonSchema for Word<W> {
    fn schema_name() -> Cow<'static, str> {
        W::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = W::ALL.iter().map(|(word, _)| *word).collect();
        json_schema!({"type": "string", "enum": words})
    }
}
