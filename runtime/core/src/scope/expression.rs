//! Regular expressions for names of namespaces.

use regex_lite::Regex;

/// A regular expression that the whole name must match.
#[derive(Debug, Clone)]
pub(super) struct NameExpression {
    text: String,
    regex: Regex,
}

/// The text is not a regular expression.
#[derive(Debug, Clone, thiserror::Error)]
#[error("invalid regular expression: {0}")]
pub struct InvalidExpression(String);

// === impl NameExpression ===

impl NameExpression {
    pub(super) fn new(text: &str) -> Result<Self, InvalidExpression> {
        let compile = |text: &str| Regex::new(text).map_err(|it| InvalidExpression(it.to_string()));
        // On its own first: parentheses in it must not end the group around it.
        compile(text)?;
        Ok(Self {
            text: text.to_owned(),
            regex: compile(&format!(r"\A(?:{text})\z"))?,
        })
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }
}

impl PartialEq for NameExpression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NameExpression {}
