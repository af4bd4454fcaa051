//! The children of handled objects: their watches, their store, and the requests about them.
//!
//! The store of labelled children is the inventory: no owner carries a list of its children.

pub(crate) mod adopted;
mod apply;
mod conflict;
mod json;
pub(crate) mod owner;
mod removal;
pub(crate) mod requeues;
pub(crate) mod store;
mod used;
pub(crate) mod watcher;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kopf_core::children::OPERATOR_LABEL;
use kopf_core::children::desired::operator_label;
use kopf_core::children::options::{ChildContents, ChildOptions};
use kopf_core::handler::HandlerId;
use kopf_core::handler::watch_selectors::{LabelRequirement, WatchSelectors};
use kopf_core::object::resource_version::ResourceVersion;
use kube::api::{ApiResource, DynamicObject};
use kube::core::Request;
use kube::{Api, Client, Resource as _};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use self::adopted::AdoptedChildren;
use self::requeues::{OwnerRequeue, OwnerRequeues};
use self::store::{ChildEvent, ChildStore};
use crate::client::requests::KindApi;
use crate::client::resource::{KindName, KindSpec, ResourceSpec, Scope};
use crate::handler::UsedBy;
use crate::watch::{KindIndex, ObjectKey};

/// The identity of a child among those of its owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChildIdentity {
    pub(crate) kind: KindIndex,
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) name: Box<str>,
}

/// All children of all objects of an operator.
pub(crate) struct Children {
    client: Client,
    /// The name of the operator, which is the field manager of all applications.
    manager: Arc<str>,
    kinds: Vec<WatchedKind>,
    /// Never held across an await.
    store: Mutex<ChildStore>,
    adopted: AdoptedChildren,
    requeues: OwnerRequeues,
    /// The start of the operator.
    origin: Instant,
}

/// A kind of children, or of objects that are referred to, which is watched once.
#[derive(Debug)]
pub(crate) struct WatchedKind {
    pub(crate) index: KindIndex,
    pub(crate) spec: KindSpec,
    pub(crate) role: RelatedRole,
    resource: ApiResource,
}

/// The relation of a kind to the handled ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelatedRole {
    /// Its objects are children.
    Child(ChildContents),
    /// Its objects are referred to.
    Used,
}

/// A kind of children of one handled kind.
#[derive(Debug, Clone)]
pub(crate) struct OwnedKind {
    pub(crate) name: KindName,
    /// The name of the kind in the record of `reconcile`.
    pub(crate) record_id: HandlerId,
    pub(crate) index: KindIndex,
    pub(crate) namespaced: bool,
    pub(crate) options: ChildOptions,
}

/// A kind that objects of one handled kind refer to.
#[derive(Debug, Clone)]
pub(crate) struct ReferredKind {
    pub(crate) index: KindIndex,
    pub(crate) by: UsedBy,
}

// === impl Children ===

impl Children {
    /// No children so far.
    pub(crate) fn new(
        client: Client,
        manager: Arc<str>,
        declared: impl IntoIterator<Item = (ResourceSpec, RelatedRole)>,
    ) -> Arc<Self> {
        let mut kinds: Vec<WatchedKind> = Vec::new();
        for (spec, role) in declared {
            let known = kinds
                .iter_mut()
                .find(|kind| kind.is(&spec) && kind.role.is_child() == role.is_child());
            match known {
                Some(known) if role == RelatedRole::Child(ChildContents::Bodies) => {
                    known.role = role;
                }
                Some(_) => {}
                None => {
                    // More kinds than a u16 counts are not declared by hand.
                    let index = u16::try_from(kinds.len()).unwrap_or(u16::MAX);
                    kinds.push(WatchedKind::new(KindIndex(index), spec, role));
                }
            }
        }
        Arc::new(Self {
            client,
            manager,
            kinds,
            store: Mutex::default(),
            adopted: AdoptedChildren::default(),
            requeues: OwnerRequeues::default(),
            origin: Instant::now(),
        })
    }

    /// The owners that are to be handled again.
    pub(crate) fn requeues(&self) -> &OwnerRequeues {
        &self.requeues
    }

    /// The kinds to watch.
    pub(crate) fn kinds(&self) -> &[WatchedKind] {
        &self.kinds
    }

    /// A kind of children by its declaration.
    pub(crate) fn owned(
        &self,
        name: &KindName,
        spec: &ResourceSpec,
        options: ChildOptions,
    ) -> Option<OwnedKind> {
        let mut kinds = self.kinds.iter();
        let kind = kinds.find(|kind| kind.is(spec) && kind.role.is_child())?;
        Some(OwnedKind {
            name: name.clone(),
            record_id: HandlerId::new(&format!("{}/{}", name.api_version, name.kind)),
            index: kind.index,
            namespaced: kind.spec.scope == Scope::Namespaced,
            options,
        })
    }

    /// A kind that is referred to by its declaration.
    pub(crate) fn referred(&self, spec: &ResourceSpec, by: &UsedBy) -> Option<ReferredKind> {
        let mut kinds = self.kinds.iter();
        let kind = kinds.find(|kind| kind.is(spec) && kind.role == RelatedRole::Used)?;
        Some(ReferredKind {
            index: kind.index,
            by: by.clone(),
        })
    }

