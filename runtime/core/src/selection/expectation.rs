//! What the definitions of kinds lead one to expect of the server's discovery, which follows them
//! with a delay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::DiscoveredResource;

/// Which kinds there should be, as far as their definitions have been seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedKinds {
    /// By the name of the definition, which is that of the resource.
    kinds: BTreeMap<Box<str>, KindPresence>,
}

/// Whether there should be a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindPresence {
    /// Its definition was there when one began to look.
    Known,
    /// Its definition has come or changed.
    Changed,
    /// Its definition has gone.
    Gone,
}

impl ExpectedKinds {
    /// Takes in what was seen of a definition; whether the server has to be asked because of it.
    pub fn saw(
        &mut self,
        name: &str,
        presence: KindPresence,
        catalog: &[Arc<DiscoveredResource>],
    ) -> bool {
        self.kinds.insert(name.into(), presence);
        // What was there before has been read along with everything else.
        presence != KindPresence::Known || !catalog.iter().any(|it| it.name() == name)
    }

    /// Whether the server serves what the definitions say.
    #[must_use]
    pub fn is_met_by(&self, catalog: &[Arc<DiscoveredResource>]) -> bool {
        let served = names(catalog);
        let mut kinds = self.kinds.iter();
        kinds.all(|(name, presence)| served.contains(&**name) == (*presence != KindPresence::Gone))
    }

    /// Forgets the kinds that are gone on both sides.
    pub fn settle(&mut self, catalog: &[Arc<DiscoveredResource>]) {
        let served = names(catalog);
        self.kinds
            .retain(|name, presence| *presence != KindPresence::Gone || served.contains(&**name));
    }
}

fn names(catalog: &[Arc<DiscoveredResource>]) -> BTreeSet<String> {
    catalog.iter().map(|it| it.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(plurals: &[&str]) -> Vec<Arc<DiscoveredResource>> {
        let resource = |plural: &&str| DiscoveredResource {
            group: "example.com".to_owned(),
            plural: (*plural).to_owned(),
            ..DiscoveredResource::default()
        };
        plurals.iter().map(resource).map(Arc::new).collect()
    }

    #[test]
    fn what_was_there_before_is_no_reason_to_ask_unless_it_is_not_known() {
        let mut expectation = ExpectedKinds::default();
        let catalog = served(&["dolls"]);
        assert!(!expectation.saw("dolls.example.com", KindPresence::Known, &catalog));
        assert!(expectation.saw("kites.example.com", KindPresence::Known, &catalog));
        assert!(expectation.saw("dolls.example.com", KindPresence::Changed, &catalog));
    }

    #[test]
    fn the_server_is_asked_until_it_agrees_with_the_definitions() {
        let mut expectation = ExpectedKinds::default();
        assert!(expectation.is_met_by(&served(&["others"])));
        expectation.saw("dolls.example.com", KindPresence::Changed, &[]);
        assert!(!expectation.is_met_by(&served(&["others"])));
        assert!(expectation.is_met_by(&served(&["dolls", "others"])));
        expectation.saw("dolls.example.com", KindPresence::Gone, &[]);
        assert!(!expectation.is_met_by(&served(&["dolls"])));
        assert!(expectation.is_met_by(&served(&[])));
    }

    #[test]
    fn kinds_that_are_gone_are_forgotten_when_the_server_has_noticed() {
        let mut expectation = ExpectedKinds::default();
        expectation.saw("dolls.example.com", KindPresence::Gone, &[]);
        expectation.settle(&served(&["dolls"]));
        assert!(!expectation.is_met_by(&served(&["dolls"])));
        expectation.settle(&served(&[]));
        assert_eq!(expectation, ExpectedKinds::default());
    }
}
