//! Breaks lines as rustfmt does. Hand-written, because user files are written without a formatter
//! and prettyplease, which formats the generated ones, breaks lines differently.

use crate::diagnostic::harmless;

/// The width that rustfmt fills unless told otherwise.
const WIDTH: usize = 100;

/// The widest arguments of a call on one line.
const ARGUMENTS_WIDTH: usize = 60;

/// `head(parameters)tail` of a function, with one parameter per line if it does not fit behind
/// `indent` columns.
#[must_use]
pub fn signature(indent: usize, head: &str, parameters: &[String], tail: &str) -> Vec<String> {
    let one_line = format!("{head}({}){tail}", parameters.join(", "));
    if indent + one_line.len() <= WIDTH {
        return vec![one_line];
    }
    let parameters = parameters.iter().map(|it| format!("    {it},"));
    broken(head, parameters, tail)
}

/// `head(arguments)tail` of a call, with one argument per line if it is too long.
#[must_use]
pub fn call(indent: usize, head: &str, arguments: &[String], tail: &str) -> Vec<String> {
    called(indent, head, arguments, tail, ",")
}

/// `head(arguments)tail` of a macro, whose last argument has no comma.
#[must_use]
pub fn macro_call(indent: usize, head: &str, arguments: &[String], tail: &str) -> Vec<String> {
    called(indent, head, arguments, tail, "")
}

fn called(
    indent: usize,
    head: &str,
    arguments: &[String],
    tail: &str,
    last_comma: &str,
) -> Vec<String> {
    let inside = arguments.join(", ");
    let one_line = format!("{head}({inside}){tail}");
    let is_short = inside.len() <= ARGUMENTS_WIDTH || arguments.len() == 1;
    if is_short && indent + one_line.len() <= WIDTH {
        return vec![one_line];
    }
    let last = arguments.len().saturating_sub(1);
    let arguments = arguments.iter().enumerate().map(|(index, argument)| {
        let comma = if index < last { "," } else { last_comma };
        format!("    {argument}{comma}")
    });
    broken(head, arguments, tail)
}

fn broken(head: &str, inside: impl Iterator<Item = String>, tail: &str) -> Vec<String> {
    let mut lines = vec![format!("{head}(")];
    lines.extend(inside);
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
        let arguments = ["x".repeat(40), "y".repeat(40)];
        let [x, y] = &arguments;
        assert_eq!(
            signature(0, "fn f", &arguments, " {"),
            [format!("fn f({x}, {y}) {{")]
        );
        assert_eq!(
            macro_call(0, "f!", &arguments, ";"),
            [
                "f!(".into(),
                format!("    {x},"),
                format!("    {y}"),
                ");".into()
            ]
        );
    }
}
