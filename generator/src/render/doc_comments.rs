//! Turns descriptions of schemas into doc comments that rustdoc and clippy accept.

/// A paragraph or an item of a list, each on one line as in `k8s-openapi`, or a block of code.
enum DocBlock {
    Text(String),
    Item(String),
    Code(Vec<String>),
}

/// The kind of a line of a description.
enum DocLine {
    Blank,
    /// An item of a list, whose text is indented by this much.
    Item(usize),
    Text,
}

/// The lines of a doc comment, without slashes; none if the description is empty.
pub(super) fn lines<T: AsRef<str>>(description: &str, notes: &[T]) -> Vec<String> {
    let mut blocks = markdown(description);
    // Notes on validation continue the last paragraph.
    for note in notes {
        let note = escape(note.as_ref());
        match blocks.last_mut() {
            Some(DocBlock::Text(text)) => {
                let stop = if text.ends_with(['.', '!', '?', ':', ';']) {
                    ""
                } else {
                    "."
                };
                *text = format!("{text}{stop} {note}");
            }
            _ => blocks.push(DocBlock::text(&note)),
        }
    }
    let mut lines = Vec::new();
    let mut previous: Option<&DocBlock> = None;
    for block in &blocks {
        let together = matches!(
            (previous, block),
            (None, _)
                | (
                    Some(DocBlock::Text(_) | DocBlock::Item(_)),
                    DocBlock::Item(_)
                )
        );
        if !together {
            lines.push(String::new());
        }
        match block {
            DocBlock::Text(text) | DocBlock::Item(text) => lines.push(text.clone()),
            DocBlock::Code(code) => {
                lines.push("```text".to_owned());
                lines.extend(code.iter().map(|line| line.trim_end().to_owned()));
                lines.push("```".to_owned());
            }
        }
        previous = Some(block);
    }
    lines
}

/// The paragraphs and list items of a description.
fn markdown(description: &str) -> Vec<DocBlock> {
    let mut blocks: Vec<DocBlock> = Vec::new();
    let mut open = false;
    let mut lines = description.lines();
    while let Some(raw) = lines.next() {
        let text = raw.trim();
        if is_fence(text) {
            let code: Vec<&str> = lines
                .clone()
                .take_while(|line| !is_fence(line.trim()))
                .collect();
            if lines.clone().nth(code.len()).is_some() {
                lines.nth(code.len());
                blocks.push(DocBlock::code(&code));
            }
            open = false;
            continue;
        }
        match classify(text) {
            DocLine::Blank => open = false,
            DocLine::Item(width) => {
                let (marker, rest) = text.split_at(width);
                blocks.push(DocBlock::Item(format!(
                    "{marker}{}",
                    escape(rest.trim_start())
                )));
                open = true;
            }
            DocLine::Text => {
                let text = escape(text);
                match blocks.last_mut().filter(|_| open) {
                    Some(block) => block.append(&text),
                    None => blocks.push(DocBlock::text(&text)),
                }
                open = true;
            }
        }
    }
    blocks
}

// === impl DocBlock ===

impl DocBlock {
    fn text(text: &str) -> Self {
        Self::Text(escape_start(text))
    }

    /// Fenced code, without characters that a comment cannot contain.
    fn code(lines: &[&str]) -> Self {
        let clean = |line: &&str| -> String {
            let line = line.replace('\t', "    ");
            line.chars()
                .filter(|c| !c.is_control() && !is_deceptive(*c))
                .collect()
        };
        Self::Code(lines.iter().map(clean).collect())
    }

    fn append(&mut self, more: &str) {
        if let Self::Text(text) | Self::Item(text) = self {
            text.push(' ');
            text.push_str(more);
        }
    }
}

fn is_fence(text: &str) -> bool {
    text.starts_with("```") || text.starts_with("~~~")
}

fn classify(text: &str) -> DocLine {
    if text.is_empty()
        || text
            .chars()
            .all(|c| matches!(c, '-' | '=' | '*' | '_' | ' '))
    {
        return DocLine::Blank;
    }
    if text.starts_with("- ") || text.starts_with("* ") || text.starts_with("+ ") {
        return DocLine::Item(2);
    }
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let after = &text[digits..];
    if (1..=2).contains(&digits) && (after.starts_with(". ") || after.starts_with(") ")) {
        return DocLine::Item(digits + 2);
    }
    DocLine::Text
}

