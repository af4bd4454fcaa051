//! Reads values of the manifest and reports those that do not fit.

use super::spanned::{OneOrMany, Spanned};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Span};
use crate::load::yaml::{Node, Value};
use crate::suggest::did_you_mean;

/// Reads one text and collects its problems.
pub(super) struct ManifestReader<'a> {
    pub(super) source: SourceId,
    pub(super) diagnostics: &'a mut Diagnostics,
}

// === impl ManifestReader ===

impl ManifestReader<'_> {
    pub(super) fn error(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) {
        self.push(Diagnostic::error(code, message).at(self.source, span, label));
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub(super) fn wrong_type(&mut self, node: &Node, what: &str, expected: &str) {
        let message = format!("{what} must be {expected}, not {}", node.kind());
        self.error(
            Code::ManifestType,
            node.span,
            message,
            format!("expected {expected}"),
        );
    }

    pub(super) fn string(&mut self, node: &Node, what: &str) -> Option<Spanned<String>> {
        match node.as_str() {
            Some(text) => Some(Spanned {
                value: text.to_owned(),
                span: node.span,
            }),
            None => {
                self.wrong_type(node, what, "a string");
                None
            }
        }
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        node: &Node,
        what: &str,
        words: &[(&'static str, T)],
    ) -> Option<Spanned<T>> {
        let text = self.string(node, what)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text.value) {
            return Some(Spanned {
                value: *value,
                span: node.span,
            });
        }
        let known = || words.iter().map(|(word, _)| *word);
        let choices = known()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ");
        let help =
            did_you_mean(&text.value, known()).unwrap_or_else(|| format!("it can be {choices}"));
        self.push(
            Diagnostic::error(
                Code::ManifestValue,
                format!("{what} cannot be `{}`", text.value),
            )
            .at(self.source, node.span, "not one of the possible words")
            .help(help),
        );
        None
    }

    pub(super) fn list<T>(
        &mut self,
        node: &Node,
        what: &str,
        mut item: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(nodes) = node.as_seq() else {
            self.wrong_type(node, what, "a list");
            return None;
        };
        Some(nodes.iter().filter_map(|node| item(self, node)).collect())
    }

    pub(super) fn one_or_many<T>(
        &mut self,
        node: &Node,
        mut item: impl FnMut(&mut Self, &Node) -> Option<Spanned<T>>,
    ) -> Option<OneOrMany<T>> {
        match node.as_seq() {
            None => item(self, node).map(OneOrMany::One),
            Some([]) => {
                self.error(
                    Code::ManifestValue,
                    node.span,
                    "the list is empty",
                    "at least one is needed",
                );
                None
            }
            Some(nodes) => {
                let values: Vec<_> = nodes.iter().filter_map(|node| item(self, node)).collect();
                (values.len() == nodes.len()).then_some(OneOrMany::Many(values))
            }
        }
    }
}

/// A number without a fraction, however it is written.
pub(super) fn whole_number(node: &Node) -> Option<i128> {
    match node.value {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it has no fraction, and i128 is far larger than what is accepted"
        )]
        Value::Float(number) if number.fract() == 0.0 => Some(number as i128),
        _ => node.as_int(),
    }
}
