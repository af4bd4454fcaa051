//! Renders diagnostics as text with snippets and as JSON.

use annotate_snippets::renderer::DEFAULT_TERM_WIDTH;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Value, json};

use super::harmless::harmless;
use super::problem::{Diagnostic, Severity, SourceLabel};
use super::source::{SourceId, Sources, Span, floor};

/// Whether the text has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// With terminal escapes.
    Colored,
    /// Without.
    Plain,
}

/// The lines that one snippet shows, cut out because the renderer reads its whole input.
struct Window {
    /// With stand-ins for control characters that the renderer prints as they are.
    text: String,
    offset: usize,
    line: usize,
}

/// One diagnostic as a block of text with snippets and carets.
#[must_use]
pub fn human(diagnostic: &Diagnostic, sources: &Sources, style: Style) -> String {
    let renderer = match style {
        Style::Colored => Renderer::styled(),
        Style::Plain => Renderer::plain(),
    };
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
        Severity::Info => Level::INFO,
    };
    let title = level
        .primary_title(harmless(&diagnostic.message))
        .id(diagnostic.code.id());
    let mut group = Group::with_title(title);
    for source in files(&diagnostic.labels) {
        group = group.element(snippet(diagnostic, source, sources));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(harmless(help)));
    }
    renderer.term_width(DEFAULT_TERM_WIDTH).render(&[group])
}

/// One diagnostic as a JSON object; lines and columns count from one.
#[must_use]
pub fn json(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let labels: Vec<Value> = diagnostic
        .labels
        .iter()
        .map(|label| {
            let start = sources.position(label.source, label.span.start);
            let end = sources.position(label.source, label.span.end);
            json!({
                "file": sources.name(label.source),
                "start": {"line": start.line, "column": start.column, "byte": label.span.start},
                "end": {"line": end.line, "column": end.column, "byte": label.span.end},
                "text": label.text,
            })
        })
        .collect();
    json!({
        "code": diagnostic.code.id(),
        "severity": diagnostic.severity.name(),
        "message": diagnostic.message,
        "labels": labels,
        "help": diagnostic.help,
    })
}

/// The files of the labels, the primary one first, each once.
fn files(labels: &[SourceLabel]) -> Vec<SourceId> {
    let mut files = Vec::new();
    for label in labels {
        if !files.contains(&label.source) {
            files.push(label.source);
        }
    }
    files
}

fn snippet<'a>(
    diagnostic: &'a Diagnostic,
    source: SourceId,
    sources: &Sources,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let labels = || diagnostic.labels.iter().filter(|l| l.source == source);
    let text = sources.text(source);
    let window = window(text, labels().map(|l| l.span));
    Snippet::source(window.text.clone())
        .line_start(window.line)
        .path(harmless(sources.name(source)))
        .annotations(labels().map(|label| {
            let kind = if diagnostic.labels.first() == Some(label) {
                AnnotationKind::Primary
            } else {
                AnnotationKind::Context
            };
            let annotation = kind.span(span_in_window(text, label.span, &window));
            if label.text.is_empty() {
                annotation
            } else {
                annotation.label(harmless(&label.text))
            }
        }))
}

/// The whole lines that hold all spans.
fn window(text: &str, spans: impl Iterator<Item = Span> + Clone) -> Window {
    let first = spans.clone().map(|s| s.start).min().unwrap_or(0);
    let last = spans.map(|s| s.start).max().unwrap_or(0);
    let before = floor(text, first);
    let offset = before.rfind('\n').map_or(0, |newline| newline + 1);
    let head = floor(text, last).len();
    let end = text[head..].find('\n').map_or(text.len(), |n| head + n + 1);
    Window {
        text: text[offset..end].chars().map(visible).collect(),
        offset,
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
    }
}

/// A stand-in of the same length for a control character beyond ASCII.
const fn visible(c: char) -> char {
    match c {
        '\u{80}'..='\u{9f}' => '·',
        c => c,
    }
}

/// A span relative to its window, not running past the end of its first line.
fn span_in_window(text: &str, span: Span, window: &Window) -> std::ops::Range<usize> {
    let start = floor(text, span.start).len();
    let line_end = text[start..].find('\n').map_or(text.len(), |n| start + n);
    let end = floor(text, span.end.min(line_end)).len().max(start);
    start - window.offset..end - window.offset
}
