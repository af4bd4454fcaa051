//! What the runtime knows about a kind: names, scope, and whether status has an endpoint of its own.

/// A kind as the generated code declares it.
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
    /// Whether the status is written through an endpoint of its own.
    pub status: StatusSubresource,
}

/// How objects name their kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KindName {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// Whether objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Each object lives in a namespace.
    Namespaced,
    /// Objects belong to the cluster.
    Cluster,
}

/// Whether a kind has the status subresource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusSubresource {
    /// Status is written through `/status`, and a body patch ignores it.
    Present,
    /// Status is a field like any other.
    Absent,
}

impl ResourceSpec {
    /// The `apiVersion` of the kind's objects.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn kind_name(&self) -> KindName {
        KindName {
            api_version: self.api_version(),
            kind: self.kind.to_owned(),
        }
    }

    pub(crate) fn is_same_kind(&self, other: &Self) -> bool {
        (self.group, self.plural) == (other.group, other.plural)
    }
}
