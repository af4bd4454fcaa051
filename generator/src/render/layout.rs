//! Breaks lines as rustfmt does. Hand-written, because user files are written without a formatter
//! and prettyplease, which formats the generated ones, breaks lines differently.

use crate::diagnostic::harmless;

/// The width that rustfmt fills unless told otherwise.
const WIDTH: usize = 100;

/// One level of indentation.
const STEP: &str = "    ";

/// The widest arguments of a call on one line.
const ARGUMENTS_WIDTH: usize = 60;

/// `head(parameters)tail` of a function, with one parameter per line if it does not fit behind
/// `indent` columns.
#[must_use]
pub(super) fn signature(
    indent: usize,
    head: &str,
    parameters: &[String],
    tail: &str,
) -> Vec<String> {
    let one_line = format!("{head}({}){tail}", parameters.join(", "));
    if indent + one_line.len() <= WIDTH {
        return vec![one_line];
    }
    if parameters.is_empty() {
        return vec![format!("{head}()"), tail.trim_start().to_owned()];
    }
    let parameters = parameters.iter().flat_map(|it| listed(indent, it));
    broken(head, parameters, tail)
}

/// An entry of a list behind `indent` columns, whose type arguments get lines of their own if it
/// is too long.
fn listed(indent: usize, text: &str) -> Vec<String> {
    let indent = indent + STEP.len();
    let inside = text
        .split_once('<')
        .and_then(|(head, rest)| Some((head, rest.strip_suffix('>')?)));
    match inside {
        Some((head, arguments)) if indent + text.len() + ",".len() > WIDTH => {
            let mut lines = vec![format!("{STEP}{head}<")];
            for argument in type_arguments(arguments) {
                let inner = listed(indent, argument);
                lines.extend(inner.into_iter().map(|line| format!("{STEP}{line}")));
            }
            lines.push(format!("{STEP}>,"));
            lines
        }
        _ => vec![format!("{STEP}{text},")],
    }
}

/// The parts of a list of types, at its own commas.
fn type_arguments(list: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = list.split(|c: char| {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).collect()
}

/// An `impl` without items, broken before `for` if it is too long.
pub(super) fn empty_impl(trait_name: &str, type_name: &str) -> Vec<String> {
    let head = format!("impl {trait_name} for {type_name} {{");
    // rustfmt does not count the closing brace.
    if head.len() <= WIDTH {
        return vec![format!("{head}}}")];
    }
    let broken = [
        format!("impl {trait_name}"),
        format!("{STEP}for {type_name}"),
        "{".to_owned(),
        "}".to_owned(),
    ];
    broken.into()
}

/// `head = value;`, with the value on a line of its own if it does not fit.
fn assignment(head: &str, value: &str) -> String {
    let one_line = format!("{head} = {value};");
    if one_line.len() <= WIDTH {
        one_line
    } else {
        format!("{head} =\n{STEP}{value};")
    }
}

/// The constant with the program of an operator, for its tests.
pub(super) fn program(operator: &str) -> String {
    let value = format!("env!(\"CARGO_BIN_EXE_{operator}\")");
    assignment("const PROGRAM: &str", &value)
}

/// `head(arguments)tail` of a call, with one argument per line if it is too long.
#[must_use]
pub(super) fn call(indent: usize, head: &str, arguments: &[String], tail: &str) -> Vec<String> {
    called(indent, head, arguments, tail, Some(ARGUMENTS_WIDTH), ",")
}

/// `head(arguments)tail` of a macro, whose last argument has no comma.
#[must_use]
pub(super) fn macro_call(
    indent: usize,
    head: &str,
    arguments: &[String],
    tail: &str,
) -> Vec<String> {
    called(indent, head, arguments, tail, Some(ARGUMENTS_WIDTH), "")
}

/// The same for a macro with a syntax of its own, which rustfmt leaves as it is.
#[must_use]
pub(super) fn opaque_macro_call(
    indent: usize,
    head: &str,
    arguments: &[String],
    tail: &str,
) -> Vec<String> {
    called(indent, head, arguments, tail, None, "")
}

fn called(
    indent: usize,
    head: &str,
    arguments: &[String],
    tail: &str,
    arguments_width: Option<usize>,
    last_comma: &str,
) -> Vec<String> {
    let inside = arguments.join(", ");
    let one_line = format!("{head}({inside}){tail}");
    let is_short =
        arguments.len() == 1 || arguments_width.is_none_or(|width| inside.len() <= width);
    if is_short && indent + one_line.len() <= WIDTH {
        return vec![one_line];
    }
    let last = arguments.len().saturating_sub(1);
    let arguments = arguments.iter().enumerate().map(|(index, argument)| {
        let comma = if index < last { "," } else { last_comma };
        format!("{STEP}{argument}{comma}")
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
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
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
    fn types_of_parameters_break_at_their_arguments() {
        let long = "X".repeat(80);
        let parameter = format!("cx: &mut Context<(u8, u8), Field<A, {long}>>");
        assert_eq!(
            signature(4, "fn f", &["&self".into(), parameter], " {"),
            [
                "fn f(".into(),
                "    &self,".into(),
                "    cx: &mut Context<".into(),
                "        (u8, u8),".into(),
                "        Field<".into(),
                "            A,".into(),
                format!("            {long},"),
                "        >,".into(),
                "    >,".into(),
                ") {".to_owned(),
            ]
        );
    }

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
