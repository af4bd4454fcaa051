//! The states of the objects when a pause ends: no handler is called for an earlier one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::meta;
use super::process::Sender;
use crate::operator::BegunCall;
use crate::server::version;
use crate::world::Violation;

/// The versions that objects had when each process began to run, at its start or after a pause.
#[derive(Debug, Default)]
pub(super) struct ResumedStates {
    versions: BTreeMap<Sender, BTreeMap<String, u64>>,
}

// === impl ResumedStates ===

impl ResumedStates {
    /// A process begins to run while these objects exist.
    pub(super) fn resumed<'a>(&mut self, sender: Sender, objects: impl Iterator<Item = &'a Value>) {
        let versions = objects.map(|it| (meta(it, "uid").to_owned(), version(it)));
        self.versions.insert(sender, versions.collect());
    }

    /// Another process may have handled an object in the pause: the list after it tells.
    pub(super) fn check(&self, sender: Sender, call: &BegunCall) -> Result<(), Violation> {
        let versions = self.versions.get(&sender);
        match versions.and_then(|it| it.get(call.uid)) {
            Some(resumed) if call.version < *resumed => {
                let (handler, uid, seen) = (&call.handler, call.uid, call.version);
                let details = format!("{handler} for {uid} at {seen}, after {resumed}");
                let claim = "no handler is called for a state from before the pause";
                Err(Violation::new(claim, details))
            }
            _ => Ok(()),
        }
    }
}
