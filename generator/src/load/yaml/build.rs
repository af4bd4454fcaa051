//! Builds nodes from the events of the YAML parser, without recursion and within fixed limits.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span as Marks, StrInput, Tag};

use super::node::{Dialect, MapEntry, MapKey, Node, Value};
use super::parser_input::ParserInput;
use super::scalar;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Span};

/// Deeper than any object that the API server accepts; readers of JSON allow 128 levels.
const MAX_DEPTH: usize = 120;

/// How many nodes all aliases of a text may add; real files need a few thousand.
const MAX_ALIASED: usize = 1_000_000;

struct NodeBuilder<'a> {
    text: &'a str,
    input: &'a ParserInput<'a>,
    source: SourceId,
    dialect: Dialect,
    diagnostics: Diagnostics,
    documents: Vec<Node>,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, AnchoredNode>,
    aliased: usize,
}

/// A collection whose end is still to come.
struct OpenCollection {
    anchor: usize,
    span: Span,
    items: CollectionItems,
}

enum CollectionItems {
    Seq(Vec<Node>),
    Map {
        entries: Vec<MapEntry>,
        merged: Vec<Node>,
        key: Option<OpenKey>,
    },
}

enum OpenKey {
    Named(MapKey),
    Merge,
    /// A rejected key; its value is dropped.
    Refused,
}

struct AnchoredNode {
    node: Node,
    size: usize,
}

/// Why reading a text stopped.
enum ParseStop {
    /// The reason is among the diagnostics.
    Reported,
    /// The quoted scalar at this byte of the input continues with too little indentation.
    ///
    /// YAML forbids that, but kubectl and the API server accept it.
    Outdented(usize),
}

/// The number of times that a text is read again because of outdented scalars.
const MAX_REPAIRS: usize = 1_000;

/// The parser's message for such a scalar.
const OUTDENTED: &str = "invalid indentation in quoted scalar";

pub(super) fn documents(
    text: &str,
    source: SourceId,
    dialect: Dialect,
    diagnostics: &mut Diagnostics,
) -> Vec<Node> {
    let mut input = ParserInput::new(text);
    for _ in 0..MAX_REPAIRS {
        let mut builder = NodeBuilder {
            text,
            input: &input,
            source,
            dialect,
            diagnostics: Diagnostics::new(),
            documents: Vec::new(),
            open: Vec::new(),
            anchors: HashMap::new(),
            aliased: 0,
        };
        let outcome = builder.run(&mut Parser::new_from_str(&input.text));
        let (documents, problems) = (builder.documents, builder.diagnostics);
        match outcome {
            Err(ParseStop::Outdented(at)) if input.can_indent(at) => input.indent(at),
            // The documents before an error are valid.
            _ => {
                diagnostics.extend(problems);
                return documents;
            }
        }
    }
    Vec::new()
}

// === impl NodeBuilder ===

