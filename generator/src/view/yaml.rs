//! Documents of YAML, printed from values, so that no text can change their structure.
//!
//! Written by hand: serializers write no comments above the items of a list.

use crate::diagnostic::harmless;

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
}

/// An item of a list, with the comment above it.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlItem {
    comment: Vec<String>,
    value: Yaml,
}

/// A mapping in the order of its keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct YamlMap {
    entries: Vec<YamlEntry>,
}

#[derive(Clone, Debug, PartialEq)]
struct YamlEntry {
    comment: Vec<String>,
    key: String,
    value: Yaml,
}

/// The place of a scalar, which decides about quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScalarPlace {
    Block,
    Flow,
}

/// The spaces of one level.
const INDENT: usize = 2;

/// Words that YAML 1.1 does not take for strings.
const WORDS: &[&str] = &[
    "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf",
];

/// Several documents in one text, with separators between them; each has its comment.
#[must_use]
pub fn documents(documents: &[(&[&str], YamlMap)]) -> String {
    let texts = documents.iter().map(|(comment, map)| {
        let mut text = String::new();
        write_comment(&mut text, comment.iter().copied(), 0);
        write_map(&mut text, map, 0);
        text
    });
    texts.collect::<Vec<_>>().join("---\n")
}

/// A comment of one line.
#[must_use]
pub fn comment(text: &str) -> String {
    format!("# {}", harmless(text))
}

/// A string in one line, in quotes unless every reader takes the plain form for a string.
#[must_use]
pub fn scalar(text: &str) -> String {
    string(text, ScalarPlace::Flow)
}

fn write_comment<'a>(text: &mut String, lines: impl Iterator<Item = &'a str>, indent: usize) {
    for line in lines {
        text.push_str(&format!("{:indent$}{}\n", "", comment(line)));
    }
}

fn write_map(text: &mut String, map: &YamlMap, indent: usize) {
    for entry in &map.entries {
        write_comment(text, entry.comment.iter().map(String::as_str), indent);
        let key = string(&entry.key, ScalarPlace::Block);
        text.push_str(&format!("{:indent$}{key}:", ""));
        write_value(text, &entry.value, indent + INDENT);
    }
}

/// The value after a colon or a dash, up to the end of its last line.
fn write_value(text: &mut String, value: &Yaml, indent: usize) {
    match value {
        Yaml::Map(map) if !map.entries.is_empty() => {
            text.push('\n');
            write_map(text, map, indent);
        }
        Yaml::List(items) if !items.is_empty() => {
            text.push('\n');
            write_list(text, items, indent);
        }
        other => text.push_str(&format!(" {}\n", one_line(other, ScalarPlace::Block))),
    }
}

fn write_list(text: &mut String, items: &[YamlItem], indent: usize) {
    for item in items {
        write_comment(text, item.comment.iter().map(String::as_str), indent);
        match &item.value {
            Yaml::Map(map) if map.entries.first().is_some_and(|it| it.comment.is_empty()) => {
                let mut inner = String::new();
                write_map(&mut inner, map, indent + INDENT);
                text.push_str(&format!(
                    "{:indent$}- {}",
                    "",
                    inner.trim_start_matches(' ')
                ));
            }
            value => {
                text.push_str(&format!("{:indent$}-", ""));
                write_value(text, value, indent + INDENT);
            }
        }
    }
}

