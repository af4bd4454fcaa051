//! Reads one mapping of the manifest strictly: every key is asked for, refused or reported.

use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Span};
use crate::load::manifest::Spanned;
use crate::load::yaml::{MapEntry, Node};
use crate::suggest::{did_you_mean, nearest};

/// Where problems go, and the text that they are in.
pub(super) struct ManifestReader<'a> {
    pub(super) source: SourceId,
    pub(super) diagnostics: &'a mut Diagnostics,
}

/// A mapping whose keys are taken one by one.
pub(super) struct MappingFields<'n> {
    node: &'n Node,
    entries: &'n [MapEntry],
    asked: Vec<&'static str>,
    missing: Vec<MissingKey>,
    what: &'static str,
}

/// A key that has to be there and is not.
struct MissingKey {
    key: &'static str,
    /// Keys that would do instead.
    instead: &'static [&'static str],
    span: Span,
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

    /// The node as a mapping; `what` names it in messages, such as "a handler".
    pub(super) fn fields<'n>(
        &mut self,
        node: &'n Node,
        what: &'static str,
    ) -> Option<MappingFields<'n>> {
        match node.as_map() {
            Some(entries) => Some(MappingFields {
                node,
                entries,
                asked: Vec::new(),
                missing: Vec::new(),
                what,
            }),
            None => {
                self.wrong_type(node, what, "a mapping");
                None
            }
        }
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
}

// === impl MappingFields ===

impl<'n> MappingFields<'n> {
    /// The value of a key that may be left out or be null.
    pub(super) fn optional(&mut self, key: &'static str) -> Option<&'n Node> {
        self.ask(key);
        let entry = self.entries.iter().find(|entry| entry.key.name == key)?;
        (!entry.value.is_null()).then_some(&entry.value)
    }

    /// The place of a key that is refused.
    pub(super) fn key(&mut self, key: &'static str) -> Option<Span> {
        let entry = self.entries.iter().find(|entry| entry.key.name == key)?;
        self.ask(key);
        Some(entry.key.span)
    }

    /// The value of a key that must be there.
    pub(super) fn required(&mut self, key: &'static str) -> Option<&'n Node> {
        self.required_unless(key, &[])
    }

    /// The value of a key that must be there because none of the others is.
    pub(super) fn required_unless(
        &mut self,
        key: &'static str,
        instead: &'static [&'static str],
    ) -> Option<&'n Node> {
        let found = self.optional(key);
        if found.is_none() {
            let span = self
                .entries
                .iter()
                .find(|entry| entry.key.name == key)
                .map_or_else(|| self.place(), |entry| entry.key.span);
            self.missing.push(MissingKey { key, instead, span });
        }
        found
    }

    fn ask(&mut self, key: &'static str) {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
    }

    /// Reports the keys that nobody asked for, and those that were asked for in vain.
    pub(super) fn finish(self, reader: &mut ManifestReader<'_>) {
        let mut meant = Vec::new();
        for entry in self.entries {
            let key = entry.key.name.as_str();
            if self.asked.contains(&key) {
                continue;
            }
            let known = || self.asked.iter().copied();
            meant.extend(nearest(key, known()));
            let help = did_you_mean(key, known()).unwrap_or_else(|| {
                let known: Vec<_> = known().map(|key| format!("`{key}`")).collect();
                format!("the keys are {}", known.join(", "))
            });
            reader.push(
                Diagnostic::error(
                    Code::ManifestUnknownKey,
                    format!("{} has no key `{key}`", self.what),
                )
                .at(reader.source, entry.key.span, "unknown key")
                .help(help),
            );
        }
        // What is only misspelt is not missing.
        let is_meant = |key| meant.contains(key);
        for MissingKey { key, instead, span } in &self.missing {
            if !is_meant(key) && !instead.iter().any(is_meant) {
                let message = format!("{} needs `{key}`", self.what);
                let label = format!("`{key}` is missing");
                reader.error(Code::ManifestMissing, *span, message, label);
            }
        }
    }

    /// A short span for remarks on the whole mapping: its first key.
    pub(super) fn place(&self) -> Span {
        self.entries
            .first()
            .map_or(self.node.span, |entry| entry.key.span)
    }

    pub(super) fn span(&self) -> Span {
        self.node.span
    }
}
