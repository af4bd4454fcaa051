//! Breaks lines as rustfmt does. Hand-written, because user files are written without a formatter
//! and prettyplease, which formats the generated ones, breaks lines differently.

use crate::diagnostic::harmless;

/// The width that rustfmt fills unless told otherwise.
const WIDTH: usize = 100;

/// `head(arguments)tail`, with one argument per line if it does not fit behind `indent` columns.
#[must_use]
pub fn call(indent: usize, head: &str, arguments: &[String], tail: &str) -> Vec<String> {
    let one_line = format!("{head}({}){tail}", arguments.join(", "));
    if indent + one_line.len() <= WIDTH {
        return vec![one_line];
    }
    let mut lines = vec![format!("{head}(")];
    lines.extend(arguments.iter().map(|argument| format!("    {argument},")));
    lines.push(format!("){tail}"));
    lines
}

/// Breaks a text between words so that no line is wider than `width`, for a comment that the text
/// cannot leave.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let text = harmless(text);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_break_only_when_they_must() {
        assert_eq!(call(4, "f", &["a".into(), "b".into()], ";"), ["f(a, b);"]);
        let long = "x".repeat(95);
        assert_eq!(
            call(4, "f", std::slice::from_ref(&long), ";"),
            ["f(".into(), format!("    {long},"), ");".into()]
        );
    }
}
