//! The namespaces that an operator serves: patterns of names, and the namespaces that match.
//!
//! Patterns are those of Kopf: globs separated by commas, where `!` excludes. A namespace must
//! match the first glob; of the others, the rightmost one that matches decides. Programs can use
//! regular expressions, too.

mod expression;
mod glob;
pub mod matching;

use std::fmt;

pub use self::expression::InvalidExpression;
use self::expression::NameExpression;
use self::glob::Glob;

/// A pattern of names of namespaces, such as `myapp-*, !*-pr-*, *-pr-123`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacePattern {
    text: String,
    syntax: PatternSyntax,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternSyntax {
    Globs {
        first: Glob,
        others: Vec<(GlobEffect, Glob)>,
    },
    Expression(NameExpression),
}

/// The effect of a glob after the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GlobEffect {
    Include,
    Exclude,
}

/// The reason why a pattern is probably a mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternProblem {
    /// A glob is empty, and names are not.
    #[error("a glob is empty")]
    Empty,
    /// The first glob is a name, so that no other namespace can be included.
    #[error(
        "{part:?} is never served: only what matches the first glob {first:?} is; \
         several namespaces are several patterns"
    )]
    Unreachable {
        /// The glob without effect.
        part: String,
        /// The first glob.
        first: String,
    },
    /// Names of namespaces do not contain this character.
    #[error("no namespace has {character:?} in its name")]
    Impossible {
        /// The character.
        character: char,
    },
}

// === impl NamespacePattern ===

impl NamespacePattern {
    /// Reads a pattern; every text is one.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut parts = text.split(',').map(str::trim).peekable();
        let implied = parts.peek().is_none_or(|first| first.starts_with('!'));
        let first = if implied {
            Glob::new("*")
        } else {
            Glob::new(parts.next().unwrap_or_default())
        };
        let others = parts.map(|part| match part.strip_prefix('!') {
            Some(excluded) => (
                GlobEffect::Exclude,
                Glob::new(excluded.trim_start_matches('!')),
            ),
            None => (GlobEffect::Include, Glob::new(part)),
        });
        Self {
            text: text.to_owned(),
            syntax: PatternSyntax::Globs {
                first,
                others: others.collect(),
            },
        }
    }

    /// A regular expression that the whole name must match, such as `myapp-(dev|test)-[0-9]+`.
    ///
    /// # Errors
    /// If the text is not a regular expression.
    pub fn regex(text: &str) -> Result<Self, InvalidExpression> {
        Ok(Self {
            text: text.to_owned(),
            syntax: PatternSyntax::Expression(NameExpression::new(text)?),
        })
    }

    /// Whether a namespace of this name is served.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let (first, others) = match &self.syntax {
            PatternSyntax::Globs { first, others } => (first, others),
            PatternSyntax::Expression(expression) => return expression.matches(name),
        };
        let considered = first.matches(name);
        let rightmost = others.iter().rev().find(|(_, it)| it.matches(name));
        considered && rightmost.is_none_or(|(effect, _)| *effect == GlobEffect::Include)
    }

    /// The name, if the pattern is just a name.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        let PatternSyntax::Globs { first, others } = &self.syntax else {
            return None;
        };
        let name = first.literal()?;
        others.is_empty().then_some(name)
    }

    /// The problem of a pattern that is probably a mistake; it could still be used.
    #[must_use]
    pub fn problem(&self) -> Option<PatternProblem> {
        let PatternSyntax::Globs { first, others } = &self.syntax else {
            return None;
        };
        let globs = || std::iter::once(first).chain(others.iter().map(|(_, glob)| glob));
        if globs().any(|glob| glob.text().is_empty()) {
            return Some(PatternProblem::Empty);
        }
        let foreign = |letter: &char| !matches!(letter, 'a'..='z' | '0'..='9' | '-' | '.' | '*' | '?' | '[' | ']' | '!');
        if let Some(character) = globs().find_map(|glob| glob.text().chars().find(foreign)) {
            return Some(PatternProblem::Impossible { character });
        }
        let first = first.literal()?;
        let mut others = others.iter();
        let unreachable =
            others.find(|(effect, glob)| *effect == GlobEffect::Include && !glob.matches(first));
        unreachable.map(|(_, glob)| PatternProblem::Unreachable {
            part: glob.text().to_owned(),
            first: first.to_owned(),
        })
    }
}

impl fmt::Display for NamespacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&str> for NamespacePattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for NamespacePattern {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

#[cfg(test)]
mod tests;
