//! The namespaces that an operator serves: patterns of names, and the namespaces that match.
//!
//! Patterns are those of Kopf: globs separated by commas, where `!` excludes. A namespace must
//! match the first glob; of the others, the rightmost one that matches decides.

mod glob;
pub mod matching;

use std::fmt;

use self::glob::Glob;

/// A pattern of names of namespaces, such as `myapp-*, !*-pr-*, *-pr-123`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacePattern {
    text: String,
    first: Glob,
    others: Vec<(GlobEffect, Glob)>,
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
            first,
            others: others.collect(),
        }
    }

    /// Whether a namespace of this name is served.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let considered = self.first.matches(name);
        let rightmost = self.others.iter().rev().find(|(_, it)| it.matches(name));
        considered && rightmost.is_none_or(|(effect, _)| *effect == GlobEffect::Include)
    }

    /// The name, if the pattern is just a name.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        let name = self.first.literal()?;
        self.others.is_empty().then_some(name)
    }

    /// The problem of a pattern that is probably a mistake; it could still be used.
    #[must_use]
    pub fn problem(&self) -> Option<PatternProblem> {
        let others = || self.others.iter();
        let globs = || std::iter::once(&self.first).chain(others().map(|(_, glob)| glob));
        if globs().any(|glob| glob.text().is_empty()) {
            return Some(PatternProblem::Empty);
        }
        let foreign = |letter: &char| !matches!(letter, 'a'..='z' | '0'..='9' | '-' | '.' | '*' | '?' | '[' | ']' | '!');
        if let Some(character) = globs().find_map(|glob| glob.text().chars().find(foreign)) {
            return Some(PatternProblem::Impossible { character });
        }
        let first = self.first.literal()?;
        let unreachable =
            others().find(|(effect, glob)| *effect == GlobEffect::Include && !glob.matches(first));
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
