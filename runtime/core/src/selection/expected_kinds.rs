//! What the definitions of kinds lead one to expect of the server's discovery, which follows them
//! with a delay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::DiscoveredResource;

/// Which kinds there should be, as far as their definitions have been seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedKinds {
    /// By the name of the definition, which is that of the resource.
    kinds: BTreeMap<Box<str>, DefinitionEvent>,
}

/// Whether there should be a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionEvent {
    /// Its definition was there when one began to look.
    Listed,
    /// Its definition has come or changed.
    Changed,
    /// Its definition has gone.
    Deleted,
}

impl ExpectedKinds {
    /// Takes in what was seen of a definition; whether the server has to be asked because of it.
    pub fn observe(
        &mut self,
        name: &str,
        presence: DefinitionEvent,
        catalog: &[Arc<DiscoveredResource>],
    ) -> bool {
        self.kinds.insert(name.into(), presence);
        // What was there before has been read along with everything else.
        presence != DefinitionEvent::Listed || !catalog.iter().any(|it| it.name() == name)
    }

    /// Whether the server serves what the definitions say.
    #[must_use]
    pub fn is_met_by(&self, catalog: &[Arc<DiscoveredResource>]) -> bool {
        let served = names(catalog);
        let mut kinds = self.kinds.iter();
        kinds.all(|(name, presence)| {
            served.contains(&**name) == (*presence != DefinitionEvent::Deleted)
        })
    }

    /// Forgets the kinds that are gone on both sides.
    pub fn forget_deleted(&mut self, catalog: &[Arc<DiscoveredResource>]) {
        let served = names(catalog);
        self.kinds.retain(|name, presence| {
            *presence != DefinitionEvent::Deleted || served.contains(&**name)
        });
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
        assert!(!expectation.observe("dolls.example.com", DefinitionEvent::Listed, &catalog));
        assert!(expectation.observe("kites.example.com", DefinitionEvent::Listed, &catalog));
        assert!(expectation.observe("dolls.example.com", DefinitionEvent::Changed, &catalog));
    }

    #[test]
    fn the_server_is_asked_until_it_agrees_with_the_definitions() {
        let mut expectation = ExpectedKinds::default();
        assert!(expectation.is_met_by(&served(&["others"])));
        expectation.observe("dolls.example.com", DefinitionEvent::Changed, &[]);
        assert!(!expectation.is_met_by(&served(&["others"])));
        assert!(expectation.is_met_by(&served(&["dolls", "others"])));
        expectation.observe("dolls.example.com", DefinitionEvent::Deleted, &[]);
        assert!(!expectation.is_met_by(&served(&["dolls"])));
        assert!(expectation.is_met_by(&served(&[])));
    }

    #[test]
    fn kinds_that_are_gone_are_forgotten_when_the_server_has_noticed() {
        let mut expectation = ExpectedKinds::default();
        expectation.observe("dolls.example.com", DefinitionEvent::Deleted, &[]);
        expectation.forget_deleted(&served(&["dolls"]));
        assert!(!expectation.is_met_by(&served(&["dolls"])));
        expectation.forget_deleted(&served(&[]));
        assert_eq!(expectation, ExpectedKinds::default());
    }
}
