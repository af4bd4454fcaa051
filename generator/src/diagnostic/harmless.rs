//! Makes a text of the input harmless where one line of plain text is printed.

/// The text in one line, with escapes for control characters and for characters that change the
/// direction of text.
#[must_use]
pub fn harmless(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        // A combining mark at the start is the only harmless character that would be escaped.
        let escaped = c.escape_debug();
        if c.is_control() || (escaped.len() > 1 && !matches!(c, '"' | '\'' | '\\')) {
            line.extend(escaped);
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn only_dangerous_characters_are_escaped() {
        assert_eq!(harmless("a \"b\" 'c' \\ ü"), "a \"b\" 'c' \\ ü");
        assert_eq!(harmless("a\nb\u{1b}[0m"), "a\\nb\\u{1b}[0m");
        assert_eq!(harmless("\u{202e}\u{2028}"), "\\u{202e}\\u{2028}");
    }
}
