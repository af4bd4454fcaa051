//! The text of YAML, and of YAML that Helm computes.
//!
//! Written by hand: serializers write no comments above the items of a list.

use crate::diagnostic::harmless;
use crate::helm_expression::HelmExpression;
use crate::yaml::{ChartDocument, ChartPart, Yaml, YamlBody, YamlDocuments, YamlEntry, YamlItem};

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

/// The text of a document.
#[derive(Debug)]
struct Printer {
    text: String,
    format: PrintFormat,
}

/// The readers of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrintFormat {
    /// YAML readers.
    Plain,
    /// Helm, and then YAML readers.
    Template,
}

/// The text of several documents, with separators between them.
#[must_use]
pub fn documents(documents: &YamlDocuments) -> String {
    let mut printer = Printer::new(PrintFormat::Plain);
    for (index, document) in documents.documents.iter().enumerate() {
        if index > 0 {
            printer.literal("---\n");
        }
        printer.comment(document.comment.iter().map(String::as_str), 0);
        match &document.body {
            YamlBody::Map(map) => printer.entries(&map.entries, 0),
            YamlBody::Verbatim(body) => printer.literal(body),
        }
    }
    printer.text
}

/// A template of a chart: after Helm has rendered it, every text reads as it was meant, also one
/// with braces.
#[must_use]
pub fn chart_template(banner: &str, documents: &[ChartDocument]) -> String {
    let mut printer = Printer::new(PrintFormat::Template);
    printer.comment([banner].into_iter(), 0);
    for document in documents {
        printer.part(&document.part, |printer| {
            printer.literal("---\n");
            printer.comment(document.comment.iter().map(String::as_str), 0);
            printer.entries(&document.map.entries, 0);
        });
    }
    printer.text
}

/// A comment of one line.
fn comment(text: &str) -> String {
    format!("# {}", harmless(text))
}

/// A string in one line, in quotes unless every reader takes the plain form for a string.
#[must_use]
pub fn scalar(text: &str) -> String {
    string(text, ScalarPlace::Flow)
}

// === impl Printer ===

impl Printer {
    fn new(format: PrintFormat) -> Self {
        Self {
            text: String::new(),
            format,
        }
    }

    /// Text that stands for itself.
    fn literal(&mut self, text: &str) {
        match self.format {
            PrintFormat::Plain => self.text.push_str(text),
            // Two braces begin an expression.
            PrintFormat::Template => {
                let escaped = text.replace("{{", r#"{{ "{{" }}"#);
                self.text.push_str(&escaped);
            }
        }
    }

    /// A value that Helm computes, as JSON, which is YAML in one line.
    fn computed(&mut self, expression: &HelmExpression) {
        self.text
            .push_str(&format!("{{{{ {expression} | toJson }}}}"));
    }

    /// A part in its condition or loop.
    fn part(&mut self, part: &ChartPart, print: impl FnOnce(&mut Self)) {
        let line = match part {
            ChartPart::Always => return print(self),
            ChartPart::If(condition) => format!("{{{{- if {condition} }}}}\n"),
            ChartPart::ForEach(variable, list) => {
                format!("{{{{- range ${variable} := {list} }}}}\n")
            }
        };
        self.text.push_str(&line);
        print(self);
        self.text.push_str("{{- end }}\n");
    }

    fn comment<'a>(&mut self, lines: impl Iterator<Item = &'a str>, indent: usize) {
        for line in lines {
            self.literal(&format!("{:indent$}{}\n", "", comment(line)));
        }
    }

    fn entries(&mut self, entries: &[YamlEntry], indent: usize) {
        for entry in entries {
            self.part(&entry.part, |printer| {
                printer.comment(entry.comment.iter().map(String::as_str), indent);
                printer.literal(&format!("{:indent$}", ""));
                printer.entry(entry, indent);
            });
        }
    }

    /// The key and the value of an entry, from the key to the end of the last line.
    fn entry(&mut self, entry: &YamlEntry, indent: usize) {
        self.literal(&string(&entry.key, ScalarPlace::Block));
        self.literal(":");
        self.value(&entry.value, indent + INDENT);
    }

