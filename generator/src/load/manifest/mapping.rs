//! Reads one mapping of the manifest strictly: every key is read, rejected, or reported as unknown.

use super::reader::{ManifestReader, whole_number};
use super::spanned::Spanned;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::load::yaml::{MapEntry, Node};
use crate::suggest::{did_you_mean, nearest};

/// A mapping whose keys are read one by one.
pub(super) struct MappingFields<'n> {
    node: &'n Node,
    entries: &'n [MapEntry],
    known_keys: Vec<&'static str>,
    missing: Vec<MissingKey>,
    what: &'static str,
}

/// A required key that is missing.
struct MissingKey {
    key: &'static str,
    /// Keys that can take its place.
    instead: &'static [&'static str],
    span: Span,
}

// === impl MappingFields ===

impl<'n> MappingFields<'n> {
    /// The value of a key that may be left out or be null.
    pub(super) fn optional(&mut self, key: &'static str) -> Option<&'n Node> {
        self.mark_known(key);
        let entry = self.entries.iter().find(|entry| entry.key.name == key)?;
        (!entry.value.is_null()).then_some(&entry.value)
    }

    /// The place of a key that the caller rejects.
    pub(super) fn key(&mut self, key: &'static str) -> Option<Span> {
        let entry = self.entries.iter().find(|entry| entry.key.name == key)?;
        self.mark_known(key);
        Some(entry.key.span)
    }

    /// The value of a required key.
    pub(super) fn required(&mut self, key: &'static str) -> Option<&'n Node> {
        self.required_unless(key, &[])
    }

    /// The value of a key that is required unless one of the others is present.
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

    fn mark_known(&mut self, key: &'static str) {
        if !self.known_keys.contains(&key) {
            self.known_keys.push(key);
        }
    }

    /// Reports unknown keys and missing ones.
    pub(super) fn finish(self, reader: &mut ManifestReader<'_>) {
        let mut meant = Vec::new();
        for entry in self.entries {
            let key = entry.key.name.as_str();
            if self.known_keys.contains(&key) {
                continue;
            }
            let known = || self.known_keys.iter().copied();
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
        // A misspelt key is not missing as well.
        let is_meant = |key| meant.contains(key);
        for MissingKey { key, instead, span } in &self.missing {
            if !is_meant(key) && !instead.iter().any(is_meant) {
                let message = format!("{} needs `{key}`", self.what);
                let label = format!("`{key}` is missing");
                reader.error(Code::ManifestMissing, *span, message, label);
            }
        }
    }

    /// A short span for messages about the whole mapping: its first key.
    pub(super) fn place(&self) -> Span {
        self.entries
            .first()
            .map_or(self.node.span, |entry| entry.key.span)
    }

    pub(super) fn span(&self) -> Span {
        self.node.span
    }
}

// === impl ManifestReader ===

impl ManifestReader<'_> {
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
                known_keys: Vec::new(),
                missing: Vec::new(),
                what,
            }),
            None => {
                self.wrong_type(node, what, "a mapping");
                None
            }
        }
    }

    pub(super) fn optional_string(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
    ) -> Option<Spanned<String>> {
        fields
            .optional(key)
            .and_then(|node| self.string(node, &format!("`{key}`")))
    }

    pub(super) fn boolean(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
    ) -> Option<Spanned<bool>> {
        let node = fields.optional(key)?;
        let value = node.as_bool();
        if value.is_none() {
            self.wrong_type(node, &format!("`{key}`"), "true or false");
        }
        value.map(|value| Spanned {
            value,
            span: node.span,
        })
    }

    pub(super) fn count(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
    ) -> Option<Spanned<u32>> {
        let node = fields.optional(key)?;
        match whole_number(node).map(u32::try_from) {
            Some(Ok(value)) => Some(Spanned {
                value,
                span: node.span,
            }),
            Some(Err(_)) => {
                let message = format!("`{key}` must be between 0 and {}", u32::MAX);
                self.error(Code::ManifestValue, node.span, message, "out of range");
                None
            }
            None => {
                self.wrong_type(node, &format!("`{key}`"), "a whole number");
                None
            }
        }
    }

    pub(super) fn integer(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
    ) -> Option<Spanned<i32>> {
        let node = fields.optional(key)?;
        match whole_number(node).map(i32::try_from) {
            Some(Ok(value)) => Some(Spanned {
                value,
                span: node.span,
            }),
            Some(Err(_)) => {
                let message = format!("`{key}` must be between {} and {}", i32::MIN, i32::MAX);
                self.error(Code::ManifestValue, node.span, message, "out of range");
                None
            }
            None => {
                self.wrong_type(node, &format!("`{key}`"), "a whole number");
                None
            }
        }
    }
}
