//! Children that another operator made, for example one in Python: they have owner references, and
//! no label of ours.

use std::collections::HashMap;
use std::sync::Arc;

use kopf_core::children::OWNER_LABEL;
use kube::ResourceExt as _;
use kube::api::ListParams;
use tokio::sync::{Mutex, OnceCell};

use super::store::child::StoredChild;
use super::{ChildIdentity, Children, OwnedKind};
use crate::watch::{KindIndex, ObjectKey};

/// The number of objects in one page of a list.
const PAGE: u32 = 500;

/// Children without our labels, by the uids of their owners.
type ByOwner = HashMap<String, Vec<(ChildIdentity, StoredChild)>>;

/// A list of a kind in a namespace, in one epoch: after a pause, another operator may have acted.
type ListKey = (KindIndex, Option<Box<str>>, u64);

/// One list of each kind and namespace, when the first owner asks for it. Owners that are created
/// after it have no such children.
#[derive(Default)]
pub(super) struct AdoptedChildren {
    lists: Mutex<HashMap<ListKey, Arc<OnceCell<ByOwner>>>>,
}

impl Children {
    /// Adds the children of an owner that have no label of ours to the store.
    pub(crate) async fn find_adopted(
        &self,
        owner: &ObjectKey,
        kinds: &[OwnedKind],
        epoch: u64,
    ) -> Result<(), kube::Error> {
        for kind in kinds {
            if !kind.namespaced && owner.namespace.is_some() {
                continue;
            }
            let key = (kind.index, owner.namespace.clone(), epoch);
            let list = {
                let mut lists = self.adopted.lists.lock().await;
                lists.retain(|(_, _, known), _| *known == epoch);
                Arc::clone(lists.entry(key).or_default())
            };
            let listed =
                list.get_or_try_init(|| self.list_adopted(kind, owner.namespace.as_deref()));
            let found = listed.await?.get(&*owner.uid).cloned();
            if let Some(found) = found {
                self.store().add_adopted(&owner.uid, found);
            }
        }
        Ok(())
    }

    async fn list_adopted(
        &self,
        kind: &OwnedKind,
        namespace: Option<&str>,
    ) -> Result<ByOwner, kube::Error> {
        let api = self.api(kind.index, namespace);
        let mut by_owner = ByOwner::new();
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = api.list_metadata(&params).await?;
            for child in page.items {
                if child.labels().contains_key(OWNER_LABEL) {
                    continue;
                }
                let Some(uid) = child.owner_references().first().map(|it| it.uid.clone()) else {
                    continue;
                };
                let identity = ChildIdentity {
                    kind: kind.index,
                    namespace: child.namespace().map(Box::from),
                    name: child.name_any().into(),
                };
                let text = serde_json::to_string(&child).unwrap_or_default();
                let read = StoredChild::read(self.kind(kind.index), &text, &self.manager);
                if let Some((child, _)) = read {
                    by_owner.entry(uid).or_default().push((identity, child));
                }
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(by_owner),
            }
        }
    }
}