    /// The API of a kind for its lists and watches.
    pub(crate) fn watched_api(&self, kind: &WatchedKind) -> KindApi {
        let mut selectors = WatchSelectors::default();
        if kind.role.is_child() {
            let operator = LabelRequirement::In([operator_label(&self.manager)].into());
            selectors.labels.insert(OPERATOR_LABEL.to_owned(), operator);
        }
        let api = KindApi::new(self.client.clone(), kind.spec.clone(), selectors);
        match kind.role {
            RelatedRole::Child(ChildContents::Bodies) => api,
            RelatedRole::Child(ChildContents::Metadata) | RelatedRole::Used => api.metadata_only(),
        }
    }

    /// Notes that the objects of a kind are watched in a namespace, or everywhere.
    pub(crate) fn set_watched(&self, kind: KindIndex, namespace: Option<&str>, watched: bool) {
        self.store().set_watched(kind, namespace, watched);
    }

    /// Notes a state of an owner, so that a call for its children needs no request for it;
    /// `handled` are the kinds of its children with handlers.
    pub(crate) fn update_owner(
        &self,
        key: &Arc<ObjectKey>,
        handled: &Arc<[KindIndex]>,
        text: &Arc<RawValue>,
        version: Option<ResourceVersion>,
    ) {
        self.store().update_owner(key, handled, text, version);
    }

    /// Notes that the handling of an owner begins: from now on its children call for it.
    pub(crate) fn begin_handling(&self, key: &ObjectKey) {
        self.store().begin_handling(&key.uid);
    }

    /// Notes an older state of an owner: the API server was restored from a backup.
    pub(crate) fn replace_owner(
        &self,
        key: &Arc<ObjectKey>,
        handled: &Arc<[KindIndex]>,
        text: &Arc<RawValue>,
    ) {
        self.store().replace_owner(key, handled, text);
    }

    /// The newest state of an owner.
    pub(crate) fn latest_owner(&self, key: &ObjectKey) -> Option<Arc<RawValue>> {
        self.store().latest_owner(&key.uid)
    }

    /// Notes the objects that an owner refers to.
    pub(crate) fn set_uses(&self, key: &ObjectKey, kinds: &[ReferredKind], object: &Value) {
        let names = kinds.iter().flat_map(|kind| {
            let names = kind.by.names(object).into_iter();
            let is_namespaced = self.kind(kind.index).spec.scope == Scope::Namespaced;
            names.map(move |(namespace, name)| ChildIdentity {
                kind: kind.index,
                namespace: namespace.filter(|_| is_namespaced).map(Box::from),
                name: name.into(),
            })
        });
        self.store().set_uses(&key.uid, names.collect());
    }

    /// Forgets an owner that does not exist any more.
    pub(crate) fn forget_owner(&self, key: &ObjectKey) {
        self.store().forget_owner(&key.uid);
    }

    /// What happened to the children of an owner, for their handlers.
    pub(crate) fn take_news(&self, key: &ObjectKey) -> Vec<ChildEvent> {
        self.store().take_news(&key.uid)
    }

    /// Handles an owner again after this time, unless that is planned already.
    pub(crate) fn requeue_after(self: &Arc<Self>, key: &Arc<ObjectKey>, delay: Duration) {
        if !self.requeues.plan(key) {
            return;
        }
        let (children, key) = (Arc::downgrade(self), Arc::clone(key));
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // Without them the operator has stopped; the next start handles every object.
            if let Some(children) = children.upgrade() {
                children.requeues.push_planned(key);
            }
        });
    }

    fn kind(&self, index: KindIndex) -> &WatchedKind {
        &self.kinds[usize::from(index.0)]
    }

    /// Makes requests for the children of a kind in a namespace.
    fn requests(&self, kind: KindIndex, namespace: Option<&str>) -> Request {
        Request::new(DynamicObject::url_path(
            &self.kind(kind).resource,
            namespace,
        ))
    }

    fn api(&self, kind: KindIndex, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = &self.kind(kind).resource;
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    /// Whether an owner has a child of a kind that `reconcile` has applied.
    pub(crate) fn has_applied(&self, owner: &ObjectKey, kind: &OwnedKind) -> bool {
        self.store().has_applied(&owner.uid, kind.index)
    }

    fn store(&self) -> MutexGuard<'_, ChildStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requeue(&self, requeues: impl IntoIterator<Item = OwnerRequeue>) {
        for requeue in requeues {
            self.requeues.push(requeue);
        }
    }
}

// === impl WatchedKind ===

impl WatchedKind {
    fn new(index: KindIndex, spec: ResourceSpec, role: RelatedRole) -> Self {
        let resource = ApiResource {
            group: spec.group.to_owned(),
            version: spec.version.to_owned(),
            api_version: spec.api_version(),
            kind: spec.kind.to_owned(),
            plural: spec.plural.to_owned(),
        };
        Self {
            index,
            spec: spec.into(),
            role,
            resource,
        }
    }

    fn is(&self, spec: &ResourceSpec) -> bool {
        let own = (&*self.spec.group, &*self.spec.version, &*self.spec.plural);
        own == (spec.group, spec.version, spec.plural)
    }
}

// === impl RelatedRole ===

impl RelatedRole {
    fn is_child(self) -> bool {
        matches!(self, Self::Child(_))
    }
}
