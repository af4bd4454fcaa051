//! Expressions of Helm's templates, as values: what a template computes is never text around input.

use std::fmt;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum HelmExpression {
    /// A value of the chart's user, by its path in `values.yaml`; nothing if a part of the path is
    /// missing.
    Value(&'static [&'static str]),
    /// A part of the release or of the chart, such as `Release.Namespace`.
    Builtin(&'static str),
    /// A variable of a loop.
    Variable(&'static str),
    /// The output of a named template.
    Include(String),
    /// A text.
    Text(String),
    /// A number or a boolean.
    Scalar(serde_json::Value),
    /// A call of a function.
    Call(&'static str, Vec<Self>),
}

// === impl HelmExpression ===

impl HelmExpression {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A value of the chart's user, or another if it is missing or empty.
    #[must_use]
    pub fn value_or(path: &'static [&'static str], otherwise: Self) -> Self {
        Self::Call("default", vec![otherwise, Self::Value(path)])
    }

    /// A value of the chart's user, also an empty one, or another if it is missing.
    #[must_use]
    pub fn given_or(path: &'static [&'static str], otherwise: Self) -> Self {
        let is_missing = Self::Call("kindIs", vec![Self::text("invalid"), Self::Value(path)]);
        Self::Call("ternary", vec![otherwise, Self::Value(path), is_missing])
    }

    /// A boolean of the chart's user, or another if it is missing.
    #[must_use]
    pub fn flag_or(path: &'static [&'static str], otherwise: bool) -> Self {
        Self::given_or(path, Self::Scalar(otherwise.into()))
    }

    /// Whether two values are equal.
    #[must_use]
    pub fn equals(self, other: Self) -> Self {
        Self::Call("eq", vec![self, other])
    }

    /// Whether this does not hold.
    #[must_use]
    pub fn negated(self) -> Self {
        Self::Call("not", vec![self])
    }

    /// Whether both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::Call("and", vec![self, other])
    }
}

impl fmt::Display for HelmExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(path) => {
                // With parentheses, a field of nothing is nothing.
                let open = "(".repeat(path.len());
                write!(f, "{open}$.Values")?;
                path.iter().try_for_each(|key| write!(f, ".{key})"))
            }
            Self::Builtin(name) => write!(f, "$.{name}"),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Include(name) => write!(f, "(include {} $)", literal(name)),
            Self::Text(text) => f.write_str(&literal(text)),
            Self::Scalar(value) => write!(f, "{value}"),
            Self::Call(function, arguments) => {
                write!(f, "({function}")?;
                arguments.iter().try_for_each(|it| write!(f, " {it}"))?;
                f.write_str(")")
            }
        }
    }
}

/// A string of Go.
fn literal(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match (c, u32::from(c)) {
            ('"', _) => quoted.push_str("\\\""),
            ('\\', _) => quoted.push_str("\\\\"),
            (c, _) if c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric() => quoted.push(c),
            (_, code @ 0..=0xffff) => quoted.push_str(&format!("\\u{code:04x}")),
            (_, code) => quoted.push_str(&format!("\\U{code:08x}")),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_strings_of_go() {
        let text = HelmExpression::text("a\"\\{{ .x }}\n\u{1f600}");
        assert_eq!(text.to_string(), r#""a\"\\{{ .x }}\u000a\U0001f600""#);
    }

    #[test]
    fn a_missing_part_of_a_path_is_nothing() {
        let value = HelmExpression::value_or(&["image", "tag"], HelmExpression::text("1"));
        assert_eq!(value.to_string(), r#"(default "1" (($.Values.image).tag))"#);
    }
}
