//! The kinds that discovery should list according to their definitions, which it follows with a
//! delay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::DiscoveredResource;

/// The kinds that discovery should list, by the observed events of their definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedKinds {
    /// By the name of the definition, which is also that of the resource.
    kinds: BTreeMap<Box<str>, DefinitionEvent>,
}

/// The last event of the definition of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionEvent {
    /// The definition was in the initial list.
    Listed,
    /// The definition was added or modified.
    Changed,
    /// The definition was deleted.
    Deleted,
}

impl ExpectedKinds {
    /// Records an event of a definition; returns whether discovery has to be read again.
    pub fn observe(
        &mut self,
        name: &str,
        event: DefinitionEvent,
        catalog: &[Arc<DiscoveredResource>],
    ) -> bool {
        self.kinds.insert(name.into(), event);
        // Discovery was read after the definitions of the initial list were made.
        event != DefinitionEvent::Listed || !catalog.iter().any(|it| it.name() == name)
    }

    /// Whether discovery agrees with the definitions.
    #[must_use]
    pub fn is_met_by(&self, catalog: &[Arc<DiscoveredResource>]) -> bool {
        let served = names(catalog);
        let mut kinds = self.kinds.iter();
        kinds.all(|(name, event)| served.contains(&**name) == (*event != DefinitionEvent::Deleted))
    }

    /// Drops the kinds that are deleted and not in discovery any more.
    pub fn forget_deleted(&mut self, catalog: &[Arc<DiscoveredResource>]) {
        let served = names(catalog);
        self.kinds
            .retain(|name, event| *event != DefinitionEvent::Deleted || served.contains(&**name));
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
    fn a_listed_definition_requires_discovery_only_if_its_kind_is_unknown() {
        let mut expected = ExpectedKinds::default();
        let catalog = served(&["dolls"]);
        assert!(!expected.observe("dolls.example.com", DefinitionEvent::Listed, &catalog));
        assert!(expected.observe("kites.example.com", DefinitionEvent::Listed, &catalog));
        assert!(expected.observe("dolls.example.com", DefinitionEvent::Changed, &catalog));
    }

    #[test]
    fn discovery_is_read_until_it_agrees_with_the_definitions() {
        let mut expected = ExpectedKinds::default();
        assert!(expected.is_met_by(&served(&["others"])));
        expected.observe("dolls.example.com", DefinitionEvent::Changed, &[]);
        assert!(!expected.is_met_by(&served(&["others"])));
        assert!(expected.is_met_by(&served(&["dolls", "others"])));
        expected.observe("dolls.example.com", DefinitionEvent::Deleted, &[]);
        assert!(!expected.is_met_by(&served(&["dolls"])));
        assert!(expected.is_met_by(&served(&[])));
    }

    #[test]
    fn deleted_kinds_are_dropped_when_discovery_does_not_list_them() {
        let mut expected = ExpectedKinds::default();
        expected.observe("dolls.example.com", DefinitionEvent::Deleted, &[]);
        expected.forget_deleted(&served(&["dolls"]));
        assert!(!expected.is_met_by(&served(&["dolls"])));
        expected.forget_deleted(&served(&[]));
        assert_eq!(expected, ExpectedKinds::default());
    }
}