/// Escapes the start of a paragraph that Markdown would take for markup.
fn escape_start(text: &str) -> String {
    if text.starts_with(['#', '>', '|', '+', '=']) || text.starts_with("- ") || text == "-" {
        return format!("\\{text}");
    }
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    if digits > 0 && text[digits..].starts_with(['.', ')']) {
        return format!("{}\\{}", &text[..digits], &text[digits..]);
    }
    text.to_owned()
}

/// Escapes the syntax of Markdown, HTML and rustdoc links.
fn escape(text: &str) -> String {
    let code_is_closed = text.matches('`').count().is_multiple_of(2) && !text.contains("``");
    let mut out = String::with_capacity(text.len() + 8);
    let mut in_code = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let plain = rest.bytes().take_while(|byte| is_plain(*byte)).count();
        if plain > 0 {
            let (start, end) = rest.split_at(plain);
            out.push_str(start);
            rest = end;
            continue;
        }
        if !in_code && let Some(length) = url_length(rest) {
            out.push('<');
            out.push_str(&rest[..length]);
            out.push('>');
            rest = &rest[length..];
            continue;
        }
        match c {
            '`' if code_is_closed => {
                in_code = !in_code;
                out.push('`');
            }
            '`' | '[' | ']' | '<' | '>' | '*' | '_' | '~' | '|'
                if !in_code && needs_escape(c, &out, rest) =>
            {
                out.push('\\');
                out.push(c);
            }
            '\\' if !in_code => out.push_str("\\\\"),
            '&' if !in_code => out.push_str(
                if rest[1..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '#') {
                    "\\&"
                } else {
                    "&"
                },
            ),
            '\t' => out.push(' '),
            c if c.is_control() => {}
            c if is_deceptive(c) => {}
            c => out.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// Whether a character never needs to be escaped, and starts no URL.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() && byte != b'h'
        || matches!(
            byte,
            b' ' | b'.' | b',' | b'-' | b'(' | b')' | b'/' | b':' | b'\'' | b'"'
        )
}

/// Characters that change the direction of text, which rustc rejects.
const fn is_deceptive(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn needs_escape(c: char, before: &str, rest: &str) -> bool {
    match c {
        // Underscores inside words are not markup.
        '_' => {
            let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            !(word(before.chars().last()) && word(rest.chars().nth(1)))
        }
        '>' => before.is_empty(),
        '*' => rest[1..].starts_with(|c: char| !c.is_whitespace()) || !before.ends_with(' '),
        '|' => before.is_empty(),
        _ => true,
    }
}

/// The length of the URL that the text starts with.
fn url_length(text: &str) -> Option<usize> {
    if !(text.starts_with("http://") || text.starts_with("https://")) {
        return None;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#@!$&'*+,;=%".contains(c);
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let url = text[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_']);
    let scheme = url.find("//").map_or(0, |at| at + 2);
    (url.len() > scheme).then_some(url.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(description: &str, expected: &[&str]) {
        assert_eq!(lines::<&str>(description, &[]), expected);
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        check(
            "The size.\n\nIn bytes, a_b.",
            &["The size.", "", "In bytes, a_b."],
        );
    }

    #[test]
    fn links_html_and_urls_are_escaped() {
        check(
            "See [foo], <bar>, a[0] and https://k8s.io/docs. Or `x[<y>]`.",
            &["See \\[foo\\], \\<bar>, a\\[0\\] and <https://k8s.io/docs>. Or `x[<y>]`."],
        );
    }

    #[test]
    fn code_blocks_become_text() {
        check(
            "Use:\n```yaml\n    key: value\n```\nDone",
            &["Use:", "", "```text", "    key: value", "```", "", "Done"],
        );
        check("    indented", &["indented"]);
    }

    #[test]
    fn lists_keep_their_continuation_lines() {
        check(
            "Either:\n- one\nmore\n- two\n\n1. three\n# four",
            &["Either:", "- one more", "- two", "1. three # four"],
        );
    }

    #[test]
    fn unclosed_backticks_are_escaped() {
        check("a `b", &["a \\`b"]);
    }

    #[test]
    fn rulers_separate_and_blank_text_prints_nothing() {
        check("A\n===\nB", &["A", "", "B"]);
        check("  \n ", &[]);
    }
}