impl NodeBuilder<'_> {
    fn run(&mut self, parser: &mut Parser<'_, StrInput<'_>>) -> Result<(), ParseStop> {
        while let Some(event) = parser.next_event() {
            match event {
                Ok((event, marks)) => self.event(event, marks)?,
                Err(error) => return Err(self.syntax(&error)),
            }
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, marks: Marks) -> Result<(), ParseStop> {
        match event {
            Event::DocumentStart(_) => {
                self.open.clear();
                self.anchors.clear();
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let span = self.trimmed(self.span(marks));
                self.scalar(&text, style, anchor, tag.as_deref(), span)
            }
            Event::SequenceStart(anchor, _) => {
                self.push(anchor, self.span(marks), CollectionItems::Seq(Vec::new()))
            }
            Event::MappingStart(anchor, _) => {
                let items = CollectionItems::Map {
                    entries: Vec::new(),
                    merged: Vec::new(),
                    key: None,
                };
                self.push(anchor, self.span(marks), items)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(self.span(marks)),
            Event::Alias(id) => self.alias(id, self.span(marks)),
            Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<(), ParseStop> {
        let plain = style == ScalarStyle::Plain && tag.is_none_or(resolves);
        if self.expects_key() {
            let merge = text == "<<" && style == ScalarStyle::Plain;
            let key = if merge {
                OpenKey::Merge
            } else {
                OpenKey::Named(self.key(text, plain, span))
            };
            self.set_key(key);
            if anchor != 0 {
                let value = Value::String(text.to_owned());
                self.anchors.insert(
                    anchor,
                    AnchoredNode {
                        node: Node { value, span },
                        size: 1,
                    },
                );
            }
            return Ok(());
        }
        let value = if plain {
            scalar::plain(text, self.dialect)
        } else {
            Value::String(text.to_owned())
        };
        self.finish(Node { value, span }, anchor)
    }

    fn key(&mut self, text: &str, plain: bool, span: Span) -> MapKey {
        let boolean = (plain && self.dialect == Dialect::Kubernetes)
            .then(|| scalar::yaml_1_1_bool(text))
            .flatten();
        let name = if let Some(value) = boolean {
            self.diagnostics.push(
                Diagnostic::warning(
                    Code::BooleanKey,
                    format!("`{text}` is a boolean, so kubectl reads this key as `{value}`"),
                )
                .at(self.source, span, "")
                .help(format!("quote it: \"{text}\"")),
            );
            value.to_string()
        } else {
            text.to_owned()
        };
        MapKey { name, span }
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<(), ParseStop> {
        let Some(anchor) = self.anchors.get(&id) else {
            self.report(
                Code::BadAlias,
                "this alias refers to a value that contains it",
                span,
            );
            return Err(ParseStop::Reported);
        };
        self.aliased += anchor.size;
        if self.aliased > MAX_ALIASED {
            self.report(
                Code::BadAlias,
                "the aliases of this text add up to too many values",
                span,
            );
            return Err(ParseStop::Reported);
        }
        let node = anchor.node.clone();
        if self.expects_key() {
            match node.value {
                Value::String(name) => self.set_key(OpenKey::Named(MapKey { name, span })),
                _ => self.report_key(span),
            }
            return Ok(());
        }
        self.finish(node, 0)
    }

    fn push(&mut self, anchor: usize, span: Span, items: CollectionItems) -> Result<(), ParseStop> {
        if self.open.len() >= MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            self.report(Code::TooDeep, &message, span);
            return Err(ParseStop::Reported);
        }
        self.open.push(OpenCollection {
            anchor,
            span,
            items,
        });
        Ok(())
    }

    fn close(&mut self, end: Span) -> Result<(), ParseStop> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let (value, last) = match open.items {
            CollectionItems::Seq(items) => {
                let last = items.last().map(|item| item.span);
                (Value::Seq(items), last)
            }
            CollectionItems::Map {
                entries, merged, ..
            } => {
                let last = entries.last().map(|entry| entry.value.span);
                (Value::Map(self.map(entries, merged)), last)
            }
        };
        // A block collection ends where the next token starts, so the end of its last item is better.
        let flow = end.end > end.start;
        let span = open
            .span
            .to(if flow { end } else { last.unwrap_or(open.span) });
        if self.expects_key() {
            self.report_key(span);
            return Ok(());
        }
        self.finish(Node { value, span }, open.anchor)
    }

    /// Reports duplicates and adds the entries of `<<`, which never override.
    fn map(&mut self, entries: Vec<MapEntry>, merged: Vec<Node>) -> Vec<MapEntry> {
        let mut seen = HashSet::with_capacity(entries.len());
        let mut twice = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            if !seen.insert(entry.key.name.as_str()) {
                twice.push(index);
            }
        }
        let twice: Vec<_> = twice
            .iter()
            .map(|index| self.duplicate(&entries, *index))
            .collect();
        self.diagnostics.extend(twice);
        if merged.is_empty() {
            return entries;
        }
        let mut names: HashSet<String> = entries.iter().map(|e| e.key.name.clone()).collect();
        let mut all = entries;
        for entry in merged.into_iter().flat_map(|node| self.mergeable(node)) {
            if names.insert(entry.key.name.clone()) {
                all.push(entry);
            }
        }
        all
    }

    fn duplicate(&self, entries: &[MapEntry], index: usize) -> Diagnostic {
        let key = &entries[index].key;
        let first = entries.iter().find(|entry| entry.key.name == key.name);
        let mut diagnostic = Diagnostic::error(
            Code::DuplicateKey,
            format!("key `{}` occurs twice", key.name),
        )
        .at(self.source, key.span, "again here");
        if let Some(first) = first {
            diagnostic = diagnostic.at(self.source, first.key.span, "first here");
        }
        diagnostic.help("remove one of the two")
    }

    fn mergeable(&mut self, node: Node) -> Vec<MapEntry> {
        match node.value {
            Value::Map(entries) => entries,
            Value::Seq(items) => items
                .into_iter()
                .flat_map(|item| self.mergeable(item))
                .collect(),
            _ => {
                let message = format!("`<<` merges mappings, but this is {}", node.kind());
                self.report(Code::BadAlias, &message, node.span);
                Vec::new()
            }
        }
    }

    /// Adds a complete node to the collection around it, or to the documents.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), ParseStop> {
        if anchor != 0 {
            let size = size(&node);
            self.anchors.insert(
                anchor,
                AnchoredNode {
                    node: node.clone(),
                    size,
                },
            );
        }
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.documents.push(node),
            Some(CollectionItems::Seq(items)) => items.push(node),
            Some(CollectionItems::Map {
                entries,
                merged,
                key,
            }) => match key.take() {
                Some(OpenKey::Named(key)) => entries.push(MapEntry { key, value: node }),
                Some(OpenKey::Merge) => merged.push(node),
                Some(OpenKey::Refused) | None => {}
            },
        }
        Ok(())
    }

    fn expects_key(&self) -> bool {
        matches!(
            self.open.last().map(|open| &open.items),
            Some(CollectionItems::Map { key: None, .. })
        )
    }

    fn set_key(&mut self, new: OpenKey) {
        if let Some(CollectionItems::Map { key, .. }) =
            self.open.last_mut().map(|open| &mut open.items)
        {
            *key = Some(new);
        }
    }

    fn report_key(&mut self, span: Span) {
        let template = self.text[span.start..span.end].starts_with('{');
        self.diagnostics.push(
            Diagnostic::error(Code::KeyNotString, "a key must be a string")
                .at(self.source, span, "")
                .maybe_help(template.then(|| RENDER_FIRST.to_owned())),
        );
        self.set_key(OpenKey::Refused);
    }

    fn report(&mut self, code: Code, message: &str, span: Span) {
        self.diagnostics
            .push(Diagnostic::error(code, message).at(self.source, span, ""));
    }

    fn syntax(&mut self, error: &ScanError) -> ParseStop {
        let at = self.input.original(error.marker().index());
        let (span, template) = error_span(self.text, at);
        let help = template.then(|| RENDER_FIRST.to_owned());
        self.diagnostics.push(
            Diagnostic::error(Code::YamlSyntax, "this is not valid YAML")
                .at(self.source, span, if template { "" } else { error.info() })
                .maybe_help(help),
        );
        if error.info() == OUTDENTED {
            return ParseStop::Outdented(self.input.byte(error.marker().index()));
        }
        ParseStop::Reported
    }

    fn span(&self, marks: Marks) -> Span {
        let start = self.input.original(marks.start.index());
        if marks.is_empty() {
            return Span::new(start, start);
        }
        Span::new(start, self.input.original(marks.end.index()).max(start))
    }

    fn trimmed(&self, span: Span) -> Span {
        let end = span.start + self.text[span.start..span.end].trim_end().len();
        Span::new(span.start, end)
    }
}

const RENDER_FIRST: &str = "this looks like a Helm template: render it first, with `helm template`";

/// The span to mark for a syntax error: the first template since the line before, or the place itself.
fn error_span(text: &str, at: usize) -> (Span, bool) {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let from = before[..line_start.saturating_sub(1)]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    let to = text[at..]
        .find('\n')
        .map_or(text.len(), |newline| at + newline);
    match text[from..to].find("{{") {
        Some(offset) => (Span::new(from + offset, from + offset + 2), true),
        None => {
            let length = text[at..].chars().next().map_or(0, char::len_utf8);
            (
                Span::new(at, at + length),
                text.contains("{{-") || text.contains("{{ "),
            )
        }
    }
}

/// Whether a scalar with this tag is resolved; `!!str` and private tags make it a string.
fn resolves(tag: &Tag) -> bool {
    tag.is_yaml_core_schema() && matches!(tag.suffix.as_str(), "int" | "float" | "bool" | "null")
}

fn size(node: &Node) -> usize {
    match &node.value {
        Value::Seq(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Map(entries) => 1 + entries.iter().map(|e| 1 + size(&e.value)).sum::<usize>(),
        _ => 1,
    }
}
