//! The properties of a kind: names, scope, status subresource, and its discovery.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kopf_core::selection::resolve::Wanted;
use kopf_core::selection::{DiscoveredResource, Selector};

/// A kind, as generated code declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceSpec {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The served version that is watched.
    pub version: &'static str,
    /// The kind, e.g. `KopfExample`.
    pub kind: &'static str,
    /// The plural that request paths use, e.g. `kopfexamples`.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// Whether the kind has the status subresource.
    pub status: StatusSubresource,
}

/// A kind that is declared, or was discovered while the operator runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KindSpec {
    pub(crate) group: Arc<str>,
    pub(crate) version: Arc<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) plural: Arc<str>,
    pub(crate) scope: Scope,
    pub(crate) status: StatusSubresource,
}

/// The `apiVersion` and `kind` of objects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KindName {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// Whether objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Each object lives in a namespace.
    Namespaced,
    /// Objects belong to the cluster.
    Cluster,
}

/// Whether a kind has the status subresource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatusSubresource {
    /// Status is written through `/status`, and a body patch ignores it.
    Present,
    /// Status is a field like any other.
    Absent,
}

/// The kinds that a handler declaration is for.
#[derive(Debug, Clone)]
pub(crate) enum ResourceTarget {
    /// One kind, declared by name.
    Kind(ResourceSpec),
    /// All served kinds that match a selector.
    Selection(Selector),
}

/// The discovery of a kind, or its declaration until then; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ResourceDescription {
    /// Never held across an await.
    known: Arc<Mutex<(Arc<DiscoveredResource>, DescriptionSource)>>,
    /// Locked during discovery, so that it runs once.
    discovering: Arc<tokio::sync::Mutex<()>>,
}

/// The source of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DescriptionSource {
    /// The declaration; no discovery is needed.
    Declared,
    /// The declaration, until discovery.
    ToDiscover,
    /// The declaration, as discovery has failed.
    DiscoveryFailed,
    /// Discovery.
    Discovered,
}

// === impl ResourceSpec ===

impl ResourceSpec {
    /// The `apiVersion` of the kind's objects.
    #[must_use]
    pub fn api_version(&self) -> String {
        api_version(self.group, self.version)
    }

    pub(crate) fn is_same_kind(&self, other: &Self) -> bool {
        (self.group, self.plural) == (other.group, other.plural)
    }
}

// === impl KindSpec ===

impl KindSpec {
    /// The `apiVersion` of the kind's objects.
    pub(crate) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    pub(crate) fn kind_name(&self) -> KindName {
        KindName {
            api_version: self.api_version(),
            kind: self.kind.to_string(),
        }
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

impl From<ResourceSpec> for KindSpec {
    fn from(declared: ResourceSpec) -> Self {
        Self {
            group: declared.group.into(),
            version: declared.version.into(),
            kind: declared.kind.into(),
            plural: declared.plural.into(),
            scope: declared.scope,
            status: declared.status,
        }
    }
}

impl From<&DiscoveredResource> for KindSpec {
    fn from(found: &DiscoveredResource) -> Self {
        Self {
            group: found.group.as_str().into(),
            version: found.version.as_str().into(),
            kind: found.kind.as_str().into(),
            plural: found.plural.as_str().into(),
            scope: if found.namespaced {
                Scope::Namespaced
            } else {
                Scope::Cluster
            },
            status: if found.has_status() {
                StatusSubresource::Present
            } else {
                StatusSubresource::Absent
            },
        }
    }
}

// === impl ResourceTarget ===

impl ResourceTarget {
    /// The resources of the API server that it is for.
    pub(crate) fn wanted(&self) -> Wanted {
        match self {
            Self::Kind(spec) => Wanted::Exact {
                group: spec.group.to_owned(),
                version: spec.version.to_owned(),
                plural: spec.plural.to_owned(),
            },
            Self::Selection(selector) => Wanted::Selected(selector.clone()),
        }
    }

    /// Whether both may match the same kind.
    pub(crate) fn may_overlap(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Kind(one), Self::Kind(other)) => one.is_same_kind(other),
            (Self::Selection(one), Self::Selection(other)) => one.may_overlap(other),
            (Self::Kind(kind), Self::Selection(selector))
            | (Self::Selection(selector), Self::Kind(kind)) => {
                selector.may_select(kind.group, kind.kind, kind.plural)
            }
        }
    }
}

impl fmt::Display for ResourceTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(spec) => f.write_str(spec.kind),
            Self::Selection(selector) => write!(f, "the selection {selector}"),
        }
    }
}

// === impl ResourceDescription ===

impl ResourceDescription {
    /// The description of a declaration.
    pub(crate) fn declared(spec: &KindSpec) -> Self {
        let subresources = match spec.status {
            StatusSubresource::Present => BTreeSet::from(["status".to_owned()]),
            StatusSubresource::Absent => BTreeSet::new(),
        };
        let resource = DiscoveredResource {
            group: spec.group.to_string(),
            version: spec.version.to_string(),
            kind: spec.kind.to_string(),
            plural: spec.plural.to_string(),
            singular: spec.kind.to_lowercase(),
            namespaced: spec.scope == Scope::Namespaced,
            subresources,
            ..DiscoveredResource::default()
        };
        Self {
            known: Arc::new(Mutex::new((
                Arc::new(resource),
                DescriptionSource::Declared,
            ))),
            discovering: Arc::default(),
        }
    }

    /// The description of a declaration, until discovery.
    pub(crate) fn to_discover(spec: &KindSpec) -> Self {
        let description = Self::declared(spec);
        description.known().1 = DescriptionSource::ToDiscover;
        description
    }

    /// The current description.
    pub(crate) fn get(&self) -> Arc<DiscoveredResource> {
        Arc::clone(&self.known().0)
    }

    /// Sets the result of discovery.
    pub(crate) fn set_discovered(&self, found: Arc<DiscoveredResource>) {
        *self.known() = (found, DescriptionSource::Discovered);
    }

    /// Requires discovery again: the kind may have been deleted and defined again, or the last
    /// discovery has failed.
    pub(crate) fn mark_stale(&self) {
        let mut known = self.known();
        if known.1 != DescriptionSource::Declared {
            known.1 = DescriptionSource::ToDiscover;
        }
    }

    /// Runs discovery if it is required, and no other task has done it meanwhile.
    pub(crate) async fn discover_if_stale<E>(
        &self,
        discovery: impl Future<Output = Result<Option<DiscoveredResource>, E>>,
    ) -> Result<(), E> {
        if !self.is_stale() {
            return Ok(());
        }
        let _discovering = self.discovering.lock().await;
        if !self.is_stale() {
            return Ok(());
        }
        match discovery.await {
            Ok(Some(found)) => self.set_discovered(Arc::new(found)),
            // The stream of the kind reports that it is not served.
            Ok(None) => {}
            Err(error) => {
                self.known().1 = DescriptionSource::DiscoveryFailed;
                return Err(error);
            }
        }
        Ok(())
    }

    fn is_stale(&self) -> bool {
        self.known().1 == DescriptionSource::ToDiscover
    }

    fn known(&self) -> MutexGuard<'_, (Arc<DiscoveredResource>, DescriptionSource)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
