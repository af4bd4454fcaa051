//! YAML as a tree of values and comments, so that no text can change the structure of a document; in a
//! chart, Helm computes some of the values and parts.

use crate::helm_expression::HelmExpression;

/// The documents of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct YamlDocuments {
    pub(crate) documents: Vec<YamlDocument>,
}

/// A document, with the comment above it.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlDocument {
    pub(crate) comment: Vec<String>,
    pub(crate) body: YamlBody,
}

/// The content of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum YamlBody {
    /// A mapping.
    Map(YamlMap),
    /// YAML of the user, with comments of its own.
    Verbatim(String),
}

/// A value of YAML.
#[derive(Clone, Debug, PartialEq)]
pub enum Yaml {
    /// Null, a boolean or a number.
    Scalar(serde_json::Value),
    /// A string.
    Text(String),
    /// A string that is always printed in quotes.
    Quoted(String),
    /// A list in one line, of scalars.
    Flow(Vec<Self>),
    /// A list with a line for each item.
    List(Vec<YamlItem>),
    /// A mapping.
    Map(YamlMap),
    /// What Helm computes, in one line; only in a document of a chart.
    Computed(HelmExpression),
}

/// An item of a list, with the comment above it.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlItem {
    pub(crate) comment: Vec<String>,
    pub(crate) part: ChartPart,
    pub(crate) value: Yaml,
}

/// Whether a part of a document is always there; other parts occur only in a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ChartPart {
    /// It is.
    #[default]
    Always,
    /// If this holds.
    If(HelmExpression),
    /// Once for each element of a list, which the variable holds.
    ForEach(&'static str, HelmExpression),
}

/// A document of a chart, with its comment.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartDocument {
    /// Whether it is there.
    pub part: ChartPart,
    /// The lines above it.
    pub comment: Vec<String>,
    /// The object.
    pub map: YamlMap,
}

/// A mapping in the order of its keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct YamlMap {
    pub(crate) entries: Vec<YamlEntry>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlEntry {
    pub(crate) comment: Vec<String>,
    pub(crate) part: ChartPart,
    pub(crate) key: String,
    pub(crate) value: Yaml,
}

/// Documents that each have their comment.
#[must_use]
pub fn documents<const N: usize>(documents: [(&[&str], YamlMap); N]) -> YamlDocuments {
    documents.into_iter().collect()
}

// === impl YamlDocuments ===

impl<'a> FromIterator<(&'a [&'a str], YamlMap)> for YamlDocuments {
    fn from_iter<I: IntoIterator<Item = (&'a [&'a str], YamlMap)>>(documents: I) -> Self {
        let documents = documents.into_iter();
        documents
            .map(|(comment, map)| YamlDocument::new(comment, map))
            .collect()
    }
}

impl FromIterator<YamlDocument> for YamlDocuments {
    fn from_iter<I: IntoIterator<Item = YamlDocument>>(documents: I) -> Self {
        Self {
            documents: documents.into_iter().collect(),
        }
    }
}

// === impl YamlDocument ===

impl YamlDocument {
    /// A mapping below a comment.
    #[must_use]
    pub fn new(comment: &[&str], map: YamlMap) -> Self {
        Self {
            comment: comment.iter().map(|&line| line.to_owned()).collect(),
            body: YamlBody::Map(map),
        }
    }

    /// YAML of the user below a comment; its last line has an end.
    #[must_use]
    pub fn verbatim(comment: &str, text: String) -> Self {
        Self {
            comment: vec![comment.to_owned()],
            body: YamlBody::Verbatim(text),
        }
    }
}

// === impl Yaml ===

impl Yaml {
    /// A list of texts in one line.
    pub fn flow<T: Into<String>>(items: impl IntoIterator<Item = T>) -> Self {
        let items = items.into_iter();
        Self::Flow(items.map(|item| Self::Text(item.into())).collect())
    }

    /// A list with a line for each item.
    pub fn list<T: Into<Self>>(items: impl IntoIterator<Item = T>) -> Self {
        let items = items.into_iter();
        Self::List(items.map(|item| YamlItem::new(Vec::new(), item)).collect())
    }
}

impl From<&str> for Yaml {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Yaml {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Yaml {
    fn from(value: bool) -> Self {
        Self::Scalar(value.into())
    }
}

impl From<i32> for Yaml {
    fn from(value: i32) -> Self {
        Self::Scalar(value.into())
    }
}

impl From<YamlMap> for Yaml {
    fn from(map: YamlMap) -> Self {
        Self::Map(map)
    }
}

impl From<Vec<YamlItem>> for Yaml {
    fn from(items: Vec<YamlItem>) -> Self {
        Self::List(items)
    }
}

impl From<HelmExpression> for Yaml {
    fn from(expression: HelmExpression) -> Self {
        Self::Computed(expression)
    }
}

impl From<&serde_json::Value> for Yaml {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::String(text) => Self::Text(text.clone()),
            serde_json::Value::Array(items) => Self::list(items),
            serde_json::Value::Object(_) => Self::Map(value.into()),
            scalar => Self::Scalar(scalar.clone()),
        }
    }
}

// === impl YamlItem ===

impl YamlItem {
    /// An item below a comment.
    pub fn new(comment: Vec<String>, value: impl Into<Yaml>) -> Self {
        Self {
            comment,
            part: ChartPart::Always,
            value: value.into(),
        }
    }

    /// The item as a part of a chart that is not always there.
    #[must_use]
    pub fn only(mut self, part: ChartPart) -> Self {
        self.part = part;
        self
    }
}

// === impl YamlEntry ===

impl YamlEntry {
    /// Whether nothing is above its key.
    pub(crate) fn is_bare(&self) -> bool {
        self.comment.is_empty() && self.part == ChartPart::Always
    }
}

// === impl YamlMap ===

impl YamlMap {
    /// An object of Kubernetes.
    #[must_use]
    pub fn object(api_version: &str, kind: &str) -> Self {
        Self::default()
            .with("apiVersion", api_version)
            .with("kind", kind)
    }

    /// The mapping with one more entry.
    #[must_use]
    pub fn with(self, key: &str, value: impl Into<Yaml>) -> Self {
        self.with_comment(&[], key, value)
    }

    /// The mapping with one more entry, below a comment.
    #[must_use]
    pub fn with_comment(mut self, comment: &[&str], key: &str, value: impl Into<Yaml>) -> Self {
        self.entries.push(YamlEntry {
            comment: comment.iter().map(|&line| line.to_owned()).collect(),
            part: ChartPart::Always,
            key: key.to_owned(),
            value: value.into(),
        });
        self
    }

    /// The mapping with one more entry, if a condition of a chart holds.
    #[must_use]
    pub fn with_if(mut self, condition: HelmExpression, key: &str, value: impl Into<Yaml>) -> Self {
        self = self.with(key, value);
        if let Some(entry) = self.entries.last_mut() {
            entry.part = ChartPart::If(condition);
        }
        self
    }

    /// The mapping with the entries of another one below its own.
    #[must_use]
    pub fn joined(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    /// The mapping without an entry.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        self.entries.retain(|entry| entry.key != key);
        self
    }

    /// The mapping with another value of an entry, which stays in its place below its comment.
    #[must_use]
    pub fn replaced(mut self, key: &str, value: impl Into<Yaml>) -> Self {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key) {
            entry.value = value.into();
        }
        self
    }
}

impl From<&serde_json::Value> for YamlMap {
    fn from(value: &serde_json::Value) -> Self {
        let entries = value.as_object().into_iter().flatten();
        entries.fold(Self::default(), |map, (key, value)| map.with(key, value))
    }
}