    /// The value after a colon or a dash, up to the end of its last line.
    fn value(&mut self, value: &Yaml, indent: usize) {
        match value {
            Yaml::Map(map) if !map.entries.is_empty() => {
                self.literal("\n");
                self.entries(&map.entries, indent);
            }
            Yaml::List(items) if !items.is_empty() => {
                self.literal("\n");
                self.list(items, indent);
            }
            other => {
                self.literal(" ");
                self.one_line(other, ScalarPlace::Block);
                self.literal("\n");
            }
        }
    }

    fn list(&mut self, items: &[YamlItem], indent: usize) {
        for item in items {
            self.part(&item.part, |printer| {
                printer.comment(item.comment.iter().map(String::as_str), indent);
                printer.literal(&format!("{:indent$}-", ""));
                let indent = indent + INDENT;
                match &item.value {
                    Yaml::Map(map) if map.entries.first().is_some_and(YamlEntry::is_bare) => {
                        printer.after_dash(&map.entries, indent);
                    }
                    value => printer.value(value, indent),
                }
            });
        }
    }

    /// A mapping whose first entry is on the line of its dash.
    fn after_dash(&mut self, entries: &[YamlEntry], indent: usize) {
        if let [first, others @ ..] = entries {
            self.literal(" ");
            self.entry(first, indent);
            self.entries(others, indent);
        }
    }

    /// A value in one line.
    fn one_line(&mut self, value: &Yaml, place: ScalarPlace) {
        match value {
            Yaml::Scalar(value) => self.literal(&value.to_string()),
            Yaml::Text(text) => self.literal(&string(text, place)),
            Yaml::Quoted(text) => self.literal(&quoted(text)),
            Yaml::Computed(expression) => self.computed(expression),
            Yaml::Flow(items) => self.flow(items.iter()),
            Yaml::List(items) => self.flow(items.iter().map(|item| &item.value)),
            Yaml::Map(map) => {
                self.literal("{");
                for (index, entry) in map.entries.iter().enumerate() {
                    if index > 0 {
                        self.literal(", ");
                    }
                    self.literal(&string(&entry.key, ScalarPlace::Flow));
                    self.literal(": ");
                    self.one_line(&entry.value, ScalarPlace::Flow);
                }
                self.literal("}");
            }
        }
    }

    fn flow<'a>(&mut self, items: impl Iterator<Item = &'a Yaml>) {
        self.literal("[");
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.literal(", ");
            }
            self.one_line(item, ScalarPlace::Flow);
        }
        self.literal("]");
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::diagnostic::{Diagnostics, Sources};
    use crate::load::yaml::{Dialect, parse};
    use crate::yaml::{self, YamlMap};

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
        insta::assert_snapshot!(documents(&yaml::documents([(&["Top."], map), (&[], YamlMap::object("v1", "Pod"))])), @r#"
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
            let text = documents(&yaml::documents([(&[&comment], map.clone()), (&[], map.clone())]));
            prop_assert_eq!(read(&text), vec![value.clone(), value.clone()]);
            // The same in one line.
            let mut printer = Printer::new(PrintFormat::Plain);
            printer.one_line(&Yaml::Map(map), ScalarPlace::Flow);
            prop_assert_eq!(read(&format!("{}\n", printer.text)), vec![value]);
        }

        #[test]
        fn every_text_of_a_chart_is_text(text in "[{} a\"-]{0,8}", key in "[{}a]{1,4}") {
            let map = YamlMap::default()
                .with_comment(&[&text], &key, text.as_str())
                .with("list", Yaml::Flow(vec![Yaml::Text(text.clone()), Yaml::Quoted(text.clone())]));
            let plain = documents(&yaml::documents([(&[&text], map.clone())]));
            let chart = chart_template("", &[ChartDocument {
                part: ChartPart::Always,
                comment: vec![text],
                map,
            }]);
            // Helm knows no other expression in it, and puts back what was escaped.
            const ESCAPED: &str = r#"{{ "{{" }}"#;
            prop_assert!(!chart.replace(ESCAPED, "").contains("{{"), "{}", chart);
            prop_assert_eq!(chart.replace(ESCAPED, "{{"), format!("# \n---\n{plain}"));
        }
    }
}
