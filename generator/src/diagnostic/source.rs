//! The texts of a run, and the conversion of byte offsets to lines and columns.

/// The number of a text in [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u32);

/// A half-open range of bytes in one text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

/// A line and a column as an editor shows them: both count from one, columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// All texts of a run, with their names, usually paths.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    list: Vec<SourceText>,
}

#[derive(Clone, Debug)]
struct SourceText {
    name: String,
    text: String,
}

// === impl Span ===

impl Span {
    /// The bytes from `start` up to `end`.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// From the start of this one to the end of the other.
    #[must_use]
    pub fn to(self, end: Self) -> Self {
        Self::new(self.start, end.end.max(self.start))
    }
}

// === impl Sources ===

impl Sources {
    /// No texts yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text under its name, usually a path.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        let id = u32::try_from(self.list.len()).expect("fewer than four billion inputs");
        self.list.push(SourceText {
            name: name.into(),
            text: text.into(),
        });
        SourceId(id)
    }

    /// The name of a text.
    #[must_use]
    pub fn name(&self, id: SourceId) -> &str {
        &self.source(id).name
    }

    /// The text itself.
    #[must_use]
    pub fn text(&self, id: SourceId) -> &str {
        &self.source(id).text
    }

    /// The ids of all texts, in the order in which they were added.
    pub fn ids(&self) -> impl Iterator<Item = SourceId> + use<> {
        let end = u32::try_from(self.list.len()).expect("fewer than four billion inputs");
        (0..end).map(SourceId)
    }

    /// The line and the column of a byte; a byte past the end is the end.
    #[must_use]
    pub fn position(&self, id: SourceId, offset: usize) -> LineColumn {
        let before = floor(self.text(id), offset);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        LineColumn {
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    fn source(&self, id: SourceId) -> &SourceText {
        &self.list[id.0 as usize]
    }
}

/// The text up to an offset, which is moved left to the nearest character boundary.
pub(super) fn floor(text: &str, offset: usize) -> &str {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let mut sources = Sources::new();
        let id = sources.add("a.yaml", "ä: 1\nbü: 2\n");
        assert_eq!(sources.position(id, 0), LineColumn { line: 1, column: 1 });
        assert_eq!(sources.position(id, 2), LineColumn { line: 1, column: 2 });
        assert_eq!(sources.position(id, 6), LineColumn { line: 2, column: 1 });
        assert_eq!(sources.position(id, 9), LineColumn { line: 2, column: 3 });
        assert_eq!(sources.position(id, 999), LineColumn { line: 3, column: 1 });
    }
}