/// A value in one line.
fn one_line(value: &Yaml, place: ScalarPlace) -> String {
    match value {
        Yaml::Scalar(value) => value.to_string(),
        Yaml::Text(text) => string(text, place),
        Yaml::Quoted(text) => quoted(text),
        Yaml::Flow(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|item| one_line(item, ScalarPlace::Flow))
                .collect();
            format!("[{}]", items.join(", "))
        }
        Yaml::List(items) => {
            let items = items.iter().map(|item| item.value.clone()).collect();
            one_line(&Yaml::Flow(items), place)
        }
        Yaml::Map(map) => {
            let entries: Vec<String> = map
                .entries
                .iter()
                .map(|entry| {
                    let key = string(&entry.key, ScalarPlace::Flow);
                    format!("{key}: {}", one_line(&entry.value, ScalarPlace::Flow))
                })
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

fn string(text: &str, place: ScalarPlace) -> String {
    if is_plain(text, place) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// Whether every reader takes the text without quotes for a string.
fn is_plain(text: &str, place: ScalarPlace) -> bool {
    let marks = match place {
        ScalarPlace::Block => "-_./:=@+",
        ScalarPlace::Flow => "-_./",
    };
    let is_inner = |c: char| c.is_ascii_alphanumeric() || marks.contains(c);
    let is_first = |c: char| c.is_ascii_alphanumeric() || "_/".contains(c);
    let is_option = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic());
    let starts = text.starts_with(is_first)
        || text.starts_with("../")
        || (place == ScalarPlace::Block && text.strip_prefix("--").is_some_and(is_option));
    // Numbers in all their forms, times and dates.
    let is_number = text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .chars()
            .all(|c| c.is_ascii_hexdigit() || "_.:+-xXoO".contains(c));
    starts
        && !text.ends_with(':')
        && text.chars().all(is_inner)
        && !is_number
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match (c, u32::from(c)) {
            ('"', _) => quoted.push_str("\\\""),
            ('\\', _) => quoted.push_str("\\\\"),
            ('\n', _) => quoted.push_str("\\n"),
            ('\t', _) => quoted.push_str("\\t"),
            (c, _) if c.is_ascii_graphic() || c == ' ' => quoted.push(c),
            (c, _) if c.is_alphanumeric() => quoted.push(c),
            (_, code @ 0..=0xffff) => quoted.push_str(&format!("\\u{code:04x}")),
            (_, code) => quoted.push_str(&format!("\\U{code:08x}")),
        }
    }
    quoted.push('"');
    quoted
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
        let items = items.into_iter().map(|item| YamlItem {
            comment: Vec::new(),
            value: item.into(),
        });
        Self::List(items.collect())
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
            value: value.into(),
        }
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
            key: key.to_owned(),
            value: value.into(),
        });
        self
    }
}

impl From<&serde_json::Value> for YamlMap {
    fn from(value: &serde_json::Value) -> Self {
        let entries = value.as_object().into_iter().flatten();
        entries.fold(Self::default(), |map, (key, value)| map.with(key, value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::diagnostic::{Diagnostics, Sources};
    use crate::load::yaml::{Dialect, parse};

    fn read(text: &str) -> Vec<Value> {
        let mut sources = Sources::new();
        let source = sources.add("a.yaml", text);
        let mut values = Vec::new();
        for dialect in [Dialect::Kubernetes, Dialect::Core] {
            let mut diagnostics = Diagnostics::new();
            let documents = parse(&sources, source, dialect, &mut diagnostics);
            assert!(diagnostics.is_empty(), "{diagnostics:?}\n{text}");
            values.push(documents.iter().map(|it| it.to_json()).collect::<Vec<_>>());
        }
        assert_eq!(values[0], values[1], "{text}");
        values.swap_remove(0)
    }

    #[test]
    fn the_layout_is_that_of_people() {
        let rule = YamlMap::default()
            .with("apiGroups", Yaml::Flow(vec![Yaml::Quoted(String::new())]))
            .with("verbs", Yaml::flow(["get", "*"]));
        let map = YamlMap::object("v1", "Role")
            .with_comment(&["Why."], "number", 8080)
            .with("args", Yaml::list(["--a=b", "-", "no", "a:b"]))
            .with("empty", Yaml::List(Vec::new()))
            .with(
                "rules",
                vec![YamlItem::new(vec!["get: a\nb".to_owned()], rule)],
            );
        insta::assert_snapshot!(documents(&[(&["Top."], map), (&[], YamlMap::object("v1", "Pod"))]), @r#"
        # Top.
        apiVersion: v1
        kind: Role
        # Why.
        number: 8080
        args:
          - --a=b
          - "-"
          - "no"
          - a:b
        empty: []
        rules:
          # get: a\nb
          - apiGroups: [""]
            verbs: [get, "*"]
        ---
        apiVersion: v1
        kind: Pod
        "#);
    }

    fn value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            "\\PC{0,8}",
            any::<String>(),
            "[-:#{}\\[\\],&*!|>'\"%@` \n\t0-9a-z~.=_]{0,8}",
            prop::sample::select(vec![
                "yes",
                "0x1F",
                "1:30",
                "---",
                "...",
                "<<",
                "=",
                ".inf",
                "2001-01-01",
                "\u{feff}",
                "\u{2028}",
                "\u{85}"
            ])
            .prop_map(str::to_owned),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_document_reads_as_it_was_meant(values in prop::collection::btree_map("\\PC{0,6}", value(), 1..4), comment in any::<String>()) {
            let value = json!(values);
            let map = YamlMap::from(&value);
            let text = documents(&[(&[&comment], map.clone()), (&[], map.clone())]);
            prop_assert_eq!(read(&text), vec![value.clone(), value.clone()]);
            // The same in one line.
            let text = format!("{}\n", one_line(&Yaml::Map(map), ScalarPlace::Flow));
            prop_assert_eq!(read(&text), vec![value]);
        }
    }
}
