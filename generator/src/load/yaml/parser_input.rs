//! The input of the YAML parser, and the conversion of its offsets to those of the original text.

use std::borrow::Cow;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text for the parser, which counts characters; diagnostics need bytes of the original text.
pub(super) struct ParserInput<'a> {
    pub(super) text: Cow<'a, str>,
    /// The byte of every [`ParserInput::STEP`]th character; empty if each character is one byte.
    steps: Vec<usize>,
    /// Length of the byte order mark.
    base: usize,
    /// The offsets and lengths of inserted spaces.
    inserted: Vec<(usize, usize)>,
}

// === impl ParserInput ===

impl<'a> ParserInput<'a> {
    const STEP: usize = 64;

    pub(super) fn new(text: &'a str) -> Self {
        let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        Self {
            text: Cow::Borrowed(body),
            steps: Self::steps(body),
            base: text.len() - body.len(),
            inserted: Vec::new(),
        }
    }

    fn steps(text: &str) -> Vec<usize> {
        if text.is_ascii() {
            return Vec::new();
        }
        text.char_indices()
            .step_by(Self::STEP)
            .map(|(byte, _)| byte)
            .collect()
    }

    /// The byte offset of a character in the input; past the end, the end.
    pub(super) fn byte(&self, index: usize) -> usize {
        if self.steps.is_empty() {
            return index.min(self.text.len());
        }
        let start = self
            .steps
            .get(index / Self::STEP)
            .copied()
            .unwrap_or(self.text.len());
        let rest = &self.text[start..];
        let offset = rest
            .char_indices()
            .nth(index % Self::STEP)
            .map_or(rest.len(), |c| c.0);
        start + offset
    }

    /// The byte offset of a character in the original text.
    pub(super) fn original(&self, index: usize) -> usize {
        let byte = self.byte(index);
        let inserted = self.inserted.iter().take_while(|(at, _)| *at < byte);
        let before: usize = inserted.map(|(at, length)| (*length).min(byte - at)).sum();
        self.base + byte - before
    }

    /// Whether a quoted scalar of several lines starts at a byte.
    pub(super) fn can_indent(&self, at: usize) -> bool {
        self.text[at..].starts_with(['\'', '"']) && self.breaks(at).next().is_some()
    }

    /// Indents all further lines of the quoted scalar at a byte, which does not change its value.
    pub(super) fn indent(&mut self, at: usize) {
        let line_start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let width = at - line_start + 1;
        let breaks: Vec<usize> = self.breaks(at).collect();
        let mut text = String::with_capacity(self.text.len() + breaks.len() * width);
        let mut from = 0;
        for line in breaks {
            text.push_str(&self.text[from..line]);
            self.inserted.push((text.len(), width));
            text.push_str(&" ".repeat(width));
            from = line;
        }
        text.push_str(&self.text[from..]);
        self.steps = Self::steps(&text);
        self.text = Cow::Owned(text);
        // Scalars are indented from first to last, so the list stays sorted.
    }

    /// The offsets of the further lines of the quoted scalar at a byte.
    fn breaks(&self, at: usize) -> impl Iterator<Item = usize> {
        let bytes = self.text.as_bytes();
        let quote = bytes[at];
        let mut index = at + 1;
        std::iter::from_fn(move || {
            loop {
                match bytes.get(index)? {
                    b'\\' if quote == b'"' => index += 2,
                    b'\'' if quote == b'\'' && bytes.get(index + 1) == Some(&b'\'') => index += 2,
                    byte if *byte == quote => return None,
                    b'\n' => {
                        index += 1;
                        return Some(index);
                    }
                    _ => index += 1,
                }
            }
        })
    }
}
