//! What lists have brought: an interrupted list is not sent again from its beginning.

use std::collections::{BTreeMap, BTreeSet};

use kopf_core::object::resource_version::ResourceVersion;

use super::process::Sender;
use crate::world::Violation;

/// The states that the present list of each process has brought.
#[derive(Debug, Default)]
pub(super) struct ListedStates {
    lists: BTreeMap<Sender, BTreeSet<(&'static str, String)>>,
}

// === impl ListedStates ===

impl ListedStates {
    /// A list has brought a state.
    ///
    /// A list whose receiver is slow may be interrupted each time: it comes to an end only if the
    /// next attempt goes on where this one has ended.
    pub(super) fn listed(
        &mut self,
        sender: Sender,
        uid: &'static str,
        version: &ResourceVersion,
    ) -> Result<(), Violation> {
        let states = self.lists.entry(sender).or_default();
        match states.insert((uid, version.to_string())) {
            true => Ok(()),
            false => {
                let details = format!("{uid} at {version}");
                Err(Violation::new("a list sends each state once", details))
            }
        }
    }

    /// The list is complete, or a pause begins or ends.
    pub(super) fn ended(&mut self, sender: Sender) {
        self.lists.remove(&sender);
    }
}
