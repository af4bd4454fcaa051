//! Reads strict JSON, which the YAML parser does not always accept: tabs, surrogate pairs.
//!
//! Written by hand, because serde_json gives no spans; it decodes the strings and the numbers.

use super::node::{Dialect, MapEntry, MapKey, Node, Value};
use super::scalar;
use crate::diagnostic::Span;

/// Deeper values are left to the YAML reader, which reports them.
const MAX_DEPTH: usize = 119;

/// The value of a text that is one JSON object or array; `None` if it is anything else.
pub(super) fn document(text: &str) -> Option<Node> {
    let body = text.trim_start_matches('\u{feff}');
    let mut reader = JsonReader {
        text,
        at: text.len() - body.len(),
    };
    reader.space();
    if !matches!(reader.peek()?, b'{' | b'[') {
        return None;
    }
    let node = reader.value(0)?;
    reader.space();
    (reader.at == text.len()).then_some(node)
}

struct JsonReader<'a> {
    text: &'a str,
    at: usize,
}

impl JsonReader<'_> {
    fn value(&mut self, depth: usize) -> Option<Node> {
        self.space();
        let start = self.at;
        let value = match self.peek()? {
            _ if depth > MAX_DEPTH => return None,
            b'{' => self.map(depth)?,
            b'[' => self.seq(depth)?,
            b'"' => Value::String(self.string()?),
            _ => self.word()?,
        };
        Some(Node {
            value,
            span: Span::new(start, self.at),
        })
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        let mut entries: Vec<MapEntry> = Vec::new();
        self.list(b'}', |reader| {
            let start = reader.at;
            let name = reader.string()?;
            let key = MapKey {
                name,
                span: Span::new(start, reader.at),
            };
            reader.space();
            reader.take(b':')?;
            let value = reader.value(depth + 1)?;
            // The YAML reader reports a key that occurs twice.
            if entries.iter().any(|entry| entry.key.name == key.name) {
                return None;
            }
            entries.push(MapEntry { key, value });
            Some(())
        })?;
        Some(Value::Map(entries))
    }

    fn seq(&mut self, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        self.list(b']', |reader| {
            items.push(reader.value(depth + 1)?);
            Some(())
        })?;
        Some(Value::Seq(items))
    }

    /// Items with commas between them, from the opening to the closing bracket.
    fn list(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.space();
        if self.peek()? == close {
            self.at += 1;
            return Some(());
        }
        loop {
            self.space();
            item(self)?;
            self.space();
            match self.peek()? {
                b',' => self.at += 1,
                end if end == close => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        self.take(b'"')?;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_str(self.text.get(start..self.at)?).ok()
    }

    fn word(&mut self) -> Option<Value> {
        let rest = &self.text[self.at..];
        let end = rest
            .find([',', '}', ']', ' ', '\t', '\r', '\n'])
            .unwrap_or(rest.len());
        let word = &rest[..end];
        // Only what JSON itself knows: no bare strings, no octal numbers.
        serde_json::from_str::<serde_json::Value>(word).ok()?;
        self.at += end;
        Some(scalar::plain(word, Dialect::Core))
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }
}
