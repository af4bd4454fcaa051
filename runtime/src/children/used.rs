//! The objects that others refer to.

use std::collections::{BTreeSet, HashMap};

use kopf_core::object::resource_version::ResourceVersion;

use super::ChildIdentity;
use crate::watch::{WatchEvent, WatchEventType};

/// The objects that owners refer to, and their versions; never their contents.
#[derive(Default)]
pub(super) struct UsedObjects {
    /// The uids of the owners that refer to an object.
    users: HashMap<ChildIdentity, BTreeSet<Box<str>>>,
    /// The objects that an owner refers to, by its uid.
    used: HashMap<Box<str>, Vec<ChildIdentity>>,
    versions: HashMap<ChildIdentity, ResourceVersion>,
}

// === impl UsedObjects ===

impl UsedObjects {
    /// Sets the objects that an owner refers to.
    pub(super) fn set(&mut self, owner: &str, names: Vec<ChildIdentity>) {
        if self.used.get(owner) == Some(&names) {
            return;
        }
        for former in self.used.remove(owner).unwrap_or_default() {
            if let Some(users) = self.users.get_mut(&former) {
                users.remove(owner);
                if users.is_empty() {
                    self.users.remove(&former);
                    self.versions.remove(&former);
                }
            }
        }
        if names.is_empty() {
            return;
        }
        for name in &names {
            let users = self.users.entry(name.clone()).or_default();
            users.insert(owner.into());
        }
        self.used.insert(owner.into(), names);
    }

    /// The owners that refer to the object of an event, unless its state is known.
    pub(super) fn observe(
        &mut self,
        identity: &ChildIdentity,
        watch_event: &WatchEvent,
    ) -> impl Iterator<Item = Box<str>> + use<> {
        let users = self.users.get(identity).cloned().unwrap_or_default();
        let mut is_known = false;
        if !users.is_empty() {
            is_known = match (&watch_event.version, watch_event.event_type) {
                (_, WatchEventType::Deleted) | (None, _) => {
                    self.versions.remove(identity);
                    false
                }
                (Some(version), _) => {
                    let known = self.versions.insert(identity.clone(), version.clone());
                    known.as_ref() == Some(version)
                }
            };
        }
        users.into_iter().filter(move |_| !is_known)
    }
}
