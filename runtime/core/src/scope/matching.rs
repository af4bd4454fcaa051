//! The existing namespaces that match the patterns.

use std::collections::{BTreeMap, BTreeSet};

use super::NamespacePattern;

/// The matching namespaces with their UIDs.
#[derive(Debug, Clone)]
pub struct MatchingNamespaces {
    patterns: Vec<NamespacePattern>,
    served: BTreeMap<String, String>,
}

// === impl MatchingNamespaces ===

impl MatchingNamespaces {
    /// No namespaces so far.
    #[must_use]
    pub fn new(patterns: Vec<NamespacePattern>) -> Self {
        Self {
            patterns,
            served: BTreeMap::new(),
        }
    }

    /// Adds a namespace that exists; returns `true` if it is served from now on.
    pub fn add(&mut self, name: &str, uid: &str) -> bool {
        let wanted = self.patterns.iter().any(|pattern| pattern.matches(name));
        wanted
            && self
                .served
                .insert(name.to_owned(), uid.to_owned())
                .is_none()
    }

    /// Removes a deleted namespace; returns `true` if it is no longer served.
    ///
    /// A list may show a new namespace of the same name before the deletion is observed.
    pub fn remove(&mut self, name: &str, uid: &str) -> bool {
        let present = self.served.get(name).is_some_and(|it| it == uid);
        present && self.served.remove(name).is_some()
    }

    /// The names, in order.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        self.served.keys().cloned().collect()
    }

    /// The namespaces that the patterns name literally.
    #[must_use]
    pub fn literals(&self) -> BTreeSet<String> {
        let literals = self.patterns.iter().filter_map(NamespacePattern::literal);
        literals.map(str::to_owned).collect()
    }

    /// The patterns for which namespaces must be listed.
    pub fn globs(&self) -> impl Iterator<Item = &NamespacePattern> {
        let patterns = self.patterns.iter();
        patterns.filter(|pattern| pattern.literal().is_none())
    }
}
