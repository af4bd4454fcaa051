//! Which namespaces an operator serves: patterns of names, and who of the living matches them.
//!
//! A pattern is what Kopf takes: globs separated by commas, where `!` excludes. The first glob
//! decides who is considered at all, and of the others the rightmost that matches wins.

mod glob;
pub mod matching;

use std::fmt;

use self::glob::Glob;

/// A pattern of names of namespaces, such as `myapp-*, !*-pr-*, *-pr-123`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacePattern {
    text: String,
    decisive: Glob,
    others: Vec<(GlobEffect, Glob)>,
}

/// What a glob after the first does with those that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GlobEffect {
    Include,
    Exclude,
}

/// Why a pattern cannot be what its author meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternProblem {
    /// There is no name of no characters.
    #[error("a glob is empty")]
    Empty,
    /// The first glob is a name, so that nothing else can be included.
    #[error(
        "{part:?} is never served: only what matches the first glob {first:?} is; \
         several namespaces are several patterns"
    )]
    Unreachable {
        /// The glob in vain.
        part: String,
        /// The one that decides.
        first: String,
    },
    /// No namespace may be named like this.
    #[error("no namespace has {character:?} in its name")]
    Impossible {
        /// What is not allowed in names.
        character: char,
    },
}

// === impl NamespacePattern ===

impl NamespacePattern {
    /// Reads a pattern; whatever the text is, it is one.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut parts = text.split(',').map(str::trim).peekable();
        let implied = parts.peek().is_none_or(|first| first.starts_with('!'));
        let decisive = if implied {
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
            decisive,
            others: others.collect(),
        }
    }

    /// Whether a namespace of this name is served.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let considered = self.decisive.matches(name);
        let rightmost = self.others.iter().rev().find(|(_, it)| it.matches(name));
        considered && rightmost.is_none_or(|(effect, _)| *effect == GlobEffect::Include)
    }

    /// The only name that matches, if the pattern is just a name.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        let name = self.decisive.literal()?;
        self.others.is_empty().then_some(name)
    }

    /// What is wrong with the pattern, though it could be used.
    #[must_use]
    pub fn problem(&self) -> Option<PatternProblem> {
        let others = || self.others.iter();
        let globs = || std::iter::once(&self.decisive).chain(others().map(|(_, glob)| glob));
        if globs().any(|glob| glob.text().is_empty()) {
            return Some(PatternProblem::Empty);
        }
        let foreign = |letter: &char| !matches!(letter, 'a'..='z' | '0'..='9' | '-' | '.' | '*' | '?' | '[' | ']' | '!');
        if let Some(character) = globs().find_map(|glob| glob.text().chars().find(foreign)) {
            return Some(PatternProblem::Impossible { character });
        }
        let first = self.decisive.literal()?;
        let vain =
            others().find(|(effect, glob)| *effect == GlobEffect::Include && !glob.matches(first));
        vain.map(|(_, glob)| PatternProblem::Unreachable {
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
