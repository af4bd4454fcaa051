//! The namespaces that exist and match, as they come and go.

use std::collections::{BTreeMap, BTreeSet};

use super::NamespacePattern;

/// The matching namespaces, each with the identity of its present incarnation.
#[derive(Debug, Clone)]
pub struct MatchingNamespaces {
    patterns: Vec<NamespacePattern>,
    served: BTreeMap<String, String>,
}

// === impl MatchingNamespaces ===

impl MatchingNamespaces {
    /// Nobody so far.
    #[must_use]
    pub fn new(patterns: Vec<NamespacePattern>) -> Self {
        Self {
            patterns,
            served: BTreeMap::new(),
        }
    }

    /// A namespace exists; `true` if it is served from now on.
    pub fn add(&mut self, name: &str, uid: &str) -> bool {
        let wanted = self.patterns.iter().any(|pattern| pattern.matches(name));
        wanted
            && self
                .served
                .insert(name.to_owned(), uid.to_owned())
                .is_none()
    }

    /// A namespace is gone; `true` if it is no longer served.
    ///
    /// A list may tell of a namesake that came later before it turns out that this one went.
    pub fn remove(&mut self, name: &str, uid: &str) -> bool {
        let present = self.served.get(name).is_some_and(|it| it == uid);
        present && self.served.remove(name).is_some()
    }

    /// The names, in order.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        self.served.keys().cloned().collect()
    }

    /// The namespaces that are known without looking.
    #[must_use]
    pub fn literals(&self) -> BTreeSet<String> {
        let literals = self.patterns.iter().filter_map(NamespacePattern::literal);
        literals.map(str::to_owned).collect()
    }

    /// The patterns that say nothing unless namespaces can be listed.
    pub fn globs(&self) -> impl Iterator<Item = &NamespacePattern> {
        let patterns = self.patterns.iter();
        patterns.filter(|pattern| pattern.literal().is_none())
    }
}
